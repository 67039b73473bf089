"""
Rows of the catalog and its refusals, by hand: each number of a small job, each text of an error.
"""

import math

from dataclasses import replace

import pytest

from harness.base.errors import DataError, ParseError, SpecError
from harness.base.records.trace import (
    FILE_INPUT_COUNTER,
    FILE_OUTPUT_COUNTER,
    TASK_COUNTER,
    JobTrace,
    TaskAttempt,
)
from harness.catalog import catalog as catalog_module
from harness.catalog import places
from harness.catalog.catalog import Catalog
from harness.catalog.families import family_rows, job_rows, read_rules
from harness.catalog.jobs import past_job
from harness.catalog.places import is_remote, list_sources
from harness.catalog.sources import Files, paired, read_jobs, too_large
from harness.past.fill import Filled, fill
from tests.catalog.made import CONF, put, words
from tests.parsing.histories import JSON

COMPRESSED = {"mapreduce.map.output.compress": " True "}
NO_COMBINER = {"COMBINE_INPUT_RECORDS": 0, "COMBINE_OUTPUT_RECORDS": 0}


def parts_of(caught):
    """
    The three parts of the error that was caught.
    """
    return (caught.value.what, caught.value.where, caught.value.fix)


def counted(**counts):
    """
    Counters of tasks by their whole names; those of files are written in small letters.
    """
    files = {
        "read": f"{FILE_INPUT_COUNTER}.BYTES_READ",
        "written": f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN",
    }
    return {files.get(name, f"{TASK_COUNTER}.{name}"): count for name, count in counts.items()}


MAPS = counted(
    read=1000,
    MAP_INPUT_RECORDS=10,
    MAP_OUTPUT_RECORDS=40,
    SPILLED_RECORDS=80,
    COMBINE_INPUT_RECORDS=40,
    COMBINE_OUTPUT_RECORDS=20,
    MAP_OUTPUT_BYTES=2000,
    MAP_OUTPUT_MATERIALIZED_BYTES=500,
)
REDUCES = counted(
    REDUCE_SHUFFLE_BYTES=480,
    REDUCE_INPUT_RECORDS=20,
    REDUCE_INPUT_GROUPS=5,
    REDUCE_OUTPUT_RECORDS=4,
    written=240,
)
ATTEMPTS = (
    TaskAttempt("m0", "tm0", "map", "succeeded", 12.0, 16.0, "w1", map_finish_s=15.0,
                counters=counted(CPU_MILLISECONDS=2000)),
    TaskAttempt("m1", "tm1", "map", "succeeded", 13.0, 19.0, "w2", map_finish_s=16.0,
                counters=counted(CPU_MILLISECONDS=3000)),
    TaskAttempt("m2", "tm2", "map", "failed", 11.5, 12.5, "w3"),
    TaskAttempt("m3", "tm3", "map", "killed", 12.0, 14.0, "w1"),
    TaskAttempt("m4", "tm4", "map", "killed", 17.0, 18.0, "w1"),
    TaskAttempt("r0", "tr0", "reduce", "succeeded", 15.0, 25.0, "w2", shuffle_finish_s=19.0,
                sort_finish_s=20.0, counters=counted(CPU_MILLISECONDS=4500)),
)  # fmt: skip
JOB = JobTrace(
    "job_1_0001", "word count", "u", "SUCCEEDED", 10.0, 10.5, 30.0, 4, 1, ATTEMPTS,
    map_counters=MAPS, reduce_counters=REDUCES,
)  # fmt: skip


def of_maps(**counts):
    """
    The job with other counters of its maps; without those that are `None`.
    """
    changed = {**MAPS, **counted(**counts)}
    kept = {name: count for name, count in changed.items() if count is not None}
    return replace(JOB, map_counters=kept)


