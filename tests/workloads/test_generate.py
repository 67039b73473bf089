"""
Tests for `harness.workloads.generate`.
"""

from hypothesis import given
from hypothesis import strategies as st

from harness.workloads.base import JOBS, PACKAGE
from harness.workloads.generate import generated, generated_files


def test_asks_for_the_job_of_ours():
    """
    The content's properties come first, then what the job's usage says.
    """
    job = generated("a.B", records=7, files=2, seed=3, uri="/in", properties={"b.size": "9"})

    assert (job.main_class, job.jar) == (f"{PACKAGE}.generate.Generate", JOBS)
    assert job.argv({}) == ("-Db.size=9", f"{PACKAGE}.a.B", "7", "2", "3", "/in")


@given(st.integers(1, 1000), st.integers(0, 10**6), st.integers(1, 500))
def test_files_share_the_records_evenly(files, more, size):
    """
    They hold all records, differ by one at most, and the larger ones come first: as the job's
    splits, which Hadoop sorts by their length.
    """
    made = list(generated_files(files + more, files, size))
    sizes = [f.bytes // size for f in made]

    assert sum(sizes) == files + more
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1
    assert [f.name for f in made] == [f"part-m-{n:05d}" for n in range(files)]
