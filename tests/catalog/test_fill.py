"""
Filling the catalog: what is new is added, what is known is not read, what is damaged is named.
"""

import gzip

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from harness.base.errors import DataError, MachineError, SpecError
from harness.catalog import places, sources
from harness.catalog.catalog import Catalog
from harness.catalog.families import family_rows, read_rules
from harness.cli import main
from harness.observe.storage.files import exclusive_lock
from harness.past.fill import fill
from harness.past.imports import import_jobs
from tests.catalog.cases import unpacked
from tests.catalog.made import CONF, history, put, words
from tests.parsing.histories import JSON


@pytest.fixture
def done(tmp_path):
    """
    A done tree of a history server with two jobs, one of them with its configuration.
    """
    put(tmp_path / "done", 1, conf=words())
    put(tmp_path / "done", 2)
    return tmp_path / "done"


PIECES = [b"<property>", b"</property>", b"<name>", b"<!--", b"]]>", b"&x;", b"\0", b"\xff"]


def add(tmp_path, *folders, processes=1):
    """
    Add folders to the catalog; return what became of their histories.
    """
    return fill(Catalog(tmp_path / "catalog"), folders, processes, lambda _: None)


def counts(filled):
    """
    Added, incomplete, known, left out.
    """
    return filled.added, filled.incomplete, filled.known, filled.left_out_files


def job_ids(tmp_path):
    """
    Ids of the jobs that the catalog has, by the rows that count.
    """
    table = Catalog(tmp_path / "catalog").table()
    return sorted(table.filter(table["is_current"])["job_id"].to_pylist())


def test_adds_what_is_new_alone(tmp_path, done, monkeypatch):
    """
    A second time nothing is read; a job that came meanwhile is.
    """
    assert counts(add(tmp_path, done)) == (2, 1, 0, 0)
    put(done, 1003)
    read = []
    monkeypatch.setattr(sources, "read_history", lambda *a: read.append(a) or _read(*a))
    assert counts(add(tmp_path, done)) == (1, 1, 2, 0)
    assert len(read) == 1
    assert [name[-4:] for name in job_ids(tmp_path)] == ["0001", "0002", "1003"]


_read = sources.read_history


def test_a_copy_of_a_known_job_is_known(tmp_path, done):
    """
    Wherever it lies, and whatever its moment is.
    """
    add(tmp_path, done)
    put(tmp_path / "copy", 1, conf=words())

    assert counts(add(tmp_path, tmp_path / "copy")) == (0, 0, 1, 0)


def test_a_configuration_that_comes_later_completes_its_job(tmp_path, done):
    """
    The later row counts, and there is one job of that id.
    """
    add(tmp_path, done)
    job_id = put(done, 2, conf=words())

    assert counts(add(tmp_path, done)) == (1, 0, 1, 0)
    assert not Catalog(tmp_path / "catalog").read_job(job_id)["missing"]
    assert len(job_ids(tmp_path)) == 2
    assert counts(add(tmp_path, done)) == (0, 0, 2, 0)


def test_damaged_and_foreign_files_are_named_and_the_rest_goes_on(tmp_path, done):
    """
    Each with its reason, the line where there is one; other files are left alone.
    """
    put(done, 3, text=JSON["wordcount"][:-20_000])
    put(done, 4, text=b"<html>no history</html>")
    put(done, 5, text=b'Meta VERSION="1" .\n')
    put(done, 6, text=history(6).replace(b"attempt_1795224441974_0006", b"attempt_1_0007"))
    (done / "notes.txt").write_text("nothing")
    (done / "job_1_0007.jhist").symlink_to("/dev/zero")
    filled = add(tmp_path, done)

    assert counts(filled) == (2, 1, 0, 5)
    reasons = " / ".join(reason for _, reason in sorted(filled.left_out))
    for text in ("truncated", "not a job history", "Hadoop 1", "in line", "not a plain file"):
        assert text in reasons, text


