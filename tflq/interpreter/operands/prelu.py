"""Shapes of PRELU, the same in every arithmetic. Source: TFLite kernels/activations.cc (PreluPrepare)."""

from __future__ import annotations

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Operands
from tflq.interpreter.operands.checks import require_broadcast


def require_alpha_fits(operands: Operands) -> None:
    """Check that alpha (input 1) broadcasts to the shape of input 0, and not beyond it.

    Raises:
        GraphError: it does not.
        UnsupportedError: more axes than TFLite's loop has.
    """
    source, alpha = operands.input(0), operands.input(1)
    require_broadcast(source, alpha)
    if np.broadcast_shapes(source.shape, alpha.shape) != source.shape:
        raise GraphError(f"alpha {alpha.shape} is larger than the input {source.shape}; it must broadcast to it")
