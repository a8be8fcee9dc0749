"""SUB of operands with ranges of their own (pairs.py)."""

from __future__ import annotations

import numpy as np

from tflq.graph import Array
from tflq.interpreter.kernels.openvino.pairs import PairParams, run_pair
from tflq.interpreter.kernels.openvino.pairs import lower_pair as lower

__all__ = ["lower", "run"]


def run(params: PairParams, first: Array, second: Array) -> tuple[Array, ...]:
    """Run SUB: codes or reals [S or 1, *shape] twice -> codes or float32 [S, *shape]."""
    return run_pair(params, np.subtract, first, second)
