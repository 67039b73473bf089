"""How long a job takes by a model, for many settings at once: what a search makes small."""

from __future__ import annotations

import math

from dataclasses import dataclass, field

import numpy as np

from harness.errors import HarnessError
from harness.models import MODELS
from harness.models.frame import frame_counts_of_many
from harness.models.whatif.model import WhatIf
from harness.records.prediction import JobConfig
from harness.records.profile import Profile
from harness.tuning.settings import SPLIT, SWITCH, Job, Numbers, Values

_WHOLE = {name for name, each in JobConfig.model_fields.items() if each.annotation is int}


@dataclass
class Objective:
    """
    Seconds of one job of *profile* by *model*, its frame included; NaN where it has no answer.

    *evaluations* counts the settings that were looked at.
    """

    model: str
    profile: Profile
    job: Job
    evaluations: int = field(default=0, init=False)

    def seconds(self, values: Values) -> Numbers:
        """Seconds for each of the settings in *values*, on top of those that the job has."""
        self.evaluations += len(next(iter(values.values())))
        split = values.get(SPLIT)
        num_maps = np.full(len(next(iter(values.values()))), float(self.job.job_input.num_splits))
        if split is not None:
            num_maps = self.job.num_maps(split)
        fields = {name: each.astype(bool) if name == SWITCH else each
                  for name, each in values.items() if name != SPLIT}  # fmt: skip
        model = MODELS[self.model]
        cell = (self.job.configuration, self.job.cluster, self.job.job_input)
        if isinstance(model, WhatIf):
            sizes = {"num_maps": num_maps, "split_bytes": self.job.job_input.input_bytes / num_maps}
            bodies = model.bodies(self.profile, cell, fields | sizes)
        else:
            bodies = np.array([self._body(row, fields, maps) for row, maps in enumerate(num_maps)])
        seconds: Numbers = bodies + self.frame_s(fields, num_maps)
        return seconds

    def frame_s(self, fields: Values, num_maps: Numbers) -> Numbers:
        """Seconds around tasks, as `harness.models.frame` counts them; gaps not seen are 0."""
        configuration = self.job.configuration
        num_reduces, slowstart = (
            fields.get(name, np.full(len(num_maps), float(getattr(configuration, name))))
            for name in ("num_reduces", "reduce_slowstart")
        )
        slots = self.job.cluster.map_slots, max(1, self.job.cluster.reduce_slots)
        counts = frame_counts_of_many(num_maps, num_reduces, slowstart, *slots)
        known = self.profile.frame
        total = np.zeros(len(num_maps))
        for name, count in counts.items():
            total += count * known[name].value if name in known else 0.0
        return total

    def _body(self, row: int, fields: Values, num_maps: float) -> float:
        """`body_s` for one *row* of *fields*, by a model that answers one question at a time."""
        update = {name: int(each[row]) if name in _WHOLE else each[row].item()
                  for name, each in fields.items()}  # fmt: skip
        job = self.job
        configuration = JobConfig.model_validate(job.configuration.model_dump() | update)
        sizes = {"num_splits": int(num_maps), "split_bytes": job.job_input.input_bytes / num_maps}
        job_input = job.job_input.model_copy(update=sizes)
        try:
            prediction = MODELS[self.model].predict(
                self.profile, configuration, job.cluster, job_input
            )
        except HarnessError:
            return math.nan
        return math.nan if prediction.body_s is None else prediction.body_s
