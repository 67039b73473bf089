"""Costs from phases: what the trials tell comes back, and what they do not is said."""

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.records.trace import FILE_OUTPUT_COUNTER, TASK_COUNTER
from harness.models.whatif.inputs import SIDES
from harness.observe.profiling import fit_profile
from harness.observe.profiling.costs import fit_costs
from harness.observe.profiling.phases import PhaseRow
from tests.profiling.jobs import COSTS, PAIR, PAIRS, RECORD, grid, observation

# Costs that meet in every phase with one that is proportional to them: bytes and records of equal
# width.  Everything else can be distinguished on the grid.
TOGETHER = (
    (
        "hdfs_read_s_per_byte", "map_cpu_s_per_record", "partition_cpu_s_per_record",
        "serde_cpu_s_per_record",
    ),
    ("hdfs_write_s_per_byte", "reduce_cpu_s_per_record"),
)  # fmt: skip
APART = tuple(
    name for name in COSTS if name not in sum(TOGETHER, ()) and not name.startswith("combine")
)
FACTORS = st.fixed_dictionaries({name: st.floats(0.3, 3) for name in COSTS})


def noisy(seed, share, outliers):
    """Noise of *share*, and every so many phases one that takes 5 s longer."""
    rng = np.random.default_rng(seed)

    def noise(_, seconds):
        late = 5.0 if rng.random() < outliers else 0.0
        return max(0.0, seconds * (1 + rng.normal(0, share))) + late

    return noise


class TestKnownCosts:
    """Profiles of jobs whose costs are known."""

    @pytest.mark.process
    @settings(max_examples=8)
    @given(FACTORS)
    def test_exact_times_give_the_costs_back(self, factors):
        """
        Without noise every cost that can be distinguished comes back, the others are in groups.
        """
        true = {name: COSTS[name] * factor for name, factor in factors.items()}

        profile = fit_profile("w", grid(costs=true))

        assert {n: profile.costs[n].value for n in APART} == {
            n: pytest.approx(true[n], rel=1e-6) for n in APART
        }
        for names in TOGETHER:
            assert any(set(names) <= set(group.names) for group in profile.groups)
        for phase in profile.fit:
            assert phase.r2 == pytest.approx(1.0)
            assert phase.median_residual < 1e-6

    @pytest.mark.process
    def test_outliers(self):
        """
        Noise of 1 % and every twentieth phase 5 s late: the costs that matter are right within 5 %,
        as the median of nine draws.
        """
        profiles = [fit_profile("w", grid(noise=noisy(seed, 0.01, 0.05))) for seed in range(9)]

        medians = {n: np.median([p.costs[n].value for p in profiles]) for n in APART}

        assert medians == {n: pytest.approx(COSTS[n], rel=0.05) for n in APART}

    @pytest.mark.process
    def test_spread_is_that_of_repetition(self):
        """
        The spread of a cost is how far it moves from one profile to the next.
        """
        profiles = [fit_profile("w", grid(noise=noisy(seed, 0.03, 0))) for seed in range(12)]
        network = [p.costs["network_s_per_byte"] for p in profiles]

        reported = np.mean([cost.spread for cost in network])

        assert reported == pytest.approx(np.std([cost.value for cost in network]), rel=0.6)


def test_each_phase_counts_by_its_own_length():
    """
    Long phases that say 1.1 and short ones that say 1.0 of the same cost meet in the middle: an
    error of ten seconds in a hundred is no more than one of 0.1 s in a second.
    """
    rows = [
        PhaseRow(phase, records * each_s, {"map_cpu_s_per_record": records})
        for phase, records, each_s in (("map_main_s", 1e8, 1.1e-6), ("map_tail_s", 1e6, 1.0e-6))
        for _ in range(6)
    ]
    costs, _, _ = fit_costs(rows)

    assert costs["map_cpu_s_per_record"].value == pytest.approx(1.05e-6, rel=0.01)