@pytest.mark.parametrize(
    ("case", "families"),
    [
        ("families-stages", {"(Stage-1)": 2, "(Stage-2)": 1}),
        ("families-streaming", {"parse.py": 1, "aggregate.py": 1}),
        ("compressed", {"": 1}),
    ],
)
def test_cases_have_families_by_program(tmp_path, case, families):
    """
    Stages of a query and commands of streaming are programs; packed files are as others.
    """
    folder = unpacked(case, tmp_path)
    add(tmp_path, folder)
    rows = family_rows(Catalog(tmp_path / "catalog").table())
    imported = import_jobs([folder], tmp_path / "run")

    assert sorted(row["jobs"] for row in rows) == sorted(families.values())
    assert sorted(row["jobs"] for row in imported.families) == sorted(families.values())
    if case == "families-stages":
        for stage, jobs in families.items():
            assert [row["jobs"] for row in rows if stage in row["family"]] == [jobs]
    assert not imported.left_out


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path, done, monkeypatch):
    """
    No more than the bound is unpacked; a cut one is damaged.
    """
    monkeypatch.setattr(sources, "_MOST_HISTORY_BYTES", 1_000_000)
    packed = gzip.compress(b" " * 5_000_000)
    (done / "job_1795224441974_0007-x.jhist.gz").write_bytes(packed)
    (done / "job_1795224441974_0008-x.jhist.gz").write_bytes(gzip.compress(history(8))[:-9])
    filled = add(tmp_path, done)

    reasons = [reason for _, reason in sorted(filled.left_out)]
    assert len(reasons) == 2
    assert "unpacks to more than" in reasons[0]
    assert "damaged" in reasons[1]


def test_histories_of_hadoop_1_are_named_as_such(tmp_path, done):
    """
    Under the names that it gave them, with its host or without; what only looks so is nothing.
    """
    names = ("job_201203131754_0004_1331_hadoop_word+count", "node_1331_job_201203131754_0005_h_x")
    for name in names:
        (done / name).write_bytes(b'Meta VERSION="1" .\n')
    (done / "job_201203131754_0006_notes").write_bytes(b"nothing")
    (done / "job_201203131754_0004_conf.xml").write_bytes(b"<configuration/>")
    left_out = add(tmp_path, done).left_out

    assert sorted(Path(file).name for file, _ in left_out) == sorted(names)
    assert all("Hadoop 1" in reason for _, reason in left_out)


def test_a_good_copy_beside_bad_ones_counts_and_each_bad_one_is_told(tmp_path):
    """
    Copies of one size have one key, so whichever is read first must not hide the others.
    """
    text = history(1)
    bad = b"x" * len(text)
    for folder, content in (("a", bad), ("b", bad), ("c", text), ("d", text)):
        put(tmp_path / "done" / folder, 1, text=content)
    filled = add(tmp_path, tmp_path / "done")

    assert counts(filled) == (1, 1, 1, 2)  # without a configuration
    assert len({file for file, _ in filled.left_out}) == 2
    assert counts(add(tmp_path, tmp_path / "done")) == (0, 0, 4, 0)


def packed_beside(folder, pattern):
    """
    Each file of that pattern below the folder, packed beside itself.
    """
    paths = sorted(folder.rglob(pattern))
    for path in paths:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    return paths


def test_a_history_beside_its_packed_copy_is_one_job(tmp_path, done, capsys):
    """
    One row, one trial, and the copy is told; where the plain one is damaged the copy counts.
    """
    plain = packed_beside(done, "*.jhist")
    assert main(["catalog", "add", str(done), "--catalog", str(tmp_path / "catalog")]) == 0
    told = " ".join("".join(capsys.readouterr()).split())
    imported = import_jobs([done], tmp_path / "run")

    assert Catalog(tmp_path / "catalog").table(["job_id"]).num_rows == 2
    assert "2 more histories are the same jobs as others, such as " in told
    assert ".jhist.gz" in told
    assert counts(add(tmp_path, done)) == (0, 0, 4, 0)
    assert len(imported.run.trials()) == 1  # the other job has no configuration
    assert [note for note in imported.notes if note.startswith("1 more history is the same job")]

    plain[0].write_bytes(b"damaged")
    filled = fill(Catalog(tmp_path / "other"), [done], 1, lambda _: None)
    assert counts(filled) == (2, 1, 1, 1)


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_history_under_another_name_has_its_configuration(tmp_path, is_packed):
    """
    By the id within, packed or not; one that comes later completes the job.
    """
    folder = tmp_path / "done"
    put(folder, 1, conf=words())
    (history_file,) = folder.rglob("*.jhist")
    history_file.rename(history_file.with_name("words.jhist"))
    if is_packed:
        (path,) = packed_beside(folder, "*_conf.xml")
        path.unlink()
    (conf_file,) = folder.rglob("*_conf.xml*")
    hidden = conf_file.rename(tmp_path / "hidden")

    assert counts(add(tmp_path, folder)) == (1, 1, 0, 0)
    assert counts(add(tmp_path, folder)) == (0, 0, 1, 0)
    hidden.rename(conf_file)
    assert counts(add(tmp_path, folder)) == (1, 0, 0, 0)
    assert counts(add(tmp_path, folder)) == (0, 0, 1, 0)
    assert len(import_jobs([folder], tmp_path / "run").run.trials()) == 1


