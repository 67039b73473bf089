"""A cluster that somebody else has configured: where its services answer, what a client adds."""

from __future__ import annotations

import re

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.base.errors import SpecError
from harness.base.hadoop import site
from harness.base.hadoop.daemons import ADD_OPENS, Layout
from harness.base.records.trial import ClusterSpec

FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "mapred-site.xml")
STAGING = "yarn.app.mapreduce.am.staging-dir"
INTERMEDIATE, DONE = site.HISTORY_KEYS
TAGS = "mapreduce.job.tags"
_MASTER = "yarn.app.mapreduce.am.command-opts"
KEEP = "mapreduce.task.files.preserve.filepattern"
_REFERENCE = re.compile(r"\$\{([^}$\s]{1,200})\}")
_ADDRESS = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,253}):(\d{1,5})", re.ASCII)
_DEPTH = 20  # as Hadoop itself
_ANYWHERE = ("0.0.0.0", "")  # noqa: S104 - what a server binds to, not where it is reached
# Only daemons read these: given for a cluster that runs already, they would change nothing.
_OF_DAEMONS = re.compile(
    r"(yarn\.(nodemanager|resourcemanager|scheduler|nm|am)|dfs\.(namenode|datanode))\..*"
)
_JOBS_OF_KIND = (
    "mapreduce.{}.memory.mb", "mapreduce.{}.java.opts", "mapreduce.{}.speculative",
    "mapreduce.job.running.{}.limit",
)  # fmt: skip
# Of what our own clusters set, what a client decides and any cluster takes.
_OF_JOBS = (
    "yarn.app.mapreduce.am.resource.mb",
    "mapreduce.job.ubertask.enable", "mapreduce.client.completion.pollinterval",
    "mapreduce.client.progressmonitor.pollinterval", "mapreduce.client.submit.file.replication",
    "mapreduce.task.progress-report.interval", "mapreduce.jobhistory.jhist.format",
    "mapreduce.jvm.system-properties-to-log",
    *(name.format("map") for name in _JOBS_OF_KIND),
    *(name.format("reduce") for name in _JOBS_OF_KIND),
    "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms", "dfs.replication", "dfs.blocksize",
    "yarn.client.application-client-protocol.poll-interval-ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Services:
    """Web addresses as ``host:port``; of several NameNodes or ResourceManagers one is active."""

    namenodes: tuple[str, ...]
    resourcemanagers: tuple[str, ...]
    historyserver: str


def expanded(properties: Mapping[str, str], property_name: str, default: str = "") -> str:
    """
    Value of a property with the references in it resolved; those that cannot be stay.

    >>> expanded({"a": "${b}:8088", "b": "host"}, "a")
    'host:8088'
    """
    values = {"user.name": "", "yarn.resourcemanager.hostname": _ANYWHERE[0], **properties}
    value = properties.get(property_name, default)
    for _ in range(_DEPTH):
        replaced = _REFERENCE.sub(lambda match: values.get(match[1], match[0]), value)
        if replaced == value:
            break
        value = replaced
    return value.strip()


def services(properties: Mapping[str, str]) -> Services:
    """Where services of a cluster with these *properties* answer; `SpecError` says what lacks."""
    for property_name, supported, reason in (
        ("hadoop.security.authentication", "simple", "only simple authentication is supported"),
        ("dfs.http.policy", "http_only", "only HTTP is supported for web services"),
        ("yarn.http.policy", "http_only", "only HTTP is supported for web services"),
    ):
        value = expanded(properties, property_name, supported)
        if value.lower() not in (supported, "http_and_https"):
            what = f"{property_name} = {value!r:.80}: {reason}"
            fix = "measure on a cluster without it, or on a new one (provider: local)"
            raise SpecError(what, where="configuration of the existing cluster", fix=fix)
    namenodes = _namenodes(properties)
    prefix = "yarn.resourcemanager"
    endings = [""]
    if expanded(properties, f"{prefix}.ha.enabled").lower() == "true":
        endings = [f".{node}" for node in _words(properties, f"{prefix}.ha.rm-ids")]
    if not endings:
        what = f"{prefix}.ha.rm-ids names no ResourceManager, and {prefix}.ha.enabled is true"
        fix = f"name them, or leave {prefix}.ha.enabled out"
        raise SpecError(what, where="yarn-site.xml of HADOOP_CONF_DIR, or cluster.site", fix=fix)
    resourcemanagers = []
    for ending in endings:
        address = expanded(properties, f"{prefix}.webapp.address{ending}")
        if _host(address) in _ANYWHERE:
            address = f"{expanded(properties, f'{prefix}.hostname{ending}')}:8088"
        resourcemanagers.append(_checked_address(address, f"{prefix}.hostname{ending}"))
    history = expanded(properties, "mapreduce.jobhistory.webapp.address")
    if _host(history) in _ANYWHERE:
        host = _host(expanded(properties, "mapreduce.jobhistory.address"))
        history = f"{host if host not in _ANYWHERE else _host(resourcemanagers[0])}:19888"
    historyserver = _checked_address(history, "mapreduce.jobhistory.webapp.address")
    return Services(namenodes, tuple(resourcemanagers), historyserver)


def _namenodes(properties: Mapping[str, str]) -> tuple[str, ...]:
    key = "dfs.namenode.http-address"
    default = expanded(properties, "fs.defaultFS")
    scheme, _, authority = default.partition("://")
    authority = authority.partition("/")[0]
    if scheme != "hdfs" or not authority:
        raise SpecError(
            f"fs.defaultFS = {default!r:.80} does not name an HDFS",
            where="core-site.xml of HADOOP_CONF_DIR, or cluster.site",
            fix="set HADOOP_CONF_DIR to the cluster's configuration folder, or write cluster.site:"
            " {fs.defaultFS: hdfs://host:8020, yarn.resourcemanager.hostname: host}",
        )
    if authority not in _words(properties, "dfs.nameservices"):
        address = expanded(properties, key)
        if _host(address) in _ANYWHERE:
            port = address.rpartition(":")[2] or "9870"
            address = f"{authority.partition(':')[0]}:{port}"
        return (_checked_address(address, key),)
    nodes = _words(properties, f"dfs.ha.namenodes.{authority}")
    names = [f"{key}.{authority}.{node}" for node in nodes] or [f"{key}.{authority}"]
    return tuple(_checked_address(expanded(properties, name), name) for name in names)


def _words(properties: Mapping[str, str], property_name: str) -> list[str]:
    return [word.strip() for word in expanded(properties, property_name).split(",") if word.strip()]


def _host(address: str) -> str:
    return address.rpartition(":")[0] or address


def _checked_address(text: str, property_name: str) -> str:
    match = _ADDRESS.fullmatch(text)
    if not match or not 0 < int(match[2]) < 65536 or match[1] in _ANYWHERE:
        what = f"{property_name} = {text!r:.80} is not the address of a service"
        fix = (
            "write host:port, with a name or an IPv4 address (Hadoop has no IPv6):"
            f" cluster.site.{property_name}, or in files of HADOOP_CONF_DIR"
        )
        raise SpecError(what, where="configuration of the existing cluster", fix=fix)
    return text


def client_files(
    files: Mapping[str, Mapping[str, str]], spec: ClusterSpec, layout: Layout, root: str
) -> site.SiteFiles:
    """
    The configuration of our client: the cluster's own *files*, and what our jobs add.

    Jobs write below *root* of the cluster's file system, their staging folder included: it keeps
    the history of a job where its owner can read it.  *spec.site* has the last word.
    """
    written = {file_name: dict(files.get(file_name, {})) for file_name in FILES}
    # The cluster's nodes have neither our jars nor their archive.
    plain_layout = replace(layout, archive=None, recording=None)
    ours = site.merged(site.site_files(spec, plain_layout, plain_layout.master))
    given = site.merged(written)
    staging = expanded(given, STAGING, "/tmp/hadoop-yarn/staging")  # noqa: S108 - Hadoop's default
    added = {
        **{property_name: ours[property_name] for property_name in _OF_JOBS},
        # masters of Hadoop 3.4 reach into a JDK 17, and newer clients do not open it for them
        _MASTER: " ".join((*ADD_OPENS, ours[_MASTER])),
        STAGING: f"{root}/staging",
        KEEP: ".*",
        TAGS: root.rpartition("/")[2],
        INTERMEDIATE: given.get(INTERMEDIATE, f"{staging}/history/done_intermediate"),
        DONE: given.get(DONE, f"{staging}/history/done"),
        **{property_name: site.plain_value(value) for property_name, value in spec.site.items()},
    }
    for property_name, value in added.items():
        # A copy in another file would be read after this one.
        for properties in written.values():
            properties.pop(property_name, None)
        file_name = site.site_file(property_name)
        written[file_name if file_name in FILES else "yarn-site.xml"][property_name] = value
    return written


def daemon_properties(spec: ClusterSpec) -> list[str]:
    """Properties in *spec.site* that only daemons read: a running cluster ignores them."""
    return [name for name in spec.site if _OF_DAEMONS.fullmatch(name) and "address" not in name]
