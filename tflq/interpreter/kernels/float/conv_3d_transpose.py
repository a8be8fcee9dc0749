"""CONV_3D_TRANSPOSE of float32: ordered sums, then the bias, then the clamp. Equal to TFLite bit for bit.

Padding is that of a convolution over the output, which must lead back to the input's size.
Source: TFLite kernels/conv3d_transpose.cc; the sums are in accumulate/volumes.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate.volumes import sequential_transposed_volume
from tflq.interpreter.kernels.float.convolution import finish, float_bounds
from tflq.interpreter.kernels.float.volume_window import FloatVolume, require_floats, volume_window
from tflq.interpreter.operands.checks import constant_integers
from tflq.interpreter.operands.result_size import require_result


def lower(node: Node, operands: Operands) -> FloatVolume:
    """Decide the window; inputs are the output's shape, weights [KD, KH, KW, O, C], x [N, D, H, W, C], bias.

    Raises:
        UnsupportedError: a type other than float32.
        GraphError: shapes that contradict each other, or an output shape computed at run time.
    """
    require_floats(operands, 1)
    weights, x, bias = operands.input(1).shape, operands.input(2).shape, operands.optional(3)
    wanted = tuple(int(size) for size in constant_integers(operands, 0).reshape(-1))
    if len(x) != 5 or len(weights) != 5 or len(wanted) != 5 or x[4] != weights[4]:
        raise GraphError(f"input {x}, weights {weights} and the output {wanted} must have 5 axes and equal channels")
    if wanted[0] != x[0] or wanted[4] != weights[3] or (bias is not None and bias.size != weights[3]):
        raise GraphError(f"weights {weights} do not lead from an input {x} to an output {wanted} with this bias")
    require_result(wanted, operands.output().dtype)
    output = (wanted[1], wanted[2], wanted[3])
    window = volume_window(node, output, (weights[0], weights[1], weights[2]))
    if window.output != x[1:4]:
        raise GraphError(f"an output {wanted} belongs to inputs of {window.output}, not of {x[1:4]}")
    return FloatVolume(replace(window, output=output), *float_bounds(node))


def run(params: FloatVolume, _shape: Array, weights: Array, x: Array, bias: Array | None = None) -> tuple[Array, ...]:
    """Run it: weights [S or 1, KD, KH, KW, O, C], x [S, N, D, H, W, C], bias [O] -> [S, N, OD, OH, OW, O]."""
    volumes, kernels = np.asarray(x, np.float32), np.asarray(weights, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        if len(kernels) == 1:
            total = sequential_transposed_volume(volumes, kernels[0], params.window)
        else:
            pairs = [(volumes[s % len(x)][None], w) for s, w in enumerate(kernels)]
            total = np.concatenate([sequential_transposed_volume(one, w, params.window) for one, w in pairs])
        added = None if bias is None else np.asarray(bias, np.float32)
        return (finish(total, added, params.minimum, params.maximum),)
