"""
What a home holds to make starts fast: a class-data archive, and a formatted name space.

The archive (class-data sharing) is made from the committed list of class names; it fits one JDK
build and one folder of jars, and a JVM that cannot use it starts without.
"""

from __future__ import annotations

import os
import shutil
import subprocess

from pathlib import Path

from harness.clusters.home import SOURCE, HadoopHome, say
from harness.errors import MachineError
from harness.hadoop import daemons, site


def ensure_archive(home: HadoopHome) -> None:
    """Dump the archive unless it is there; older ones, of another JDK, go."""
    names = SOURCE / "classes.lst"
    if home.archive is not None or not names.is_file():
        return
    say("class-data archive (about half a minute, once per JDK)")
    part = home.path / f"part-{os.getpid()}.jsa"
    done = subprocess.run(
        [
            home.java.launcher, "-Xshare:dump", f"-XX:SharedClassListFile={names}",
            f"-XX:SharedArchiveFile={part}", "-XX:+UseSerialGC", "-cp", str(home.path_jar),
        ],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    if done.returncode != 0 or not part.is_file():
        part.unlink(missing_ok=True)
        say("this JDK makes no archive; everything starts without it, slower")
        return
    for old in home.path.glob("classes-*.jsa"):
        old.unlink()
    part.replace(home.path / f"classes-{home.archive_key()}.jsa")


def ensure_formatted(home: HadoopHome) -> None:
    """Format an empty name space, which every new cluster copies."""
    if home.formatted is not None:
        return
    say("empty name space")
    work = home.path / f"format-{os.getpid()}"
    try:
        layout = site.Layout(site.members(1), str(work), str(home.path))
        _format(home, layout, work)
        _let_others_read(Path(layout.data(layout.master)) / "name")
        shutil.rmtree(home.path / "name", ignore_errors=True)
        (Path(layout.data(layout.master)) / "name").rename(home.path / "name")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _format(home: HadoopHome, layout: site.Layout, work: Path) -> None:
    conf = Path(layout.conf(layout.master))
    conf.mkdir(parents=True)
    (Path(layout.data(layout.master)) / "jtmp").mkdir(parents=True)
    data = layout.data(layout.master)
    core = {"fs.defaultFS": "hdfs://localhost:8020", "hadoop.tmp.dir": f"{data}/tmp"}
    (conf / "core-site.xml").write_text(site.render_xml(core))
    hdfs = {"dfs.namenode.name.dir": f"file://{data}/name"}
    (conf / "hdfs-site.xml").write_text(site.render_xml(hdfs))
    (conf / "log4j.properties").write_text(site.LOG4J)
    done = subprocess.run(
        daemons.format_argv(home.java.launcher, layout),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", cwd=work,
        env=daemons.environment(os.environ, str(home.java.home), layout, layout.master),
    )  # fmt: skip
    if done.returncode != 0:
        last = "\n".join(done.stderr.splitlines()[-10:])
        raise MachineError(f"the name space cannot be formatted:\n{last}", where=str(home.path))


def _let_others_read(folder: Path) -> None:
    """Hadoop keeps its folders to their owner; a home may serve several users."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
