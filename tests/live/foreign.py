"""
One of our own clusters in the place of a foreign one, on addresses that any process here reaches.
"""

import contextlib
import shutil
import subprocess
import tempfile

from pathlib import Path

import pytest

from harness.base.hadoop import daemons, fence
from harness.base.records.trial import ClusterSpec
from harness.clusters.hadoop_home.home import HadoopHome, file_digest, find_java, path_jar_bytes
from harness.clusters.hadoop_home.setup import ensure_formatted
from harness.clusters.local import account
from harness.clusters.local.cluster import LocalCluster
from tests.live.open_clone import PROJECT, closed_to_others

BLOCKS = {"dfs.namenode.fs-limits.min-block-size": "65536"}
UNFENCED = {"dfs.permissions.enabled": "false"}
CACHE = PROJECT / ".cache"
# A release with all that it brings, nothing of it lifted or left out.
MODULES = (
    "common", "hdfs", "hdfs-client", "mapreduce-client-app", "mapreduce-client-hs",
    "mapreduce-client-jobclient", "mapreduce-client-shuffle", "yarn-server-nodemanager",
    "yarn-server-resourcemanager", "yarn-server-timelineservice",
)  # fmt: skip
DEPENDENCY = """<dependency><groupId>org.apache.hadoop</groupId>
<artifactId>hadoop-{module}</artifactId><version>{version}</version></dependency>
"""
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>stock-hadoop</artifactId><version>1</version>
<packaging>pom</packaging><dependencies>{dependencies}
<dependency><groupId>org.bouncycastle</groupId>
<artifactId>bcpkix-jdk18on</artifactId><version>1.78.1</version></dependency>
</dependencies></project>
"""  # the last one is declared provided, and the resource manager dies without it
SHELL = "org.apache.hadoop.fs.FsShell"
MAVEN_S, CHMOD_S = 900, 120


def as_anybodys_are(monkeypatch):
    """
    Have clusters of ours as open as Hadoop is without further ado, on ports of this machine.
    """
    monkeypatch.setenv("HARNESS_LOCAL_NETWORK", "ports")
    monkeypatch.setattr(fence, "properties", lambda layout: dict(UNFENCED))
    if closed_to_others():
        monkeypatch.setattr(account, "choose", lambda *, flat: None)  # no other user may enter it


@contextlib.contextmanager
def foreign_cluster(monkeypatch, workers, home=None, *, zone="", **site):
    """
    Such a cluster; of another Hadoop where *home* is one, and in the time of *zone* where one is
    given: as anybody's is, and none of ours.  It is as open as Hadoop is without further ado.
    """
    if zone:
        plain = daemons.environment
        monkeypatch.setattr(daemons, "_ZONE", f"-Duser.timezone={zone}")
        monkeypatch.setattr(daemons, "environment", lambda *given: {**plain(*given), "TZ": zone})
    as_anybodys_are(monkeypatch)
    spec = ClusterSpec(workers=workers, site={**BLOCKS, **site})
    # Its daemons run under an account to which pytest's own folders are closed.
    with tempfile.TemporaryDirectory(prefix="harness-foreign-") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        with LocalCluster("foreign", spec, home or HadoopHome.find()) as cluster:
            cluster.hdfs.make("/user/root")  # a user's own folder is there before the user comes
            # Its history server closes the folder below which masters of other users write.
            log = Path(folder) / "chmod.log"
            chmod = cluster.client(SHELL, ["-chmod", "755", "/history"], log=log)
            assert chmod.wait(CHMOD_S) == 0, log.read_text()
            yield cluster


def state_of(cluster):
    """
    What nobody but its owner changes: daemons' processes, files of the nodes' configuration and of
    HDFS (but for what Hadoop keeps of every job), nodes that run.
    """
    layout = cluster.layout
    conf = [Path(layout.conf(member)) for member in (layout.master, *layout.workers)]
    nodes = cluster.hdfs.get_json("rm", "/ws/v1/cluster/metrics")["clusterMetrics"]
    return {
        "daemons": cluster.daemon_pids(),
        "configuration": {f: file_digest(f) for c in conf for f in c.rglob("*") if f.is_file()},
        "files": sorted(files_of(cluster.hdfs, "")),
        "nodes": {kind: nodes[f"{kind}Nodes"] for kind in ("active", "lost", "decommissioned")},
    }


def files_of(hdfs, folder):
    """
    All paths of HDFS below *folder*, without jobs' histories, logs and staging folders.
    """
    for name, _, deeper in hdfs.list(folder or "/"):
        path = f"{folder}/{name}"
        if path not in {"/history", "/tmp"}:
            yield path
            if deeper:
                yield from files_of(hdfs, path)


def client_environment(cluster):
    """
    The environment of a user of *cluster*.
    """
    return {
        "HADOOP_CONF_DIR": cluster.layout.conf(cluster.layout.master),
        "HADOOP_USER_NAME": "root",
    }


def another_hadoop(version):
    """
    A home of Hadoop in that version, made once; nothing but the test that asks for it uses it.

    The test is skipped where Maven cannot resolve its jars.
    """
    home = CACHE / f"stock-hadoop-{version}"
    if not home.is_dir():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            made = Path(folder) / "home"
            resolve(version, made / "lib")
            for name in ("hdfs", "datanode", "secondary", "static"):
                (made / "etc" / "webapps" / name).mkdir(parents=True)
            jars = [f"lib/{jar.name}" for jar in (made / "lib").iterdir()]
            (made / "path.jar").write_bytes(path_jar_bytes(jars))
            made.rename(home)
    shutil.copy(HadoopHome.find().path / "fence.jar", home)  # which connections are the cluster's
    sums = {f"lib/{jar.name}": file_digest(jar) for jar in sorted((home / "lib").iterdir())}
    hadoop_home = HadoopHome(home, find_java(), sums)
    ensure_formatted(hadoop_home)
    return hadoop_home


def resolve(version, folder):
    """
    Let Maven put the jars of that release into *folder*.
    """
    if shutil.which("mvn") is None:
        pytest.skip("apt-get install -y maven")
    folder.mkdir(parents=True)
    dependencies = (DEPENDENCY.format(module=module, version=version) for module in MODULES)
    pom = folder.with_name("pom.xml")
    pom.write_text(POM.format(dependencies="".join(dependencies)))
    done = subprocess.run(
        [
            "mvn", "-B", "-ntp", "-q", "-f", str(pom), "dependency:copy-dependencies",
            f"-DoutputDirectory={folder}", "-DincludeScope=runtime",
        ],
        check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MAVEN_S,
    )  # fmt: skip
    if done.returncode != 0:
        reason = (done.stdout + done.stderr).partition("[ERROR] ")[2]
        pytest.skip(f"Maven cannot resolve Hadoop {version}: {reason[:200]}")
