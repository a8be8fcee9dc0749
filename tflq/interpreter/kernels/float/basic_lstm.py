"""LSTM's basic cell of float32 (docs/tflite.md).

a = clamp(W [x, h] + b, the finite numbers), the product in the order of eigen.py; c = s(a_input) tanh(a_cell) +
s(a_forget) c; h = s(a_output) tanh(c), s and tanh those of eigen.py. Elements of a row that do not fill registers of
four use the C library's exp, whose last bit depends on the host.

Source: TFLite kernels/lstm.cc (namespace basic), internal/optimized/optimized_ops.h (LstmCell).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, DType, Operands
from tflq.interpreter.kernels.float.convolution import LARGEST
from tflq.interpreter.kernels.float.eigen import eigen_product, logistic, scalars_of, tanh
from tflq.interpreter.operands.lstm import INPUTS, OUTPUTS, basic_results, require_basic


@dataclass(frozen=True, eq=False)
class FloatBasicLstm:
    """What the basic cell of float32 needs.

    Attributes:
        weights: float32[4 * U, I + U].
        bias: float32[4 * U].
        keeps: whether last output and state are variables, which get their new values.
    """

    weights: Singles
    bias: Singles
    keeps: tuple[bool, bool]


def lower_basic(operands: Operands) -> FloatBasicLstm:
    """Gather the constants; raises as `require_basic`."""
    keeps = require_basic(operands, [DType.FLOAT32] * INPUTS, [DType.FLOAT32] * OUTPUTS)
    weights, bias = (operands.constant(i).astype(np.float32) for i in (2, 3))
    return FloatBasicLstm(weights, bias.reshape(-1), keeps)


def run_basic(layer: FloatBasicLstm, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
    """Run it: float32[S, B, I], last output and state [S, B, U] -> output, state, both inputs, sums of the gates."""
    x, last, state = (cast(Singles, arrays[i]) for i in (0, 1, 4))
    samples = max(len(x), len(last), len(state))
    together = np.concatenate([np.broadcast_to(a, (samples, *a.shape[1:])) for a in (x, last)], axis=-1)
    with np.errstate(all="ignore"):
        sums = eigen_product(together, layer.weights, together=True) + layer.bias
        gates = np.minimum(np.maximum(sums, -LARGEST), LARGEST)
        enter, update, forget, leave = np.split(gates, 4, axis=-1)
        new: Singles = _logistic(enter) * tanh(update) + _logistic(forget) * state
        output: Singles = _logistic(leave) * tanh(new)
    return basic_results(output, new, together, gates, layer.keeps)


def _logistic(x: Singles) -> Singles:
    """Apply the logistic function to float32[S, B, U], whose rows lie behind each other in aligned memory."""
    batch, units = x.shape[1:]
    scalars = np.concatenate([scalars_of(units, row * units) for row in range(batch)])
    return logistic(x.reshape(len(x), -1), scalars).reshape(x.shape)
