"""The exponentials of the Optimizer's tables: within an ulp, and right where they are exact."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from tflq.interpreter.kernels.aipu.exponentials import exponential_of_library
from tflq.interpreter.kernels.aipu.float_sums import AMD, INTEL
from tflq.interpreter.kernels.aipu.vector_functions import exponential

Single = NDArray[np.float32]


@pytest.mark.parametrize(
    ("function", "least"),
    [
        (exponential, 0.88),
        (partial(exponential_of_library, library=AMD), 0.985),
        (partial(exponential_of_library, library=INTEL), 0.985),
    ],
    ids=["vectors", AMD, INTEL],
)
def test_an_exponential_is_off_by_an_ulp_at_most(function: Callable[[Single], Single], least: float) -> None:
    """And correctly rounded for about nine, or ninety-nine, of ten, or a hundred, arguments; 1 at 0."""
    x = np.random.default_rng(5).uniform(-20, 14, 20000).astype(np.float32)
    exact = np.exp(x.astype(np.float64)).astype(np.float32)
    found = function(x)
    apart = np.abs(found.view(np.int32).astype(np.int64) - exact.view(np.int32))
    assert apart.max() == 1
    assert least < np.mean(apart == 0) < 1
    assert function(np.zeros(1, np.float32))[0] == 1
