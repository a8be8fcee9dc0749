"""Scales and zero points that TFLite's kernels demand: what is just allowed agrees, the next number is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.interpreter.tflite.test_borders import Make, curve, equal_codes
from tests.interpreter.tflite.test_lstm import basic_graph
from tests.interpreter.tflite.test_pairs import pair
from tests.support.draw import affine
from tests.support.lstm import Lstm, lstm_graph
from tests.support.single_op import check_against_oracle, check_stream, random_inputs
from tests.support.types import INT8, INT16, UINT8
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, DType, Graph, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.oracle import Oracle

INT32 = DType.INT32
NEXT = float(np.nextafter(np.float32(1), np.float32(2)))
"""One step of float32 above 1."""

ENDS: dict[str, tuple[Make, bool, str]] = {
    **{f"logistic {d.value} {f} {z}": (
        curve("logistic", d, 0.05, so * f, z), f == 1, "logistic takes")
       for d, so, z in ((INT8, 1 / 256, -128), (UINT8, 1 / 256, 0), (INT16, 1 / 32768, 0)) for f in (0.5, 1, NEXT, 2)},
    **{f"tanh int16 {f}": (curve("tanh", INT16, 2.0**-12, f / 32768), f == 1, "for int16 the kernel takes 1/32768")
       for f in (0.5, 1, 2)},
    **{f"softmax {d.value} {f} {z}": (
        curve("softmax", d, 0.05, so * f, z, (4, 5), beta=1.0), abs(f - 1) <= 0.001 and z == zero, "softmax takes")
       for d, so, zero in ((INT8, 1 / 256, -128), (INT16, 1 / 32768, 0)) for f in (0.9989, 0.9991, 1, 1.0009, 1.0011)
       for z in ((zero, zero + 1) if d is INT8 else (zero,))},
    **{f"log_softmax {d.value} {f} {z}": (
        curve("log_softmax", d, 0.05, f / 16, z, (4, 5)), f == 1 and z == d.maximum, "log_softmax takes 1/16 and")
       for d in (INT8, UINT8) for f, z in ((0.5, d.maximum), (1, d.maximum), (2, d.maximum), (1, d.maximum - 1))},
    **{f"l2_normalization {d.value} {f} {z}": (
        curve("l2_normalization", d, 0.05, f / 128, z, (4, 5)), f == 1 and z == zero,
        "l2_normalization takes 1/128 and")
       for d, zero in ((INT8, 0), (UINT8, 128)) for f, z in ((0.5, zero), (1, zero), (2, zero), (1, zero + 1))},
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_the_output_that_a_kernel_demands(oracle: Oracle, name: str) -> None:
    make, is_taken, words = ENDS[name]
    if is_taken:
        graph = make()
        check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(3), graph, 3))
    else:
        with pytest.raises(UnsupportedError, match=words):
            lower(make())


@pytest.mark.parametrize(
    ("real", "is_taken"), [(0.5, False), (1.0, False), (1.0625, True), (2.0, True), (2.0**40, True)]
)
def test_the_least_multiplier_of_softmax(oracle: Oracle, real: float, is_taken: bool) -> None:
    """beta * scale * 2^26 is above 1; from 2^31 on it counts as 2^31 - 1."""
    for beta, scale in ((1.0, real * 2.0**-26), (real * 2.0**-20, 2.0**-6)):
        make = curve("softmax", INT8, scale, 1 / 256, -128, (4, 5), beta=beta)
        if is_taken:
            check_against_oracle(oracle, make(), random_inputs(np.random.default_rng(3), make(), 3))
        else:
            with pytest.raises(UnsupportedError, match="TFLite aborts the process at 1 and below"):
                lower(make())


def test_the_longest_row_of_softmax(oracle: Oracle) -> None:
    """511 values of e^0; the exponentials of 512 sum up to 512."""
    for count in (1, 2, 511):
        graph = curve("softmax", UINT8, 0.1, 1 / 256, 0, (count,), beta=1.0)()
        check_against_oracle(oracle, graph, [equal_codes(9, count, 9)])
    graph = curve("softmax", UINT8, 0.1, 1 / 256, 0, (512,), beta=1.0)()
    with pytest.raises(UnsupportedError, match="sum up to 512 or more; TFLite aborts the process there"):
        Engine(graph).run([equal_codes(9, 512, 9)])
    check_against_oracle(oracle, graph, [equal_codes(9, 512, 8)])


@pytest.mark.parametrize("operator", ["add", "sub"])
@pytest.mark.parametrize(("dtype", "bits"), [(INT8, 20), (UINT8, 20), (INT16, 15)])
def test_the_least_scale_of_a_sum(oracle: Oracle, operator: str, dtype: DType, bits: int) -> None:
    """2 max(s1, s2) / (2^bits so) is below 1."""
    one, half = affine(dtype, 1.0), affine(dtype, 0.5)
    for first, second in ((one, half), (half, one)):
        for factor, is_taken in ((0.5, False), (1.0, False), (1.0625, True), (4.0, True)):
            out = affine(dtype, factor * 2.0 ** (1 - bits))
            graph = pair(operator, ((50,), (50,)), dtype, first, second, out, pot_scale_int16=False)
            if is_taken:
                check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(3), graph, 3))
            else:
                with pytest.raises(UnsupportedError, match="it must be between 0 and 1, TFLite aborts or is undefined"):
                    lower(graph)


@pytest.mark.parametrize("operator", ["equal", "not_equal", "less", "greater_equal"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_comparison_with_a_scale_of_one(oracle: Oracle, operator: str, place: int) -> None:
    for scale, is_taken in ((1.0, False), (NEXT, True), (0.5, True), (2.0, True)):
        kinds = [affine(INT8, scale, 3), affine(INT8, 0.25, -5)]
        b = GraphBuilder("compared")
        given = [b.input(f"x{i}", (64,), INT8, kinds[i if place == 0 else 1 - i]) for i in range(2)]
        graph = b.build([b.add(operator, given, (64,), DType.BOOL)])
        if is_taken:
            check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(3), graph, 3))
        else:
            with pytest.raises(UnsupportedError, match=rf"tensor 'x{place}' has scale 1; TFLite aborts the process"):
                lower(graph)


def biased(difference: float, dtype: DType) -> Graph:
    """A product whose bias has another scale than input and weights give, by a share of the output's scale."""
    b, so = GraphBuilder("biased"), 0.5
    zero = 128 if dtype is UINT8 else 0
    w = b.constant("w", np.arange(8).reshape(2, 4).astype(dtype.storage), affine(dtype, 0.25, zero))
    bias = b.constant("b", np.array([5, -7], np.int32), affine(INT32, 0.5 * 0.25 + difference * so))
    x = b.input("x", (3, 4), dtype, affine(dtype, 0.5, zero))
    return b.build([b.add("fully_connected", [x, w, bias], (3, 2), dtype, affine(dtype, so, zero))])


