"""
Costs as rows that can be told apart, two machines by ratios, and what people read of them.
"""

import numpy as np
import pytest

from harness.base.documents.wording import UNKNOWN
from harness.base.records.hardware import Cost, MachineCosts
from harness.base.units import MIB
from harness.core.evaluate.judge import Judge
from harness.hardware.calibrate import CheckedCost
from harness.hardware.rows import CostPair, CostRow, groups_of, pairs, rows_of
from harness.hardware.words import (
    check_says,
    interval_text,
    label,
    machine_says,
    micro_text,
    moved_says,
    pair_says,
    ratio_text,
    readable,
)
from harness.observe.profiling.platform import (
    PARTS,
    TYPICAL,
    Work,
    fit_platform,
    seconds_of,
    writing_counts,
)

DISK = ("hdfs_write_s_per_byte", "hdfs_write_s_per_early_byte")
BYTES = "hdfs_read_s_per_byte"


def machine(**costs):
    """
    A machine with these costs, and two jobs.
    """
    chosen = tuple({"trial": name, "reason": "sort", "seconds": 5.0} for name in "ab")
    return MachineCosts(measured_s=1.0, spent_s=60.0, costs=costs, chosen=chosen)


def cost(value, **fields):
    """
    A cost for a byte.
    """
    return Cost(value=value, **{"unit": "s/B", "source": "fit", "trials": 8, **fields})


def writing_machine(random, times, *, trials=6, noise=0.08):
    """
    A machine whose jobs write files of about one size: their costs are a group.
    """
    costs = TYPICAL | {name: times * TYPICAL[name] for name in DISK}
    made = []
    for trial in range(trials):
        size = (40 + 8 * (trial % 3)) * MIB
        counts = dict.fromkeys(PARTS["reduce_write_s"], 0.0) | writing_counts(size, size / 100, 1)
        seconds = seconds_of(counts, costs) * random.lognormal(0, noise)
        made.append(Work(f"t{trial}", "1", "sort", "reduce_write_s", seconds, counts))
    return machine(**fit_platform(made))


def test_a_group_is_one_row_with_an_interval():
    """
    None of its costs has one of its own: what they take together is known well.
    """
    random = np.random.default_rng(3)
    known = writing_machine(random, 1.0)
    (row,) = [row for row in rows_of(known, groups_of([known])) if row.is_group]

    assert {known.costs[name].high for name in row.names} == {None}
    assert {*DISK} <= {*row.names}
    size = 64 * MIB
    typical_s = seconds_of(writing_counts(size, size / 100, 1), TYPICAL)
    assert row.low < typical_s < row.high
    assert (row.high - row.low) / row.value < 0.5


@pytest.mark.parametrize("times", [3.0, 27.0])
def test_a_disk_that_is_dearer_differs_though_its_costs_are_a_group(times):
    """
    By about as many times, whatever share each of the costs has.
    """
    random = np.random.default_rng(5)
    compared = pairs(writing_machine(random, 1.0), writing_machine(random, times))
    (pair,) = [pair for pair in compared if len(pair.names) > 1]

    assert pair.verdict == "differs"
    assert 1 < pair.low < pair.ratio < pair.high


@pytest.mark.process
def test_a_machine_hardly_ever_differs_from_itself():
    """
    Of 60 comparisons of one machine with itself, at 99 %, three at most.
    """
    random = np.random.default_rng(7)
    verdicts = []
    for _ in range(60):
        compared = pairs(writing_machine(random, 1.0), writing_machine(random, 1.0))
        verdicts += [pair.verdict for pair in compared if len(pair.names) > 1]

    assert verdicts.count("differs") <= 3


def test_groups_of_both_machines_are_joined():
    """
    What one of them does not tell apart is compared as one.
    """
    one = machine(a=cost(1.0, group=("b",)), b=cost(1.0), c=cost(1.0))
    other = machine(a=cost(1.0), b=cost(1.0, group=("c",)), c=cost(1.0))

    (pair,) = pairs(one, other)
    assert pair.names == ("a", "b", "c")
    assert pair.name == "a + b + c"
    assert pair.document()["names"] == ["a", "b", "c"]


