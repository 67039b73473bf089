"""
Tests for `harness.run.history`, on a file system in memory.
"""

from types import SimpleNamespace

import pytest

from harness.errors import JobError
from harness.run import history as module
from harness.run.history import fetch_history, find
from tests.run.fakes import CONF, FakeHdfs, recorded_history


def test_find_looks_into_folders():
    """
    The history server sorts histories by day; other jobs' files are no answer.
    """
    hdfs = FakeHdfs()
    for name in ("/h/a/job_1.jhist", "/h/b/2026/11/21/job_1_conf.xml", "/h/a/job_2.jhist"):
        hdfs.put(name, [b""])

    assert sorted(find(hdfs, "/h", "job_1")) == [
        "/h/a/job_1.jhist",
        "/h/b/2026/11/21/job_1_conf.xml",
    ]
    assert list(find(hdfs, "/nowhere", "job_1")) == []


def test_a_folder_that_has_both_is_enough(tmp_path):
    """
    A look costs a command on the cluster's host: folders behind that one are not looked into.
    """
    hdfs, (history, job) = FakeHdfs(), recorded_history(7)
    hdfs.put(f"/near/root/{job}-1-root.jhist", [history])
    hdfs.put(f"/near/root/{job}_conf.xml", [CONF])
    looked, plain = [], hdfs.list
    hdfs.list = lambda path: looked.append(path) or plain(path)
    cluster = SimpleNamespace(hdfs=hdfs, history_folders=lambda job: ["/near", "/far"])
    trace = fetch_history(cluster, job, tmp_path, 0, wait_s=0)

    assert (trace.job_id, looked) == (job, ["/near", "/near/root"])
    assert (tmp_path / "job-0-conf.xml").read_bytes() == CONF


def test_a_history_without_end(tmp_path, monkeypatch):
    """
    What a cluster sends is no longer than any job's history is: it does not fill the disk.
    """
    hdfs, job = FakeHdfs(), "job_1_0001"
    hdfs.put(f"/done/{job}.jhist", [bytes(1000)])
    hdfs.put(f"/done/{job}_conf.xml", [CONF])
    monkeypatch.setattr(module, "MOST_BYTES", 999)
    cluster = SimpleNamespace(hdfs=hdfs, history_folders=lambda job: ["/done"])

    with pytest.raises(JobError, match="larger than 999"):
        fetch_history(cluster, job, tmp_path, 0, wait_s=0)
    assert (tmp_path / "job-0-history.jhist").stat().st_size < 1000