@pytest.mark.parametrize("dtype", [INT8, UINT8])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_scale_of_a_bias(oracle: Oracle, dtype: DType, sign: int) -> None:
    for share, is_taken in ((0.0, True), (0.0199, True), (0.0201, False), (0.1, False)):
        graph = biased(sign * share, dtype)
        if is_taken:
            check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(3), graph, 3))
        else:
            with pytest.raises(UnsupportedError, match=r"TFLite allows a difference of 0\.02 of the output's scale"):
                lower(graph)


@pytest.mark.parametrize(("power", "is_taken"), [(-0.0011, False), (-0.0009, True), (0.0009, True), (0.0011, False)])
def test_the_state_of_the_basic_cell(oracle: Oracle, power: float, is_taken: bool) -> None:
    graph = basic_graph(0, 1, 3, 4, False, 2.0 ** (-11 + power))
    if is_taken:
        check_stream(oracle, graph, random_inputs(np.random.default_rng(3), graph, 3))
    else:
        with pytest.raises(UnsupportedError, match=r"the basic cell takes 2\^-11 only"):
            lower(graph)


def with_cell_scale(scale: float, **how: Any) -> Graph:
    graph = lstm_graph("unidirectional_sequence_lstm", Lstm(**how), "int8")
    (t,) = (t for t, tensor in enumerate(graph.tensors) if tensor.is_variable and tensor.dtype is INT16)
    old = graph.tensors[t].affine
    object.__setattr__(graph.tensors[t], "quantization", Affine(np.float32([scale]), old.zero_point, None, 16))
    return graph


@pytest.mark.parametrize(
    ("scale", "is_taken"),
    [(2.0**-15, True), (2.0**-9, True), (2.0**-12, True), (2.0**-16, False), (2.0**-8, False),
     (1.001 * 2.0**-12, False), (1.0005 * 2.0**-12, True),
     (0.9995 * 2.0**-12, True), (0.999 * 2.0**-12, False), (1.5 * 2.0**-12, False)],
)  # fmt: skip
def test_the_cells_of_an_integer_lstm(oracle: Oracle, scale: float, is_taken: bool) -> None:
    graph = with_cell_scale(scale)
    if is_taken:
        check_stream(oracle, graph, random_inputs(np.random.default_rng(3), graph, 3))
    else:
        with pytest.raises(UnsupportedError, match="the kernel takes powers of two from"):
            lower(graph)


@pytest.mark.parametrize("name", ["cell_clip", "proj_clip"])
def test_bounds_of_an_integer_lstm(oracle: Oracle, name: str) -> None:
    for bound, is_taken in ((0.0, True), (0.25, True), (1e6, True), (-0.25, False)):
        graph = lstm_graph("unidirectional_sequence_lstm", Lstm(projection=True, outputs=3), "int8", **{name: bound})
        if is_taken:
            check_stream(oracle, graph, random_inputs(np.random.default_rng(3), graph, 3))
        else:
            with pytest.raises(GraphError, match=f"{name} is {bound}; it is 0 for none, or positive"):
                lower(graph)
