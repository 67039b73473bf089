"""
Ernest: job time as a sum of four terms of input and machines, fitted to profiled jobs.

    [Ven16] S. Venkataraman, Z. Yang, M. Franklin, B. Recht, I. Stoica. "Ernest: Efficient
    Performance Prediction for Large-Scale Advanced Analytics". NSDI 2016, section 3.1.

    time = t_0 + t_1 x (scale / machines) + t_2 x log(machines) + t_3 x machines,    all t_i >= 0

    paper       here                    unit    meaning
    ----------  ----------------------  ------  -----------------------------------------------
    scale       `input_bytes`           B       size of the input
    machines    `machines`              1       slots in use, min(map_slots, num_splits)
    t_0         `fixed_s`               s       what does not depend on either
    t_1         `s_per_byte`            s/B     parallel work
    t_2         `s_per_log_machine`     s       aggregation trees
    t_3         `s_per_machine`         s       all-to-one exchange, scheduling

The coefficients are those of non-negative least squares over all jobs of the profile, each repeat
one observation, at reference speed.  It is a black box: number of reduces and configuration are not
features, so cells that differ in these alone have one answer.

Departures from the paper: its experiment design is the user's here (`predict.profile_on`).  A
feature that the jobs do not show apart from those before it (one number of slots makes the last two
constants) is left out, and a warning says so: what was not varied is not extrapolated.  Jobs with
one ratio of input to machines are refused, for they cannot tell fixed time from work; one split on
one slot and two splits on two slots are such.

    needs   `Profile.jobs` of two input sizes or more, better five to seven
    gives   job time and its four terms; no tasks, no phases of tasks
"""

from __future__ import annotations

import math

from collections.abc import Sequence

import numpy as np

from harness.errors import ModelError
from harness.models.checks import check_number
from harness.models.nearest import demand_jobs, input_per_slot, slots_in_use
from harness.models.vectors import Evaluator
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.records.profile import Profile, ProfiledJob

FEATURES = ("1", "scale/machines", "log(machines)", "machines")
COEFFICIENTS = ("fixed_s", "s_per_byte", "s_per_log_machine", "s_per_machine")
TERMS = ("fixed_s", "parallel_s", "log_machines_s", "machines_s")

# Of a column of length 1: with less than this outside the columns before it, noise decides on it.
_SAME = 0.01
_ROUNDING = 1e-12


class Ernest:
    """Four features and non-negative least squares, over the whole jobs that were profiled."""

    name = "ernest"
    description = "Ernest (NSDI 2016): input per slot and slots, fitted to the profiled jobs"
    required = frozenset({"jobs"})
    evaluators: tuple[Evaluator, ...] = ()

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """
        Job time for one cell.

        ``MissingStatistic`` where the profile has no jobs, ``ModelError`` where they are too few
        to tell work from fixed time, or for a size out of range.
        """
        del configuration  # not a feature
        demand_jobs(profile, self.name)
        machines = slots_in_use(cluster.map_slots, job_input.num_splits)
        asked = features(
            input_per_slot(job_input.input_bytes, cluster.map_slots, job_input.num_splits), machines
        )
        design = np.array([_features_of(job) for job in profile.jobs])
        shown = shown_features(design)
        demand_work(shown, design)
        times = np.array(
            [check_number("job_s", job.job_s, where=self.name) for job in profile.jobs]
        )
        found = fit(design[:, shown], times)
        coefficients = dict(zip(shown, found, strict=True))
        terms = [coefficients.get(k, 0.0) * asked[k] for k in range(len(FEATURES))]
        return Prediction(
            model=self.name,
            cell="",
            job_s=math.fsum(terms),
            phases=dict(zip(TERMS, terms, strict=True)),
            dataflow={
                "machines": machines,
                **{n: coefficients.get(k, 0.0) for k, n in enumerate(COEFFICIENTS)},
                "fit_residual_s": residual(design[:, shown] @ found, times),
            },
            warnings=warnings(shown, found),
        )


def features(bytes_per_machine: float, machines: int) -> list[float]:
    """1, scale/machines, log(machines), machines: [Ven16], section 3.1."""
    return [1.0, bytes_per_machine, math.log(machines), float(machines)]


def shown_features(design: np.ndarray) -> list[int]:
    """Columns of *design*, but zeros and those that nearly are sums of the ones kept before."""
    kept: list[int] = []
    basis = np.zeros((len(design), 0))
    for k in range(design.shape[1]):
        column = design[:, k]
        length = float(np.linalg.norm(column))
        if length == 0:
            continue
        unit = column / length
        rest = unit - basis @ (basis.T @ unit)
        rest -= basis @ (basis.T @ rest)  # once more: rounding leaves a part in the basis
        if (left := float(np.linalg.norm(rest))) > _SAME:
            kept.append(k)
            basis = np.column_stack([basis, rest / left])
    return kept


def fit(design: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Non-negative least squares, columns brought to length 1 first; what only rounds is 0."""
    from scipy.optimize import nnls

    lengths = np.linalg.norm(design, axis=0)
    found, _ = nnls(design / lengths, times)
    least = _ROUNDING * float(np.linalg.norm(times))
    coefficients: np.ndarray = np.where(found > least, found, 0.0) / lengths
    return coefficients


def residual(told: np.ndarray, times: np.ndarray) -> float:
    """Root mean square of what the fit leaves of the profiled job times, in seconds."""
    return float(np.sqrt(np.mean((told - times) ** 2)))


def demand_work(shown: Sequence[int], design: np.ndarray) -> None:
    """``ModelError`` where the jobs do not tell work from fixed time: one input for each slot."""
    work = FEATURES.index("scale/machines")
    if work not in shown:
        low, high = design[:, work].min() / 2**20, design[:, work].max() / 2**20
        raise ModelError(
            "ernest needs job times at two ratios of input to slots, and the"
            f" {len(design)} profiled jobs have {low:.4g} to {high:.4g} MiB for each slot in use",
            where="profile",
            fix="profile inputs that give the slots more or less (predict.profile_on)",
        )


def warnings(shown: Sequence[int], found: np.ndarray) -> tuple[str, ...]:
    """Which features the jobs do not tell apart, and which came out as 0."""
    told = []
    unseen = [name for k, name in enumerate(FEATURES) if k not in shown]
    if unseen:
        told.append(
            f"{', '.join(unseen)}: not told apart from the other features by the profiled jobs"
            " (too few numbers of slots), left out"
        )
    bound = [FEATURES[k] for k, c in zip(shown, found, strict=True) if c == 0]
    if bound:
        told.append(f"{', '.join(bound)}: at bound, coefficient 0")
    return tuple(told)


def _features_of(job: ProfiledJob) -> list[float]:
    per_slot = input_per_slot(job.input_bytes, job.map_slots, job.num_splits)
    return features(per_slot, slots_in_use(job.map_slots, job.num_splits))
