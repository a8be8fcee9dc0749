"""Where TFLite's integer kernels end: what is just allowed agrees with TFLite, what is just beyond is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.interpreter.tflite.test_pairs import pair
from tests.support.draw import affine, one_input
from tests.support.layers import Geometry, Weighted, conv_graph
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32, INT8, INT16, UINT8
from tflq.errors import GraphError, TflqError, UnsupportedError
from tflq.graph import Affine, DType, Graph, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.oracle import Oracle

Make = Callable[[], Graph]
INT32, F32 = DType.INT32, np.float32


def curve(operator: str, dtype: DType, si: float, so: float, zo: int = 0, shape: tuple[int, ...] = (256,),
          out: DType | None = None, **options: Any) -> Make:  # fmt: skip
    target = out or dtype
    return lambda: one_input(operator, shape, (dtype, affine(dtype, si)), (target, affine(target, so, zo)), **options)


def sums(operator: str, shift: int, sizes: tuple[tuple[int, ...], tuple[int, ...]] = ((9,), (9,))) -> Make:
    one, far = affine(INT16, 1.0), affine(INT16, 2.0**-shift)
    return lambda: pair(operator, sizes, INT16, one, far, one, pot_scale_int16=True)


def scaled_along(operator: str, actual: tuple[int, ...]) -> Make:
    """QUANTIZE or DEQUANTIZE with 3 scales along axis 1 of what is stated as [2, 3]; a reshape decides the shape."""

    def make() -> Graph:
        q = Affine(np.array([0.1, 0.2, 0.3], F32), np.zeros(3, np.int64), 1)
        real, codes = (FLOAT32, None), (INT8, q)
        first, last = (real, codes) if operator == "quantize" else (codes, real)
        b = GraphBuilder(operator)
        shape = b.constant("shape", np.array(actual, np.int32))
        x = b.add("reshape", [b.input("x", (2, 3), *first), shape], (2, 3), *first)
        return b.build([b.add(operator, [x], (2, 3), *last)])

    return make


def hybrid(operator: str, axis: int) -> Make:
    """Float32 activations with weights scaled along an axis: 4 outputs, 3 inputs."""

    def make() -> Graph:
        rng, b = np.random.default_rng(2), GraphBuilder(operator)
        shape = {"fully_connected": (4, 3), "batch_matmul": (3, 4), "transpose_conv": (4, 2, 2, 3)}[operator]
        q = Affine(rng.uniform(0.01, 0.02, shape[axis]).astype(F32), np.zeros(shape[axis], np.int64), axis)
        weights = b.constant("w", rng.integers(-127, 128, shape).astype(np.int8), q)
        if operator == "transpose_conv":
            size = b.constant("size", np.array([1, 3, 3, 4], np.int32))
            operands = [size, weights, b.input("x", (1, 3, 3, 3), FLOAT32)]
            y = b.add(operator, operands, (1, 3, 3, 4), FLOAT32, version=3, padding="same", stride_h=1, stride_w=1)
            return b.build([y])
        return b.build([b.add(operator, [b.input("x", (2, 3), FLOAT32), weights], (2, 4), FLOAT32, version=4)])

    return make


def fully_connected(axis: int | None, bias: int = 5, dtype: DType = INT8, out: DType | None = None) -> Make:
    def make() -> Graph:
        b = GraphBuilder("fully_connected")
        scales = 1 if axis is None else (5, 4)[axis]
        zeros = np.full(scales, 128 if dtype is UINT8 else 0)
        q = Affine(np.full(scales, 0.01, F32), zeros, axis, 8, dtype is not UINT8)
        weights = b.constant("w", np.arange(20).reshape(5, 4).astype(dtype.storage), q)
        operands = [b.input("x", (2, 4), dtype, affine(dtype, 0.5)), weights]
        if bias:
            operands.append(b.constant("b", np.arange(bias, dtype=np.int32), affine(INT32, 0.005)))
        target = out or dtype
        return b.build([b.add("fully_connected", operands, (2, 5), target, affine(target, 0.5))])

    return make


def convolution(bias: int) -> Make:
    def make() -> Graph:
        where = Geometry((3, 3), (1, 1), (1, 1), (1, 1), "same")
        graph = conv_graph(Weighted(INT8, INT8, INT32), where, 1, 2, 1, 3)
        t = graph.nodes[0].inputs[2]
        graph.tensors[t] = replace(graph.tensors[t], shape=(bias,), data=np.arange(bias, dtype=np.int32))
        return graph

    return make


BORDERS: dict[str, tuple[Make | None, Make, type[TflqError], str]] = {
    "hard_swish, output": (
        curve("hard_swish", INT8, 0.5, 0.5 / 127.99), curve("hard_swish", INT8, 0.5, 0.5 / 128), UnsupportedError,
        "must be 1/128 of the input's or more",
    ),
    "hard_swish, input": (
        curve("hard_swish", INT8, 2.0**24, 2.0**24), curve("hard_swish", INT8, 2.0**25, 2.0**25), UnsupportedError,
        "is above 2\\^24",
    ),
    "sum, shift": (sums("add", 31), sums("add", 32), UnsupportedError, "differ by 2\\^32, at most 2\\^31"),
    "sum, shapes": (
        sums("add", 3), sums("add", 3, ((3, 3), (3,))), UnsupportedError, r"equal shapes, found \(3, 3\) and \(3,\)"
    ),
    "difference, shapes": (sums("sub", 3, ((3, 3), (3,))), sums("sub", 32), UnsupportedError, "at most 2\\^31"),
    "quantize, axis": (
        scaled_along("quantize", (2, 3)), scaled_along("quantize", (3, 2)), GraphError, "has 3 scales along axis 1"
    ),
    "quantize, rank": (
        scaled_along("quantize", (2, 3)), scaled_along("quantize", (6,)), GraphError, "has 3 scales along axis 1"
    ),
    "dequantize, axis": (
        scaled_along("dequantize", (2, 3)), scaled_along("dequantize", (3, 2)), GraphError, "has 3 scales along axis 1"
    ),
    "dequantize, rank": (
        scaled_along("dequantize", (2, 3)), scaled_along("dequantize", (6,)), GraphError, "has 3 scales along axis 1"
    ),
    "tanh of int16": (
        curve("tanh", INT16, 2.0**17, 2.0**-15), curve("tanh", INT16, 1.5 * 2.0**17, 2.0**-15), UnsupportedError,
        "does not fit int32",
    ),
    "softmax of int16, beta": (
        curve("softmax", INT16, 1.0, 2.0**-15, beta=0.0), curve("softmax", INT16, 1.0, 2.0**-15, beta=-1e-3),
        UnsupportedError, "must be finite and not negative",
    ),
    "softmax of int16, multiplier": (
        curve("softmax", INT16, 1.0, 2.0**-15, beta=2.0**17), curve("softmax", INT16, 1.0, 2.0**-15, beta=2.0**18),
        UnsupportedError, "does not fit int32",
    ),
    "log_softmax, axis": (
        curve("log_softmax", INT8, 0.1, 1 / 16, 127, (1,)), curve("log_softmax", INT8, 0.1, 1 / 16, 127, ()),
        GraphError, "one axis or more",
    ),
    "l2_normalization, axis": (
        curve("l2_normalization", INT8, 0.1, 1 / 128, 0, (1,)), curve("l2_normalization", INT8, 0.1, 1 / 128, 0, ()),
        GraphError, "one axis or more",
    ),
    "l2_normalization, activation": (
        None, curve("l2_normalization", INT8, 0.1, 1 / 128, fused_activation_function="relu"), UnsupportedError,
        "fused activation 'relu'",
    ),
    "batch_matmul, scales": (hybrid("batch_matmul", 1), hybrid("batch_matmul", 0), UnsupportedError, "have 3 scales"),
    "hybrid fully_connected, scales": (
        hybrid("fully_connected", 0), hybrid("fully_connected", 1), GraphError, "have 3 scales; allowed are 1 or 4"
    ),
    "hybrid transpose_conv, scales": (
        hybrid("transpose_conv", 0), hybrid("transpose_conv", 3), UnsupportedError, "3 scales; allowed are 1 or 4"
    ),
    "fully_connected, scales": (
        fully_connected(0), fully_connected(1), GraphError, "have 4 scales; allowed are 1 or 5"
    ),
    "fully_connected, bias": (
        fully_connected(None), fully_connected(None, 4), GraphError, "the bias has 4 elements, the weights have 5 rows"
    ),
    "fully_connected, uint8 to int16": (
        fully_connected(None, 5, UINT8, INT16), fully_connected(None, 0, UINT8, INT16), UnsupportedError,
        "uint8 to int16 without a bias",
    ),
    "conv_2d, bias": (
        convolution(3), convolution(4), GraphError, "the bias has 4 elements, the weights have 3 output channels"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BORDERS)
def test_the_border(oracle: Oracle, name: str) -> None:
    allowed, beyond, error, words = BORDERS[name]
    with pytest.raises(error, match=words) as caught:
        lower(beyond())
    assert "\n" not in str(caught.value)
    if allowed is not None:
        graph = allowed()
        check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(3), graph, 4))


def equal_codes(code: int, count: int, last: int) -> np.ndarray:
    return np.array([code] * (count - 1) + [last], UINT8.storage)[None]


LONG_ROWS = {
    "l2_normalization": (  # 131072 * 128^2 = 2^31
        curve("l2_normalization", UINT8, 0.1, 1 / 128, 128, (131072,)), equal_codes(128, 131072, 127),
        curve("l2_normalization", UINT8, 0.1, 1 / 128, 128, (131072,)), equal_codes(128, 131072, 128),
        "a sum of squares reaches 2\\^31",
    ),
    "log_softmax": (  # 4096 * e^0, with 12 integer bits
        curve("log_softmax", UINT8, 0.1, 1 / 16, 255, (4095,)), equal_codes(9, 4095, 9),
        curve("log_softmax", UINT8, 0.1, 1 / 16, 255, (4096,)), equal_codes(9, 4096, 9),
        "the exponentials of a row sum up to 4096",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG_ROWS)
def test_the_longest_row(oracle: Oracle, name: str) -> None:
    fits, row, beyond, too_long, words = LONG_ROWS[name]
    check_against_oracle(oracle, fits(), [row])
    with pytest.raises(UnsupportedError, match=words):
        Engine(beyond()).run([too_long])