class TestRow:
    def test_has_what_attempts_show(self):
        """
        The time before the first and behind the last, repeats, hosts, and slots of each kind.
        """
        row = past_job(JOB, {})

        assert {name: row[name] for name in row if name in (
            "job_start_s", "job_end_s", "failed_attempts", "killed_attempts", "hosts", "map_slots",
            "reduce_slots", "num_maps", "num_reduces", "submit_s", "job_s", "state", "job_id",
        )} == {
            "job_start_s": 1.5,
            "job_end_s": 5.0,
            "failed_attempts": 1,
            "killed_attempts": 2,
            "hosts": 3,
            "map_slots": 3,
            "reduce_slots": 1,
            "num_maps": 4,
            "num_reduces": 1,
            "submit_s": 10.0,
            "job_s": 20.0,
            "state": "SUCCEEDED",
            "job_id": "job_1_0001",
        }  # fmt: skip

    def test_of_a_job_without_attempts_has_no_start(self):
        """
        And no slot, and no time.
        """
        row = past_job(replace(JOB, attempts=()), {})

        assert (row["job_start_s"], row["job_end_s"]) == (None, None)
        assert (row["map_slots"], row["hosts"], row["map_task_s"]) == (0, 0, None)
        assert row["map_cpu_s"] is None

    def test_has_mean_times_of_what_succeeded(self):
        """
        Of the parts of a task, and of the processor.
        """
        row = past_job(JOB, {})

        assert {name: row[name] for name in row if name.endswith("_s") and "job" not in name} == {
            "submit_s": 10.0,
            "map_task_s": 5.0,
            "map_function_s": 3.0,
            "map_merge_s": 2.0,
            "reduce_task_s": 10.0,
            "reduce_shuffle_s": 4.0,
            "reduce_sort_s": 1.0,
            "reduce_function_s": 5.0,
            "map_cpu_s": 2.5,
            "reduce_cpu_s": 4.5,
        }

    def test_has_the_records_and_bytes_of_the_job(self):
        """
        Each counter under its name.
        """
        row = past_job(JOB, {})

        assert {name: row[name] for name in row if name.endswith(("_records", "_bytes", "groups"))
                and isinstance(row[name], int)} == {
            "input_bytes": 1000,
            "map_input_records": 10,
            "map_output_records": 40,
            "map_spilled_records": 80,
            "combine_input_records": 40,
            "combine_output_records": 20,
            "map_output_bytes": 2000,
            "map_materialized_bytes": 500,
            "reduce_shuffle_bytes": 480,
            "reduce_input_records": 20,
            "reduce_input_groups": 5,
            "reduce_output_records": 4,
            "output_bytes": 240,
        }  # fmt: skip
        assert row["missing"] == ()

    def test_has_their_quotients(self):
        """
        Of a job that compresses nothing what is copied is what reduces read.
        """
        row = past_job(JOB, {})

        assert {name: row[name] for name in row if "selectivity" in name} == {
            "map_records_selectivity": 4.0,
            "map_bytes_selectivity": 2.0,
            "combine_records_selectivity": 0.5,
            "reduce_records_selectivity": 0.2,
            "reduce_bytes_selectivity": 0.5,
        }
        assert (row["map_output_ratio"], row["reduce_input_bytes"]) == (1.0, 480.0)
        assert (row["split_bytes"], row["records_per_reduce_group"]) == (250.0, 4.0)
        widths = ("input_record_bytes", "map_output_record_bytes", "output_record_bytes")
        assert [row[name] for name in widths] == [100.0, 50.0, 60.0]

    def test_of_a_map_only_job_has_the_output_of_its_maps(self):
        """
        Nothing is missing that such a job has not.
        """
        alone = replace(of_maps(written=300), num_reduces=0, reduce_counters={})
        row = past_job(replace(alone, attempts=ATTEMPTS[:2]), {})

        assert (row["output_bytes"], row["output_record_bytes"]) == (300, 7.5)
        assert (row["map_bytes_selectivity"], row["map_output_record_bytes"]) == (0.3, 7.5)
        assert row["missing"] == ()


class TestCodec:
    def test_without_a_combiner_is_seen_in_the_bytes(self):
        """
        A quarter is left of the maps' output, and what was copied was four times as large.
        """
        row = past_job(of_maps(**NO_COMBINER), COMPRESSED)

        assert (row["map_output_ratio"], row["reduce_input_bytes"]) == (0.25, 1920.0)
        assert row["missing"] == ()

    def test_beside_a_combiner_is_not_known(self):
        """
        The row says why; so it is where nobody knows whether there is one.
        """
        reason = "map_output_ratio: no counter tells the combiner from the codec"

        row = past_job(JOB, COMPRESSED)
        assert (row["map_output_ratio"], row["reduce_input_bytes"]) == (None, None)
        assert row["missing"] == (reason,)
        unknown = past_job(of_maps(COMBINE_INPUT_RECORDS=None), COMPRESSED)
        assert (unknown["map_output_ratio"], unknown["missing"]) == (None, (reason,))

    def test_that_is_off_is_none(self):
        """
        Whatever the bytes are; without bytes there is nothing to say.
        """
        for value in ("false", "", "yes"):
            row = past_job(JOB, {"mapreduce.map.output.compress": value})
            assert row["map_output_ratio"] == 1.0
        silent = past_job(of_maps(MAP_OUTPUT_BYTES=0), {})
        assert silent["map_output_ratio"] is None


