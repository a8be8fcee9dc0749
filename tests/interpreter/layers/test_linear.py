"""Linear layers and pools over a scheme against sums of Python integers: padding, groups, zero points, 16 bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.arrays import Integers
from tflq.errors import GraphError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder, Node, Operands
from tflq.interpreter.layers.linear import Scheme, linear_kernels
from tflq.interpreter.numerics.requantize import StepMaps


@dataclass(frozen=True, eq=False)
class Plain(Scheme):
    """Stores accumulators as they are."""

    weights: Integers
    padding: int
    channels: Integers | None = None
    dtype: np.dtype[np.generic] = np.dtype(np.int64)  # noqa: RUF009
    step_map: StepMaps | None = None

    @property
    def pad_value(self) -> int:
        return 0 if self.channels is not None else self.padding

    @property
    def channel_zero_points(self) -> Integers | None:
        return self.channels

    def exact(self, accumulators: Integers) -> Integers:
        return accumulators


def layer(operator: str, dtype: DType, shapes: tuple[tuple[int, ...], ...], weights: Array, **options: object) -> Graph:
    b = GraphBuilder()
    x = b.input("x", shapes[0], dtype, Affine.per_tensor(1.0, 0, dtype.bits, dtype is not DType.UINT8))
    w = b.constant("w", weights, Affine.per_tensor(1.0, 0, 8, True))
    return b.build([b.add(operator, [x, w], shapes[1], DType.INT64, **options)])  # type: ignore[arg-type]


def padded(x: Array, padding: int | Array) -> Array:
    """Return [S, H + 2, W + 2, C] with the padding around."""
    image = np.empty((x.shape[0], x.shape[2] + 2, x.shape[3] + 2, x.shape[4]), object)
    image[:] = padding
    image[:, 1:-1, 1:-1] = x[:, 0].astype(object)
    return image


@given(
    st.sampled_from([DType.INT8, DType.UINT8, DType.INT16]),
    st.sampled_from([(1, 3), (2, 2), (3, 1)]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 1 << 30),
)
def test_convolutions(dtype: DType, size: tuple[int, int], depthwise: bool, per_channel: bool, seed: int) -> None:
    rng, (groups, depth) = np.random.default_rng(seed), size
    groups, depth = (groups * depth, 1) if depthwise else (groups, depth)
    channels, outputs = groups * depth, 2 * groups
    x = rng.integers(dtype.minimum, dtype.maximum + 1, (3, 1, 4, 5, channels)).astype(dtype.storage)
    weights = rng.integers(-127, 128, (outputs, 3, 3, depth))
    zero_points = rng.integers(-9, 10, channels) if per_channel else None

    def find(node: Node, operands: Operands, channel_axis: int) -> Plain:
        found = np.moveaxis(operands.constant(1), channel_axis, 0).astype(np.int64)
        return Plain(found, 7, zero_points)

    stored = np.swapaxes(weights, 0, 3) if depthwise else weights
    operator = "depthwise_conv_2d" if depthwise else "conv_2d"
    graph = layer(
        operator,
        dtype,
        ((1, 4, 5, channels), (1, 4, 5, outputs)),
        stored.astype(np.int8),
        padding="same",
        stride_w=1,
        stride_h=1,
    )
    kernel = linear_kernels(find, "acc", "this file")[operator]
    (found,) = kernel.run(kernel.lower(graph.nodes[0], graph.operands(0)), x, stored[None])
    image = padded(x, 7) if zero_points is None else padded(x, zero_points) - zero_points.astype(object)
    for s, i, j, o in np.ndindex(3, 4, 5, outputs):
        first = o // (outputs // groups) * depth
        taps = image[s, i : i + 3, j : j + 3, first : first + depth]
        assert found[s, 0, i, j, o] == int((taps * weights[o].astype(object)).sum())


@given(st.sampled_from([DType.INT8, DType.INT16]), st.booleans(), st.integers(1, 300), st.integers(0, 1 << 30))
def test_products(dtype: DType, keep: bool, depth: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(dtype.minimum, dtype.maximum + 1, (2, 3, 2, depth)).astype(dtype.storage)
    weights = rng.integers(-128, 128, (4, depth))
    shape = (3, 2, 4) if keep else (6, 4)
    graph = layer("fully_connected", dtype, ((3, 2, depth), shape), weights.astype(np.int8), keep_num_dims=keep)
    kernel = linear_kernels(lambda node, operands, axis: Plain(weights, 0), "acc", "this file")["fully_connected"]
    (found,) = kernel.run(kernel.lower(graph.nodes[0], graph.operands(0)), x)
    assert found.shape == (2, *shape)
    assert np.array_equal(found.reshape(-1, 4), x.reshape(-1, depth).astype(object) @ weights.T.astype(object))


def test_weights_of_other_channels_are_refused() -> None:
    weights = np.ones((2, 1, 1, 3), np.int8)
    graph = layer("conv_2d", DType.INT8, ((1, 4, 4, 4), (1, 4, 4, 2)), weights, padding="same", stride_w=1, stride_h=1)
    kernel = linear_kernels(lambda node, operands, axis: Plain(weights.astype(np.int64), 0), "acc", "here")["conv_2d"]
    with pytest.raises(GraphError, match=r"weights \(2, 1, 1, 3\) do not fit 4 input channels"):
        kernel.lower(graph.nodes[0], graph.operands(0))
