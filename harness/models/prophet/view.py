"""
A profile as a cell sees it: with the cell's codec, machine by machine, and what it lacks.

Section 5's `network` is a copier's own time per byte while the others copy beside it: the profile's
`copy_s_per_byte`, and not What-If's cost, in which the copiers share one network.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from harness.errors import MissingStatistic
from harness.models.checks import check_number
from harness.models.prophet.shuffle import ShuffleCosts
from harness.records.prediction import JobConfig
from harness.records.profile import Profile, Statistic

COMPRESSED = "_compressed"
COPY = "copy_s_per_byte"  # section 5's network
SPILLS = frozenset({"sort_s_per_record", "spill_write_s_per_byte"})

# Statistics that depend on the map output's codec have a second one for jobs that compress.
_WITH_CODEC = frozenset(
    {
        "spill_write_s_per_byte", "map_while_spilling_s_per_record", "spill_s_per_record",
        "spill_bytes_selectivity", "combine_s_per_record", COPY,
    }
)  # fmt: skip
_OF_COMBINER = frozenset(
    {"combine_s_per_record", "spill_bytes_selectivity", "combine_records_selectivity"}
)
_OF_CODEC = frozenset({"map_output_compress_s_per_byte", "map_output_decompress_s_per_byte"})
_COSTS = tuple(cost.name for cost in fields(ShuffleCosts))


@dataclass(frozen=True)
class View:
    """A profile as a cell with *config* sees it: one codec, notes on what it lacks."""

    profile: Profile
    config: JobConfig

    def statistic(self, name: str) -> Statistic | None:
        """Statistic for this cell's codec, else a cost; `None` where the profile has neither."""
        statistics, costs = self.profile.statistics, self.profile.costs
        if name in _WITH_CODEC and self.config.map_output_compressed:
            # A byte takes the network no longer for being part of something compressed.
            fallback = statistics.get(name) if name == COPY else None
            return statistics.get(name + COMPRESSED) or fallback
        return statistics.get(name) or costs.get(name)

    def value(self, name: str) -> float:
        """Value alone, 0 where it is unknown; ``ModelError`` unless it is finite and not below."""
        statistic = self.statistic(name)
        if statistic is None:
            return 0.0
        return check_number(name, statistic.value, where="prophet statistics")

    def require(self, names: frozenset[str], *, uses_combiner: bool = False) -> None:
        """``MissingStatistic`` for those of *names* that neither are here nor follow."""
        compressed = self.config.map_output_compressed
        if uses_combiner:
            names |= _OF_COMBINER
        if compressed and "sort_s_per_record" in names:
            names |= {"spill_bytes_selectivity", "map_output_compression_ratio"}
        if self.statistic("spill_s_per_record"):  # logs show whole spills
            names -= SPILLS | {"combine_s_per_record"}
        suffixed = _WITH_CODEC - {COPY} if compressed else frozenset()
        lacking = sorted(
            name + COMPRESSED if name in suffixed else name
            for name in names
            if not self.statistic(name)
        )
        if lacking:
            raise MissingStatistic(*lacking, model="prophet", workload=self.profile.workload)

    def shuffle_costs(self) -> dict[str, float]:
        """Section 5's costs; what a measured copy took to unpack is not counted again."""
        costs = {name: self.value(name) for name in _COSTS if self.statistic(name)}
        copy_s = self.value(COPY)
        if self.config.map_output_compressed and COPY + COMPRESSED in self.profile.statistics:
            copy_s -= costs.get("map_output_decompress_s_per_byte", 0.0)
        return costs | {"network_s_per_byte": max(0.0, copy_s)}

    def overheads(self) -> dict[str, float]:
        """Seconds outside tasks, 0 where they are unknown."""
        known = self.profile.overheads
        names = ("task_overhead_s", "job_overhead_s")
        return {name: known[name].value if name in known else 0.0 for name in names}

    def absent_overheads(self) -> list[str]:
        """Warnings of the scheduler's overheads that the profile lacks."""
        lacking = [name for name in self.overheads() if name not in self.profile.overheads]
        return [f"no {name}: the scheduler takes it as 0" for name in lacking]

    def warnings(self) -> list[str]:
        """What a reader of the answer should know of the profile."""
        unused = {"network_s_per_byte"}
        unused |= set() if self.config.use_combiner else {"combine_cpu_s_per_record"}
        unused |= set() if self.config.map_output_compressed else _OF_CODEC
        warnings = [
            f"no {name}: taken as 0"
            for name in (*_COSTS, "hdfs_write_s_per_byte", "reduce_cpu_s_per_record")
            if name not in unused and not self.statistic(name)
        ]
        warnings += self.absent_overheads()
        if not self.statistic("map_while_spilling_s_per_record"):
            warnings.append("no map_while_spilling_s_per_record: taken as map_s_per_record")
        if not self._has_spill_parts():
            warnings.append("the parts of spills are not known: spill_s_per_record stands for all")
        return warnings

    def _has_spill_parts(self) -> bool:
        names = SPILLS | ({"combine_s_per_record"} if self.config.use_combiner else frozenset())
        return all(self.statistic(name) for name in names)

    def machine_lists(self) -> dict[str, list[float]]:
        """Section 2.1's lists: one value per machine that ran maps, which all of them know."""
        sources = {
            "map_records_selectivity": "map_records_selectivity",
            "map_bytes_selectivity": "map_bytes_selectivity",
            "map_s_per_record": "map_s_per_record",
            "combine_bytes_selectivity": "spill_bytes_selectivity",
            "sort_s_per_record": "sort_s_per_record",
        }
        # Without codec and combiner a spill file has the bytes that the buffer had.
        constants = {"combine_s_per_record": 0.0, "spill_write_s_per_byte": 0.0,
                     "combine_bytes_selectivity": 1.0}  # fmt: skip
        if self._has_spill_parts():
            sources["spill_write_s_per_byte"] = "spill_write_s_per_byte"
            if self.config.use_combiner:
                sources["combine_s_per_record"] = "combine_s_per_record"
        else:
            sources["sort_s_per_record"] = "spill_s_per_record"
        statistics = {
            name: statistic
            for name, source in sources.items()
            if (statistic := self.statistic(source)) is not None
        }
        # Hosts that all statistics know; none where one was not taken apart.
        host_names = sorted(
            set.intersection(*(set(statistic.nodes) for statistic in statistics.values()))
        )
        lists = {name: [value] * max(1, len(host_names)) for name, value in constants.items()}
        for name, statistic in statistics.items():
            nodes = statistic.nodes
            lists[name] = [nodes[host] for host in host_names] if host_names else [statistic.value]
        # A machine whose maps were never beside a spill has its cost without one (section 13).
        alone, beside = lists["map_s_per_record"], self.statistic("map_while_spilling_s_per_record")
        if beside is None:
            while_spilling = list(alone)
        elif host_names:
            while_spilling = [
                beside.nodes.get(host, seconds)
                for host, seconds in zip(host_names, alone, strict=True)
            ]
        else:
            while_spilling = [beside.value]
        return lists | {"map_while_spilling_s_per_record": while_spilling}
