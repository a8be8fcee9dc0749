"""Windows, strides and images of other heights than widths, operations on the batch, and operands that Caffe lacks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.converters.nnie.networks import constant, conv, fully_connected, start
from tests.converters.nnie.test_borders import NONE, SETTINGS, agrees, ints, one
from tests.converters.nnie.test_refusals import with_ranges
from tests.support.nnie import package
from tflq.converters.nnie import NNIE
from tflq.errors import UnsupportedError
from tflq.graph import Array, Attributes, DType, Graph, GraphBuilder, Model
from tflq.interpreter.operands.sliding_windows import window_of

Pair = tuple[int, int]
WINDOWS = [((1, 3), (1, 2)), ((3, 1), (2, 1)), ((2, 3), (3, 1)), ((3, 2), (1, 3)), ((4, 1), (2, 3))]


def reals(*shape: int) -> Array:
    return np.random.default_rng([6, *shape]).uniform(0.5, 1.5, shape).astype(np.float32)


@pytest.mark.parametrize(("kernel", "stride"), WINDOWS)
@pytest.mark.parametrize("padding", ["same", "valid"])
def test_transposed_convolutions(kernel: Pair, stride: Pair, padding: str) -> None:
    source = (3, 4)
    whole = [(n - 1) * s + k for n, s, k in zip(source, stride, kernel, strict=True)]
    output = whole if padding == "valid" else [min(n * s, w) for n, s, w in zip(source, stride, whole, strict=True)]
    for has_bias in (False, True):
        shape, b = (1, *output, 5), GraphBuilder("net")
        x = b.input("x", (1, *source, 2), DType.FLOAT32)
        operands = [b.constant("s", ints(*shape)), b.constant("w", reals(5, *kernel, 2)), x]
        operands += [b.constant("b", reals(5))] if has_bias else []
        options: dict[str, Any] = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
        y = b.add("transpose_conv", operands, shape, DType.FLOAT32, **options, **NONE)
        agrees(b.build([b.add("neg", [y], shape, DType.FLOAT32)]))


@pytest.mark.parametrize(("kernel", "stride"), WINDOWS)
@pytest.mark.parametrize("operator", ["max_pool_2d", "average_pool_2d"])
def test_pools(operator: str, kernel: Pair, stride: Pair) -> None:
    options: dict[str, Any] = {"padding": "valid", "stride_h": stride[0], "stride_w": stride[1], **NONE}
    options |= {"filter_height": kernel[0], "filter_width": kernel[1]}
    for size in ((6, 7), (7, 9), kernel):
        output = window_of(Attributes(options), size, kernel).output_size(size)
        agrees(one(operator, (1, *size, 2), (1, *output, 2), **options))


@pytest.mark.parametrize(("kernel", "stride"), WINDOWS)
@pytest.mark.parametrize("operator", ["conv_2d", "depthwise_conv_2d"])
def test_convolutions(operator: str, kernel: Pair, stride: Pair) -> None:
    for padding, size in product(("same", "valid"), ((6, 7), (7, 8))):
        options: dict[str, Any] = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
        output = (1, *window_of(Attributes(options), size, kernel).output_size(size), 4)
        weights = reals(4, *kernel, 2) if operator == "conv_2d" else reals(1, *kernel, 4)
        b, x = start(*size, 2)
        operands = [x, b.constant("w", weights), constant(b, 4)]
        agrees(b.build([b.add(operator, operands, output, DType.FLOAT32, depth_multiplier=2, **options, **NONE)]))


@pytest.mark.parametrize(("rows", "columns"), [(1, 2), (2, 1), (3, 2)])
def test_dilations(rows: int, columns: int) -> None:
    b, x = start(9, 8, 2)
    agrees(b.build([conv(b, x, (9, 8, 2), (9 - 2 * rows, 8 - columns, 3), (3, 2), padding="valid",
                         dilation=(rows, columns))]))  # fmt: skip
    b, x = start(9, 8, 2)
    agrees(b.build([conv(b, x, (9, 8, 2), (9, 8, 3), (3, 3), dilation=(rows, columns))]))


def on_batch(operator: str, rank: int) -> Graph:
    shape = (2, 3, 4, 6)[:rank]
    cut, wide = (1, *shape[1:]), (4, *shape[1:])
    starts, sizes = [0] * rank, [1, *shape[1:]]
    if operator == "concatenation":
        b = GraphBuilder("net")
        operands = [b.input(name, shape, DType.FLOAT32) for name in "xy"]
        return b.build([b.add(operator, operands, wide, DType.FLOAT32, axis=0, **NONE)])
    if operator == "split":
        b = GraphBuilder("net")
        x, axis = b.input("x", shape, DType.FLOAT32), b.constant("axis", np.array(0, np.int32))
        tops = [b.tensor(f"part{i}", cut, DType.FLOAT32) for i in range(2)]
        b.node("split", [axis, x], tops, num_splits=2)
        return b.build(tops)
    if operator == "slice":
        return one(operator, shape, cut, ints(*starts), ints(*sizes))
    if operator == "strided_slice":
        return one(operator, shape, cut, ints(*starts), ints(*sizes), ints(*[1] * rank))
    if operator == "tile":
        return one(operator, shape, wide, ints(2, *[1] * (rank - 1)))
    return one(operator, shape, cut, ints(0), keep_dims=True)


@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("operator", ["concatenation", "split", "slice", "strided_slice", "tile", "mean", "reduce_max"])
def test_nothing_works_on_the_batch(operator: str, rank: int) -> None:
    assert "NNIE has no operation on the batch" in NNIE.check(on_batch(operator, rank), SETTINGS)[0]


@pytest.mark.parametrize("steps", [(2, 1, 1, 1), (2, 2, 1, 1), (1, 2, 1, 2), (1, 1, 1, 3)])
def test_steps_of_samples_and_channels_are_refused(steps: tuple[int, ...]) -> None:
    shape = (3, 4, 5, 6)
    output = tuple(-(-n // s) for n, s in zip(shape, steps, strict=True))
    graph = one("strided_slice", shape, output, ints(0, 0, 0, 0), ints(*shape), ints(*steps))
    assert f"a step of {next(s for s in steps if s > 1)}; Caffe's Slice" in NNIE.check(graph, SETTINGS)[0]


@pytest.mark.parametrize(
    ("begin", "end", "steps", "layers"),
    [
        ((1, 0), (2, 5), (2, 1), ["Slice"]),
        ((0, 2), (4, 3), (1, 3), ["Slice"]),
        ((0, 0), (4, 5), (1, 2), ["Pooling"]),
        ((0, 0), (4, 5), (3, 1), ["Pooling"]),
        ((1, 0), (4, 5), (2, 1), ["Slice", "Pooling"]),
        ((0, 0), (4, 5), (2, 2), ["Slice", "Pooling"]),
    ],
)
def test_steps_that_pass_nothing_over_need_no_pool(begin: Pair, end: Pair, steps: Pair, layers: list[str]) -> None:
    output = (1, *(len(range(*part)) for part in zip(begin, end, steps, strict=True)), 6)
    graph = one("strided_slice", (1, 4, 5, 6), output, ints(0, *begin, 0), ints(1, *end, 6), ints(1, *steps, 1))
    agrees(graph)
    text = package(graph, [reals(2, 1, 4, 5, 6)])["net.prototxt"].decode()
    found = [line.split('"')[1] for line in text.splitlines() if "type:" in line]
    assert [kind for kind in found if kind in ("Slice", "Pooling")] == layers


def of_computed(operator: str, *shapes: tuple[int, ...], output: tuple[int, ...], **options: Any) -> Graph:
    """An operator whose operands are all computed."""
    b = GraphBuilder("net")
    inputs = [b.input(f"x{i}", shape, DType.FLOAT32) for i, shape in enumerate(shapes)]
    return b.build([b.add(operator, inputs, output, DType.FLOAT32, **options)])


def with_a_constant() -> Graph:
    b, x = start(2, 2, 3)
    operands = [x, b.constant("c", reals(1, 2, 2, 3))]
    return b.build([b.add("concatenation", operands, (1, 2, 2, 6), DType.FLOAT32, axis=3, **NONE)])


def of_constants() -> Graph:
    b, x = start(4)
    y = b.add("exp", [b.constant("c", reals(1, 4))], (1, 4), DType.FLOAT32)
    return b.build([b.add("add", [x, y], (1, 4), DType.FLOAT32, **NONE)])


WINDOW: dict[str, Any] = {"padding": "valid", "stride_h": 1, "stride_w": 1, **NONE}
LACKING: dict[str, tuple[Callable[[], Graph], str]] = {
    "a constant in a concatenation": (with_a_constant, "an operand is a constant; Caffe's Concat takes computed ones"),
    "constants alone": (of_constants, "all operands are constants; fold it"),
    "a division by zero": (lambda: one("div", (1, 4), (1, 4), np.zeros(1, np.float32), **NONE), "a division by zero"),
    "a channel divided by zero": (
        lambda: one("div", (1, 3), (1, 3), np.array([1, 0, 2], np.float32), **NONE),
        "a division by zero",
    ),
    "computed weights": (
        lambda: of_computed("conv_2d", (1, 4, 4, 2), (1, 1, 1, 2), output=(1, 4, 4, 1), **WINDOW),
        "operand 'x1' is computed at run time; Caffe takes a constant there",
    ),
    "computed weights of a product": (
        lambda: of_computed("fully_connected", (1, 4), (1, 4), output=(1, 1), **NONE),
        "operand 'x1' is computed at run time",
    ),
    "a new axis": (
        lambda: one("strided_slice", (1, 4, 6), (1, 1, 4, 6), ints(0, 0, 0, 0), ints(1, 1, 4, 6), ints(1, 1, 1, 1),
                    new_axis_mask=2),
        "a new axis; slice and reshape apart",
    ),
    "no size": (lambda: one("slice", (1, 4), (1, 4), ints(0, 0)), "begin or size is missing"),
    "rows that are no pixels": (
        lambda: one("fully_connected", (1, 4, 6), (2, 3), reals(3, 12), **NONE),
        "an input (1, 4, 6) makes 2 rows of 12; Caffe's InnerProduct makes one",
    ),
    "variables": (lambda: of_variable(), "no layer of Caffe 1.0"),
}  # fmt: skip


def of_variable() -> Graph:
    b, x = start(4)
    b.node("assign_variable", [x, x], [])
    return b.build([b.add("neg", [x], (1, 4), DType.FLOAT32)])


@pytest.mark.parametrize("name", LACKING)
def test_what_a_package_cannot_hold(name: str) -> None:
    make, words = LACKING[name]
    graph = make()
    lines = NNIE.check(graph, SETTINGS)
    assert bool(lines) == bool(words)
    if words:
        assert words in lines[0]
        with pytest.raises(UnsupportedError, match="operator 0"):
            NNIE.emit(with_ranges(graph), Model([graph], source="net.tflite"))


def test_groups_end_at_2048() -> None:
    for channels, is_taken in ((2048, True), (2049, False)):
        b, x = start(2, 2, channels)
        y = b.add("depthwise_conv_2d", [x, b.constant("w", reals(1, 1, 1, channels))], (1, 2, 2, channels),
                  DType.FLOAT32, depth_multiplier=1, **WINDOW)  # fmt: skip
        lines = NNIE.check(b.build([y]), SETTINGS)
        assert bool(lines) != is_taken
    assert "2049 groups; NNIE takes up to 2048: split the layer" in lines[0]


@pytest.mark.parametrize("operator", ["relu", "softmax", "neg"])
def test_rows_of_a_product_in_another_shape(operator: str) -> None:
    """The blob of an InnerProduct has 2 axes; a reshape that keeps its image needs no layer."""
    for shape in ((1, 1, 5), (1, 1, 1, 5)):
        b, x = start(4)
        y = b.add("reshape", [fully_connected(b, x, 4, 5), b.constant("s", ints(*shape))], shape, DType.FLOAT32)
        options: dict[str, Any] = {"beta": 1.0} if operator == "softmax" else {}
        agrees(b.build([b.add(operator, [y], shape, DType.FLOAT32, **options)]))


def test_a_scale_behind_a_computed_bias_stays() -> None:
    b, x = start(4)
    bias = b.input("bias", (1,), DType.FLOAT32)
    y = b.add("fully_connected", [x, b.constant("w", reals(1, 4)), bias], (1, 1), DType.FLOAT32, **NONE)
    graph = b.build([b.add("mul", [y, b.constant("m", reals(1))], (1, 1), DType.FLOAT32, **NONE)])
    assert "operand 'bias' is computed at run time" in NNIE.check(graph, SETTINGS)[0]
