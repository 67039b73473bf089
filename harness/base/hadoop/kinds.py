"""
What a property of Hadoop can do to whoever sets it: kinds, for properties that a stranger wrote.

An experiment of somebody else is run as one's own user.  Of its properties some make jobs faster or
slower, and are what it is about; others load code, name places, or open the cluster.  The first are
a list, and the rest are everything else: what is in no list is not known to be harmless.
"""

from __future__ import annotations

import re

from typing import Literal

Kind = Literal["performance", "code", "path", "access", "unknown"]

# What they do, as an error says it.
MEANING: dict[Kind, str] = {
    "code": "loads code or runs a command",
    "path": "names a file or a folder",
    "access": "says who may reach or use the cluster",
    "unknown": "is none that is known to concern performance alone",
}

# How much, how long, how many: settings that change the time of a job, and nothing else.
_PERFORMANCE = re.compile(
    r"""
    mapreduce\.job\.(maps|reduces|ubertask\..*|jvm\.numtasks|running\.(map|reduce)\.limit
        |reduce\.slowstart\.completedmaps|speculative\..*
        |split\.metainfo\.maxsize|max\.split\.locations
        |map\.output\.collector\.class|committer\.setup\.cleanup\.needed|counters\..*)
    | mapreduce\.task\.(io\.sort\.(mb|factor)|timeout
        |combine\.progress\.records|merge\.progress\.records
        |exit\.timeout.*|profile)
    | mapreduce\.(map|reduce)\.(memory\.mb|cpu\.vcores|speculative|maxattempts|log\.level|java\.opts
        |resource\.(memory(-mb)?|vcores)|skip\..*)
    | mapreduce\.map\.(sort\.spill\.percent|combine\.minspills|output\.compress(\.codec)?)
    | mapreduce\.reduce\.(shuffle\.[a-z.\-]+|merge\.[a-z.]+|input\.buffer\.percent|markreset\..*)
    | mapreduce\.ifile\.readahead.*
    | mapreduce\.shuffle\.(max\..*|transfer.*|connection-keep-alive\..*|listen\.queue\.size)
    | mapreduce\.input\.(fileinputformat\.split\.(min|max)size.*|lineinputformat\.linespermap
        |fileinputformat\.list-status\.num-threads)
    | mapreduce\.output\.fileoutputformat\.compress(\.(codec|type))?
    | mapreduce\.fileoutputcommitter\.(algorithm\.version|task\.cleanup\.enabled)
    | mapreduce\.(terasort\.[a-z.\-]+
        |client\.((progressmonitor|completion)\.pollinterval|submit\.file\.replication))
    | yarn\.app\.mapreduce\.am\.(resource\.(mb|memory(-mb)?|cpu-vcores|vcores)
        |job\.task\.listener\.thread-count
        |scheduler\.heartbeat\.interval-ms|containerlauncher\..*|command-opts)
    | yarn\.app\.mapreduce\.(shuffle\.log\..*|client\.max-retries|task\.container\.log\..*)
    | yarn\.(scheduler\.(minimum|maximum|increment)-allocation-(mb|vcores)
        |resource-types\.[a-z\-]+\.increment-allocation)
    | yarn\.scheduler\.(capacity|fair)\.(node-locality-delay|rack-locality-additional-delay
        |assignmultiple|max\.assign|maximum-am-resource-percent|locality\..*|per-node-heartbeat\..*|update-interval-ms)
    | yarn\.nodemanager\.(resource\.(memory-mb|cpu-vcores|percentage-physical-cpu-limit)
        |vmem-.*|pmem-.*|vmem-check-enabled|heartbeat\..*|container-monitor\.(interval-ms|enabled))
    | yarn\.resourcemanager\.(nodemanagers\.heartbeat-.*|scheduler\.client\.thread-count
        |resource-tracker\.client\.thread-count|client\.thread-count)
    | dfs\.(blocksize|replication|client-write-packet-size|stream-buffer-size
        |bytes-per-checksum|checksum\.type)
    | dfs\.(namenode|datanode)\.(handler\.count|service\.handler\.count|max\.transfer\.threads
        |max\.xcievers|readahead\.bytes|drop\.cache\.behind\..*|sync\.behind\.writes.*|balance\..*|transfer.*)
    | dfs\.client\.(read\.[a-z.\-]*|write\.[a-z.\-]*|cache\..*|block\.write\..*|hedged\..*)
    | io\.(file\.buffer\.size|sort\.(mb|factor)|seqfile\.compress\.blocksize|map\.index\..*
        |bytes\.per\.checksum)
    | io\.(mapfile\.bloom\..*|compression\.codec\.[a-z0-9]+\.(buffersize|level))
    | zlib\.compress\.(level|strategy)
    | ipc\.(client\.(connect\..*|connection\..*|idlethreshold|tcpnodelay|ping)|ping\.interval
        |server\.(listen\.queue\.size|handler\.queue\.size|tcpnodelay|read\.threadpool\.size))
    """,
    re.VERBOSE,
)
_ACCESS = re.compile(
    r"(hadoop\.security|hadoop\.proxyuser|security|hadoop\.http|hadoop\.user|hadoop\.registry)\..*"
    r"|.*(bind-host|kerberos|\.acl|acls?(\.|$)|\.admin|permissions|superuser|impersonation|principal"
    r"|keytab|secret|token|password|credential|ssl|https|hosts|address|\.port|cors|auth).*"
)
_CODE = re.compile(
    r".*(\.opts|-opts|\.env|\.env\..*|class(es|path|\.path)?|\.impl|\.impl\..*|script.*|\.cmd|command.*"
    r"|plugin.*|executor.*|aux-services.*|health-checker.*|\.jar|\.jars|provider.*|serializations"
    r"|codecs?|interceptor.*|\.libjars|runtime.*|docker.*|archives|\.files|profile\..*|pipes\..*)"
)
_PATH = re.compile(
    r".*(\.dirs?|-dirs?|\.path|\.paths|\.file|-file|\.root|\.uri|defaultFS|folder)(\..*)?"
)
# Values of performance properties that could load code, and those among them that do not.
_CLASS_NAMED = re.compile(r".*(class|codec)")
_OPTIONS_NAMED = re.compile(r".*(java\.opts|command-opts)")
_LEVEL_NAMED = re.compile(r".*log\.level")
_LEVEL = re.compile(r"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL")
# Numbers, sizes, words, lists.  Hadoop writes values into the shell line that starts a task, and
# puts other properties and variables in the place of `${NAME}`.
_PLAIN = re.compile(r"[A-Za-z0-9_.,%+ -]*")
_HADOOP_CLASS = re.compile(r"org\.apache\.hadoop\.[A-Za-z0-9_.$]+")
_HARMLESS_OPTION = re.compile(
    r"-server|-client|-Xm[snx]\d+[kKmMgG]?|-Xss\d+[kKmMgG]?|-D(java\.net\.preferIPv4Stack)=(true|false)"
    r"|-XX:[+-]Use[A-Za-z0-9]*GC|-XX:TieredStopAtLevel=\d|-XX:[+-](TieredCompilation|UseCompressedOops"
    r"|AlwaysPreTouch|UseLargePages|UseNUMA|UseStringDeduplication)"
    r"|-XX:(ParallelGCThreads|ConcGCThreads|CICompilerCount|NewRatio|SurvivorRatio|MaxRAMPercentage"
    r"|InitialRAMPercentage|MaxMetaspaceSize|NewSize|MaxNewSize|MaxDirectMemorySize|G1HeapRegionSize"
    r"|InitiatingHeapOccupancyPercent|MaxGCPauseMillis)=[0-9.]+[kKmMgG]?"
)


