"""
Tests for `harness.running.history`, on a file system in memory.
"""

from harness.running.history import find
from tests.running.fakes import FakeHdfs


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
