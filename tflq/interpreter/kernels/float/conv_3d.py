"""CONV_3D of float32: ordered sums, then the bias, then the clamp. Equal to TFLite bit for bit.

Source: TFLite kernels/conv3d.cc; the sums are in accumulate/volumes.py.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate.volumes import sequential_volume
from tflq.interpreter.kernels.float.convolution import finish, float_bounds
from tflq.interpreter.kernels.float.volume_window import FloatVolume, require_floats, volume_window
from tflq.interpreter.operands.checks import require_bias_size


def lower(node: Node, operands: Operands) -> FloatVolume:
    """Decide the window.

    Raises:
        UnsupportedError: a type other than float32.
        GraphError: shapes that contradict each other.
    """
    require_floats(operands, 0)
    x, weights, bias = operands.input(0).shape, operands.input(1).shape, operands.optional(2)
    if len(x) != 5 or len(weights) != 5 or x[4] != weights[3]:
        raise GraphError(f"input {x} and weights {weights} must have 5 axes and equal channels")
    require_bias_size(bias, weights[4])
    window = volume_window(node, (x[1], x[2], x[3]), (weights[0], weights[1], weights[2]))
    return FloatVolume(window, *float_bounds(node))


def run(params: FloatVolume, x: Array, weights: Array, bias: Array | None = None) -> tuple[Array, ...]:
    """Run CONV_3D: [S, N, D, H, W, C], weights [S or 1, KD, KH, KW, C, O], bias [O] -> [S, N, OD, OH, OW, O]."""
    volumes, kernels = np.asarray(x, np.float32), np.asarray(weights, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        if len(kernels) == 1:
            total = sequential_volume(volumes, kernels[0], params.window)
        else:
            each = [sequential_volume(volumes[s % len(x)][None], w, params.window) for s, w in enumerate(kernels)]
            total = np.concatenate(each)
        added = None if bias is None else np.asarray(bias, np.float32)
        return (finish(total, added, params.minimum, params.maximum),)
