"""A run with its frames, profiles, predictions and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.documents.document import Document
from harness.base.documents.drawing import draw_alone
from harness.base.errors import DataError
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.trial import Code
from harness.core.evaluate.basis import basis_of_run
from harness.core.evaluate.own_code import kept_own, read_own_models
from harness.core.evaluate.own_model import OwnModel
from harness.core.evaluate.predict import predict_cells
from harness.core.experiment.grid import axis_values, meaning
from harness.core.frames import Frames
from harness.core.reports.answer import headline
from harness.core.run.preflight import known_names
from harness.models import Model, present_name, require_models
from harness.tuning.ask import asked_cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import Series


class Run(Frames):
    """
    A run, or an analysis of one, as pandas frames; `harness.open` gives it.

    A frame is read when it is first asked for.  All but `comparisons` begin with the settings of a
    row's cell: `workload`, `input` (bytes), and a column for each axis on which the run's cells
    differ, by its name in the experiment file.  `cell` and `trial` are ids, which join frames.
    Columns that end in `_s` are seconds; moments are seconds since the epoch.  `DataError` names a
    file that is damaged or not there yet.
    """

    def __repr__(self) -> str:
        return f"<run {self.id} of {self.experiment}>"

    @property
    def id(self) -> str:
        """Its id: `20261123T181438Z-ca05`; of imported histories the name of its folder."""
        return self.run.id

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.run.path

    @property
    def experiment(self) -> str:
        """The name of its experiment."""
        return self.evaluation.experiment.name

    @cached_property
    def verdict(self) -> str:
        """The first sentence of its report: which model is nearest, or what is missing."""
        if not self.run.seal.exists():
            return "No answer yet: no model has predicted anything."
        return headline(self.evaluation.report_data(with_tasks=False))

    @cached_property
    def document(self) -> Document:
        """Its report: sections of texts, tables and figures."""
        return self.evaluation.document()

    @cached_property
    def plot(self) -> Plots:
        """The figures of its report: `run.plot.errors()`, and so on."""
        return Plots(self.document)

    def profile(self, workload: str) -> Profile:
        """What models know of *workload*: its `statistics`, `costs` and `frame`, by their names."""
        profiles = self.run.read_profiles()
        if workload not in profiles:
            fix = f"choose from {', '.join(profiles)}" if profiles else "harness profile RUN"
            what = f"there is no profile of {workload!a}"
            raise DataError(what, where=str(self.run.path), fix=fix)
        return profiles[workload]

    def predict(self, model: str, cell: Mapping[str, Any] | Series) -> Prediction:
        """
        What *model* says of a *cell*, measured or not: `body_s`, `job_s`, `intervals`, and more.

        *model* is the name of one (`harness list models`), or a class of your own by its path,
        `./mine.py:Mine`, or by the name under which the run was predicted.  `SpecError` for any
        other name says which is nearest.

        *cell* is a row of a frame, changed or not, or settings by the names of axes and of Hadoop's
        properties: `{"workload": "terasort", "input": "1 GiB"}`.  What settings leave out is as in
        the largest scored cell of the workload.  Nothing is stored.
        """
        cells = self.evaluation.resolved
        settings = dict(cell)
        if "cell" in settings:
            base = cells[str(settings["cell"])]
            settings = {name: settings[name] for name in self._settings if name in settings}
        else:
            base = basis_of_run(self.evaluation, str(settings.get("workload", ""))).resolved
        changes = []
        values = axis_values(base.cell)
        for name, value in settings.items():
            # In a frame 2 may be 2.0, and nan where the cell has no such axis.
            text = f"{value:.15g}" if isinstance(value, float) else str(value)
            if text != "nan" and meaning(text) != meaning(values.get(name, "")):
                changes.append(f"{name}={text}{' B' * (name == 'input' and text.isdigit())}")
        (chosen,) = asked_cells(base, changes, known_names()) if changes else [base]
        asked_model = self._model(model)
        (prediction,) = predict_cells(asked_model, [chosen], self.run.read_profiles(), cells)
        return prediction

    def _model(self, name: str) -> str | Model:
        """The model *name*: that of the user's own as its file is now, in a process of its own."""
        kept = self.evaluation.experiment.predict.code
        if ".py:" in name:
            own_class = read_own_models([name])[name]
        elif name in kept:
            own_class = kept_own(kept[name])
        else:
            present = present_name(name)
            require_models([present], "run.predict")
            return present
        code = own_class.code
        self._own_models[code] = self._own_models.get(code) or OwnModel(own_class)
        return self._own_models[code]

    @cached_property
    def _own_models(self) -> dict[Code, OwnModel]:
        """Those that were asked: their processes end with this object."""
        return {}


class Plots:
    """
    The figures of a report, a method for each kind: `run.plot.phases("terasort")`.

    A method takes what begins the figure's title (a workload, a model), needed where there are
    several, and a `width` in inches; it gives a matplotlib figure: `figure.savefig("errors.pdf")`.
    Without a width a small figure fits one column of a paper of two, a wide one both.
    """

    def __init__(self, document: Document) -> None:
        """Draw figures of *document*; `figures` has them by their names."""
        self.figures = document.figures()

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *{name.rstrip("0123456789") for name in self.figures}]

    def __getattr__(self, name: str) -> Callable[..., Figure]:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self.draw, name)

    def draw(self, name: str, of: str = "", width: float | None = None) -> Figure:
        """Draw the figure *name*, with its number or without; `DataError` if it is not one."""
        chosen = [
            figure_name
            for figure_name, figure in self.figures.items()
            if name in (figure_name, figure_name.rstrip("0123456789"))
            and figure.title.startswith(of)
        ]
        if len(chosen) != 1:
            titles = [
                f"{figure_name} ({self.figures[figure_name].title})" for figure_name in chosen
            ]
            what = f"{len(chosen) or 'no'} figures are called '{f'{name} {of}'.strip()}'"
            fix = f"choose from {', '.join(titles or self.figures)}"
            raise DataError(what, where="the figures of the report", fix=fix)
        return draw_alone(self.figures[chosen[0]], width)