def told(old, new):
    """
    The pair of one cost of two machines.
    """
    return CostPair.of(*(CostRow.of(["a"], {"a": each}) for each in (old, new)))


def test_an_interval_that_is_too_wide_leaves_a_factor_of_each():
    """
    Beyond three times of either cost they differ, below that nothing can be told.
    """
    wide = {"trials": 3}
    far = told(cost(1.0, low=0.0, high=9.0, **wide), cost(27.0, low=0.0, high=99.0, **wide))
    near = told(cost(1.0, low=0.0, high=9.0, **wide), cost(4.0, low=0.0, high=20.0, **wide))

    assert (far.verdict, far.low, far.high) == ("differs", pytest.approx(3.0), None)
    assert (near.verdict, near.low, near.high) == ("cannot tell", None, None)


def test_what_was_measured_without_a_job_tells_where_jobs_do_not():
    """
    Rates that are far apart are a difference, in its direction.
    """
    slow = told(cost(1.0, micro=1.0), cost(2.0, micro=27.0))
    fast = told(cost(1.0, micro=27.0), cost(2.0, micro=1.0))

    assert (slow.verdict, slow.low, slow.high) == ("differs", pytest.approx(9.0), None)
    assert (fast.verdict, fast.low, fast.high) == ("differs", None, pytest.approx(1 / 9))
    assert told(cost(1.0, micro=1.0), cost(2.0, micro=2.0)).verdict == "cannot tell"


def test_a_cost_that_is_nothing_is_compared_by_its_interval():
    """
    Of two that are nothing nothing differs.
    """
    nothing = cost(0.0, low=0.0, high=1.0)
    much = cost(9.0, low=4.0, high=20.0)

    assert told(nothing, nothing).verdict == "within their intervals"
    assert (told(nothing, much).verdict, told(nothing, much).low) == ("differs", 4.0)
    assert (told(much, nothing).verdict, told(much, nothing).high) == ("differs", 0.25)
    assert told(nothing, cost(1.0)).verdict == "cannot tell"
    assert told(nothing, much).ratio is None


