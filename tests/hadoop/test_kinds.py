"""
Tests for `harness.base.hadoop.kinds`: what a stranger's property may do.
"""

from pathlib import Path

import pytest

from harness.base.hadoop.kinds import kind_of
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand

ROOT = Path(__file__).parents[2]
READY = [path for path in ROOT.glob("experiments/**/*.yaml") if path.stem != "budgets"]

ATTACKS = {
    "mapreduce.map.java.opts": ("-XX:OnOutOfMemoryError='touch /tmp/x'", "code"),
    "mapreduce.reduce.java.opts": ("-Xmx400m -agentpath:/tmp/x.so", "code"),
    "mapred.child.java.opts": ("-javaagent:/tmp/x.jar", "code"),
    "yarn.app.mapreduce.am.command-opts": (
        "-agentlib:jdwp=transport=dt_socket,server=y,address=9", "code"),
    "mapreduce.map.log.level": ("INFO$(touch x)", "code"),
    "mapreduce.reduce.log.level": ("LOUD", "code"),
    "mapreduce.map.memory.mb": ("$(id)", "code"),
    "mapreduce.task.timeout": ("${file:/etc/passwd}", "code"),
    "yarn.app.mapreduce.task.container.log.backups": ("1;id", "code"),
    "mapreduce.map.env": ("LD_PRELOAD=/tmp/x.so", "code"),
    "mapreduce.map.env.LD_PRELOAD": ("/tmp/x.so", "code"),
    "yarn.app.mapreduce.am.env": ("PATH=/tmp", "code"),
    "net.topology.script.file.name": ("/tmp/x.sh", "code"),
    "yarn.nodemanager.health-checker.scripts": ("x", "code"),
    "yarn.nodemanager.container-executor.class": ("evil.Executor", "code"),
    "mapreduce.map.output.compress.codec": ("evil.Codec", "code"),
    "mapreduce.job.map.output.collector.class": ("org.apache.hadoop.mapred.X,evil.Y", "code"),
    "io.serializations": ("evil.Serialization", "code"),
    "mapreduce.application.classpath": ("/tmp/*", "code"),
    "mapreduce.job.classpath.files": ("/tmp/x.jar", "code"),
    "mapreduce.job.cache.archives": ("file:///etc", "code"),
    "mapreduce.job.cache.files": ("file:///etc/passwd", "code"),
    "tmpfiles": ("file:///etc/passwd", "unknown"),
    "tmpjars": ("file:///tmp/x.jar", "unknown"),
    "yarn.nodemanager.aux-services": ("x", "code"),
    "hadoop.security.group.mapping": ("evil.Groups", "access"),
    "hadoop.security.impersonation.provider.class": ("evil.All", "access"),
    "hadoop.proxyuser.me.hosts": ("*", "access"),
    "security.client.protocol.hosts": ("*", "access"),
    "dfs.namenode.rpc-bind-host": ("0.0.0.0", "access"),
    "dfs.namenode.http-bind-host": ("0.0.0.0", "access"),
    "mapreduce.jobhistory.bind-host": ("0.0.0.0", "access"),
    "dfs.permissions.enabled": ("false", "access"),
    "dfs.permissions.superusergroup": ("users", "access"),
    "dfs.cluster.administrators": ("*", "access"),
    "yarn.admin.acl": ("*", "access"),
    "yarn.acl.enable": ("false", "access"),
    "mapreduce.job.acl-modify-job": ("*", "access"),
    "yarn.nodemanager.local-dirs": ("/home", "path"),
    "hadoop.tmp.dir": ("/", "path"),
    "mapreduce.cluster.local.dir": ("/", "path"),
    "fs.s3a.assumed.role.arn": ("x", "unknown"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_what_does_more_is_no_performance(name):
    """
    Each property by which a stranger's experiment could do more than take its time.
    """
    value, kind = ATTACKS[name]
    assert kind_of(name, value) == kind


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_the_ready_made_experiments_pass(path):
    """
    What people publish is about performance.
    """
    experiment = read_experiment(path.read_text(encoding="utf-8"), str(path))
    chosen = {
        (name, value)
        for cell in expand(experiment)
        for name, value in (*cell.configuration.items(), *cell.cluster.site.items())
    }
    assert {pair for pair in chosen if kind_of(*pair) != "performance"} == set()


def test_names_of_hadoop_are_mostly_no_performance():
    """
    The list is of what is known, not of what is not: most names of Hadoop are in no list.
    """
    names = (ROOT / "harness/base/hadoop/property-names.txt").read_text().splitlines()
    kinds = [kind_of(name, "1") for name in names]
    assert 0.05 < kinds.count("performance") / len(kinds) < 0.25
    assert kind_of("mapreduce.job.reduces", "2") == "performance"
