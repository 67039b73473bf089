"""
Site files of a cluster, as data: what every node's configuration folder holds, and a job adds.

Tracing is properties of a job: a traced task has another class path, whose first jar has Hadoop's
classes with hooks, and system properties for the recorder in them.
"""

from __future__ import annotations

import math
import re

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from harness.base.errors import ParseError, SpecError
from harness.base.hadoop import fence
from harness.base.hadoop.constants import CHECKSUM_BYTES, LEAST_BLOCK_BYTES
from harness.base.hadoop.daemons import (
    MASTER_PORTS,
    Layout,
    Member,
    container_options,
    make_members,
)
from harness.base.hadoop.properties import successor
from harness.base.hadoop.secrets import SECRETS
from harness.base.records.trial import ClusterSpec, NodeSpec, TraceMode
from harness.base.text import excerpt
from harness.base.units import MIB, parse_bytes

SiteFiles = dict[str, dict[str, str]]

AM_MEMORY_MB = 512
ALLOCATION_STEP_MB = 64  # yarn.scheduler.minimum-allocation-mb: requests are rounded up to it
HEARTBEAT_MS = 100
BLOCK_BYTES = 32 * MIB
GPU = "yarn.io/gpu"  # YARN's name of the resource
# Where the history server looks for a job that has just ended, and where it keeps it.
HISTORY_KEYS = ("mapreduce.jobhistory.intermediate-done-dir", "mapreduce.jobhistory.done-dir")

# Addresses, folders and slots are the provider's: an override would take the cluster apart.
_OWNED = re.compile(
    r"fs\.defaultFS|hadoop\.tmp\.dir|dfs\.(namenode|datanode)\.(.*address|.*\.dir|hostname|bind-host)"
    r"|yarn\.(resourcemanager|nodemanager)\.(.*address|.*hostname|bind-host|.*-dirs)"
    r"|yarn\.nodemanager\.resource-type\..*|yarn\.resource-types|mapreduce\.framework\.name"
    r"|mapreduce\.jobhistory\..*(address|-dir)|yarn\.nodemanager\.resource\.memory-mb"
    r"|mapreduce\.(map|reduce)\.resource\.(map|reduce)-slot"
)
_BINARY_SIZE = re.compile(r"[0-9]+(\.[0-9]+)?\s*[KMGT]iB")

