"""The tables of a run or an analysis, as pandas frames: what programs and papers read of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError
from harness.base.records.score import Comparison, Measurement, Tally
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.grid import axis_values, varying
from harness.observe.profiling.measured import SPANS

if TYPE_CHECKING:
    from pandas import DataFrame


class Frames:
    """
    Frames of what is stored of a run, each read when it is first asked for.

    All but `comparisons` and `tallies` begin with the settings of a row's cell: `workload`, `input`
    (bytes), and a column for each axis on which the run's cells differ, by its name in the
    experiment file.
    `cell` and `trial` are ids, which join frames.  Columns that end in `_s` are seconds; moments
    are seconds since the epoch.  `DataError` names a file that is damaged or not there yet.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        """Read the files of *evaluation*: its `run` has their `id` and `path`."""
        self.evaluation = evaluation
        self.run = evaluation.run

    @cached_property
    def trials(self) -> DataFrame:
        """
        Every trial that has ended: `state`, `use` (`profile` or `score`), `job_s` where it is done.

        `job_s` is the sum of its jobs' times.  `busy`, `others` and `steal` are shares of all
        cores' time, the most of any machine; `disturbed` names the rule that marked the trial.
        """
        rows = []
        published = self.evaluation.published_measurements()
        published_s = {measured.trial: sum(measured.jobs_s) for measured in published}
        for record in self.run.trials().values():
            trial = record.trial
            job_s = published_s.get(trial.id)
            if record.state == "done" and self.evaluation.has_traces:
                job_s = sum(job.job_s for job in self.run.read_trace(trial.id, whole=False))
            row = {"cell": trial.cell.id, "trial": trial.id, "repetition": trial.repetition}
            row |= {"use": trial.use, "job_s": job_s}
            ended = ("state", "started_s", "finished_s", "reason", "disturbed", "device")
            row |= {name: getattr(record, name) for name in ended}
            row |= {name: record.most(name) for name in ("busy", "others", "steal")}
            rows.append(row | record.harness_s)
        return self._frame(rows, "cell", "trial", "state", "use", "job_s")

    @cached_property
    def measurements(self) -> DataFrame:
        """
        Times of every scored trial that is done, a column for each quantity; of tasks means.

        With `reference_` before it a quantity is at reference speed.  `range` says where the cell
        lies in what was profiled; `start` names the start of the cluster.
        """
        scored = tuple[Measurement, ...]()
        rows = []
        with suppress(DataError):  # not scored yet: they are made from the traces
            scored = self.run.read_scores().measurements
        for measurement in self.evaluation.measurements(scored):
            row = measurement.model_dump(include={"cell", "trial", "range", "disturbed", "start"})
            reference = {
                f"reference_{name}": time_s for name, time_s in measurement.reference_s.items()
            }
            rows.append({**row, **measurement.raw_s, **reference})
        spans = [span.quantity for span in SPANS]  # empty where no start of a task is known
        return self._frame(rows, "cell", "trial", "job_s", "body_s", "frame_s", *spans)

    @cached_property
    def attempts(self) -> DataFrame:
        """Every attempt of a map or reduce task: `kind`, `state`, `host`, and when it ran."""
        return self._tables("attempts", "attempt_id", "kind", "state", "host")

    @cached_property
    def spans(self) -> DataFrame:
        """
        What was recorded inside tasks (`trace: spans`): `name`, `thread`, `wall_s`, `cpu_s`.

        `parent` is the `place` of the span around it in the same attempt, -1 for the outermost.
        """
        return self._tables("spans", "attempt_id", "name", "thread", "wall_s")

    @cached_property
    def predictions(self) -> DataFrame:
        """
        What each model says of each scored cell: `body_s`, `job_s`, `published_s`, phases.

        `job_s_low_80` and `job_s_high_80` are its interval at 80 %, empty where it is unbounded;
        `not_applicable` names what a model without an answer lacks.
        """
        rows = []
        for prediction in self.evaluation.predictions:
            row = {name: value for name, value in prediction if not isinstance(value, dict | tuple)}
            for quantity, levels in prediction.intervals.items():
                for level, ends in levels.items():
                    low, high = ends or (None, None)
                    row |= {f"{quantity}_low_{level}": low, f"{quantity}_high_{level}": high}
            for name in ("warnings", "not_applicable"):
                row[name] = "; ".join(getattr(prediction, name))
            rows.append(row | prediction.measurable)
        return self._frame(rows, "model", "cell", "body_s", "job_s")

    @cached_property
    def scores(self) -> DataFrame:
        """
        Each model, cell and quantity: `predicted_s`, `measured_s`, `signed_error`, `floor`.

        Errors and `floor`, the noise of the cell's mean, are shares of `measured_s`.  Choose one
        `quantity` and one `speed` (`raw`, `reference`) before you take a mean.
        """
        rows = [vars(score) for score in self.run.read_scores().scores]
        return self._frame(rows, "model", "cell", "quantity", "speed")

    @cached_property
    def tallies(self) -> DataFrame:
        """
        How many trials and cells were `planned`, `done`, `usable` and `scored`, by `quantity`.

        Of each `model`, and of all where it is empty.  `left_out` names each reason for which
        others are not scored, with its number; the numbers and `scored` add up to `planned`.
        """
        import pandas as pd

        rows = [vars(tally) for tally in self.run.read_scores().tallies]
        return pd.DataFrame(rows, columns=[*Tally.model_fields])

    @cached_property
    def comparisons(self) -> DataFrame:
        """Pairs of models: the `verdict` (`nearer`, `equal`, `undecided`), and its `reason`."""
        import pandas as pd

        rows = [vars(comparison) for comparison in self.run.read_scores().comparisons]
        return pd.DataFrame(rows, columns=[*Comparison.model_fields])

    @cached_property
    def _settings(self) -> DataFrame:
        """Values of each cell, by its id, on the axes; numbers where all values are."""
        import pandas as pd

        cells = self.evaluation.cells
        values = [axis_values(cell) for cell in cells.values()]
        columns = {}
        for axis in dict.fromkeys(("workload", "input", *varying(cells.values()))):
            column = pd.Series([value.get(axis) for value in values], index=[*cells])
            numbers = pd.to_numeric(column, errors="coerce")
            texts = column.map(str, na_action="ignore")
            columns[axis] = numbers if (numbers.notna() == column.notna()).all() else texts
        return pd.DataFrame(columns)

    def _frame(self, rows: Iterable[Mapping[str, Any]] | DataFrame, *first: str) -> DataFrame:
        """*rows* behind the settings of their `cell`; the columns *first* are always there."""
        import pandas as pd

        frame = pd.DataFrame(rows).drop(columns="schema_version", errors="ignore")
        frame = frame.reindex(columns=dict.fromkeys([*first, *frame]))
        # What is nowhere known is no text: it can be calculated with, and has a type in files.
        frame = frame.astype({name: float for name in frame if frame[name].isna().all()})
        settings = self._settings.reindex(frame["cell"]).reset_index(drop=True)
        facts = frame.drop(columns=settings.columns, errors="ignore")
        return pd.concat([settings, facts], axis=1)

    def _tables(self, table_name: str, *first: str) -> DataFrame:
        import pandas as pd

        parts: list[DataFrame] = []
        for trial_id, record in self.run.trials().items():
            ids = {"cell": record.trial.cell.id, "trial": trial_id}
            tables = self.run.read_parts(trial_id, table_name)
            parts += [pd.DataFrame({**ids, **columns}) for columns in tables]
        rows = pd.concat(parts, ignore_index=True) if parts else []
        return self._frame(rows, "cell", "trial", *first)
