"""Convolution3D: the rule of a linear layer on sums over volumes.

Source: docs/rules/aipu/values.md, docs/rules/aipu/operators.md.

acc = sum over kz of the convolutions of slices z * stride_z + kz * dilation_z with their weights, -zp_x outside the
volume. Sums are exact; the Optimizer's own forward adds in float32, in an order that its library chooses, so that about
1 in 400 of its values of 16 bits differs by 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Convolution, accumulate_convolution, prepare_convolution
from tflq.interpreter.kernels.aipu.linear import FilterParams, lower_filter
from tflq.interpreter.kernels.aipu.scales import magnitude_of
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class VolumeParams:
    """The params of one Convolution3D.

    Attributes:
        filter: weights [O, KH, KW, KD, C / groups] and rule.
        slices: the packed weights of each kz, and the window in the plane.
        stride: step along the depth.
        dilation: distance of taps along the depth.
        before: Slices of padding before the first one.
        depth: Depth of the output.
    """

    filter: FilterParams
    slices: tuple[Convolution, ...]
    stride: int
    dilation: int
    before: int
    depth: int


def lower(node: Node, operands: Operands) -> VolumeParams:
    """Decide the params.

    Raises:
        UnsupportedError: as `linear.lower_filter`; weights that do not fit the groups.
        GraphError: shapes that contradict each other.
    """
    x, output, params = operands.input(0), operands.output(), lower_filter(node, operands)
    value = node.attributes.integer
    groups, weights = value("group", 1), params.weights
    if weights.ndim != 5 or weights.shape[4] * groups != x.shape[4]:
        raise UnsupportedError(f"group={groups}: weights {weights.shape} do not fit an input of {x.shape}")
    strides, dilations = ((value(f"{key}_y"), value(f"{key}_x")) for key in ("stride", "dilation"))
    sides = (value(f"pad_{axis}_{end}") for axis in "yx" for end in ("begin", "end"))
    plane = Window((weights.shape[1], weights.shape[2]), strides, dilations, *sides)
    width = plane.output_size((x.shape[2], x.shape[3]))[1]
    slices = tuple(
        prepare_convolution(weights[:, :, :, kz], plane, groups, magnitude_of(x), width)
        for kz in range(weights.shape[3])
    )
    return VolumeParams(params, slices, value("stride_z"), value("dilation_z"), value("pad_z_begin"), output.shape[1])


def run(params: VolumeParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run Convolution3D: quantized values [S, N, D, H, W, C] -> [S, N, OD, OH, OW, O]."""
    samples, batch, depth, *plane = x.shape
    reach = (params.depth - 1) * params.stride + 1
    after = max(0, reach + (len(params.slices) - 1) * params.dilation - depth - params.before)
    around = [(0, 0), (0, 0), (params.before, after), (0, 0), (0, 0), (0, 0)]
    padded = np.pad(x, around, constant_values=params.filter.pad)
    total: Array = np.zeros((), np.int64)
    for kz, prepared in enumerate(params.slices):
        start = kz * params.dilation
        images = padded[:, :, start : start + reach : params.stride].reshape(samples, batch * params.depth, *plane)
        total = total + accumulate_convolution(prepared, images, params.filter.pad).astype(np.int64)
    return (params.filter.finish(total.reshape(samples, batch, params.depth, *total.shape[2:])),)


KERNELS = {
    "convolution_3d": Kernel(lower, run,
        "clamp(RNE((acc + bias) * M * 2^-N) - zp_y)", "Compass Optimizer, ops/conv3d.py; "
            "docs/rules/aipu/values.md#linear-layers"),
}  # fmt: skip