class TestMissing:
    def test_counters_are_named(self):
        """
        One that is not there, and one that is no count; a combiner's are nobody's duty.
        """
        row = past_job(of_maps(read=None, SPILLED_RECORDS=-1, MAP_OUTPUT_RECORDS=2**63,
                               COMBINE_OUTPUT_RECORDS=None), {})  # fmt: skip

        assert (row["input_bytes"], row["map_spilled_records"]) == (None, None)
        assert (row["map_output_records"], row["combine_output_records"]) == (None, None)
        assert row["missing"] == (
            "input_bytes: no such counter",
            "map_output_records: not a count",
            "map_spilled_records: not a count",
        )

    def test_of_one_kind_are_missing_at_once(self):
        """
        Of the other kind they are there.
        """
        row = past_job(replace(JOB, reduce_counters={}), {})

        assert row["missing"] == ("counters of reduces: none",)
        assert row["map_input_records"] == 10
        assert row["counters_from"] == "totals of the job"

    def test_an_end_and_a_configuration_are_said(self):
        """
        In this order; without a problem there was none beside it.
        """
        row = past_job(replace(JOB, state="KILLED"), None)
        assert row["missing"][:2] == (
            "a successful end: it is KILLED",
            "classes and properties: no job configuration beside the history",
        )
        long = past_job(JOB, None, "x" * 300)["missing"][0]
        assert long == f"classes and properties: {'x' * 197}..."

    def test_of_a_task_that_did_twice_the_last_counts(self):
        """
        Where sums stand for the totals of the job.
        """
        again = replace(ATTEMPTS[0], attempt_id="m0b", start_s=16.0, counters=counted(read=7))
        attempts = (replace(ATTEMPTS[0], counters=counted(read=5)), again)
        bare = replace(JOB, map_counters={}, reduce_counters={}, attempts=attempts)

        row = past_job(bare, {})
        assert (row["input_bytes"], row["counters_from"]) == (
            7,
            "sums over the tasks that succeeded",
        )

    def test_long_texts_are_cut(self):
        """
        Of a name, a class and a value; a JVM's options are those of its own.
        """
        properties = {
            "mapreduce.job.map.class": "c" * 400,
            "mapreduce.task.io.sort.mb": "9" * 300,
            "mapreduce.map.java.opts": "-Dp=q -Xmx9m\n -XX:A",
        }
        row = past_job(replace(JOB, name="n" * 400), properties)

        assert (len(row["name"]), len(row["mapper"])) == (300, 300)
        assert row["properties"] == (
            "mapreduce.map.java.opts=-Xmx9m -XX:A",
            f"mapreduce.task.io.sort.mb={'9' * 200}",
        )