def test_a_better_source_takes_the_place_of_a_worse_one_and_never_the_other_way(tmp_path):
    """
    A bad configuration, a good one of the same size, then a copy without any.
    """
    good = words()
    bad = good.replace(b"</name>", b"< name>", 1)
    put(tmp_path / "bad", 1, conf=bad)
    put(tmp_path / "good", 1, conf=good)
    job_id = put(tmp_path / "bare", 1)

    assert counts(add(tmp_path, tmp_path / "bad")) == (1, 1, 0, 0)
    assert counts(add(tmp_path, tmp_path / "bad")) == (0, 0, 1, 0)
    assert counts(add(tmp_path, tmp_path / "good")) == (1, 0, 0, 0)
    assert counts(add(tmp_path, tmp_path / "bad", tmp_path / "bare")) == (0, 0, 2, 0)
    row = Catalog(tmp_path / "catalog").read_job(job_id)
    assert (row["missing"], "good" in row["source"]) == ([], True)


def test_of_copies_in_one_go_the_best_counts(tmp_path):
    """
    In whatever order they lie: without a configuration, with a bad one, with a good one.
    """
    good = words()
    put(tmp_path / "done/a", 1)
    put(tmp_path / "done/b", 1, conf=good.replace(b"</name>", b"< name>", 1))
    put(tmp_path / "done/c", 1, conf=good)
    job_id = put(tmp_path / "done/d", 1)
    filled = add(tmp_path, tmp_path / "done")

    assert counts(filled) == (1, 0, 2, 0)
    assert len(filled.copies) == 2
    assert "done/c/" in Catalog(tmp_path / "catalog").read_job(job_id)["source"]


def test_folders_may_be_thousands_deep(tmp_path, done):
    """
    Those below are looked into, and jobs beside them count.
    """
    deep = done / "deep"
    deep.mkdir()
    for _ in range(1500):  # a folder takes the place of its parent, so that no path is long
        parent = done / "parent"
        parent.mkdir()
        deep.rename(parent / "a")
        parent.rename(deep)
    bottom = deep.joinpath(*"a" * 1500)
    (bottom / "job_1795224441974_0009.jhist").write_bytes(b"<html>")
    try:
        filled = add(tmp_path, done)
    finally:  # what removes the folder of the test calls itself for each
        (bottom / "job_1795224441974_0009.jhist").unlink()
        for folder in (bottom, *bottom.parents[:1500]):
            folder.rmdir()

    assert (filled.added, filled.left_out_files) == (2, 1)


def test_jobs_alike_that_spread_widely_are_warned_of(tmp_path, capsys):
    """
    Two programs that a rule makes one family: said by the import, its run and the catalog's list.
    """
    folder = unpacked("families-streaming", tmp_path)
    rules = tmp_path / "rules.yaml"
    rules.write_text("streams: ^streamjob\n")
    imported = import_jobs([folder], tmp_path / "run", rules=read_rules(rules))
    add(tmp_path, folder)
    catalog = str(tmp_path / "catalog")
    assert main(["catalog", "list", "--catalog", catalog, "--rules", str(rules)]) == 0

    (note,) = [note for note in imported.notes if "jobs alike" in note]
    assert [row["jobs"] for row in imported.families] == [2]
    assert note.startswith("streams, 16 MiB: 2 jobs alike took 10.8 to 64.8 s")
    assert note in imported.run.read_manifest().limitations
    shown = " ".join("".join(capsys.readouterr()).split())
    assert "streams: jobs alike take up to 6 times as long" in shown


def test_a_catalog_from_before_programs_were_known_goes_on_working(tmp_path, done):
    """
    Its rows have families by class; added again, jobs with a configuration get their program.
    """
    add(tmp_path, done)
    (batch,) = (tmp_path / "catalog" / "jobs").glob("*.parquet")
    parquet.write_table(parquet.read_table(batch).drop_columns(["program"]), batch)
    for index in (tmp_path / "catalog").glob("index.parquet"):
        index.unlink()

    assert len(job_ids(tmp_path)) == 2
    assert Catalog(tmp_path / "catalog").read_job(job_ids(tmp_path)[0])["program"] is None
    assert counts(add(tmp_path, done)) == (1, 0, 1, 0)
    assert counts(add(tmp_path, done)) == (0, 0, 2, 0)
    assert len(job_ids(tmp_path)) == 2