_CLIENT_FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml")
_DAEMON_FILES = ("capacity-scheduler.xml", "hadoop-policy.xml")
_FILE_OF_PREFIX = {
    "yarn.app.mapreduce.": "mapred-site.xml",
    "yarn.scheduler.capacity.": "capacity-scheduler.xml",
    "mapreduce.": "mapred-site.xml",
    "mapred.": "mapred-site.xml",
    "yarn.": "yarn-site.xml",
    "dfs.": "hdfs-site.xml",
    "security.": "hadoop-policy.xml",
}
_ADDRESSES = {
    "dfs.namenode.rpc-address": "namenode",
    "dfs.namenode.http-address": "namenode_http",
    "dfs.datanode.address": "datanode",
    "dfs.datanode.http.address": "datanode_http",
    "dfs.datanode.ipc.address": "datanode_ipc",
    "yarn.nodemanager.address": "nodemanager",
    "yarn.nodemanager.localizer.address": "localizer",
    "yarn.nodemanager.webapp.address": "nodemanager_http",
    "mapreduce.jobhistory.address": "historyserver",
    "mapreduce.jobhistory.webapp.address": "historyserver_http",
    "mapreduce.jobhistory.admin.address": "historyserver_admin",
}
# Elsewhere the host name of the ResourceManager alone sets these.
_OWN_PORT_ADDRESSES = {
    "yarn.resourcemanager.address": "resourcemanager",
    "yarn.resourcemanager.scheduler.address": "scheduler",
    "yarn.resourcemanager.resource-tracker.address": "tracker",
    "yarn.resourcemanager.admin.address": "resourcemanager_admin",
    "yarn.resourcemanager.webapp.address": "resourcemanager_http",
}
# Properties that all our clusters have alike.
_ALWAYS = {
    # a DataNode that gives up connecting sleeps 5 s
    "ipc.client.connect.retry.interval": "100",
    "ipc.client.connect.max.retries": "200",
    "dfs.blocksize": str(BLOCK_BYTES),
    "dfs.namenode.safemode.extension": "0",
    # an empty name space is safe at once; the health check counts the DataNodes
    "dfs.namenode.safemode.min.datanodes": "0",
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
    "dfs.heartbeat.interval": "1",
    "dfs.namenode.heartbeat.recheck-interval": "2000",  # dead after 14 s, not 10 min 30 s
    # 400 ms are lost on every closed file otherwise
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
    "dfs.namenode.resource.du.reserved": "10485760",
    # a DataNode takes no block while less than 1 GiB would stay free otherwise
    "dfs.datanode.round-robin-volume-choosing-policy.additional-available-space": "10485760",
    "dfs.namenode.fs-limits.min-block-size": str(LEAST_BLOCK_BYTES),
    "dfs.namenode.metrics.logger.period.seconds": "0",
    "dfs.datanode.metrics.logger.period.seconds": "0",
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": str(HEARTBEAT_MS),
    "yarn.nm.liveness-monitor.expiry-interval-ms": "10000",
    # a loaded machine needs long to start an application master
    "yarn.am.liveness-monitor.expiry-interval-ms": "120000",
    "yarn.nodemanager.aux-services": "mapreduce_shuffle",
    # cores are not what is counted here: slots are
    "yarn.nodemanager.resource.cpu-vcores": "64",
    "yarn.scheduler.minimum-allocation-mb": str(ALLOCATION_STEP_MB),
    "yarn.scheduler.maximum-allocation-vcores": "64",
    # the pages of the class-data archive count once per JVM: no container dies of that
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
    "yarn.nodemanager.disk-health-checker.disk-utilization-threshold.enabled": "false",
    "yarn.nodemanager.disk-health-checker.disk-free-space-threshold.enabled": "false",
    "yarn.log-aggregation-enable": "false",
    "yarn.nodemanager.log.retain-seconds": "604800",
    # an application master clings to a dead NodeManager for minutes, and its job fails
    "yarn.client.nodemanager-connect.max-wait-ms": "3000",
    "yarn.client.nodemanager-connect.retry-interval-ms": "500",
    "yarn.client.application-client-protocol.poll-interval-ms": "50",
    "mapreduce.framework.name": "yarn",
    "yarn.app.mapreduce.am.staging-dir": "/staging",
    "mapreduce.jobhistory.jhist.format": "json",
    "mapreduce.jobhistory.intermediate-done-dir": "/history/intermediate",
    "mapreduce.jobhistory.done-dir": "/history/done",
    "mapreduce.jobhistory.always-scan-user-dir": "true",
    # nothing is moved from one folder to another while a job is measured
    "mapreduce.jobhistory.move.interval-ms": "86400000",
    "yarn.app.mapreduce.am.resource.mb": str(AM_MEMORY_MB),
    "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": str(HEARTBEAT_MS),
    "mapreduce.job.ubertask.enable": "false",
    "mapreduce.client.completion.pollinterval": "100",
    "mapreduce.client.progressmonitor.pollinterval": "100",
    "mapreduce.task.progress-report.interval": "1000",
    # Hadoop's own list, and the zone in which the log of a task has its times
    "mapreduce.jvm.system-properties-to-log": (
        "os.name,os.version,java.home,java.runtime.version,java.vendor,java.version,java.vm.name,"
        "java.class.path,java.io.tmpdir,user.dir,user.name,user.timezone"
    ),
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    # the default calculator sees memory only, and no slots
    "yarn.scheduler.capacity.resource-calculator": (
        "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    ),
    "yarn.scheduler.capacity.node-locality-delay": "-1",
    "yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments": "100",
}
# What `planned_files` are of: no address, no path.  Heaps are left to Hadoop: shares of memory.
_PLANNED = re.compile(
    r"dfs\.blocksize|yarn\.resource-types|yarn\.nodemanager\.resource-type\.(map|reduce)-slot"
    r"|yarn\.(nodemanager\.resource\.memory|scheduler\.maximum-allocation)-mb"
    r"|mapreduce\.(map|reduce)\.(memory\.mb|resource\.(map|reduce)-slot)"
    r"|mapreduce\.job\.running\.(map|reduce)\.limit"
    r"|yarn\.scheduler\.capacity\.resource-calculator"
)
PATH_JAR = "path-trace.jar"
SPANS_FILE = "ltrace.spans"
UNITS_FILE = "ltrace.units"

# What Hadoop puts there itself (MRJobConfig.DEFAULT_MAPRED_ADMIN_JAVA_OPTS), and would leave out.
# What says who may reach or use a cluster; names of secrets and tokens open nothing of it.
_OPENING = re.compile(
    r"(hadoop\.security|hadoop\.proxyuser|security|hadoop\.http\.authentication)\..*"
    r"|.*(bind-host|bind\.address|\.acls?(\.|$)|acl-|acl_|permissions|superuser|impersonation).*"
)
_ADMIN_DEFAULT = "-Djava.net.preferIPv4Stack=true -Dhadoop.metrics.log.level=WARN"
# It stands before mapreduce.application.classpath, which names the jars without hooks.
_CLASS_PATH = "yarn.application.classpath"
_CONF = "$HADOOP_CONF_DIR"
LOG4J = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p [%t] %c: %m%n
"""


def container_mb(memory_bytes: int) -> int:
    """Memory in MiB of the container that YARN grants for *memory_bytes*."""
    return math.ceil(memory_bytes / MIB / ALLOCATION_STEP_MB) * ALLOCATION_STEP_MB


def node_memory_mb(node: NodeSpec) -> int:
    """Memory in MiB that a NodeManager offers: all its slots and one application master."""
    slots = node.map_slots + node.reduce_slots
    return slots * container_mb(node.task_memory_bytes) + AM_MEMORY_MB


def site_files(spec: ClusterSpec, layout: Layout, member: Member) -> SiteFiles:
    """File name -> property -> value for *member*; *spec.site* has the last word."""
    node = spec.node
    master = layout.master
    folder = layout.data(member)
    node_mb = str(node_memory_mb(node))
    task_mb = container_mb(node.task_memory_bytes)
    path_jar = f"{layout.home}/path.jar"
    replication = str(min(spec.workers, 2))
    properties = {
        **_ALWAYS,
        **fence.properties(layout),
        "fs.defaultFS": f"hdfs://{master.at('namenode')}",
        "hadoop.tmp.dir": f"{folder}/scratch",
        "dfs.replication": replication,
        "dfs.namenode.name.dir": f"file://{folder}/name",
        "dfs.datanode.data.dir": f"file://{folder}/data",
        "dfs.datanode.hostname": member.host,
        "yarn.resourcemanager.hostname": master.host,
        "yarn.nodemanager.hostname": member.host,
        "yarn.nodemanager.local-dirs": f"{folder}/local",
        "yarn.nodemanager.log-dirs": f"{folder}/userlogs",
        # the default lies in the machine's temporary folder, under the user's name
        "yarn.node-attribute.fs-store.root-dir": f"file://{folder}/node-attribute",
        "yarn.nodemanager.resource.memory-mb": node_mb,
        "yarn.scheduler.maximum-allocation-mb": node_mb,
        "yarn.application.classpath": f"$HADOOP_CONF_DIR,{path_jar}",
        "mapreduce.application.classpath": f"{path_jar},{layout.fence_jar}",
        "mapreduce.client.submit.file.replication": replication,
        "yarn.app.mapreduce.am.command-opts": container_options(layout, AM_MEMORY_MB),
        # read before yarn-site, whose value is ignored
        "mapreduce.shuffle.port": str(member.port("shuffle")),
    }
    for kind, slots in (("map", node.map_slots), ("reduce", node.reduce_slots)):
        properties |= {
            f"yarn.nodemanager.resource-type.{kind}-slot": str(slots),
            f"mapreduce.{kind}.memory.mb": str(task_mb),
            f"mapreduce.{kind}.java.opts": container_options(layout, task_mb),
            f"mapreduce.{kind}.speculative": "false",
            f"mapreduce.{kind}.resource.{kind}-slot": "1",
            # without it an unsatisfiable reduce reserves the node, and the last maps wait 300 s
            f"mapreduce.job.running.{kind}.limit": str(slots * spec.workers),
        }
    # A resource that is not declared beside memory and cores cannot be requested.
    resources = "map-slot,reduce-slot"
    if node.gpus:
        # A count and no plug-in: YARN looks for no device, and gives none to a container.
        properties[f"yarn.nodemanager.resource-type.{GPU}"] = str(node.gpus)
        resources += f",{GPU}"
    addresses = _ADDRESSES
    if master.first_port:
        addresses = _ADDRESSES | _OWN_PORT_ADDRESSES
        # Nodes of one host name are distinguished by it.
        properties["yarn.scheduler.include-port-in-node-name"] = "true"
    for property_name, service in addresses.items():
        properties[property_name] = (master if service in MASTER_PORTS else member).at(service)
    properties |= {property_name: plain_value(value) for property_name, value in spec.site.items()}
    files: SiteFiles = {file: {} for file in (*_CLIENT_FILES, *_DAEMON_FILES)}
    for property_name, value in properties.items():
        files[site_file(property_name)][property_name] = value
    return files | {"resource-types.xml": {"yarn.resource-types": resources}}


def planned_files(spec: ClusterSpec) -> SiteFiles:
    """The part of the site files of *spec* that is the same on any host: slots, memory, blocks."""
    layout = Layout(make_members(spec.workers), base="", home="")
    files = site_files(spec, layout, layout.master)
    return {
        file: chosen
        for file, properties in files.items()
        if (chosen := {name: text for name, text in properties.items() if _PLANNED.fullmatch(name)})
    }


def refused_overrides(spec: ClusterSpec) -> list[str]:
    """Names in *spec.site* that belong to the provider, each with what to write instead."""
    reasons = {
        name: "is set by the provider from cluster.workers and cluster.node"
        for name in spec.site
        if _OWNED.fullmatch(name)
    }
    if not spec.exposed:
        opens = (
            "says who may reach the cluster: provider ansible takes it with cluster.exposed: true"
        )
        reasons |= {name: opens for name in spec.site if _OPENING.fullmatch(name)}
    reasons |= dict.fromkeys(fence.OWNED & spec.site.keys(), "keeps others out of the cluster")
    return [f"cluster.site.{name} {reason}" for name, reason in reasons.items()]


def site_file(property_name: str) -> str:
    """
    File that a property belongs to, by its prefix.

    >>> site_file("dfs.blocksize"), site_file("yarn.app.mapreduce.am.resource.mb")
    ('hdfs-site.xml', 'mapred-site.xml')
    """
    files = (file for prefix, file in _FILE_OF_PREFIX.items() if property_name.startswith(prefix))
    return next(files, "core-site.xml")


def plain_value(text: str) -> str:
    """
    Property value as Hadoop reads it: a size with a binary unit becomes bytes.

    >>> plain_value("32 MiB"), plain_value("0.05")
    ('33554432', '0.05')
    """
    return str(parse_bytes(text)) if _BINARY_SIZE.fullmatch(text.strip()) else text


def client_properties(spec: ClusterSpec) -> dict[str, str]:
    """Properties that a client of a cluster *spec* sees, wherever the cluster lies."""
    return dict(_client_properties(spec.model_dump_json()))


@lru_cache(maxsize=64)  # a grid asks for those of each of its cells
def _client_properties(cluster: str) -> dict[str, str]:
    spec = ClusterSpec.model_validate_json(cluster)
    layout = Layout(make_members(spec.workers), base="", home="")
    return merged(site_files(spec, layout, layout.master))


def block_bytes(spec: ClusterSpec) -> int:
    """Size of an HDFS block of a cluster *spec*; `SpecError` for what Hadoop would not read."""
    value = plain_value(spec.site.get("dfs.blocksize", str(BLOCK_BYTES)))
    match = re.fullmatch(r"\s*(\d{1,18})([kmgt]?)\s*", value, re.IGNORECASE)
    size = int(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ") if match else 0
    if size < LEAST_BLOCK_BYTES or size % CHECKSUM_BYTES:
        what = f"dfs.blocksize = {value!r:.80} is not the size of a block"
        fix = "write a multiple of 512 bytes, 64 KiB or more, such as 32 MiB"
        raise SpecError(what, where="cluster.site.dfs.blocksize", fix=fix)
    return size


def merged(files: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Properties as a client sees them: core, then HDFS, YARN and MapReduce."""
    properties: dict[str, str] = {}
    for file_name in _CLIENT_FILES:
        properties |= files.get(file_name, {})
    return properties


def conf_texts(files: Mapping[str, Mapping[str, str]], secret: str = "") -> dict[str, str]:
    """Content of each file of a configuration folder by its name; of daemons with the *secret*."""
    texts = {file_name: render_xml(properties) for file_name, properties in files.items()}
    if secret:
        SECRETS.hide(secret)  # a log that has it is stored without
        texts[fence.SECRET] = f"{fence.HEADER}: {secret}\n"  # as ``curl -H @FILE`` reads it, too
    return {**texts, "log4j.properties": LOG4J}


def render_xml(properties: Mapping[str, str]) -> str:
    """Text of a site file, secrets revealed; `SpecError` for a character that XML cannot hold."""
    values = {name: SECRETS.reveal(value) for name, value in properties.items()}
    texts = (*properties, *properties.values())
    for text, shown in zip((*values, *values.values()), texts, strict=True):
        if bad := re.search(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text):
            what = f"{shown!r} holds the character {bad[0]!r}, which a site file cannot hold"
            fix = "write the value without control characters"
            raise SpecError(what, where="cluster.site", fix=fix)
    lines = (
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in values.items()
    )
    start = '<?xml version="1.0" encoding="UTF-8"?>\n<configuration>\n'
    return f"{start}{''.join(lines)}</configuration>\n"


def read_properties(text: bytes, source: str) -> dict[str, str]:
    """
    Properties of a Hadoop configuration file, in the file's order; of equal names the last stands.

    Values stand as written: references such as ``${user.name}`` are not resolved.  A document type
    declaration is refused, and with it every entity that could grow or read a file.  XML that is
    not well-formed or not a Hadoop configuration is `ParseError` with *source*.
    """
    fix = "give the job.xml that Hadoop wrote"

    class PlainTree(ET.TreeBuilder):
        def doctype(self, *_: object) -> None:
            what = "a document type declaration, which Hadoop never writes"
            raise ParseError(what, source=source, fix=fix)

    parser = ET.XMLParser(target=PlainTree(), encoding="utf-8")  # noqa: S314 - see above
    try:
        parser.feed(text)
        root = parser.close()
    except ET.ParseError as error:
        raise ParseError(f"not XML: {error}", source=source, line=error.position[0]) from error
    if root.tag != "configuration":
        what = f"the root element is '{excerpt(root.tag)}', not 'configuration'"
        raise ParseError(what, source=source, fix=fix)
    properties: dict[str, str] = {}
    for number, element in enumerate(root.findall("property"), 1):
        property_name = element.findtext("name", "").strip()
        if not property_name:
            raise ParseError(f"a property without a name, number {number}", source=source, fix=fix)
        properties[property_name] = element.findtext("value", "")
    return properties


def task_properties(
    mode: TraceMode,
    layout: Layout,
    spec: ClusterSpec,
    given: Mapping[str, str],
    *,
    archive: str | None = None,
    unit: int = 5,
) -> dict[str, str]:
    """
    Properties to add to a job's own, *given*, so that its tasks are traced; none for logs and off.

    Without options of the job's own (or of ``cluster.site``) tasks get those of *layout*, with the
    traced classes and their *archive*, a path as nodes see it.  A job's own options stay as they
    are: such tasks find the traced classes by ``yarn.application.classpath``, and start without an
    archive.  *unit*: records of a unit.  `SpecError` where a job's options set a class
    path, which would hide the traced classes.

    >>> from harness.base.hadoop.daemons import make_members
    >>> layout = Layout(make_members(1), base="/b", home="/h")
    >>> task_properties("off", layout, ClusterSpec(), {})
    {}
    >>> task_properties("spans", layout, ClusterSpec(), {})["yarn.application.classpath"]
    '$HADOOP_CONF_DIR,/h/path-trace.jar'
    """
    if mode not in ("spans", "units"):
        return {}
    # Under the names that Hadoop reads.
    asked = {successor(name) or name: text for name, text in {**spec.site, **given}.items()}
    jar = f"{layout.home}/{PATH_JAR}"
    class_path = f"{jar},{asked[_CLASS_PATH]}" if _CLASS_PATH in asked else f"{_CONF},{jar}"
    properties = {_CLASS_PATH: class_path}
    traced = replace(layout, archive=archive)
    memory_mb = container_mb(spec.node.task_memory_bytes)
    # Hadoop puts the attempt in the place of @taskid@, YARN its folder of <LOG_DIR>.
    recorder = f"-Dltrace={mode} -Dltrace.task=@taskid@ -Dltrace.unit={unit} -Dltrace.dir=<LOG_DIR>"
    for kind in ("map", "reduce"):
        options = f"mapreduce.{kind}.java.opts"
        admin = f"mapreduce.admin.{kind}.child.java.opts"
        if options not in asked:
            properties[options] = container_options(traced, memory_mb, PATH_JAR)
        elif re.search(r"(^|\s)(-cp|-classpath|--class-path\S*)(\s|$)", asked[options]):
            what = f"{options} sets a class path, and traced tasks need another"
            fix = "leave the class path out, or write trace: off"
            raise SpecError(what, where=f"configuration, {options}", fix=fix)
        admin_options = asked.get(admin, _ADMIN_DEFAULT).split()
        properties[admin] = " ".join([*admin_options, recorder])
    return properties