class TestSources:
    def test_are_histories_with_their_configurations(self):
        """
        By the id of the job in both names; sorted.
        """
        names = ["job_2_0002-x.jhist", "job_1_0001_conf.xml", "job_1_0001-a.jhist", "b.jhist",
                 "job_9_0009_conf.xml", "job_1_0001.xml", "note"]  # fmt: skip

        assert [*paired(names)] == [
            ("b.jhist", ""),
            ("job_1_0001-a.jhist", "job_1_0001_conf.xml"),
            ("job_2_0002-x.jhist", ""),
        ]

    def test_that_are_no_whole_configuration_are_refused(self, tmp_path):
        """
        With the file, and what to do.
        """
        (tmp_path / "a.jhist").write_bytes(JSON["wordcount"])
        for text in (CONF[:-30], b"<!DOCTYPE a>" + CONF, CONF.replace(b"<name>", b"<nam>", 1)):
            (tmp_path / "a_conf.xml").write_bytes(text)
            source = Files("k", tmp_path, "a.jhist", "a_conf.xml")
            with pytest.raises(ParseError) as caught:
                source.read_wanted()
            assert caught.value.what == "not a whole job configuration"
            assert str(tmp_path / "a_conf.xml") in caught.value.where
            assert caught.value.fix == "copy it again, or leave it out"

    def test_that_are_too_large_are_refused(self, tmp_path):
        """
        One byte more than is read.
        """
        (tmp_path / "a.jhist").write_bytes(b"x" * 2048)
        source = Files("k", tmp_path, "a.jhist", "")

        assert len(source.read("a.jhist", 2048)) == 2048
        with pytest.raises(DataError):
            source.read("a.jhist", 2047)
        error = too_large("a", 2048, "w")
        assert error.what == "a has more than the 2 KiB that are read"
        assert (error.where, error.fix) == ("w", "copy it again, or leave it out")

    def test_that_are_gone_say_what_to_do(self, tmp_path):
        """
        As all that is read from a disk.
        """
        with pytest.raises(DataError) as caught:
            Files("k", tmp_path, "a.jhist", "").read_trace()
        assert parts_of(caught) == (
            "a.jhist is missing",
            str(tmp_path / "a.jhist"),
            "copy it again, or leave it out",
        )

    def test_that_cannot_be_read_name_their_line(self, tmp_path):
        """
        Where the reader knows it.
        """
        text = JSON["wordcount"].splitlines(keepends=True)
        (tmp_path / "job_1_0001-a.jhist").write_bytes(b"".join([*text[:4], b"{\n", *text[4:]]))
        ((label, reason),) = read_jobs(list_sources(tmp_path, None))

        assert label == str(tmp_path / "job_1_0001-a.jhist")
        assert reason.endswith(", in line 5")

    def test_keep_where_they_came_from(self, tmp_path):
        """
        The history's path, and the name of the configuration that was read.
        """
        put(tmp_path, 1, conf=words())
        put(tmp_path, 2, conf=b"nothing")
        sources = [*list_sources(tmp_path, None)]
        good, bad = read_jobs(sources)

        assert good["source"] == sources[0].label == str(sources[0].folder / sources[0].history)
        assert good["configuration"] == "job_1795224441974_0001_conf.xml"
        assert [row["source_key"] for row in (good, bad)] == [source.key for source in sources]
        assert bad["configuration"] == ""
        assert bad["missing"][0] == (
            "classes and properties: the job configuration cannot be read:"
            " not a whole job configuration"
        )

    def test_without_an_id_are_known_by_their_place_and_moment(self, tmp_path):
        """
        With one they are known by that and their sizes.
        """
        for name in ("job_1_0001-a.jhist", "b.jhist"):
            (tmp_path / name).write_bytes(b"x" * 7)
        (tmp_path / "job_1_0001_conf.xml").write_bytes(b"y" * 3)
        keys = [source.key for source in list_sources(tmp_path, None)]

        moment = (tmp_path / "b.jhist").lstat().st_mtime_ns
        assert keys == [f"{tmp_path / 'b.jhist'} {moment} 7", "job_1_0001 7 3"]

    def test_of_folders_come_in_their_order(self, tmp_path):
        """
        One folder after the other.
        """
        for number in (2, 1):
            (tmp_path / f"f{number}").mkdir()
            (tmp_path / f"f{number}/job_1_000{number}.jhist").write_bytes(b"")

        assert [source.key.split()[0] for source in list_sources(tmp_path, None)] == [
            "job_1_0001",
            "job_1_0002",
        ]

    def test_that_went_away_are_left_out(self, tmp_path, monkeypatch):
        """
        Between the listing and the look; so is a folder that cannot be listed.
        """
        (tmp_path / "a.jhist").write_bytes(b"")
        left_out = []
        monkeypatch.setattr(places, "paired", lambda _: [("gone.jhist", "")])

        assert list(list_sources(tmp_path, lambda *pair: left_out.append(pair))) == []
        assert left_out == [(str(tmp_path / "gone.jhist"), "no such file or directory")]
        assert list(list_sources(tmp_path / "none", lambda *pair: left_out.append(pair))) == []
        assert left_out[1:] == [(str(tmp_path / "none"), "no such file or directory")]

    @pytest.mark.parametrize(
        ("place", "remote"),
        [("hdfs:/x", True), ("webhdfs://a:1/x", True), ("http://a:1", True), ("/hdfs:", False)],
    )
    def test_are_remote_by_their_scheme(self, place, remote):
        """
        All else is a folder.
        """
        assert is_remote(place) == remote

    def test_that_are_no_address_have_forms(self):
        """
        All three.
        """
        with pytest.raises(SpecError) as caught:
            list(list_sources("hdfs://other:8020/x", None))
        assert parts_of(caught) == (
            "'hdfs://other:8020/x' is no address of histories",
            "SOURCE",
            "write hdfs:/PATH, webhdfs://NAMENODE:9870/PATH or http://HISTORYSERVER:19888",
        )


