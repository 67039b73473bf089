"""Site files of a cluster: what every node's configuration folder holds, as data."""

from __future__ import annotations

import math
import re

from collections.abc import Mapping
from xml.sax.saxutils import escape

from harness.errors import SpecError
from harness.hadoop.jvm import container_options
from harness.hadoop.layout import Layout, Member, make_members
from harness.records.trial import ClusterSpec, NodeSpec
from harness.units import MIB, parse_bytes

SiteFiles = dict[str, dict[str, str]]

AM_MEMORY_MB = 512
ALLOCATION_STEP_MB = 64  # yarn.scheduler.minimum-allocation-mb: requests are rounded up to it
HEARTBEAT_MS = 100
BLOCK_BYTES = 32 * MIB
GPU = "yarn.io/gpu"  # YARN's name of the resource
# Where the history server looks for a job that has just ended, and where it keeps it.
HISTORY_KEYS = ("mapreduce.jobhistory.intermediate-done-dir", "mapreduce.jobhistory.done-dir")
_LEAST_BLOCK, _CHECKSUM_BYTES = 65536, 512

# Addresses, folders and slots are the provider's: an override would take the cluster apart.
_OWNED = re.compile(
    r"fs\.defaultFS|hadoop\.tmp\.dir|dfs\.(namenode|datanode)\.(.*address|.*\.dir|hostname|bind-host)"
    r"|yarn\.(resourcemanager|nodemanager)\.(.*address|.*hostname|bind-host|.*-dirs)"
    r"|yarn\.nodemanager\.resource-type\..*|yarn\.resource-types|mapreduce\.framework\.name"
    r"|mapreduce\.jobhistory\..*(address|-dir)|yarn\.nodemanager\.resource\.memory-mb"
    r"|mapreduce\.(map|reduce)\.resource\.(map|reduce)-slot"
)
_BINARY_SIZE = re.compile(r"\d+(\.\d+)?\s*[KMGT]iB")


def container_mb(memory_bytes: int) -> int:
    """Memory in MiB of the container that YARN grants for *memory_bytes*."""
    return math.ceil(memory_bytes / MIB / ALLOCATION_STEP_MB) * ALLOCATION_STEP_MB


def node_memory_mb(node: NodeSpec) -> int:
    """Memory in MiB that a NodeManager offers: all its slots and one application master."""
    slots = node.map_slots + node.reduce_slots
    return slots * container_mb(node.task_memory_bytes) + AM_MEMORY_MB


def site_files(spec: ClusterSpec, layout: Layout, member: Member) -> SiteFiles:
    """File name -> property -> value for *member*; *spec.site* has the last word."""
    master = layout.master
    files: SiteFiles = {
        "core-site.xml": _core(layout, member, master),
        "hdfs-site.xml": _hdfs(spec, layout, member, master),
        "yarn-site.xml": _yarn(spec.node, layout, member, master),
        "resource-types.xml": {"yarn.resource-types": _resources(spec.node)},
        "mapred-site.xml": _mapred(spec, layout, member, master),
        "capacity-scheduler.xml": _scheduler(),
    }
    for name, value in spec.site.items():
        files[site_file(name)][name] = plain_value(value)
    return files


def refused_overrides(spec: ClusterSpec) -> list[str]:
    """Names in *spec.site* that belong to the provider, each with what to write instead."""
    return [
        f"cluster.site.{name} is set by the provider from cluster.workers and cluster.node"
        for name in spec.site
        if _OWNED.fullmatch(name)
    ]


def site_file(name: str) -> str:
    """
    File that a property belongs to, by its prefix.

    >>> site_file("dfs.blocksize"), site_file("yarn.app.mapreduce.am.resource.mb")
    ('hdfs-site.xml', 'mapred-site.xml')
    """
    prefixes = {
        "yarn.app.mapreduce.": "mapred-site.xml",
        "yarn.scheduler.capacity.": "capacity-scheduler.xml",
        "mapreduce.": "mapred-site.xml",
        "mapred.": "mapred-site.xml",
        "yarn.": "yarn-site.xml",
        "dfs.": "hdfs-site.xml",
    }
    return next((file for p, file in prefixes.items() if name.startswith(p)), "core-site.xml")


def client_file(name: str) -> str:
    """The same among the files that a client reads: core, HDFS, YARN and MapReduce."""
    file = site_file(name)
    return "yarn-site.xml" if file == "capacity-scheduler.xml" else file


def plain_value(text: str) -> str:
    """
    Property value as Hadoop reads it: a size with a binary unit becomes bytes.

    >>> plain_value("32 MiB"), plain_value("0.05")
    ('33554432', '0.05')
    """
    return str(parse_bytes(text)) if _BINARY_SIZE.fullmatch(text.strip()) else text


def client_properties(spec: ClusterSpec) -> dict[str, str]:
    """Properties that a client of a cluster *spec* sees, wherever the cluster lies."""
    layout = Layout(make_members(spec.workers), base="", home="")
    return merged(site_files(spec, layout, layout.master))