class TestGroups:
    """Costs that trials cannot tell apart."""

    def test_sum_of_a_group(self):
        """
        A group's sum is the seconds that its costs take in a mean task, and its split is assumed.
        """
        jobs = [observation(r, 2) for r in (50_000, 150_000)]

        profile = fit_profile("w", jobs)

        group = next(g for g in profile.groups if "hdfs_read_s_per_byte" in g.names)
        bytes_, pairs = 100_000 * RECORD, 100_000 * PAIRS
        assert group.names == TOGETHER[0]
        assert all(profile.costs[n].assumed for n in group.names)
        assert set(profile.costs["hdfs_read_s_per_byte"].group) == set(group.names) - {
            "hdfs_read_s_per_byte"
        }
        assert group.sum_s == pytest.approx(bytes_ * 4e-9 + 100_000 * 2e-6 + pairs * 6e-7)

    def test_split_by_typical_ratios(self):
        """
        Where the data say nothing of the split, members stand as their typical costs do.
        """
        profile = fit_profile("w", grid())

        costs = {n: profile.costs[n].value for n in TOGETHER[0]}
        assert costs["serde_cpu_s_per_record"] / costs["partition_cpu_s_per_record"] == (
            pytest.approx(6)
        )
        assert costs["map_cpu_s_per_record"] / costs["hdfs_read_s_per_byte"] == pytest.approx(200)

    def test_one_cell_tells_only_sums(self):
        """
        One cell cannot tell the costs apart, and the profile says so of every one of them.
        """
        profile = fit_profile("w", [observation(), observation(repetition=1)])

        assert all(cost.assumed for cost in profile.costs.values())
        assert all(f.median_residual < 1e-6 for f in profile.fit)

    def test_costs_that_no_job_shows_are_absent(self):
        """
        Codecs that are off and a combiner that is not there cost nothing that could be seen.
        """
        profile = fit_profile("w", grid())

        sides = {f"{n}_{side}" for n in ("setup_cpu_s", "cleanup_cpu_s") for side in SIDES}
        sides |= {f"local_read_s_per_byte_{side}" for side in SIDES}
        assert set(profile.costs) == set(APART) | set(sum(TOGETHER, ())) | sides

    @pytest.mark.process
    def test_combiner(self):
        """
        Beside jobs without a combiner, one with it tells what combining costs.
        """
        profile = fit_profile("w", [*grid(), *grid(combine=True)])

        assert profile.costs["combine_cpu_s_per_record"].value == pytest.approx(8e-7, rel=1e-6)

    def test_map_only_jobs(self):
        """
        Jobs without reduces have the costs of reading, mapping and writing only.
        """
        jobs = [observation(r, 2, reduces=0) for r in (50_000, 150_000)]
        for job in jobs:
            for attempt in job.trace.attempts:
                attempt.counters[f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN"] = attempt.counters[
                    f"{TASK_COUNTER}.MAP_OUTPUT_BYTES"
                ]

        profile = fit_profile("w", jobs)

        assert set(profile.costs) == {
            "hdfs_read_s_per_byte", "hdfs_write_s_per_byte", "map_cpu_s_per_record",
            "setup_cpu_s", "cleanup_cpu_s",
        }  # fmt: skip
        assert profile.costs["setup_cpu_s"].value == pytest.approx(1.2)
        assert profile.statistics["map_bytes_selectivity"].value == PAIRS * PAIR / RECORD
        assert {f.phase for f in profile.fit} == {"map_main_s", "map_tail_s"}


def test_prediction_survives_groups():
    """
    From twelve noisy trials of four cells, whose costs mostly look alike, cells beside
    them are predicted as from the true costs: within the noise, though the split is assumed.
    """
    rng = np.random.default_rng(1)
    trials = [
        observation(
            335_544, maps, reduces=reduces, repetition=k,
            noise=lambda _, seconds: seconds * (1 + rng.normal(0, 0.08)),
        )
        for maps in (1, 2) for reduces in (1, 2) for k in range(3)
    ]  # fmt: skip

    profile = fit_profile("w", trials)

    assert len(profile.groups[0].names) > 5
    result = {name: cost.value for name, cost in profile.costs.items()}
    for maps, reduces in ((4, 1), (4, 4), (8, 2)):
        job = observation(335_544, maps, reduces=reduces)
        reported = observation(335_544, maps, reduces=reduces, costs=result)
        assert reported.trace.job_s == pytest.approx(job.trace.job_s, rel=0.04)


class TestSides:
    """Costs of maps and of reduces, kept apart where rows tell them apart."""

    SIZES = (1e6, 3e6, 7e6, 9e6)

    def rows(self, *sides, map_s, reduce_s):
        """Writing of maps and of reduces, each alone in a part, at so many seconds a byte."""
        each_s = {"spill_write_s": map_s, "reduce_merge_s": reduce_s, "map_read_s": 1e-9}
        return [
            PhaseRow(part, size * each_s[part], {name: size})
            for part, name in sides
            for size in self.SIZES
        ]

    WRITES = (
        ("spill_write_s", "local_write_s_per_byte"), ("reduce_merge_s", "local_write_s_per_byte"),
    )  # fmt: skip

    @given(st.floats(1e-9, 1e-6), st.floats(1e-9, 1e-6))
    def test_each_side_has_its_own(self, map_s, reduce_s):
        """
        Two statistics come back where each side shows its cost; the common one lies between them.
        """
        costs, _, _ = fit_costs(self.rows(*self.WRITES, map_s=map_s, reduce_s=reduce_s))

        both = [costs[f"local_write_s_per_byte_{side}"].value for side in SIDES]
        assert both == pytest.approx([map_s, reduce_s], rel=1e-6)
        low, high = sorted(both)
        assert low * (1 - 1e-9) <= costs["local_write_s_per_byte"].value <= high * (1 + 1e-9)
        assert not any(cost.assumed for cost in costs.values())

    def test_one_side_alone(self):
        """
        Where maps alone write and there are reduces, these fall back on the common cost, marked.
        """
        rows = self.rows(
            self.WRITES[0], ("reduce_merge_s", "merge_cpu_s_per_record"), map_s=1e-8, reduce_s=1e-7
        )

        costs, _, _ = fit_costs(rows)

        of_reduces = costs["local_write_s_per_byte_reduce"]
        assert (of_reduces.value, of_reduces.assumed) == (
            costs["local_write_s_per_byte"].value,
            True,
        )
        assert "local_write_s_per_byte_map" not in costs
        assert costs["merge_cpu_s_per_record_map"].assumed

    def test_what_cutting_would_hide_stays_whole(self):
        """
        A merge of reduces takes writing and CPU in one proportion: only the maps' writing tells
        them apart, so their cost stays one.
        """
        rows = self.rows(self.WRITES[0], map_s=1e-8, reduce_s=0)
        rows += [
            PhaseRow(
                "reduce_merge_s",
                size * 3e-8,
                {"local_write_s_per_byte": size, "merge_cpu_s_per_record": size / 100},
            )
            for size in self.SIZES
        ]

        costs, groups, _ = fit_costs(rows)

        assert groups == ()
        assert "local_write_s_per_byte_reduce" not in costs
        assert costs["merge_cpu_s_per_record"].value == pytest.approx(2e-6)
