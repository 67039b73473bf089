"""
Rows of the catalog: every number is the history's or the configuration's, or is missing.
"""

import re

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.hadoop.site import read_properties
from harness.base.records.trace import TASK_COUNTER, TaskAttempt
from harness.catalog.jobs import COLUMNS, FEATURES, WANTED, most_at_once, past_job
from harness.observe.parsing.history import read_history
from tests.catalog.made import CONF, MAPPER, words
from tests.parsing.histories import JSON, RECORDED, binary

FILES = ("source", "source_key", "configuration")  # which its reader knows


def row(text, conf=None, problem=""):
    """
    The row of a job.
    """
    properties = None if conf is None else read_properties(conf, "a_conf.xml")
    return past_job(read_history([text], "a.jhist"), properties, problem)


def numbers(job, *names):
    """
    Some fields, rounded as a reader would.
    """
    return [None if job[name] is None else round(job[name], 4) for name in names]


class TestRecorded:
    def test_has_every_column(self):
        """
        Of any recorded job, in either form.
        """
        texts = [*JSON.values(), *RECORDED.values()]

        assert [text for text in texts if {*row(text), *FILES} != set(COLUMNS)] == []

    def test_both_forms_give_the_same_row(self):
        """
        JSON and binary.
        """
        assert [row(binary(text)) for text in JSON.values()] == [row(t) for t in JSON.values()]

    def test_counters_are_those_of_the_job(self):
        """
        Records and bytes as Hadoop summed them, and their quotients.
        """
        job, trace = row(JSON["terasort"], CONF), read_history([JSON["terasort"]], "a.jhist")

        total = trace.counters[f"{TASK_COUNTER}.MAP_INPUT_RECORDS"]
        assert (job["map_input_records"], job["reduce_output_records"]) == (total, total)
        assert numbers(job, "input_record_bytes", "map_records_selectivity") == [100.0, 1.0]
        assert numbers(job, "map_output_ratio", "output_record_bytes") == [1.0, 100.0]
        assert job["reduce_input_bytes"] == job["reduce_shuffle_bytes"]
        assert job["counters_from"] == "totals of the job"
        assert job["missing"] == ()

    def test_sums_over_tasks_stand_for_totals_that_are_not_there(self):
        """
        They are the same numbers, and the row says which they are.
        """
        text = re.sub(rb'"(total|map|reduce)Counters":', rb'"no\1Counters":', JSON["terasort"])
        job, whole = row(text, CONF), row(JSON["terasort"], CONF)

        assert job["counters_from"] == "sums over the tasks that succeeded"
        assert {**job, "counters_from": whole["counters_from"]} == whole

    def test_a_map_only_job_has_its_output_from_maps(self):
        """
        And no number of reduces, which is nothing that is missing.
        """
        job = row(JSON["teragen"], words())

        assert numbers(job, "output_record_bytes", "map_output_record_bytes") == [100.0, 100.0]
        assert (job["reduce_input_records"], job["reduce_task_s"]) == (None, None)
        assert job["missing"] == ()

    @pytest.mark.parametrize("name", ["failed", "killed"])
    def test_a_job_that_did_not_succeed_is_kept_and_marked(self, name):
        """
        With what it has, and nothing in the place of the rest.
        """
        job = row(JSON[name], words())

        assert job["missing"][0] == f"a successful end: it is {name.upper()}"
        assert job["output_bytes"] is None
        assert job["job_s"] > 0

    def test_a_job_without_counters_has_no_numbers_of_them(self):
        """
        It is kept for its times and its classes.
        """
        text = re.sub(rb'"\w*[cC]ounters":', b'"none":', JSON["wordcount"])
        job = row(text, words())

        assert job["counters_from"] == ""
        assert {job[name] for name in FEATURES} == {None}
        assert job["missing"] == ("counters of maps: none", "counters of reduces: none")
        assert job["map_task_s"] > 0

    def test_parts_of_a_task_sum_up(self):
        """
        Means of the parts of maps and of reduces are those of the whole tasks.
        """
        job = row(JSON["wordcount"])
        maps = job["map_function_s"] + job["map_merge_s"]
        reduces = job["reduce_shuffle_s"] + job["reduce_sort_s"] + job["reduce_function_s"]

        assert (job["map_task_s"], job["reduce_task_s"]) == pytest.approx((maps, reduces))


class TestConfiguration:
    def test_without_one_classes_are_not_known(self):
        """
        The row says why.
        """
        job = row(JSON["terasort"], problem="the job configuration cannot be read: x")

        assert [job[part] for part in ("mapper", "combiner", "reducer")] == [None] * 3
        assert job["missing"] == (
            "classes and properties: the job configuration cannot be read: x",
        )

    def test_classes(self):
        """
        Of the new interface where the job says so; a part that sets none is empty.
        """
        old = words().replace(b"new-api", b"old-api")
        job, classless = row(JSON["wordcount"], words()), row(JSON["wordcount"], CONF)

        assert (job["mapper"], job["combiner"]) == (MAPPER, "org.example.Sum")
        assert row(JSON["wordcount"], old)["mapper"] == MAPPER
        assert (classless["mapper"], classless["combiner"]) == ("", "")

    def test_the_old_interface_wins_where_the_new_one_is_not_set(self):
        """
        As Hadoop chooses.
        """
        conf = words().replace(b"</configuration>", b"") + (
            b"<property><name>mapred.mapper.class</name><value>Old</value></property>"
            b"</configuration>"
        )

        assert row(JSON["wordcount"], conf)["mapper"] == MAPPER
        assert row(JSON["wordcount"], conf.replace(b">true<", b">false<"))["mapper"] == "Old"

    def test_of_the_options_of_a_jvm_only_its_own_are_kept(self):
        """
        A password may stand among the others.
        """
        conf = CONF.replace(b"-Xmx400m", b"-Dmy.password=secret -Xmx400m")
        properties = dict(text.split("=", 1) for text in row(JSON["terasort"], conf)["properties"])

        assert properties["mapreduce.reduce.java.opts"].startswith("-Xmx400m -XX:+UseSerialGC")
        assert properties["mapreduce.task.io.sort.mb"] == "1"
        assert "secret" not in str(properties)
        assert properties.keys() < WANTED

    def test_a_combiner_and_a_codec_cannot_be_told_apart(self):
        """
        Their ratio is missing, and so is what needs it, unless compression is known to be off.
        """
        job, known = row(JSON["wordcount"]), row(JSON["wordcount"], words())

        assert numbers(job, "map_output_ratio", "reduce_bytes_selectivity") == [None, None]
        assert "map_output_ratio: no counter tells the combiner from the codec" in job["missing"]
        assert known["map_output_ratio"] == 1.0
        assert known["reduce_bytes_selectivity"] > 0


spans = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), max_size=12)


@given(spans)
def test_most_at_once_is_the_most_of_any_moment(pairs):
    """
    Counted at each start, where the number can be largest.
    """
    attempts = [
        TaskAttempt("a", "t", "map", "succeeded", float(start), float(start + length), "w")
        for start, length in pairs
    ]
    moments = [sum(start <= at < start + length for start, length in pairs) for at, _ in pairs]

    assert most_at_once(attempts, "map") == max(moments, default=0)
