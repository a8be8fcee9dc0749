"""SVDF of float32: a layer of low rank with memory. Equal to TFLite bit for bit.

newest[f] = sum over i of wf[f, i] * x[i]; the state keeps the M newest of each filter; y[u] = activation(sum over the
filters of unit u of (sum over m of wt[f, m] * state[f, m]) + bias[u]). Sums as in vector_functions.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.float.vector_functions import (
    activate,
    lane_dot,
    lane_product,
    lane_sum,
    require_activation,
)
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.products import SvdfShapes, shift_state, svdf_shapes
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import run_each


@dataclass(frozen=True)
class FloatSvdf:
    """The params of SVDF of float32.

    Attributes:
        shapes: rank, units, memory.
        activation: fused.
    """

    shapes: SvdfShapes
    activation: str


def lower(node: Node, operands: Operands) -> FloatSvdf:
    """Check the operands.

    Raises:
        UnsupportedError: a type other than float32, or an unknown activation.
        GraphError: shapes that contradict each other.
    """
    for tensor in (*operands.inputs, operands.output()):
        if tensor is not None:
            require_type(tensor, (DType.FLOAT32,))
    activation = require_activation(node.attributes.text("fused_activation_function", "none"))
    return FloatSvdf(svdf_shapes(node, operands), activation)


def run(
    params: FloatSvdf, x: Singles, feature: Singles, time: Singles, bias: Singles | None, state: Singles
) -> tuple[Array, ...]:
    """Run it: float32[S, B, I], state [S, B, M * F] -> float32[S, B, U] and the new state."""
    if len(feature) > 1 or len(time) > 1:
        return run_each(partial(run, params), x, feature, time, bias, state)
    newest = lane_product(x, feature[0])
    return finish(params.shapes, params.activation, newest, time[0], bias, state)


def finish(
    shapes: SvdfShapes, activation: str, newest: Singles, time: Singles, bias: Singles | None, state: Array
) -> tuple[Array, ...]:
    """Move the state on and weigh it: newest float32[S, B, F], time weights [F, M], old state -> output, new state."""
    if len(state) > len(newest):
        newest = np.broadcast_to(newest, (len(state), *newest.shape[1:]))
    moved: Singles = shift_state(state, newest).astype(np.float32)
    each = lane_dot(moved, time)
    total = lane_sum(each.reshape(*each.shape[:-1], shapes.units, shapes.rank))
    if bias is not None:
        total = total + bias.reshape(bias.shape[0], 1, -1)
    return activate(total, activation), moved.reshape(*moved.shape[:2], -1)


KERNELS = {
    "svdf": Kernel(lower, run,
        "SVDF of float32: a layer of low rank with memory. Equal to TFLite bit for bit",
        "TFLite kernels/svdf.cc, internal/reference/svdf.h (EvalFloatSVDF)"),
}  # fmt: skip
