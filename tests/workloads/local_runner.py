"""
The jobs of harness-gpu.jar in Hadoop's local runner: one process, local files, no cluster.
"""

import os
import socket
import subprocess

from functools import cache
from pathlib import Path

from harness.clusters.hadoop_home.home import HadoopHome, find_java

PROJECT = Path(__file__).parents[2]
JAR = PROJECT / "workloads" / "gpu" / "target" / "harness-gpu.jar"
LOGGING = """
log4j.rootLogger=INFO,a
log4j.appender.a=org.apache.log4j.ConsoleAppender
log4j.appender.a.layout=org.apache.log4j.PatternLayout
log4j.appender.a.layout.ConversionPattern=%p %c{1}: %m%n
"""


class LocalRunner:
    """
    Runs clients in *folder*; their talk is kept in `output`.
    """

    def __init__(self, folder, jar=JAR):
        self.folder, self.jar, self.output = folder, jar, ""
        (folder / "log4j.properties").write_text(LOGGING)
        # Hadoop wants this machine's name resolved, which a bare machine has nowhere.
        (folder / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")

    def run(self, command):
        """
        Run a `JobCommand`; answers its status.
        """
        lib = _hadoop_home() / "lib"
        argv = [
            find_java().home / "bin" / "java",
            "-XX:TieredStopAtLevel=1", f"-Djdk.net.hosts.file={self.folder}/hosts",
            f"-Dlog4j.configuration=file:{self.folder}/log4j.properties",
            "-cp", f"{self.jar}:{lib}/*", command.main_class,
            *command.argv(
                {"hadoop.tmp.dir": str(self.folder / "tmp"), "mapreduce.job.reduces": "2"}
            ),
        ]  # fmt: skip
        done = subprocess.run(
            list(map(os.fspath, argv)), cwd=self.folder, capture_output=True, text=True, check=False
        )
        self.output = done.stdout + done.stderr
        return done.returncode

    def files(self, name):
        """
        Output files of a folder, as a workload wants them.
        """
        return [(p.name, [p.read_bytes()]) for p in sorted((self.folder / name).glob("part-*"))]


@cache
def _hadoop_home():
    """
    Hadoop's jars, verified once.
    """
    return HadoopHome.find().path