class TestServed:
    JOBS = "/ws/v1/history/mapreduce/jobs"

    @pytest.fixture
    def served(self, monkeypatch):
        """
        A job of a history server that answers what is small; its pages can be changed.
        """
        task = "task_1_0001_m_000000"
        attempt = {
            "id": "attempt_1_0001_m_000000_0",
            "state": "SUCCEEDED",
            "startTime": 12000,
            "finishTime": 15000,
            "nodeHttpAddress": "worker1:8042",
        }
        pages = {
            "": {
                "job": {
                    "id": "job_1_0001",
                    "name": "n" * 5000,
                    "state": "SUCCEEDED",
                    "submitTime": 10000,
                    "startTime": 11000,
                    "finishTime": 20000,
                    "mapsTotal": 1,
                    "reducesTotal": 0,
                    "uberized": True,
                }
            },
            "/tasks": {"tasks": {"task": [{"id": task}]}},
            f"/tasks/{task}/attempts": {"taskAttempts": {"taskAttempt": [attempt]}},
            "/counters": {
                "jobCounters": {
                    "counterGroup": [
                        {
                            "counterGroupName": "g",
                            "counter": [
                                {
                                    "name": "c",
                                    "totalCounterValue": 5,
                                    "mapCounterValue": 2,
                                    "reduceCounterValue": 3,
                                }
                            ],
                        }
                    ]
                }
            },
            "/conf": {
                "conf": {
                    "property": [
                        {"name": "mapreduce.job.reduces", "value": 3},
                        {"name": "mapreduce.map.output.compress", "value": True},
                        {"name": "mapreduce.map.java.opts", "value": "-Xmx1m"},
                        {"name": "other", "value": "x"},
                    ]
                }
            },
        }

        def get_json(address, path):
            assert address == "h:1"
            if path == self.JOBS:
                return {"jobs": {"job": [{"id": "job_1_0001"}]}}
            return pages[path.removeprefix(f"{self.JOBS}/job_1_0001")]

        monkeypatch.setattr(places, "get_json", get_json)
        (source,) = list_sources("http://h:1", None)
        return source, pages, attempt

    def test_jobs_are_read_by_their_fields(self, served):
        """
        Times in seconds, counters by their whole names.
        """
        source, _, _ = served
        trace = source.read_trace()

        assert (trace.job_id, trace.state, trace.user) == ("job_1_0001", "SUCCEEDED", "")
        assert (trace.submit_s, trace.launch_s, trace.finish_s) == (10.0, 11.0, 20.0)
        assert (trace.num_maps, trace.num_reduces, trace.uberized) == (1, 0, True)
        assert len(trace.name) == 4000
        assert (trace.counters, trace.map_counters, trace.reduce_counters) == (
            {"g.c": 5},
            {"g.c": 2},
            {"g.c": 3},
        )
        assert trace.attempts == (
            TaskAttempt(
                "attempt_1_0001_m_000000_0",
                "task_1_0001_m_000000",
                "map",
                "succeeded",
                12.0,
                15.0,
                "worker1",
            ),
        )
        assert source.label == f"http://h:1{self.JOBS}/job_1_0001"
        assert source.configuration_label == f"{source.label}/conf"

    def test_a_job_that_never_started_was_launched_when_it_was_submitted(self, served):
        """
        A count of 0 is one, and no moment.
        """
        source, pages, _ = served
        pages[""]["job"] |= {"startTime": 0, "uberized": "yes"}
        pages["/counters"]["jobCounters"]["counterGroup"][0]["counter"][0]["mapCounterValue"] = 0

        trace = source.read_trace()
        assert (trace.launch_s, trace.uberized, trace.map_counters) == (10.0, False, {"g.c": 0})

    def test_attempts_without_an_end_are_left_out(self, served):
        """
        Or of another state, or that end before they begin.
        """
        source, _, attempt = served
        for change in ({"finishTime": 0}, {"state": "RUNNING"}, {"finishTime": 11999}, {"id": "x"}):
            before = dict(attempt)
            attempt.update(change)
            assert source.read_trace().attempts == ()
            attempt.update(before)
        attempt.update(state="KILLED", finishTime=12000)
        (killed,) = source.read_trace().attempts
        assert (killed.state, killed.finish_s) == ("killed", 12.0)

    def test_reduces_have_the_ends_of_their_parts(self, served):
        """
        Where the server says them.
        """
        source, pages, attempt = served
        task = "task_1_0001_r_000000"
        pages["/tasks"]["tasks"]["task"][0]["id"] = task
        pages[f"/tasks/{task}/attempts"] = {"taskAttempts": {"taskAttempt": [attempt]}}
        attempt.update(
            id="attempt_1_0001_r_000000_0", shuffleFinishTime=13000, mergeFinishTime=14000
        )

        (reduce,) = source.read_trace().attempts
        assert (reduce.kind, reduce.shuffle_finish_s, reduce.sort_finish_s) == (
            "reduce",
            13.0,
            14.0,
        )

    def test_a_job_that_ends_before_it_began_is_refused(self, served):
        """
        With its address.
        """
        source, pages, _ = served
        pages[""]["job"]["finishTime"] = 9999

        with pytest.raises(ParseError, match="the answer has no moments of the job") as caught:
            source.read_trace()
        assert source.label in caught.value.where
        pages[""]["job"]["finishTime"] = 10000
        assert source.read_trace().job_s == 0.0

    def test_properties_are_written_as_they_were(self, served):
        """
        Numbers and truths are texts again; those that nobody wants are left out.
        """
        source, pages, _ = served

        assert source.read_wanted() == {
            "mapreduce.job.reduces": "3",
            "mapreduce.map.output.compress": "true",
            "mapreduce.map.java.opts": "-Xmx1m",
        }
        pages["/conf"] = {}
        with pytest.raises(ParseError, match="the answer has no properties") as caught:
            source.read_wanted()
        assert source.configuration_label in caught.value.where


