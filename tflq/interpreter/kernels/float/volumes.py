"""CONV_3D and CONV_3D_TRANSPOSE of float32: ordered sums, then the bias, then the clamp. Equal to TFLite bit for bit.

Padding of the transposed one is that of a convolution over the output, which must lead back to the input's size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate.volumes import (
    Triple,
    VolumeWindow,
    sequential_transposed_volume,
    sequential_volume,
)
from tflq.interpreter.kernels.float.convolution import finish, float_bounds
from tflq.interpreter.operands.checks import constant_integers, require_bias_size, require_result, require_type
from tflq.interpreter.registry import Kernel

Sums = Callable[[Singles, Singles, VolumeWindow], Singles]


@dataclass(frozen=True)
class FloatVolume:
    """The params of a convolution of volumes.

    Attributes:
        window: kernel, stride, dilation, padding, output size.
        minimum: lower bound of the fused activation; without one the smallest finite number.
        maximum: upper bound.
    """

    window: VolumeWindow
    minimum: np.float32
    maximum: np.float32


def _window(node: Node, size: Triple, kernel: Triple) -> VolumeWindow:
    """Return the window of a convolution over a volume.

    Args:
        node: Layer with padding, strides and dilations.
        size: (depth, height, width) of the volume.
        kernel: (depth, height, width).

    Raises:
        GraphError: a size below 1, or a window that does not fit.
        UnsupportedError: another padding.
    """
    stride = _triple(node, "stride_{}", None)
    dilation = _triple(node, "dilation_{}_factor", 1)
    if min(*size, *kernel, *stride, *dilation) < 1:
        raise GraphError(f"volume {size}, kernel {kernel}, stride {stride}, dilation {dilation} must be 1 or more")
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    padding = node.attributes.text("padding")
    if padding == "same":
        output = [-(-n // s) for n, s in zip(size, stride, strict=True)]
    elif padding == "valid":
        output = [(n + s - e) // s for n, s, e in zip(size, stride, extent, strict=True)]
    else:
        raise UnsupportedError(f"padding '{padding}'; known are same, valid")
    if min(output) < 1:
        raise GraphError(f"a window of {tuple(extent)} does not fit a volume of {size}")
    before = [max(0, (output[i] - 1) * stride[i] + extent[i] - size[i]) // 2 for i in range(3)]
    return VolumeWindow(kernel, stride, dilation, _as_triple(before), _as_triple(output))


def _require_floats(operands: Operands, first: int) -> None:
    """Check that the operands from `first` on and the output are float32.

    Raises:
        UnsupportedError: one is not.
    """
    for tensor in (*operands.inputs[first:], operands.output()):
        if tensor is not None:
            require_type(tensor, (DType.FLOAT32,))


def _lower(node: Node, operands: Operands) -> FloatVolume:
    """Decide the window.

    Raises:
        UnsupportedError: a type other than float32.
        GraphError: shapes that contradict each other.
    """
    _require_floats(operands, 0)
    x, weights, bias = operands.input(0).shape, operands.input(1).shape, operands.optional(2)
    if len(x) != 5 or len(weights) != 5 or x[4] != weights[3]:
        raise GraphError(f"input {x} and weights {weights} must have 5 axes and equal channels")
    require_bias_size(bias, weights[4])
    window = _window(node, (x[1], x[2], x[3]), (weights[0], weights[1], weights[2]))
    return FloatVolume(window, *float_bounds(node))


def _lower_transpose(node: Node, operands: Operands) -> FloatVolume:
    """Decide the window; inputs are the output's shape, weights [KD, KH, KW, O, C], x [N, D, H, W, C], bias.

    Raises:
        UnsupportedError: a type other than float32.
        GraphError: shapes that contradict each other, or an output shape computed at run time.
    """
    _require_floats(operands, 1)
    weights, x, bias = operands.input(1).shape, operands.input(2).shape, operands.optional(3)
    wanted = tuple(int(size) for size in constant_integers(operands, 0).reshape(-1))
    if len(x) != 5 or len(weights) != 5 or len(wanted) != 5 or x[4] != weights[4]:
        raise GraphError(f"input {x}, weights {weights} and the output {wanted} must have 5 axes and equal channels")
    if wanted[0] != x[0] or wanted[4] != weights[3] or (bias is not None and bias.size != weights[3]):
        raise GraphError(f"weights {weights} do not lead from an input {x} to an output {wanted} with this bias")
    require_result(wanted, operands.output().dtype)
    output = (wanted[1], wanted[2], wanted[3])
    window = _window(node, output, (weights[0], weights[1], weights[2]))
    if window.output != x[1:4]:
        raise GraphError(f"an output {wanted} belongs to inputs of {window.output}, not of {x[1:4]}")
    return FloatVolume(replace(window, output=output), *float_bounds(node))


def _run(params: FloatVolume, x: Array, weights: Array, bias: Array | None = None) -> tuple[Array, ...]:
    return _finish_sums(params, sequential_volume, x, weights, bias)


def _run_transpose(
    params: FloatVolume, _shape: Array, weights: Array, x: Array, bias: Array | None = None
) -> tuple[Array, ...]:
    return _finish_sums(params, sequential_transposed_volume, x, weights, bias)


def _finish_sums(params: FloatVolume, sums: Sums, x: Array, weights: Array, bias: Array | None) -> tuple[Array, ...]:
    """Add the bias to the sums, with weights per sample or shared ones, and clamp."""
    volumes, kernels = np.asarray(x, np.float32), np.asarray(weights, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        if len(kernels) == 1:
            total = sums(volumes, kernels[0], params.window)
        else:
            each = [sums(volumes[s % len(x)][None], w, params.window) for s, w in enumerate(kernels)]
            total = np.concatenate(each)
        added = None if bias is None else np.asarray(bias, np.float32)
        return (finish(total, added, params.minimum, params.maximum),)


def _triple(node: Node, name: str, default: int | None) -> Triple:
    return _as_triple([node.attributes.integer(name.format(axis), default) for axis in "dhw"])


def _as_triple(values: list[int]) -> Triple:
    return (values[0], values[1], values[2])


KERNELS = {
    "conv_3d": Kernel(_lower, _run,
        "float32: [S, N, D, H, W, C], weights [S or 1, KD, KH, KW, C, O], bias [O] -> [S, N, OD, OH, OW, O]",
        "TFLite kernels/conv3d.cc"),
    "conv_3d_transpose": Kernel(_lower_transpose, _run_transpose,
        "float32: weights [S or 1, KD, KH, KW, O, C], x [S, N, D, H, W, C], bias [O] -> [S, N, OD, OH, OW, O]",
        "TFLite kernels/conv3d_transpose.cc"),
}  # fmt: skip
