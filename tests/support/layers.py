"""Graphs of one layer with weights, drawn by hypothesis: convolutions, fully connected; and of one pool."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from tests.support.draw import activations, affine, seeds, zero_points
from tests.support.types import FLOAT32, INT16, UINT8
from tflq.graph import Affine, Attribute, DType, Graph, GraphBuilder

Pair = tuple[int, int]


@dataclass(frozen=True)
class Weighted:
    """How a layer with weights is quantized.

    Attributes:
        dtype: of input and output.
        weights_dtype: of the weights.
        bias_dtype: None for no bias.
        per_channel: whether each output channel has its own scale.
        spread: the output's scale, as a share of one that makes outputs use most quantized values.
        zero_point: of the output.
        input_zero_point: of the input.
        weights_zero_point: of the weights.
        activation: fused.
        seed: of weights, scales and bias.
    """

    dtype: DType
    weights_dtype: DType
    bias_dtype: DType | None
    per_channel: bool = False
    spread: float = 1.0
    zero_point: int = 0
    input_zero_point: int = 0
    weights_zero_point: int = 0
    activation: str = "none"
    seed: int = 0


@st.composite
def weighted(
    draw: st.DrawFn, dtype: DType, weights_dtype: DType | None = None, bias_dtype: DType | None = DType.INT32
) -> Weighted:
    """Draw quantization; uint8 has one scale and a zero point for its weights, others none."""
    kind = weights_dtype or (UINT8 if dtype is UINT8 else DType.INT8)
    return Weighted(
        dtype,
        kind,
        bias_dtype,
        draw(st.booleans()) and dtype is not UINT8,
        2.0 ** draw(st.integers(-6, 6)),
        draw(zero_points(dtype)),
        draw(zero_points(dtype)),
        draw(zero_points(UINT8)) if kind is UINT8 else 0,
        draw(activations),
        draw(seeds),
    )


def weighted_graph(
    operator: str,
    how: Weighted,
    shape: tuple[int, ...],
    weights_shape: tuple[int, ...],
    output_shape: tuple[int, ...],
    axis: int = 0,
    **attributes: Attribute,
) -> Graph:
    """Build the graph; the weights' channels lie along `axis`."""
    rng = np.random.default_rng(how.seed)
    outputs = weights_shape[axis]
    kind = how.weights_dtype
    lowest = kind.minimum if kind is UINT8 else -kind.maximum
    codes = rng.integers(lowest, kind.maximum, weights_shape, kind.storage, endpoint=True)
    scales = (rng.uniform(0.2, 1, outputs if how.per_channel else 1) * 0.01).astype(np.float32)
    zeros = np.full(scales.size, how.weights_zero_point, np.int64)
    weights_affine = Affine(scales, zeros, axis if scales.size > 1 else None, kind.bits, kind.is_signed)
    input_scale = np.float32(rng.uniform(0.5, 2) * 2.0 ** int(rng.integers(-6, 2)))
    terms = int(np.prod(weights_shape)) // outputs
    typical = float(input_scale * scales.mean()) * kind.maximum * how.dtype.maximum * terms**0.5 / how.dtype.maximum
    b = GraphBuilder(operator)
    operands = [
        b.input("x", shape, how.dtype, affine(how.dtype, input_scale, how.input_zero_point)),
        b.constant("weights", codes, weights_affine, kind),
    ]
    if how.bias_dtype is not None:
        reach = 1 << (31 if how.bias_dtype is DType.INT64 else 14)
        bias = rng.integers(-reach, reach, outputs, how.bias_dtype.storage)
        bias_scale = (input_scale * scales).astype(np.float32)
        bias_affine = Affine(bias_scale, np.zeros(scales.size, np.int64), 0 if scales.size > 1 else None, 32)
        operands.append(b.constant("bias", bias, bias_affine, how.bias_dtype))
    result = b.add(
        operator,
        operands,
        output_shape,
        how.dtype,
        affine(how.dtype, typical * how.spread, how.zero_point),
        fused_activation_function=how.activation,
        **attributes,
    )
    return b.build([result])


