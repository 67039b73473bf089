"""
A profile as a cell sees it: with the cell's codec, machine by machine, and what it lacks.

Section 5's `network` is a copier's own time per byte while the others copy beside it: the profile's
`copy_s_per_byte`, and not What-If's cost, in which the copiers share one network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from harness.errors import MissingStatistic
from harness.models.checks import check_number
from harness.models.prophet.setting import ShuffleCosts
from harness.models.whatif.inputs import Statistics
from harness.records.prediction import JobConfig
from harness.records.profile import Profile, Statistic

COMPRESSED = "_compressed"
COPY = "copy_s_per_byte"  # section 5's network
SPILLS = frozenset({"sort_s_per_record", "spill_write_s_per_byte"})

# Statistics that depend on the map output's codec have a second one for jobs that compress.
_CODED = frozenset(
    {
        "spill_write_s_per_byte", "map_while_spilling_s_per_record", "spill_s_per_record",
        "spill_bytes_selectivity", "combine_s_per_record", COPY,
    }
)  # fmt: skip


@dataclass(frozen=True)
class View:
    """A profile as a cell with *config* sees it: one codec, notes on what was not there."""

    profile: Profile
    config: JobConfig

    def find(self, name: str) -> Statistic | None:
        """Find a statistic for this cell's codec, else a cost."""
        statistics, costs = self.profile.statistics, self.profile.costs
        if name in _CODED and self.config.map_output_compressed:
            found = statistics.get(name + COMPRESSED)
            # A byte takes the network no longer for being part of something compressed.
            return found or (statistics.get(name) if name == COPY else None)
        return statistics.get(name) or costs.get(name)

    def demand(self, names: frozenset[str], *, combines: bool = False) -> None:
        """``MissingStatistic`` for those of *names* that neither stand here nor follow."""
        if combines:
            names |= {"combine_s_per_record", "spill_bytes_selectivity",
                      "combine_records_selectivity"}  # fmt: skip
        if self.config.map_output_compressed and "sort_s_per_record" in names:
            names |= {"spill_bytes_selectivity", "map_output_compression_ratio"}
        if self.find("spill_s_per_record"):  # logs tell whole spills
            names -= SPILLS | {"combine_s_per_record"}
        lacking = sorted(self._full_name(n) for n in names if not self.find(n))
        if lacking:
            raise MissingStatistic(*lacking, model="prophet", workload=self.profile.workload)

    def _full_name(self, name: str) -> str:
        """Name under which the profile would have it."""
        coded = name in _CODED - {COPY} and self.config.map_output_compressed
        return name + COMPRESSED if coded else name

    def value(self, name: str) -> float:
        """Value alone, 0 where it is not known; ``ModelError`` for one that is no time."""
        found = self.find(name)
        return 0.0 if found is None else check_number(name, found.value, where="prophet statistics")

    def statistics(self) -> dict[str, float]:
        """What-If's statistics."""
        mine = {f.name for f in fields(Statistics)}
        return {n: s.value for n, s in self.profile.statistics.items() if n in mine}

    def costs(self) -> dict[str, float]:
        """What-If's costs."""
        return {n: s.value for n, s in self.profile.costs.items()}

    def shuffle_costs(self) -> dict[str, float]:
        """Section 5's costs; what a measured copy took to unpack is not counted again."""
        costs = {f.name: self.value(f.name) for f in fields(ShuffleCosts) if self.find(f.name)}
        copy_s = self.value(COPY)
        if self.config.map_output_compressed and COPY + COMPRESSED in self.profile.statistics:
            copy_s -= costs.get("map_output_decompress_s_per_byte", 0.0)
        return costs | {"network_s_per_byte": max(0.0, copy_s)}

    def overheads(self) -> dict[str, float]:
        """Seconds outside tasks, 0 where they are not known."""
        found = self.profile.overheads
        names = ("task_overhead_s", "job_overhead_s")
        return {name: found[name].value if name in found else 0.0 for name in names}

    def notes(self) -> list[str]:
        """What a reader of the answer should know of the profile."""
        names = (*(f.name for f in fields(ShuffleCosts)), "hdfs_write_s_per_byte",
                 "reduce_cpu_s_per_record")  # fmt: skip
        off = {"network_s_per_byte"}
        off |= set() if self.config.use_combiner else {"combine_cpu_s_per_record"}
        if not self.config.map_output_compressed:
            off |= {"map_output_compress_s_per_byte", "map_output_decompress_s_per_byte"}
        found = [f"no {n}: taken as 0" for n in names if n not in off and not self.find(n)]
        found += self.absent()
        if not self.find("map_while_spilling_s_per_record"):
            found.append("no map_while_spilling_s_per_record: taken as map_s_per_record")
        if not self._parts():
            found.append("the parts of spills are not known: spill_s_per_record stands for all")
        return found

    def absent(self) -> list[str]:
        """Overheads of the scheduler that the profile lacks."""
        lacking = [n for n in self.overheads() if n not in self.profile.overheads]
        return [f"no {n}: the scheduler takes it as 0" for n in lacking]

    def _parts(self) -> bool:
        names = SPILLS | ({"combine_s_per_record"} if self.config.use_combiner else frozenset())
        return all(self.find(n) for n in names)

    def lists(self) -> dict[str, list[float]]:
        """Section 2.1's lists: one value per machine that ran maps, which all of them know."""
        parts: dict[str, str | float] = {
            "sort_s_per_record": "sort_s_per_record",
            "combine_s_per_record": "combine_s_per_record" if self.config.use_combiner else 0.0,
            "spill_write_s_per_byte": "spill_write_s_per_byte",
        }
        if not self._parts():
            parts = {**dict.fromkeys(parts, 0.0), "sort_s_per_record": "spill_s_per_record"}
        sources: dict[str, str | float] = {
            "map_records_selectivity": "map_records_selectivity",
            "map_bytes_selectivity": "map_bytes_selectivity",
            "map_s_per_record": "map_s_per_record",
            "combine_bytes_selectivity": "spill_bytes_selectivity",
            **parts,
        }
        found = {n: self.find(s) if isinstance(s, str) else s for n, s in sources.items()}
        # Without codec and combiner a spill file has the bytes that the buffer had.
        known = {n: 1.0 if s is None else s for n, s in found.items()}
        hosts = _hosts([s for s in known.values() if isinstance(s, Statistic)])
        lists = {n: _values(s, hosts) for n, s in known.items()}
        beside = self.find("map_while_spilling_s_per_record")
        return lists | {
            "map_while_spilling_s_per_record": _beside(beside, lists["map_s_per_record"], hosts)
        }


def _hosts(statistics: Sequence[Statistic]) -> list[str]:
    """Hosts that all *statistics* know; none where one was not taken apart."""
    common = set(statistics[0].nodes).intersection(*(s.nodes for s in statistics[1:]))
    return sorted(common)


def _values(source: Statistic | float, hosts: Sequence[str]) -> list[float]:
    """Value of each host, or the one of all."""
    if isinstance(source, float):
        return [source] * max(1, len(hosts))
    return [source.nodes[h] for h in hosts] if hosts else [source.value]


def _beside(found: Statistic | None, alone: Sequence[float], hosts: Sequence[str]) -> list[float]:
    """A machine whose maps were never beside a spill has its cost without one (section 13)."""
    if found is None:
        return list(alone)
    if not hosts:
        return [found.value]
    return [found.nodes.get(h, mine) for h, mine in zip(hosts, alone, strict=True)]
