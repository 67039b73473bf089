"""
The catalog on disk: Parquet is the truth, the index is made again whenever it does not agree.
"""

import pytest

from pyarrow import parquet

from harness.base.errors import DataError
from harness.catalog.catalog import Catalog
from harness.catalog.families import family_rows, job_rows
from harness.past.fill import fill
from tests.catalog.made import put, words


@pytest.fixture
def folder(tmp_path):
    """
    A catalog of three jobs in two batches.
    """
    put(tmp_path / "done", 1, conf=words())
    add(tmp_path)
    put(tmp_path / "done", 2, conf=words(), times=2.0)
    put(tmp_path / "done", 3, recorded="failed", conf=words())
    add(tmp_path)
    return tmp_path / "catalog"


def add(tmp_path):
    """
    Add what is in the done tree.
    """
    fill(Catalog(tmp_path / "catalog"), [tmp_path / "done"], 1, lambda _: None)


def ids(folder):
    """
    Ids of all rows by the catalog's index.
    """
    return Catalog(folder).table(["job_id"])["job_id"].to_pylist()


EXPECTED = [f"job_1795224441974_{number:04d}" for number in (1, 2, 3)]


@pytest.mark.parametrize(
    "content", [None, b"", b"PAR1 nothing PAR1"], ids=["gone", "empty", "foreign"]
)
def test_an_index_that_is_no_index_is_made_again(folder, content):
    """
    And the next query finds it.
    """
    index = folder / "index.parquet"
    good = index.read_bytes()
    index.unlink() if content is None else index.write_bytes(content)

    assert ids(folder) == EXPECTED
    assert len(index.read_bytes()) == len(good)


@pytest.mark.process
def test_a_damaged_index_is_made_again(folder):
    """
    Wherever a byte is another.
    """
    index = folder / "index.parquet"
    good = index.read_bytes()
    for at in range(0, len(good), 97):
        index.write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        assert ids(folder) == EXPECTED


def test_a_batch_that_went_away_is_forgotten(folder):
    """
    What the index had of it does not count.
    """
    (folder / "jobs/000001.parquet").unlink()

    assert ids(folder) == EXPECTED[1:]
    with pytest.raises(DataError, match="the catalog has no job 'job_1795224441974_0001'"):
        Catalog(folder).read_job(EXPECTED[0])


@pytest.mark.parametrize("rows", [[0, 1, 0], [9, -1, -9]])
def test_an_index_of_other_rows_is_found_out(folder, rows):
    """
    The row that is shown is that of the job, whatever the index says of its place.
    """
    index = folder / "index.parquet"
    table = parquet.read_table(index)
    place = table.column_names.index("row")
    parquet.write_table(table.set_column(place, "row", [rows]), index)

    assert [Catalog(folder).read_job(job_id)["job_id"] for job_id in EXPECTED] == EXPECTED


def test_an_index_without_a_column_is_made_again(folder):
    """
    Though it names the batches as they are.
    """
    index = folder / "index.parquet"
    parquet.write_table(parquet.read_table(index).drop_columns("family"), index)

    assert family_rows(Catalog(folder).table())[0]["jobs"] == 3


def test_a_batch_is_read_as_it_was_written_or_not_at_all(folder):
    """
    Wherever a byte is another: the jobs, or one clear error.
    """
    batch = folder / "jobs/000002.parquet"
    good, results = batch.read_bytes(), set()
    for at in range(0, len(good), len(good) // 40):
        batch.write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        try:
            results.add(tuple(ids(folder)))
        except DataError:
            results.add("damaged")

    assert results <= {tuple(EXPECTED), "damaged"}


def test_a_damaged_batch_is_one_clear_error(folder):
    """
    With the file and what to do.
    """
    batch = folder / "jobs/000002.parquet"
    data = bytearray(batch.read_bytes())
    data[len(data) // 3] ^= 0xFF
    batch.write_bytes(bytes(data))

    with pytest.raises(DataError, match="is not a table") as raised:
        ids(folder)
    assert (raised.value.where, "catalog add" in raised.value.fix) == (str(batch), True)


def test_queries_need_no_right_to_write(folder):
    """
    The index is then made for the one query.
    """
    (folder / "index.parquet").unlink()
    (folder / "index.parquet").mkdir()  # which no file can replace, not even for root

    assert ids(folder) == EXPECTED


def test_without_a_catalog(tmp_path):
    """
    The error says how to make one.
    """
    with pytest.raises(DataError, match="there is no catalog yet"):
        Catalog(tmp_path / "none").table()


def test_families_have_counts_sizes_and_times(folder):
    """
    Times of those that succeeded; a failed job counts as a job.
    """
    (row,) = family_rows(Catalog(folder).table())

    assert row["family"] == "word count [o.e.Words$Mapper, o.e.Sum, o.e.Sum]"
    assert (row["jobs"], row["succeeded"]) == (3, 2)
    assert row["least_job_s"] == row["median_job_s"] == row["most_job_s"] > 0
    assert row["most_input_bytes"] > 6e6


def test_other_rules_make_other_families(folder):
    """
    Those in the folder are used by every query, a file that is named in their place.
    """
    (folder / "rules.yaml").write_text('counting: "^word"\n')
    assert family_rows(Catalog(folder).table())[0]["family"] == "counting"

    other = folder.parent / "other.yaml"
    other.write_text('summing: "Sum$"\n')
    assert [row["job_id"] for row in job_rows(Catalog(folder, other).table(), "summing")]
    assert family_rows(Catalog(folder).table())[0]["family"] == "counting"
