"""
Made-up models beside the others: what the test says of perfection, and of nothing at all.

A perfect model knows the true mean of each cell; what is measured differs from that by the noise of
the repeats, and so it errs by the noise.  Its mean error is the floor of the grid: no model can be
seen to be better.  A coin has the errors of a published model with signs that are drawn, and is
compared with another toss of itself: where it is nearer more often than chance allows, the test is
not to be believed here.  (It is not compared with that model: a relative error is larger for what
is too long than for what is too short by the same factor, so that the signs are no matter of luck.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from harness.base.records.question import Scope
from harness.base.records.score import Control, Score
from harness.base.stats.flips import DRAWS, FEWEST_UNITS, flip_chances, normal_draws
from harness.scoring.comparisons import FAMILY_ERROR, Rows, units_of
from harness.scoring.speeds import AS_IT_IS, errors_at
from harness.scoring.weights import relative_weights

if TYPE_CHECKING:
    from harness.base.stats.resampling import Numbers

HIGH = 0.95  # share of the draws that are not above `Control.high`


def cell_floors(cells: Sequence[Score]) -> list[float] | None:
    """
    Noise floor of each cell, as a share of its mean: of one without, the largest of all.

    `None` where none is known, or none is above 0: then nothing says how far perfection errs.
    """
    largest = max((cell.floor for cell in cells if cell.floor is not None), default=0.0)
    if not largest:
        return None
    return [largest if cell.floor is None else cell.floor for cell in cells]


def perfect_errors(cells: Sequence[Score], stretch: float = 1.0) -> Numbers | None:
    """
    Relative errors of a perfect model at a *stretch*: draws x cells.

    `None` where no noise is known.
    """
    import numpy as np

    floors = cell_floors(cells)
    if floors is None:
        return None
    noise = normal_draws("perfect", len(cells)) * np.asarray(floors)
    errors: Numbers = np.abs(stretch - 1 + stretch * noise)
    return errors


def floor_of(errors: Numbers, weights: Numbers | None = None) -> tuple[float, float]:
    """
    Mean error of a perfect model over all draws, and what 95 of 100 draws do not exceed.

    *errors* are draws x cells; *weights* say how much each cell counts, 1 on average.
    """
    import numpy as np

    means = (errors if weights is None else errors * weights).mean(axis=1)
    rank = round(HIGH * DRAWS) - 1
    return float(means.mean()), float(np.sort(means)[rank])


def floor_of_cells(cells: Sequence[Score]) -> tuple[float | None, float | None]:
    """`floor_of` a perfect model in these *cells*; none where no noise is known."""
    errors = perfect_errors(cells) if cells else None
    return (None, None) if errors is None else floor_of(errors, relative_weights(cells))


def controls(rows: Rows, scope: Scope, stretches: Sequence[float] = AS_IT_IS) -> list[Control]:
    """
    The controls beside the models of *rows*, which are in the same cells, the nearest first.

    What the test says of them holds at all *stretches*, too.
    """
    cells = next(iter(rows.values()), ())
    if not cells:
        return []
    found = []
    perfect = [
        errors for stretch in stretches if (errors := perfect_errors(cells, stretch)) is not None
    ]
    if perfect:
        nearer = dict[str, float]()
        for model, row in rows.items():
            at_each = zip(perfect, stretches, strict=True)
            gaps = [errors - errors_at(row, stretch) for errors, stretch in at_each]
            nearer |= _share_nearer(model, gaps, row, scope)
        found.append(_control("perfect", perfect[0], cells, nearer))
    model, row = next(iter(rows.items()))
    coin = coin_errors(row, "coin")
    nearer = _share_nearer("coin", [coin - coin_errors(row, "other coin")], row, scope)
    found.append(_control("coin", coin, cells, nearer, made_of=model))
    return found


def _control(
    name: Literal["perfect", "coin"],
    errors: Numbers,
    cells: Sequence[Score],
    nearer: Mapping[str, float],
    made_of: str = "",
) -> Control:
    """The control of that *name* with the *errors* of its draws."""
    error, high = floor_of(errors, relative_weights(cells))
    return Control(
        name=name,
        quantity=cells[0].quantity,
        cells=len(cells),
        draws=DRAWS,
        error=error,
        high=high,
        made_of=made_of,
        nearer=dict(nearer),
    )


def coin_errors(row: Sequence[Score], name: str) -> Numbers:
    """Relative errors of the model of *row* with the signs of their logarithms drawn, by *name*."""
    import numpy as np

    shares = np.asarray([score.predicted_s / score.measured_s for score in row])
    logarithms = np.abs(np.log(np.maximum(shares, np.finfo(float).tiny)))
    signs = np.sign(normal_draws(name, len(row)))
    errors: Numbers = np.abs(np.exp(signs * logarithms) - 1)
    return errors


def _share_nearer(
    model: str, gaps: Sequence[Numbers], row: Sequence[Score], scope: Scope
) -> dict[str, float]:
    """In which share of the draws the first is nearer in all *gaps*, asked alone, by *model*."""
    import numpy as np

    units = units_of(row, scope)
    if len(set(units)) < FEWEST_UNITS:
        return {}
    weights = relative_weights(row)
    chances = np.max([flip_chances(found, units, weights) for found in gaps], axis=0)
    return {model: float((chances <= FAMILY_ERROR).mean())}
