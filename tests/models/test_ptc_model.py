"""
Tests for PTC behind the models' contract: what it takes from profile, cluster and configuration.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import MissingStatistic, ModelError
from harness.models import MODELS
from harness.models.ptc.model import PHASES
from harness.models.ptc.quantities import copy_rate, reduce_buffer_bytes
from harness.models.whatif.evaluation import evaluate
from harness.models.whatif.inputs import COSTS
from tests.models.profiled import MIB, cell_inputs, job, profile, stat

NAMES = ("ptc-wave", "ptc-closed")
names = pytest.mark.parametrize("name", NAMES)
STATISTICS = {"input_record_bytes": 100.0, "copy_s_per_byte": 1e-8, "network_bps": 5e7}


def known(*jobs, without=(), costs=None, statistics=None, frame=None):
    """
    A profile of records of 100 bytes; every cost 1e-8, but those given.
    """
    values = STATISTICS | (statistics or {})
    prices = dict.fromkeys(COSTS, 1e-8) | (costs or {})
    return profile(
        *jobs,
        statistics={n: stat(v) for n, v in values.items() if n not in without},
        costs={n: stat(v) for n, v in prices.items() if n not in without},
        frame={n: stat(v) for n, v in (frame or {}).items()},
    )


def predict(name="ptc-wave", *, given=None, **config):
    """
    Prediction for a job of 20 maps of 16 MiB on 4 slots, 6 reduces.
    """
    wanted = {"mib": 320, "splits": 20, "slots": 4, "num_reduces": 6, **config}
    return MODELS[name].predict(given or known(), *cell_inputs(**wanted))


def tasks(**config):
    """
    What-If's tasks of that job.
    """
    setting, _, size = cell_inputs(mib=320, splits=20, slots=4, num_reduces=6, **config)
    return evaluate(
        {"input_record_bytes": 100.0}, dict.fromkeys(COSTS, 1e-8),
        setting.model_dump() | {"num_maps": 20, "split_bytes": size.split_bytes},
        {"num_nodes": 1, "map_slots_per_node": 4, "reduce_slots_per_node": 4}, "mr2",
    )  # fmt: skip


class TestPrediction:
    @names
    def test_phases_follow_each_other(self, name):
        """
        Their sum is the body; nothing is scheduled in it.
        """
        prediction = predict(name)

        assert tuple(prediction.phases) == PHASES
        assert prediction.body_s == pytest.approx(math.fsum(prediction.phases.values()))
        assert prediction.phases["schedule_map_s"] == 0

    @names
    def test_schedules_what_it_publishes(self, name):
        """
        The gap in each of 5 + 2 waves, and start and end of its tasks; the body has neither.
        """
        costs = {"setup_cpu_s": 3.0, "cleanup_cpu_s": 1.0}
        bare, given = known(costs=dict.fromkeys(costs, 0.0)), known(costs=costs)
        given = given.model_copy(update={"frame": {"task_gap_s": stat(0.7)}})
        late = {"reduce_slowstart": 1.0}

        plain, whole = predict(name, given=bare, **late), predict(name, given=given, **late)

        assert whole.body_s == plain.body_s == plain.published_s
        assert whole.published_s - plain.published_s == pytest.approx(7 * (4.0 + 0.7))

    def test_each_method_shows_the_other(self):
        """
        As an estimate of the same job.
        """
        wave, closed = (
            predict(n, given=known(statistics={"network_bps": 1e5}), splits=18) for n in NAMES
        )

        assert wave.estimates == {"closed_s": closed.body_s}
        assert closed.estimates == {"wave_s": wave.body_s}

    def test_tasks_and_bytes_are_those_of_what_if(self):
        """
        Maps, what is copied, and reduces behind their shuffle.
        """
        prediction, flow = predict(), tasks()

        assert prediction.map_task_s == pytest.approx(flow["map_task_s"] - 2e-8)
        assert prediction.dataflow["shuffle_bytes_total"] == pytest.approx(
            20 * flow["map_final_bytes"]
        )
        assert prediction.phases["consumer_s"] == pytest.approx(
            2 * (sum(flow[f"reduce_{p}_s"] for p in ("merge", "function", "write")))
        )
        assert (prediction.map_waves, prediction.reduce_waves) == (5, 2)

    def test_shows_what_a_history_shows(self):
        """
        What-If's phases, with a mean wave's copying as the shuffle.
        """
        prediction = predict()

        moved = sum(prediction.phases[p] for p in ("leftover_s", "rest_transfer_s", "local_io_s"))
        assert prediction.measurable["shuffle_s"] == pytest.approx(moved / 2)
        reduce = sum(prediction.measurable[p] for p in ("shuffle_s", "sort_s", "reduce_rest_s"))
        assert prediction.reduce_task_s == pytest.approx(reduce)
        maps = prediction.measurable["map_main_s"] + prediction.measurable["map_tail_s"]
        assert maps == pytest.approx(prediction.map_task_s)

    @names
    @given(
        splits=st.integers(1, 40), reduces=st.integers(0, 20), slots=st.integers(1, 5),
        slowstart=st.floats(0, 1), rate=st.floats(1e5, 1e9),
    )  # fmt: skip
    def test_timeline_ends_with_the_job(  # noqa: PLR0917 - all that is drawn
        self, name, splits, reduces, slots, slowstart, rate
    ):
        """
        Every task is there, none is longer than the job, no more at once than slots.
        """
        prediction = predict(
            name, given=known(statistics={"network_bps": rate}), splits=splits, slots=slots,
            num_reduces=reduces, reduce_slowstart=slowstart,
        )  # fmt: skip
        spans = prediction.timeline

        assert [s.kind for s in spans] == ["map"] * splits + ["reduce"] * reduces
        assert max(s.end_s for s in spans) == pytest.approx(prediction.body_s)
        assert all(0 <= s.start_s <= s.end_s * (1 + 1e-12) for s in spans)
        for kind in ("map", "reduce"):
            tasks_of_kind = [s for s in spans if s.kind == kind]
            running = [
                sum(o.start_s <= s.start_s < o.end_s for o in tasks_of_kind) for s in tasks_of_kind
            ]
            assert max(running, default=0) <= slots

    @names
    def test_map_only(self, name):
        """
        Without reduces nothing is copied, and no statistic of copying is needed.
        """
        prediction = predict(
            name, num_reduces=0,
            given=known(without=("copy_s_per_byte", "network_bps", "local_write_s_per_byte")),
        )  # fmt: skip

        assert prediction.body_s == pytest.approx(5 * prediction.map_task_s)
        assert (prediction.reduce_task_s, prediction.reduce_waves) == (None, 0)
        assert prediction.measurable.keys() == {"map_main_s", "map_tail_s"}


class TestQuantities:
    def test_copy_rate_is_the_lower_of_copiers_and_network(self):
        """
        4 reduces x 5 copiers of 1e8 B/s, or 2 nodes of 5e7 B/s.
        """
        config, cluster, _ = cell_inputs(slots=4)

        slow = known(statistics={"copy_s_per_byte": 4e-7})
        assert copy_rate(known(), config, cluster) == pytest.approx(2 * 5e7)
        assert copy_rate(slow, config, cluster) == pytest.approx(4 * 5 / 4e-7)

    def test_copies_of_the_same_codec_tell(self):
        """
        Where both are known; otherwise bytes are bytes.
        """
        rates = {"copy_s_per_byte_compressed": 1e-5, "copy_s_per_byte": 1e-6}
        both, packed = known(statistics=rates), known(statistics=rates, without=["copy_s_per_byte"])

        def rate(of, **config):
            setting, cluster, _ = cell_inputs(slots=4, **config)
            return copy_rate(of, setting, cluster) / 20

        assert rate(both) == pytest.approx(1e6)
        assert rate(both, map_output_compressed=True) == pytest.approx(1e5)
        assert rate(packed) == pytest.approx(1e5)
        assert predict(given=packed).body_s > 0

    def test_reduces_that_start_late_copy_in_nothing(self):
        """
        At slow start 1 all of D_s / v is added, and maps are not slowed down.
        """
        late = predict(
            reduce_slowstart=1.0, given=known(job(map_slowdown_s=3.0, shuffle_bytes_total=0.0))
        )

        moved = late.phases["leftover_s"] + late.phases["rest_transfer_s"]
        assert moved == pytest.approx(late.dataflow["shuffle_bytes_total"] / 1e8)
        assert late.phases["context_switch_s"] == 0
        assert not [w for w in late.warnings if "context_switch" in w]

    def test_slow_down_is_that_of_the_nearest_job_that_shows_one(self):
        """
        Kept as measured in each of the waves 2 to m, with a warning.
        """
        jobs = [
            job(cell="near", mib=320, map_slowdown_s=None),
            job(cell="next", mib=160, map_slowdown_s=2.0, trial="a"),
            job(cell="next", mib=160, map_slowdown_s=3.0, trial="b"),
            job(cell="far", mib=16, map_slowdown_s=9.0),
        ]

        prediction = predict(given=known(*jobs))

        assert prediction.phases["context_switch_s"] == pytest.approx(4 * 2.5)
        assert "context_switch_s as in cell next" in prediction.warnings

    def test_slow_down_holds_no_local_io_twice(self):
        """
        Of 2 waves of maps and one of reduces, half of 1e8 B at 2e-8 s/B (2 streams) is local I/O.
        """
        shown = job(map_slowdown_s=3.0, shuffle_bytes_total=1e8)
        little = job(map_slowdown_s=0.1, shuffle_bytes_total=1e8)

        of_io = 1e8 * 2e-8 / 2 / 2
        assert predict(given=known(shown)).phases["context_switch_s"] == pytest.approx(
            4 * (3 - of_io)
        )
        assert predict(given=known(little)).phases["context_switch_s"] == 0

    def test_no_job_shows_a_slow_down(self):
        """
        Then it is 0, with a warning.
        """
        assert [w for w in predict().warnings if "context_switch_s is 0" in w]

    def test_buffer_saves_local_io(self):
        """
        4 slots x 0.5 x 0.7 of a heap of 100 MiB; tasks themselves are those without it.
        """
        config = {"reduce_buffer_percent": 0.5, "reduce_heap_bytes": 100 * MIB}
        setting, *_ = cell_inputs(**config)
        kept = 4 * 0.5 * 0.7 * 100 * MIB

        with_it, without = predict(**config), predict(reduce_heap_bytes=100 * MIB)

        assert reduce_buffer_bytes(setting, 4) == pytest.approx(kept)
        saved = min(kept, with_it.dataflow["shuffle_bytes_total"] / 2) * 2e-8 / 4
        assert without.body_s - with_it.body_s == pytest.approx(2 * saved)
        assert with_it.reduce_task_s == without.reduce_task_s

    def test_a_disk_that_costs_nothing(self):
        """
        A fitted cost of 0 is a rate without limit, and no number in the record is infinite.
        """
        prediction = predict(
            given=known(costs={"local_read_s_per_byte": 0.0, "local_write_s_per_byte": 0})
        )

        assert prediction.phases["local_io_s"] == 0
        assert all(math.isfinite(v) for v in prediction.dataflow.values())

    def test_assumed_costs_are_said(self):
        """
        A disk's cost that is a share of a group's sum is no measurement.
        """
        given = known()
        shared = stat(1e-8, assumed=True, group=("network_s_per_byte",))
        given = given.model_copy(update={"costs": given.costs | {"local_write_s_per_byte": shared}})

        assert [
            w for w in predict(given=given).warnings if "local_write_s_per_byte is assumed" in w
        ]

    def test_what_is_taken_as_nothing_is_said(self):
        """
        The cost of reading disks; but not an unused network.
        """
        lacking = ("local_read_s_per_byte", "network_s_per_byte")

        values = predict(given=known(without=lacking)).warnings

        assert [w.split(":")[0] for w in values if "taken as 0" in w] == [
            "no local_read_s_per_byte"
        ]


class TestRefuses:
    @names
    def test_all_that_lacks_at_once(self, name):
        """
        By name.
        """
        with pytest.raises(MissingStatistic) as refused:
            predict(name, given=known(without=["network_bps", "copy_s_per_byte"]))

        assert refused.value.names == ("copy_s_per_byte", "network_bps")

    @pytest.mark.parametrize("name", ["copy_s_per_byte", "network_bps", "input_record_bytes"])
    @pytest.mark.parametrize("bad", [-1.0])
    def test_a_statistic_out_of_its_range(self, name, bad):
        """
        By its name, never as a default.
        """
        with pytest.raises(ModelError, match=name):
            predict(given=known(statistics={name: bad}))

    def test_a_network_that_stands_still(self):
        """
        Nothing would ever arrive.
        """
        with pytest.raises(ModelError, match="network_bps = 0"):
            predict(given=known(statistics={"network_bps": 0.0}))

    def test_reduces_without_slots(self):
        """
        They would never run.
        """
        config, cluster, size = cell_inputs()
        with pytest.raises(ModelError, match="reduce_slots"):
            MODELS["ptc-wave"].predict(
                known(), config, cluster.model_copy(update={"reduce_slots": 0}), size
            )


@names
@given(factor=st.floats(0.01, 100))
def test_units_cancel(name, factor):
    """
    All times in another unit give the answer in that unit.
    """

    def answer(k):
        return predict(
            name,
            given=known(
                job(map_slowdown_s=3.0 * k, shuffle_bytes_total=1e8),
                costs=dict.fromkeys(COSTS, 1e-8 * k),
                statistics={"copy_s_per_byte": 1e-8 * k, "network_bps": 5e7 / k},
                frame={"task_gap_s": 0.7 * k},
            ),
        )

    assert answer(factor).body_s == pytest.approx(factor * answer(1.0).body_s)
    assert answer(factor).published_s == pytest.approx(factor * answer(1.0).published_s)
