"""
Tez and Spark applications beside histories of jobs: known by names and first bytes, and counted.
"""

import json

import pytest

from harness.catalog import applications
from harness.catalog.applications import Applications
from harness.cli import main
from tests.catalog.made import put, words

SEQUENCE = (
    b"SEQ\x06\x21org.apache.hadoop.io.NullWritable"
    b"\x3corg.apache.tez.dag.history.logging.proto.ProtoMessageWritable\x01\x00"
)
SPARK = b'{"Event":"SparkListenerLogStart","Spark Version":"3.5.1"}\n'
TEZ_ENTITY = b'{"entity":"dag_7_0001_1","entitytype":"TEZ_DAG_ID","events":[]}'
TEZ = {
    "simple/history.txt.appattempt_7_0001_000001": b"",
    "proto/app_data/date=2026-03-01/appattempt_7_0002_000001": SEQUENCE,
    "proto/dag_meta/date=2026-03-01/appattempt_7_0002_000001": SEQUENCE,
    "proto/dag_data/date=2026-03-01/dag_7_0002_1_1": SEQUENCE,
    "proto/dag_data/date=2026-03-01/dag_7_0002_2_1": SEQUENCE,
    "staging/application_7_0003/recovery/1/dag_7_0003_1.recovery": b"\0",
    "ats/appattempt_7_0004_000001/summarylog-appattempt_7_0004_000001": TEZ_ENTITY,
    "ats/appattempt_7_0004_000001/entitylog-timelineEntityGroupId_7_0004_dag_7_0004_1": b"{}",
}
SPARKS = {
    "spark/application_8_0001": SPARK,
    "spark/application_8_0002_1": SPARK,
    "spark/application_8_0002_2.inprogress": b"",
    "spark/application_8_0003.zstd": b"\x28\xb5\x2f\xfd",
    "spark/application_8_0004_1.lz4.inprogress": b"LZ4Block",
    "spark/eventlog_v2_application_8_0005/events_1_application_8_0005.zstd": b"",
    "spark/eventlog_v2_application_8_0005/events_2_application_8_0005.zstd": b"",
    "spark/eventlog_v2_application_8_0006_1/appstatus_application_8_0006_1.inprogress": b"",
    "spark/local-1772366400000": SPARK,
    "spark/app-20260301120000-0007.snappy": b"",
    "spark/spark-0123456789abcdef0123456789abcdef": SPARK,
    "spark/eventlog_v2_nightly/events_1_nightly": SPARK,
}
NEITHER = {
    "logs/application_9_0001": b"Container: container_9_0001_01_000001 on host_8041",
    "logs/application_9_0002.log": SPARK,
    "ats/summarylog-appattempt_9_0003_000001": b'{"entity":"job_9_0003","entitytype":"JOB"}',
    "proto/appattempt_9_0004_000001": b"SEQ\x06\x21org.apache.hadoop.io.NullWritable",
    "eventlog_v2_empty/readme": b"",
    "history.txt": b"",
    "dag_of_tasks": b"",
}


def write(folder, files):
    """
    Write *files* below a folder.
    """
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.fixture
def harness(tmp_path, capsys, monkeypatch):
    """
    Run a command in a folder with a done tree of two jobs; its status, JSON, and errors.
    """
    monkeypatch.chdir(tmp_path)
    put("done", 1, conf=words())
    put("done", 2, conf=words(), times=2.0)

    def run(*arguments):
        status = main([*arguments, "--json"])
        captured = capsys.readouterr()
        return status, json.loads(captured.out or "{}"), captured.err

    return run


def test_each_application_counts_once_and_what_is_none_does_not(harness, tmp_path):
    """
    Four of Tez and ten of Spark in 20 files; logs, other entities and other names are none.
    """
    write(tmp_path / "done", TEZ | SPARKS | NEITHER)
    status, answer, _ = harness("catalog", "add", "done")

    assert (status, answer["added"], answer["left_out_files"]) == (6, 2, 0)
    assert {kind: found["count"] for kind, found in answer["applications"].items()} == {
        "Spark": 10,
        "Tez": 4,
    }
    assert answer["applications"]["Tez"]["first"] == [f"application_7_000{n}" for n in (1, 2, 3, 4)]
    assert "application_8_0006" in answer["applications"]["Spark"]["first"]
    assert harness("catalog", "add", "done")[1]["applications"] == answer["applications"]


def test_import_says_it_in_its_notes_and_in_the_run(harness, tmp_path):
    """
    And ends as with any other file that is left out.
    """
    write(tmp_path / "done", TEZ)
    status, answer, _ = harness("import", "done", "-o", "run")
    sentence = (
        "4 Tez applications were left out: they are no MapReduce jobs, and their times follow"
        " other rules"
    )

    assert (status, answer["applications"]["Tez"]["count"]) == (6, 4)
    assert sentence in answer["notes"]
    assert sentence in json.loads((tmp_path / "run/manifest.json").read_text())["limitations"]


@pytest.mark.parametrize("command", [("catalog", "add", "done"), ("import", "done", "-o", "run")])
def test_a_folder_of_nothing_else_says_what_it_has(harness, tmp_path, command):
    """
    In the error that there is no history.
    """
    for path in (tmp_path / "done").rglob("job_*"):
        path.unlink()
    write(tmp_path / "done", TEZ | {"spark/application_8_0001": SPARK})
    status, _, err = harness(*command)

    assert status == 7
    assert "no job history" in err
    assert "4 Tez and 1 Spark applications were left out" in " ".join(err.split())


def test_links_are_not_followed_and_the_rest_goes_on(harness, tmp_path):
    """
    As with histories: what is no plain file is no event log.
    """
    (tmp_path / "elsewhere").write_bytes(SPARK)
    (tmp_path / "done/application_8_0001").symlink_to(tmp_path / "elsewhere")
    status, answer, _ = harness("catalog", "add", "done")

    assert (status, answer["applications"]) == (0, {})


def test_beyond_a_number_of_files_names_alone_decide(monkeypatch):
    """
    No folder makes the harness open a million files; no name is longer than it is shown.
    """
    monkeypatch.setattr(applications, "_MOST_HEADS", 3)
    found = Applications()
    asked = []
    names = [f"application_8_{number:04d}" for number in range(30)]
    found.add_files("spark", names, lambda name: asked.append(name) or SPARK)

    assert asked == names[:3]
    assert found.counted() == {"Spark": {"count": 30, "first": names[:20]}}


def test_a_resource_managers_types(monkeypatch):
    """
    MapReduce's are jobs; others keep their type as their name, made safe, and are not without end.
    """
    found = Applications()
    types = ["MAPREDUCE", "TEZ", "TEZ", "SPARK", "Apache Flink\x1b[31m", "", None]
    found.add_answers(
        {"id": f"application_7_{number:04d}", "applicationType": kind}
        for number, kind in enumerate(types)
    )
    found.add_answers([{"id": "../x", "applicationType": "TEZ"}, {}])

    assert found.sentence().startswith(
        "2 Tez, 2 other, 1 Apache Flink\\x1b[31m and 1 Spark applications were left out"
    )
    found.add_answers(
        {"id": f"application_8_{number:04d}", "applicationType": f"type {number}"}
        for number in range(100)
    )
    assert len(found.counted()) == 20
