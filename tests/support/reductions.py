"""Graphs of one operator that reduces over axes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.support.draw import with_constants
from tflq.graph import Affine, DType, Graph


def reduction(
    operator: str,
    shape: tuple[int, ...],
    axes: list[int],
    dtype: DType,
    source: Affine | None = None,
    target: Affine | None = None,
    keep_dims: bool = False,
) -> Graph:
    resolved = {axis % len(shape) for axis in axes if -len(shape) <= axis < len(shape)}
    kept = [1 if i in resolved else n for i, n in enumerate(shape) if keep_dims or i not in resolved]
    constants = [np.array(axes, np.int32)]
    return with_constants(operator, shape, kept, constants, dtype, source, target, keep_dims=keep_dims)


@st.composite
def axes_of(draw: st.DrawFn, shape: tuple[int, ...]) -> list[int]:
    """Some axes, negative ones and doubles too."""
    return draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=3))