def test_a_damaged_configuration_costs_its_job_the_classes_alone(tmp_path):
    """
    A cut one, one with a document type, one that is no configuration, one that is no XML.
    """
    texts = [
        CONF[:-30],
        b"<!DOCTYPE a>" + CONF,
        b"<html></html>",
        CONF.replace(b"</name>", b"<", 99),
    ]
    for number, text in enumerate(texts, 1):
        put(tmp_path / "done", number, conf=text)
    filled = add(tmp_path, tmp_path / "done")

    assert counts(filled) == (4, 4, 0, 0)
    for job_id in job_ids(tmp_path)[:3]:
        (missing, *_) = Catalog(tmp_path / "catalog").read_job(job_id)["missing"]
        assert missing.startswith("classes and properties: the job configuration cannot be read")


@given(st.integers(0, len(CONF)), st.integers(0, 99), st.sampled_from(PIECES) | st.binary())
def test_any_configuration_is_read_or_is_a_reason(at, length, piece):
    """
    Whatever stands in it, the job is there.
    """
    with TemporaryDirectory() as name:
        put(name, 1, conf=CONF[:at] + piece + CONF[at + length :])
        (source,) = places.list_sources(Path(name), None)
        (row,) = sources.read_jobs([source])

    assert (row["mapper"] is None) == bool(row["missing"])


def test_adds_the_jobs_of_a_run(tmp_path):
    """
    Its trials' packed logs, with their configurations; a folder of runs gives all of them.
    """
    run = tmp_path / "results/demo/20261126T000000Z-0001"
    raw = run / "trials/0123456789ab/raw"
    raw.mkdir(parents=True)
    (run / "manifest.json").write_text("{}")
    for name, text in (("history.jhist", JSON["terasort"]), ("conf.xml", CONF)):
        (raw / f"job-0-{name}.gz").write_bytes(gzip.compress(text))
    (raw / "job-1-history.jhist.gz").write_bytes(gzip.compress(JSON["teragen"])[:-30])

    filled = add(tmp_path, tmp_path / "results")

    assert counts(filled) == (1, 0, 0, 1)
    assert "damaged" in filled.left_out[0][1]
    assert counts(add(tmp_path, run)) == (0, 0, 1, 1)
    assert job_ids(tmp_path) == ["job_1795224441974_0003"]


def test_nothing_to_add_is_an_error(tmp_path):
    """
    A folder without histories, or with none that can be read; no catalog is left behind.
    """
    (tmp_path / "done").mkdir()
    with pytest.raises(DataError, match="there is no job history"):
        add(tmp_path, tmp_path / "done")
    put(tmp_path / "done", 1, text=b"nothing")
    with pytest.raises(DataError, match="none of 1 job histories can be read: not a job history"):
        add(tmp_path, tmp_path / "done")
    assert [path.name for path in tmp_path.iterdir()] == ["done"]


def test_a_folder_that_was_there_stays_with_its_rules(tmp_path):
    """
    Where nothing is added to it; the next one that adds finds a catalog.
    """
    folder = tmp_path / "catalog"
    for each in (folder, tmp_path / "none"):
        each.mkdir()
    (folder / "rules.yaml").write_text('counting: "^word"\n')
    with pytest.raises(DataError, match="there is no job history"):
        add(tmp_path, tmp_path / "none")
    assert (folder / "rules.yaml").exists()

    put(tmp_path / "done", 1)
    assert counts(add(tmp_path, tmp_path / "done")) == (1, 1, 0, 0)


def test_does_not_write_where_something_else_is(tmp_path, done):
    """
    A folder with other files is no catalog.
    """
    with pytest.raises(
        SpecError, match="this folder is no catalog: it has other files, such as done"
    ):
        fill(Catalog(tmp_path), [done], 1, lambda _: None)


def test_one_adds_at_a_time(tmp_path, done):
    """
    The other is told which process has the catalog.
    """
    with (
        exclusive_lock(tmp_path / "catalog/lock", "x"),
        pytest.raises(MachineError, match="in use"),
    ):
        add(tmp_path, done)


@pytest.mark.process
def test_processes_give_what_one_does(tmp_path):
    """
    The same rows in the same order.
    """
    for number in range(1, 301):
        put(tmp_path / "done", number)
    rows = []
    for processes in (1, 2):
        catalog = Catalog(tmp_path / f"catalog-{processes}")
        fill(catalog, [tmp_path / "done"], processes, lambda _: None)
        rows.append(catalog.table().to_pylist())

    assert len(rows[0]) == 300
    assert rows[0] == rows[1]