class TestWords:
    @pytest.mark.parametrize(
        ("value", "names", "unit", "text"),
        [
            (1e-8, [BYTES], "s/B", "100 MB/s"),
            (0.0, [BYTES], "s/B", "no limit seen"),
            (2e-7, ["hdfs_read_s_per_record"], "s/record", "0.200 µs/record"),
            (0.0123, ["hdfs_read_s_per_file"], "s", "12.3 ms"),
            (1.5, ["job_start_s"], "s", "1.50 s"),
            (1.1, ["computing"], "", "1.10 times typical"),
            (0.5, [BYTES, "hdfs_read_s_per_file"], "s", "134 MB/s"),
            (0.5, ["a_s_per_record", "a_s_per_file"], "s", "0.745 µs/record"),
            (0.5, ["a_s_per_file", "b_s_per_file"], "s", "500 ms"),
        ],
    )
    def test_costs_have_units_of_people(self, value, names, unit, text):
        """
        A group those of its bytes, if it has any, for a task of 64 MiB.
        """
        assert readable(value, names, unit) == text

    def test_ends_of_a_rate_are_turned_round(self):
        """
        The smaller one first; a cost that may be nothing has a rate without an end.
        """
        row = CostRow.of([BYTES], {BYTES: cost(2e-8, low=1e-8, high=4e-8, micro=1e-8, agree=False)})
        open_row = CostRow.of([BYTES], {BYTES: cost(2e-8, low=0.0, high=4e-8)})

        assert interval_text(row) == "25.0 to 100"
        assert interval_text(open_row) == "more than 25.0"
        assert micro_text(row) == "100 MB/s !"
        assert micro_text(open_row) == ""
        assert interval_text(CostRow.of([BYTES], {BYTES: cost(1.0)})) == "not known"

    def test_a_group_has_a_short_name(self):
        """
        Each beginning once.
        """
        assert label(DISK) == "hdfs_write_s_per_{byte,early_byte}"
        assert label(["computing"]) == "computing"

    def test_a_pair_says_what_is_known(self):
        """
        Both ends, or the one that there is.
        """
        both = CostPair(("a",), 1.0, 3.0, "s", 3.0, 2.0, 4.0, "differs")
        assert ratio_text(both) == "3.00 (2.00 to 4.00)"
        least = CostPair(("a",), 1.0, 3.0, "s", 3.0, 2.0, None, "differs")
        assert ratio_text(least) == "3.00 (at least 2.00)"
        most = CostPair(("a",), 1.0, 0.1, "s", 0.1, None, 0.3, "differs")
        assert ratio_text(most) == "0.100 (at most 0.300)"
        none = CostPair(("a",), 0.0, 0.1, "s", None, None, None, "cannot tell")
        assert ratio_text(none) == UNKNOWN

    def test_two_machines_are_a_sentence(self):
        """
        Differences of rates first; then what is the same, and what is not known.
        """
        names = ["local_write_s_per_byte", "hdfs_read_s_per_file", "merge_s_per_byte", BYTES, "x"]
        numbers = [(31.0, 20.0, 40.0), (5.0, 3.0, 9.0), (0.5, 0.4, 0.6), (1.0, 0.9, 1.1)]
        verdicts = ["differs"] * 3 + ["within their intervals"]
        made = [
            CostPair((name,), 1.0, ratio, "s", ratio, low, high, verdict)
            for name, (ratio, low, high), verdict in zip(names, numbers, verdicts, strict=False)
        ]
        said = pair_says(["plain", "slow"], made, "it rests on 8 and 6 jobs")
        unsure = CostPair(("x",), 1.0, 2.0, "s", 2.0, None, None, "cannot tell")

        assert said == (
            "slow beside plain: its local disk writes 31.0 times as slow (20.0 to 40.0), its local"
            " disk merges 2.00 times as fast (1.67 to 2.50) and opening the file of a split"
            " (hdfs_read_s_per_file) is 5.00 times as slow (3.00 to 9.00), the rest within noise;"
            " it rests on 8 and 6 jobs; how far off predictions by it are is not known: nothing was"
            " scored here"
        )
        alone = pair_says(["plain", "slow"], [made[-1], unsure], "it rests on 1 and 1 jobs")
        assert "no cost differs beyond its interval; 1 cost cannot be told" in alone

    def test_a_machine_is_a_sentence(self):
        """
        Its rates in their order, and what they rest on.
        """
        known = machine(
            network_s_per_byte=cost(1e-8),
            hdfs_read_s_per_byte=cost(5e-9),
            computing=cost(1.2, unit=""),
        )
        assert machine_says(known) == (
            "the machine reads HDFS at 200 MB/s, copies over its network at 100 MB/s and computes"
            " 1.20 times as long as is typical; it rests on 2 jobs in 60 s; how far off predictions"
            " by it are is not known: nothing was scored here"
        )
        assert machine_says(machine()).startswith(
            "no rate of the machine is known; it rests on 2 jobs"
        )
        no_job = machine(network_s_per_byte=cost(1e-8).model_copy(update={"trials": 0}))
        assert machine_says(no_job).startswith(
            "the machine copies over its network at 100 MB/s, all of that measured without a job; "
        )

    def test_a_check_is_a_sentence(self):
        """
        What moved, by how many times; how many hold.
        """
        costs = [
            CheckedCost("network_s_per_byte", "moved", 1.0, 4.0),
            CheckedCost("serde_s_per_byte", "holds", 1.0, 1.0),
            CheckedCost("merge_s_per_byte", "cannot tell", 1.0, 2.0),
        ]
        assert check_says(costs).startswith(
            "network_s_per_byte is 4.00 times what it was, 1 cost holds, of 1 too few jobs"
        )
        assert check_says(costs[1:2]).startswith("no cost has moved, 1 cost holds; it rests on 2")

    def test_a_transfer_says_how_far_off_its_models_were_there(self):
        """
        On the machine that they come from; of this one nothing is known yet.
        """
        judges = [Judge("whatif", 0.2, 4, 8, 2, 2), Judge("ernest")]

        assert moved_says(["old.json", "new.json"], "run-1", judges) == (
            "profiles of run-1, for the machine of new.json in the place of old.json; whatif was"
            " 20 % off on job times there (4 cells, 8 jobs, 2 repeats of each)"
        )
        assert moved_says(["a", "b"], "run-1", []).endswith(
            "for the machine of b in the place of a"
        )
