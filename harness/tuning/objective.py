"""How long a job takes by a model, for many settings at once: what a search makes small."""

from __future__ import annotations

import math

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.base.errors import HarnessError
from harness.base.records.prediction import JobConfig
from harness.base.records.profile import Profile
from harness.models import MODELS, has_equations
from harness.models.fixed import body_fixed_s, fixed_of
from harness.models.frame import frame_counts_of_many
from harness.models.ptc.model import PTC
from harness.models.whatif.model import WhatIf
from harness.tuning.learned import Numbers, points
from harness.tuning.settings import SPLIT, Job, Values

_TYPES: dict[str, Any] = {name: info.annotation for name, info in JobConfig.model_fields.items()}


@dataclass
class Objective:
    """
    Seconds of one job of *profile* by *model*, its frame included; NaN where it has no answer.

    They are corrected by what was learned of it, if anything.

    *evaluations* counts the settings that were looked at.
    """

    model: str
    profile: Profile
    job: Job
    evaluations: int = field(default=0, init=False)

    def seconds(self, values: Values) -> Numbers:
        """Seconds for each of the settings in *values*, on top of those that the job has."""
        job = self.job
        model = MODELS[self.model]
        count = len(next(iter(values.values())))
        self.evaluations += count
        num_maps = np.full(count, job.job_input.num_splits)
        if SPLIT in values:
            num_maps = job.num_maps(values[SPLIT])
        fields = {
            name: column.astype(_TYPES[name]) for name, column in values.items() if name != SPLIT
        }

        def column_of(name: str) -> Numbers:
            """A field of the configuration: as it is tuned, or the job's for all settings."""
            return fields.get(name, np.full(count, getattr(job.configuration, name)))

        if isinstance(model, WhatIf | PTC):
            sizes = {"num_maps": num_maps, "split_bytes": job.job_input.input_bytes / num_maps}
            cell = (job.configuration, job.cluster, job.job_input)
            bodies = model.bodies(self.profile, cell, fields | sizes)
        else:
            bodies = np.array(
                [self._body(row, fields, int(maps)) for row, maps in enumerate(num_maps)]
            )
        num_reduces = column_of("num_reduces")
        slots = job.cluster.map_slots, max(1, job.cluster.reduce_slots)
        counts = frame_counts_of_many(num_maps, num_reduces, column_of("reduce_slowstart"), *slots)
        gaps = self.profile.frame  # those that were not seen are 0
        frames_s = sum(counts[name] * gaps[name].value for name in counts if name in gaps)
        seconds: Numbers = bodies + frames_s
        if has_equations(model):
            seconds = seconds + body_fixed_s(fixed_of(self.profile), counts)
        if learned := job.learned.get(self.model):
            buffers_mb = column_of("sort_buffer_mb")
            places = points(num_maps, num_reduces, buffers_mb, column_of("map_output_compressed"))
            seconds = seconds * learned.factor(places)
        return seconds

    def _body(self, row: int, fields: Values, num_maps: int) -> float:
        """`body_s` for one *row* of *fields*, by a model that answers one question at a time."""
        job = self.job
        update = {name: column[row].item() for name, column in fields.items()}
        configuration = JobConfig.model_validate(job.configuration.model_dump() | update)
        sizes = {"num_splits": num_maps, "split_bytes": job.job_input.input_bytes / num_maps}
        job_input = job.job_input.model_copy(update=sizes)
        predict = MODELS[self.model].predict
        try:
            body_s = predict(self.profile, configuration, job.cluster, job_input).body_s
        except HarnessError:
            body_s = None
        return math.nan if body_s is None else body_s