class TestFilled:
    def test_counts_all_that_is_left_out_and_names_a_thousand(self):
        """
        The first ones.
        """
        filled = Filled()
        for number in range(1003):
            filled.leave_out(str(number), "r")

        assert filled.left_out_files == 1003
        assert filled.left_out == [(str(number), "r") for number in range(1000)]

    def test_reports_each_batch(self, tmp_path, monkeypatch):
        """
        How many there are by then.
        """
        monkeypatch.setattr("harness.past.fill._BATCH_ROWS", 2)
        for number in range(1, 6):
            put(tmp_path / "done", number)
        seen = []
        catalog = Catalog(tmp_path / "catalog")

        fill(catalog, [tmp_path / "done"], 1, lambda filled: seen.append(filled.added))
        assert seen == [2, 4, 5]
        assert [path.name for path in catalog.batches()] == [
            "000001.parquet",
            "000002.parquet",
            "000003.parquet",
        ]

    def test_of_nothing_says_where_it_looked(self, tmp_path):
        """
        And at what to look, where there is anything.
        """
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
        folders = [tmp_path / "a", tmp_path / "b"]
        catalog = Catalog(tmp_path / "catalog")

        with pytest.raises(DataError) as caught:
            fill(catalog, folders, 1, lambda _: None)
        assert parts_of(caught) == (
            "there is no job history",
            f"{folders[0]}, {folders[1]}",
            "name a folder with .jhist files, or a run",
        )
        (tmp_path / "a/x.jhist").write_bytes(b"nothing")
        with pytest.raises(DataError) as caught:
            fill(catalog, folders[:1], 1, lambda _: None)
        assert caught.value.what.startswith("none of 1 job histories can be read: not a job hist")
        assert caught.value.fix == f"look at {tmp_path / 'a/x.jhist'}"