def block_bytes(spec: ClusterSpec) -> int:
    """Size of an HDFS block of a cluster *spec*; `SpecError` for what Hadoop would not read."""
    value = plain_value(spec.site.get("dfs.blocksize", str(BLOCK_BYTES)))
    match = re.fullmatch(r"\s*(\d{1,18})([kmgt]?)\s*", value, re.IGNORECASE)
    size = int(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ") if match else 0
    if size < _LEAST_BLOCK or size % _CHECKSUM_BYTES:
        raise SpecError(
            f"dfs.blocksize = {value!r:.80} is not the size of a block",
            where="cluster.site.dfs.blocksize",
            fix="write a multiple of 512 bytes, 64 KiB or more, such as 32 MiB",
        )
    return size


def merged(files: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Properties as a client sees them: core, then HDFS, YARN and MapReduce."""
    order = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml")
    return {name: value for file in order for name, value in files.get(file, {}).items()}


def render_xml(properties: Mapping[str, str]) -> str:
    """Text of a site file; `SpecError` for a character that XML cannot hold."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<configuration>\n'
        + "".join(
            f"<property><name>{_text(name)}</name><value>{_text(value)}</value></property>\n"
            for name, value in properties.items()
        )
        + "</configuration>\n"
    )


LOG4J = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p [%t] %c: %m%n
"""


def _text(value: str) -> str:
    bad = re.search(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", value)
    if bad:
        raise SpecError(
            f"{value!r} holds the character {bad[0]!r}, which a site file cannot hold",
            where="cluster.site",
            fix="write the value without control characters",
        )
    return escape(value)


def _core(layout: Layout, member: Member, master: Member) -> dict[str, str]:
    return {
        "fs.defaultFS": f"hdfs://{master.at('namenode')}",
        "hadoop.tmp.dir": f"{layout.data(member)}/scratch",
        # a DataNode that gives up connecting sleeps 5 s
        "ipc.client.connect.retry.interval": "100",
        "ipc.client.connect.max.retries": "200",
    }


def _hdfs(spec: ClusterSpec, layout: Layout, member: Member, master: Member) -> dict[str, str]:
    data, me = layout.data(member), member
    return {
        "dfs.replication": str(min(spec.workers, 2)),
        "dfs.blocksize": str(BLOCK_BYTES),
        "dfs.namenode.rpc-address": master.at("namenode"),
        "dfs.namenode.http-address": master.at("namenode_http"),
        "dfs.namenode.name.dir": f"file://{data}/name",
        "dfs.datanode.data.dir": f"file://{data}/data",
        "dfs.datanode.address": me.at("datanode"),
        "dfs.datanode.http.address": me.at("datanode_http"),
        "dfs.datanode.ipc.address": me.at("datanode_ipc"),
        "dfs.datanode.hostname": me.host,
        "dfs.permissions.enabled": "false",
        "dfs.namenode.safemode.extension": "0",
        # an empty name space is safe at once; the health gate counts the DataNodes
        "dfs.namenode.safemode.min.datanodes": "0",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
        "dfs.heartbeat.interval": "1",
        "dfs.namenode.heartbeat.recheck-interval": "2000",  # dead after 14 s, not 10 min 30 s
        # 400 ms are lost on every closed file otherwise
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
        "dfs.namenode.resource.du.reserved": "10485760",
        "dfs.namenode.fs-limits.min-block-size": str(_LEAST_BLOCK),
        "dfs.namenode.metrics.logger.period.seconds": "0",
        "dfs.datanode.metrics.logger.period.seconds": "0",
    }


def _resources(node: NodeSpec) -> str:
    """What is counted beside memory and cores; a resource that is not declared cannot be asked."""
    return ",".join(("map-slot", "reduce-slot", *([GPU] if node.gpus else [])))


def _yarn(node: NodeSpec, layout: Layout, member: Member, master: Member) -> dict[str, str]:
    data, me, memory = layout.data(member), member, node_memory_mb(node)
    health = "yarn.nodemanager.disk-health-checker."
    # A count and no plug-in: YARN looks for no device, and gives none to a container.
    gpus = {f"yarn.nodemanager.resource-type.{GPU}": str(node.gpus)} if node.gpus else {}
    return {
        **gpus,
        **(_own_ports(master) if master.first_port else {}),
        "yarn.resourcemanager.hostname": master.host,
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": str(HEARTBEAT_MS),
        "yarn.nm.liveness-monitor.expiry-interval-ms": "10000",
        # a loaded machine needs long to start an application master
        "yarn.am.liveness-monitor.expiry-interval-ms": "120000",
        "yarn.nodemanager.hostname": me.host,
        "yarn.nodemanager.address": me.at("nodemanager"),
        "yarn.nodemanager.localizer.address": me.at("localizer"),
        "yarn.nodemanager.webapp.address": me.at("nodemanager_http"),
        "yarn.nodemanager.local-dirs": f"{data}/local",
        "yarn.nodemanager.log-dirs": f"{data}/userlogs",
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.resource.memory-mb": str(memory),
        # cores are not what is counted here: slots are
        "yarn.nodemanager.resource.cpu-vcores": "64",
        "yarn.nodemanager.resource-type.map-slot": str(node.map_slots),
        "yarn.nodemanager.resource-type.reduce-slot": str(node.reduce_slots),
        "yarn.scheduler.minimum-allocation-mb": str(ALLOCATION_STEP_MB),
        "yarn.scheduler.maximum-allocation-mb": str(memory),
        "yarn.scheduler.maximum-allocation-vcores": "64",
        # the pages of the class-data archive count once per JVM: no container dies of that
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        f"{health}max-disk-utilization-per-disk-percentage": "100",
        f"{health}disk-utilization-threshold.enabled": "false",
        f"{health}disk-free-space-threshold.enabled": "false",
        "yarn.log-aggregation-enable": "false",
        "yarn.nodemanager.log.retain-seconds": "604800",
        "yarn.application.classpath": f"$HADOOP_CONF_DIR,{layout.home}/path.jar",
        # an application master clings to a dead NodeManager for minutes, and its job fails
        "yarn.client.nodemanager-connect.max-wait-ms": "3000",
        "yarn.client.nodemanager-connect.retry-interval-ms": "500",
        "yarn.client.application-client-protocol.poll-interval-ms": "50",
        # the default lies in the machine's temporary folder, under the user's name
        "yarn.node-attribute.fs-store.root-dir": f"file://{data}/node-attribute",
    }


def _own_ports(master: Member) -> dict[str, str]:
    """Addresses that a host name alone would set, and what tells apart nodes of one host name."""
    prefix = "yarn.resourcemanager."
    return {
        f"{prefix}address": master.at("resourcemanager"),
        f"{prefix}scheduler.address": master.at("scheduler"),
        f"{prefix}resource-tracker.address": master.at("tracker"),
        f"{prefix}admin.address": master.at("resourcemanager_admin"),
        f"{prefix}webapp.address": master.at("resourcemanager_http"),
        "yarn.scheduler.include-port-in-node-name": "true",
    }


def _mapred(spec: ClusterSpec, layout: Layout, member: Member, master: Member) -> dict[str, str]:
    node, history = spec.node, "mapreduce.jobhistory"
    task = container_mb(node.task_memory_bytes)
    values = {
        "mapreduce.framework.name": "yarn",
        "mapreduce.application.classpath": f"{layout.home}/path.jar",
        "yarn.app.mapreduce.am.staging-dir": "/staging",
        f"{history}.jhist.format": "json",
        f"{history}.address": master.at("historyserver"),
        f"{history}.webapp.address": master.at("historyserver_http"),
        f"{history}.admin.address": master.at("historyserver_admin"),
        f"{history}.intermediate-done-dir": "/history/intermediate",
        f"{history}.done-dir": "/history/done",
        f"{history}.always-scan-user-dir": "true",
        # nothing is moved from one folder to another while a job is measured
        f"{history}.move.interval-ms": "86400000",
        "yarn.app.mapreduce.am.resource.mb": str(AM_MEMORY_MB),
        "yarn.app.mapreduce.am.command-opts": container_options(layout, AM_MEMORY_MB),
        "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": str(HEARTBEAT_MS),
        "mapreduce.job.ubertask.enable": "false",
        "mapreduce.client.completion.pollinterval": "100",
        "mapreduce.client.progressmonitor.pollinterval": "100",
        "mapreduce.client.submit.file.replication": str(min(spec.workers, 2)),
        "mapreduce.task.progress-report.interval": "1000",
        # read before yarn-site, whose value is ignored
        "mapreduce.shuffle.port": str(member.port("shuffle")),
    }
    for kind, slots in (("map", node.map_slots), ("reduce", node.reduce_slots)):
        values |= {
            f"mapreduce.{kind}.memory.mb": str(task),
            f"mapreduce.{kind}.java.opts": container_options(layout, task),
            f"mapreduce.{kind}.speculative": "false",
            f"mapreduce.{kind}.resource.{kind}-slot": "1",
            # without it an unsatisfiable reduce reserves the node, and the last maps wait 300 s
            f"mapreduce.job.running.{kind}.limit": str(slots * spec.workers),
        }
    return values


def _scheduler() -> dict[str, str]:
    prefix = "yarn.scheduler.capacity."
    return {
        f"{prefix}root.queues": "default",
        f"{prefix}root.default.capacity": "100",
        f"{prefix}maximum-am-resource-percent": "1.0",
        # the default calculator sees memory only, and no slots
        f"{prefix}resource-calculator": (
            "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
        ),
        f"{prefix}node-locality-delay": "-1",
        f"{prefix}per-node-heartbeat.maximum-offswitch-assignments": "100",
    }
