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
feature that the jobs do not distinguish from those before it (one number of slots makes the last
two constants) is left out, and a warning says so: what was not varied is not extrapolated.  Jobs
with one ratio of input to machines (one split on one slot and two splits on two slots are such)
cannot distinguish fixed time from work: all of it counts as work then, and a warning says so.

The body is fitted to the bodies of the jobs, what is published to their whole times: it stands for
the job where no job's frame is known.
"""

from __future__ import annotations

import math

import numpy as np

from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile
from harness.base.units import MIB
from harness.models.checks import check_number
from harness.models.frame import whole_job
from harness.models.scaling import measured_times, require_jobs, slots_in_use
from harness.models.vectors import Evaluator

FEATURES = ("1", "scale/machines", "log(machines)", "machines")
COEFFICIENTS = ("fixed_s", "s_per_byte", "s_per_log_machine", "s_per_machine")
TERMS = ("fixed_s", "parallel_s", "log_machines_s", "machines_s")

# Of a column of length 1: with less than this outside the columns before it, noise decides on it.
_DEPENDENT = 0.01
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
        """Job time for one cell."""
        jobs = require_jobs(profile, self.name)
        machines = slots_in_use(cluster.map_slots, job_input.num_splits)
        cell_features = features(job_input.input_bytes, machines)
        design = np.array(
            [features(job.input_bytes, slots_in_use(job.map_slots, job.num_splits)) for job in jobs]
        )
        columns, warnings = used_columns(design)
        bodies = measured_times(jobs, "body_s")
        job_times = np.array(measured_times(jobs, "job_s"))
        published = fit(design[:, columns], job_times) @ np.array(cell_features)[columns]
        body_times = np.array(bodies) if bodies else job_times
        fitted = fit(design[:, columns], body_times)
        residuals = design[:, columns] @ fitted - body_times
        coefficients = np.zeros(len(FEATURES))
        coefficients[columns] = fitted
        terms = (coefficients * cell_features).tolist()
        if at_bound := [FEATURES[column] for column in columns if coefficients[column] == 0]:
            warnings.append(f"{', '.join(at_bound)}: at bound, coefficient 0")
        body_s = math.fsum(terms) if bodies else None
        # The configuration is no feature: it decides on the frame alone.
        inputs = (configuration, cluster, job_input)
        job_s, whole_warnings = whole_job(float(published), body_s, profile, inputs)
        return Prediction(
            model=self.name,
            body_s=body_s,
            job_s=job_s,
            published_s=float(published),
            phases=dict(zip(TERMS, terms, strict=True)),
            dataflow={
                "machines": machines,
                **dict(zip(COEFFICIENTS, coefficients.tolist(), strict=True)),
                "fit_residual_s": float(np.sqrt(np.mean(residuals**2))),  # root mean square
            },
            warnings=(*warnings, *whole_warnings),
        )


def features(input_bytes: float, machines: int) -> list[float]:
    """1, scale/machines, log(machines), machines, which are slots here: [Ven16], section 3.1."""
    size = check_number("input_bytes", input_bytes, where="ernest", above=True)
    return [1.0, size / machines, math.log(machines), float(machines)]


def used_columns(design: np.ndarray) -> tuple[list[int], list[str]]:
    """Columns of *design* that get a coefficient, and warnings of those that are left out."""
    columns = independent_columns(design)
    warnings = list[str]()
    if FEATURES.index("scale/machines") not in columns:
        # Jobs with one ratio of input to slots: the constant stands for their work.
        columns = [1 + column for column in independent_columns(design[:, 1:])]
        low = design[:, 1].min() / MIB
        high = design[:, 1].max() / MIB
        warnings.append(
            f"1: left out, for the profiled jobs have {low:.4g} to {high:.4g} MiB for each slot"
            " in use: all time counts as work, none as fixed"
        )
    left_out = [name for column, name in enumerate(FEATURES) if column not in {0, *columns}]
    if left_out:
        warnings.append(
            f"{', '.join(left_out)}: left out, for the profiled jobs have too few numbers of"
            " slots to distinguish this from the other features"
        )
    return columns, warnings


def independent_columns(design: np.ndarray) -> list[int]:
    """Columns of *design* that are not zero, nor nearly a combination of those kept before them."""
    kept: list[int] = []
    basis = np.zeros((len(design), 0))
    for column in range(design.shape[1]):
        values = design[:, column]
        length = float(np.linalg.norm(values))
        if length == 0:
            continue
        unit = values / length
        rest = unit - basis @ (basis.T @ unit)
        rest -= basis @ (basis.T @ rest)  # once more: rounding leaves a part in the basis
        rest_length = float(np.linalg.norm(rest))
        if rest_length > _DEPENDENT:
            kept.append(column)
            basis = np.column_stack([basis, rest / rest_length])
    return kept


def fit(design: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Coefficients of non-negative least squares on columns of length 1; mere rounding is 0."""
    from scipy.optimize import nnls

    lengths = np.linalg.norm(design, axis=0)
    scaled, _ = nnls(design / lengths, times)
    smallest = _ROUNDING * float(np.linalg.norm(times))
    coefficients: np.ndarray = np.where(scaled > smallest, scaled, 0.0) / lengths
    return coefficients
