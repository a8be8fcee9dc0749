"""The window of CONV_3D and CONV_3D_TRANSPOSE. Source: TFLite kernels/padding.h, ComputePadding3DValues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, Node, Operands
from tflq.interpreter.accumulate.volumes import Triple, VolumeWindow
from tflq.interpreter.operands.checks import require_type


@dataclass(frozen=True)
class FloatVolume:
    """What a convolution of volumes needs beside its operands.

    Attributes:
        window: kernel, stride, dilation, padding, output size.
        minimum: lower bound of the fused activation; without one the smallest finite number.
        maximum: upper bound.
    """

    window: VolumeWindow
    minimum: np.float32
    maximum: np.float32


def volume_window(node: Node, size: Triple, kernel: Triple) -> VolumeWindow:
    """Return the window of a convolution over a volume.

    Args:
        node: with padding, strides and dilations.
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


def require_floats(operands: Operands, first: int) -> None:
    """Check that the operands from `first` on and the output are float32.

    Raises:
        UnsupportedError: one is not.
    """
    for tensor in (*operands.inputs[first:], operands.output()):
        if tensor is not None:
            require_type(tensor, (DType.FLOAT32,))


def _triple(node: Node, name: str, default: int | None) -> Triple:
    return _as_triple([node.attributes.integer(name.format(axis), default) for axis in "dhw"])


def _as_triple(values: list[int]) -> Triple:
    return (values[0], values[1], values[2])
