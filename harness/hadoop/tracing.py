"""
Tracing as properties of a job: which classes its tasks run, and where they write.

A traced task is a task with another class path, whose first jar holds Hadoop's classes with hooks,
and with system properties for the recorder in them.  Nothing else of the cluster changes, so jobs
with and without run on the same one.
"""

from __future__ import annotations

import dataclasses

from collections.abc import Mapping
from typing import Literal, get_args

from harness.errors import SpecError
from harness.hadoop import names, site
from harness.hadoop.daemons import container_options
from harness.hadoop.layout import Layout
from harness.records.trial import ClusterSpec

TraceMode = Literal["spans", "units", "logs", "off"]
MODES: tuple[TraceMode, ...] = get_args(TraceMode)
PATH_JAR = "path-trace.jar"
SPANS_FILE, UNITS_FILE = "ltrace.spans", "ltrace.units"

# What Hadoop puts there itself (MRJobConfig.DEFAULT_MAPRED_ADMIN_JAVA_OPTS), and would leave out.
_ADMIN_DEFAULT = "-Djava.net.preferIPv4Stack=true -Dhadoop.metrics.log.level=WARN"
# It stands before mapreduce.application.classpath, which names the jars without hooks.
_CLASS_PATH, _CONF = "yarn.application.classpath", "$HADOOP_CONF_DIR"


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

    >>> from harness.hadoop.layout import make_members
    >>> layout = Layout(make_members(1), base="/b", home="/h")
    >>> task_properties("off", layout, ClusterSpec(), {})
    {}
    >>> task_properties("spans", layout, ClusterSpec(), {})["yarn.application.classpath"]
    '$HADOOP_CONF_DIR,/h/path-trace.jar'
    """
    if mode not in ("spans", "units"):
        return {}
    # Under the names that Hadoop reads.
    own = {names.successor(name) or name: text for name, text in {**spec.site, **given}.items()}
    jar = f"{layout.home}/{PATH_JAR}"
    before, after = (jar, own[_CLASS_PATH]) if _CLASS_PATH in own else (_CONF, jar)
    properties = {_CLASS_PATH: f"{before},{after}"}
    traced = dataclasses.replace(layout, archive=archive)
    memory_mb = site.container_mb(spec.node.task_memory_bytes)
    # Hadoop puts the attempt in the place of @taskid@, YARN its folder of <LOG_DIR>.
    recorder = f"-Dltrace={mode} -Dltrace.task=@taskid@ -Dltrace.unit={unit} -Dltrace.dir=<LOG_DIR>"
    for kind in ("map", "reduce"):
        options, admin = f"mapreduce.{kind}.java.opts", f"mapreduce.admin.{kind}.child.java.opts"
        if options not in own:
            properties[options] = container_options(traced, memory_mb, PATH_JAR)
        elif any(
            word in ("-cp", "-classpath") or word.startswith("--class-path")
            for word in own[options].split()
        ):
            raise SpecError(
                f"{options} sets a class path, and traced tasks need another",
                where=f"configuration, {options}",
                fix="leave the class path out, or write trace: off",
            )
        admin_options = own.get(admin, _ADMIN_DEFAULT).split()
        properties[admin] = " ".join([*admin_options, recorder])
    return properties
