"""Random inputs that several test modules share."""

from __future__ import annotations

import numpy as np

from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def designs(draw, *, columns=(2, 6), rows=(30, 80)):
    """A well-conditioned design of positive numbers, its columns of very different size."""
    rng = np.random.default_rng(draw(SEEDS))
    width = draw(st.integers(*columns))
    design = rng.uniform(0, 1, size=(draw(st.integers(*rows)), width))
    return design * 10.0 ** rng.integers(-8, 8, size=width)