@dataclass(frozen=True)
class Geometry:
    """Where a window stands.

    Attributes:
        size: (height, width) of the input.
        kernel: (height, width).
        stride: vertical, horizontal.
        dilation: vertical, horizontal.
        padding: "same" or "valid".
    """

    size: Pair
    kernel: Pair
    stride: Pair
    dilation: Pair
    padding: str

    @property
    def output(self) -> Pair:
        """(height, width) of the output, by TensorFlow's definition of the two paddings."""
        sizes = []
        for size, kernel, stride, dilation in zip(self.size, self.kernel, self.stride, self.dilation, strict=True):
            reach = 0 if self.padding == "same" else (kernel - 1) * dilation
            sizes.append(-(-(size - reach) // stride))
        return sizes[0], sizes[1]

    @property
    def attributes(self) -> dict[str, Attribute]:
        return {"padding": self.padding, "stride_h": self.stride[0], "stride_w": self.stride[1]}

    @property
    def dilations(self) -> dict[str, Attribute]:
        return {"dilation_h_factor": self.dilation[0], "dilation_w_factor": self.dilation[1]}


@st.composite
def geometries(draw: st.DrawFn, largest_dilation: int = 3) -> Geometry:
    def pair(low: int, high: int) -> Pair:
        return draw(st.integers(low, high)), draw(st.integers(low, high))

    kernel, dilation = pair(1, 4), pair(1, largest_dilation)
    padding = draw(st.sampled_from(["same", "valid"]))
    least = tuple(1 if padding == "same" else (k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    size = (draw(st.integers(least[0], least[0] + 8)), draw(st.integers(least[1], least[1] + 8)))
    return Geometry(size, kernel, pair(1, 3), dilation, padding)


def conv_graph(how: Weighted, where: Geometry, batch: int, depth: int, groups: int, outputs_each: int) -> Graph:
    shape = (batch, *where.size, depth * groups)
    weights = (outputs_each * groups, *where.kernel, depth)
    bias_type = {"quantized_bias_type": "int32"} if how.dtype is INT16 and how.bias_dtype is DType.INT32 else {}
    attributes = {**where.attributes, **where.dilations, **bias_type}
    return weighted_graph("conv_2d", how, shape, weights, (batch, *where.output, weights[0]), 0, **attributes)


def depthwise_graph(how: Weighted, where: Geometry, batch: int, channels: int, multiplier: int) -> Graph:
    weights = (1, *where.kernel, channels * multiplier)
    attributes = {**where.attributes, **where.dilations, "depth_multiplier": multiplier}
    output = (batch, *where.output, channels * multiplier)
    return weighted_graph("depthwise_conv_2d", how, (batch, *where.size, channels), weights, output, 3, **attributes)


def pool_graph(
    operator: str, dtype: DType, quantization: Affine | None, where: Geometry, channels: int, activation: str
) -> Graph:
    b = GraphBuilder(operator)
    x = b.input("x", (1, *where.size, channels), dtype, quantization)
    attributes = {**where.attributes, "filter_height": where.kernel[0], "filter_width": where.kernel[1]}
    y = b.add(
        operator,
        [x],
        (1, *where.output, channels),
        dtype,
        quantization,
        fused_activation_function=activation,
        **attributes,
    )
    return b.build([y])


def float_layer(
    operator: str,
    shape: tuple[int, ...],
    weights: np.ndarray,
    bias: np.ndarray | None,
    output_shape: tuple[int, ...],
    **attributes: Attribute,
) -> Graph:
    b = GraphBuilder(operator)
    operands = [b.input("x", shape, FLOAT32), b.constant("weights", weights.astype(np.float32))]
    if bias is not None:
        operands.append(b.constant("bias", bias.astype(np.float32)))
    return b.build([b.add(operator, operands, output_shape, FLOAT32, **attributes)])