class TestCatalog:
    @pytest.fixture
    def catalog(self, tmp_path):
        """
        Five jobs of two families, in three batches.
        """
        for number, name in enumerate(("b run", "a run", "a run", "a run", "b run"), 1):
            put(tmp_path / "done", number, conf=words(), name=name, recorded=(
                "failed" if number == 4 else "wordcount"
            ))  # fmt: skip
            if number % 2:
                fill(Catalog(tmp_path / "catalog"), [tmp_path / "done"], 1, lambda _: None)
        return Catalog(tmp_path / "catalog")

    def test_refuses_a_folder_of_something_else(self, tmp_path):
        """
        With the first of its files.
        """
        for name in ("b.txt", "a.txt", "lock", "rules.yaml"):
            (tmp_path / name).write_text("")
        (tmp_path / "rules.yaml").write_text("a: b\n")

        with pytest.raises(SpecError) as caught, Catalog(tmp_path).lock():
            pass
        assert parts_of(caught) == (
            "this folder is no catalog: it has other files, such as a.txt",
            str(tmp_path),
            "name another one with --catalog DIR; it is made where it is not there",
        )

    def test_says_what_it_lacks(self, tmp_path, catalog):
        """
        A catalog, or a job.
        """
        with pytest.raises(DataError) as caught:
            Catalog(tmp_path / "none").table()
        assert parts_of(caught) == (
            "there is no catalog yet",
            str(tmp_path / "none"),
            "make one: harness catalog add SOURCE",
        )
        with pytest.raises(DataError) as caught:
            catalog.read_job("job_9_0009")
        assert parts_of(caught) == (
            "the catalog has no job 'job_9_0009'",
            str(tmp_path / "catalog"),
            "harness catalog list FAMILY names those of a family",
        )

    def test_only_adds_to_its_index(self, catalog, tmp_path, monkeypatch):
        """
        Batches that it names are not read again; where all is as it was nothing is.
        """
        read = []
        real = catalog_module.read_columns
        monkeypatch.setattr(
            catalog_module,
            "read_columns",
            lambda *given: read.append(given[1].name) or real(*given),
        )
        catalog.table()
        assert read == []
        put(tmp_path / "done", 6, conf=words(), name="c run")
        fill(catalog, [tmp_path / "done"], 1, lambda _: None)
        assert read == ["000004.parquet"]
        assert len(catalog.table(["job_id"])) == 6
        assert catalog.table(["job_id"]).column_names == ["job_id"]
        catalog.table(anew=True)
        assert read[1:] == [f"00000{number}.parquet" for number in (1, 2, 3, 4)]

    def test_knows_where_each_job_is(self, catalog):
        """
        By batch and row; of a job that came twice the last counts.
        """
        table = catalog.table(["job_id", "batch", "row", "is_current"]).to_pylist()

        assert [(row["batch"], row["row"]) for row in table] == [
            (0, 0), (1, 0), (1, 1), (2, 0), (2, 1),
        ]  # fmt: skip
        assert all(row["is_current"] for row in table)

    def test_families_of_most_jobs_come_first(self, catalog):
        """
        Then by their names; times and sizes are of those that succeeded.
        """
        first, second = family_rows(catalog.table())

        assert (first["family"].split()[0], second["family"].split()[0]) == ("a", "b")
        assert (first["jobs"], first["succeeded"]) == (3, 2)
        assert (second["jobs"], second["succeeded"]) == (2, 2)
        assert first["least_input_bytes"] == first["most_input_bytes"] > 0
        assert math.isfinite(first["last_submit_s"])
        assert first.keys() == {
            "family", "jobs", "succeeded", "least_job_s", "median_job_s", "most_job_s",
            "least_input_bytes", "median_input_bytes", "most_input_bytes", "last_submit_s",
            "spread",
        }  # fmt: skip

    def test_jobs_of_a_family_are_found_by_its_beginning(self, catalog):
        """
        The latest first.
        """
        jobs = job_rows(catalog.table(), "a r")

        assert {job["job_id"][-1] for job in jobs} == {"2", "3", "4"}
        submits_s = [job["submit_s"] for job in jobs]
        assert submits_s == sorted(submits_s, reverse=True)
        assert jobs[0].keys() == {
            "job_id", "state", "submit_s", "job_s", "input_bytes", "family",
        }  # fmt: skip
        assert job_rows(catalog.table(), "run") == []

    def test_rules_have_their_forms(self, tmp_path):
        """
        What is none is said with one.
        """
        path = tmp_path / "rules.yaml"
        path.write_text("[a]")
        with pytest.raises(SpecError) as caught:
            read_rules(path)
        assert parts_of(caught) == (
            "the rules are not a mapping of at most 500 families",
            str(path),
            'write lines such as: nightly: "^etl-"',
        )
        path.write_text(f"a: {'x' * 500}\n" + "\n".join(f"f{number}: y" for number in range(499)))
        assert len(read_rules(path)) == 500
        path.write_text('a: "("\nb: ""\n')
        with pytest.raises(SpecError) as caught:
            read_rules(path)
        text = str(caught.value)
        assert "no regular expression for a: " in text
        assert "no regular expression for b: not a text of at most 500 characters" in text
        assert "write one that RE2 reads" in text