def kind_of(name: str, value: str = "") -> Kind:
    """
    Kind of the property *name* when it has this *value*.

    >>> kind_of("mapreduce.map.java.opts", "-Xmx400m")
    'performance'
    >>> kind_of("mapreduce.map.java.opts", "-agentpath:/x")
    'code'
    >>> kind_of("hadoop.proxyuser.me.hosts"), kind_of("yarn.nodemanager.local-dirs")
    ('access', 'path')
    """
    if _PERFORMANCE.fullmatch(name):
        return "performance" if _is_harmless(name, value) else "code"
    patterns: dict[Kind, re.Pattern[str]] = {"access": _ACCESS, "code": _CODE, "path": _PATH}
    return next((kind for kind, form in patterns.items() if form.fullmatch(name)), "unknown")


def _is_harmless(name: str, value: str) -> bool:
    """Whether the value of a performance property is a plain one, and loads what Hadoop has."""
    if _CLASS_NAMED.fullmatch(name):
        return all(_HADOOP_CLASS.fullmatch(part.strip()) for part in value.split(","))
    if _OPTIONS_NAMED.fullmatch(name):
        return all(_HARMLESS_OPTION.fullmatch(option) for option in value.split())
    form = _LEVEL if _LEVEL_NAMED.fullmatch(name) and value else _PLAIN
    return form.fullmatch(value) is not None
