"""Operands that an operator must have, be constants, be real numbers or images: what is found is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.converters.aipu import AIPU
from tflq.converters.aipu.operators.sources import SOURCES
from tflq.converters.settings import parse_settings
from tflq.graph import ABSENT, DType, Graph, GraphBuilder, Range

X = (1, 4, 4, 3)
INTEGERS = {
    *("add", "batch_to_space_nd", "broadcast_to", "cast", "concatenation", "depth_to_space", "embedding_lookup"),
    *("equal", "expand_dims", "gather", "gather_nd", "greater", "greater_equal", "less", "less_equal", "logical_and"),
    *("logical_not", "logical_or", "mirror_pad", "mul", "not_equal", "one_hot", "pack", "pad", "padv2", "reduce_all"),
    *("reduce_any", "reshape", "resize_bilinear", "resize_nearest_neighbor", "reverse_sequence", "reverse_v2"),
    *("scatter_nd", "select", "select_v2", "slice", "space_to_batch_nd", "space_to_depth", "split", "split_v"),
    *("squeeze", "strided_slice", "sub", "tile", "transpose", "unpack"),
}
"""Operators that move, choose, compare or add whole numbers; all others compute real ones."""
IMAGES = {
    *("average_pool_2d", "conv_2d", "depth_to_space", "depthwise_conv_2d", "local_response_normalization"),
    *("max_pool_2d", "resize_bilinear", "resize_nearest_neighbor", "space_to_depth", "transpose_conv"),
}
CONSTANTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("pad", "mirror_pad", "transpose", "tile", "broadcast_to", "reverse_v2", "cumsum"), (1,)),
    **dict.fromkeys(("mean", "sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_all", "reduce_any"), (1,)),
    **dict.fromkeys(("resize_bilinear", "resize_nearest_neighbor"), ()),
    **dict.fromkeys(("padv2", "split_v", "slice", "batch_to_space_nd", "space_to_batch_nd"), (1, 2)),
    "split": (0,),
    "strided_slice": (1, 2, 3),
    "non_max_suppression_v4": (2, 3, 4),
    "non_max_suppression_v5": (2, 3, 4, 5),
}
"""What decides a shape or an option, and so must be known."""


def _graph(operator: str, shape: tuple[int, ...] = X, dtype: DType = DType.FLOAT32, at_run_time: int = -1) -> Graph:
    """The operator with all its operands; `at_run_time` is one of the constants, computed."""
    builder, source = GraphBuilder(), SOURCES[operator]
    count = max(source.operands, *(place + 1 for place in source.constants or (0,)))
    operands = []
    for place in range(count):
        if place in source.constants and place != at_run_time:
            operands.append(builder.constant(f"c{place}", np.ones(1, np.int32)))
        else:
            operands.append(builder.input(f"x{place}", shape, dtype if place == source.data else DType.FLOAT32))
    return builder.build((builder.add(operator, operands, shape, DType.FLOAT32),))


def _lines(graph: Graph) -> str:
    return "\n".join(AIPU.check(graph, parse_settings(AIPU.settings)))


@pytest.mark.parametrize("operator", SOURCES)
def test_integers_are_taken_where_nothing_real_is_computed(operator: str) -> None:
    words = "its input is int32; allowed are real numbers"
    assert (words in _lines(_graph(operator, dtype=DType.INT32))) == (operator not in INTEGERS)
    assert words not in _lines(_graph(operator))


@pytest.mark.parametrize("operator", SOURCES)
def test_images_have_four_axes(operator: str) -> None:
    words = "its input has the shape (1, 4, 3); allowed are 4 axes"
    assert (words in _lines(_graph(operator, (1, 4, 3)))) == (operator in IMAGES)
    assert "allowed are 4 axes" not in _lines(_graph(operator))


@pytest.mark.parametrize(("operator", "place"), [(o, p) for o, places in CONSTANTS.items() for p in places])
def test_constants_are_not_computed(operator: str, place: int) -> None:
    words = f"its input {place} is computed at run time; allowed is a constant"
    assert words in _lines(_graph(operator, at_run_time=place))
    assert "computed at run time" not in _lines(_graph(operator))


@pytest.mark.parametrize(
    ("operator", "count"),
    [
        *((o, 2) for o in ("add", "sub", "mul", "maximum", "minimum", "div", "floor_div", "pow", "squared_difference")),
        *((o, 2) for o in ("equal", "greater", "less_equal", "logical_and", "floor_mod", "conv_2d", "conv_3d")),
        *((o, 2) for o in ("depthwise_conv_2d", "fully_connected", "pad", "transpose", "tile", "split", "sum")),
        *((o, 3) for o in ("select", "select_v2", "transpose_conv", "slice", "padv2", "split_v", "batch_to_space_nd")),
        ("strided_slice", 4),
        ("non_max_suppression_v4", 5),
        ("non_max_suppression_v5", 6),
    ],
)
def test_operands_are_missing(operator: str, count: int) -> None:
    """Each in turn; the first of all that the operator has."""
    whole = _graph(operator)
    (node,) = whole.nodes
    assert len(node.inputs) == count
    assert "is missing" not in _lines(whole)
    for place in range(count):
        for inputs in (node.inputs[:place], (*node.inputs[:place], ABSENT, *node.inputs[place + 1 :])):
            cut = whole.copy()
            cut.nodes[0] = type(node)(operator, inputs, node.outputs)
            assert f"its input {place} is missing; the operator has {count}" in _lines(cut)


def _weighted(operator: str, constants: tuple[bool, ...]) -> str:
    """A layer whose weights and bias are constants, or not."""
    builder = GraphBuilder()
    shapes = {"fully_connected": (3, 3), "conv_3d": (1, 1, 1, 3, 3), "depthwise_conv_2d": (1, 1, 1, 3)}
    x = builder.input("x", X, DType.FLOAT32)
    operands = [x]
    for name, shape, is_constant in zip("wb", (shapes.get(operator, (3, 1, 1, 3)), (3,)), constants, strict=False):
        data = np.ones(shape, np.float32)
        operands.append(builder.constant(name, data) if is_constant else builder.input(name, shape, DType.FLOAT32))
    if operator == "transpose_conv":
        sizes = builder.constant("shape", np.array(X, np.int32))
        operands = [sizes, operands[1], x, *operands[2:]]
    return _lines(builder.build((builder.add(operator, operands, X, DType.FLOAT32),)))


@pytest.mark.parametrize("operator", ["conv_2d", "conv_3d", "depthwise_conv_2d", "fully_connected", "transpose_conv"])
def test_weights_and_biases_are_constants(operator: str) -> None:
    words = "weights or bias are computed at run time; allowed are constants"
    for constants in ((True, False), (False, True), (False, False), (False,)):
        assert words in _weighted(operator, constants)
    for constants in ((True, True), (True,)):
        assert words not in _weighted(operator, constants)


def _remainder(values: tuple[float, ...], is_constant: bool) -> str:
    """FLOOR_MOD by constants, or by an input of that range."""
    builder, data = GraphBuilder(), np.array([values], np.float32)
    x = builder.input("x", data.shape, DType.FLOAT32)
    d = builder.constant("d", data) if is_constant else builder.input("d", data.shape, DType.FLOAT32)
    graph = builder.build((builder.add("floor_mod", (x, d), data.shape, DType.FLOAT32),))
    if not is_constant:
        graph.tensors[d] = replace(
            graph.tensors[d], range=Range(data.min(keepdims=True)[0], data.max(keepdims=True)[0])
        )
    return _lines(graph)


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize(
    ("values", "allowed"),
    [
        ((0.5, 2), True),
        ((2, 3), True),
        ((-3, -0.5), True),
        ((0, 2), False),
        ((-2, 0), False),
        ((-1, 2), False),
        ((0, 0), False),
    ],
)
def test_divisors_of_remainders_are_not_zero(values: tuple[float, ...], allowed: bool, is_constant: bool) -> None:
    words = f"its divisor is {values[0]:g} to {values[1]:g}; allowed is a range without 0"
    assert (words in _remainder(values, is_constant)) == (not allowed)


@pytest.mark.parametrize(
    ("terms", "beta", "words"),
    [
        (4096, 1.0, ""),
        (4097, 1.0, "softmax over 4097 terms; allowed are 4096"),
        (3, 2.0, "beta is 2.0; allowed is 1: multiply in front of it"),
        (3, 0.5, "beta is 0.5; allowed is 1"),
    ],
)
def test_terms_and_beta_of_softmax(terms: int, beta: float, words: str) -> None:
    builder = GraphBuilder()
    x = builder.input("x", (1, terms), DType.FLOAT32)
    found = _lines(builder.build((builder.add("softmax", (x,), (1, terms), DType.FLOAT32, beta=beta),)))
    assert words in found
    assert bool(found) == bool(words)


@pytest.mark.parametrize(("rows", "shape", "allowed"), [(3, (1, 3), True), (4, (1, 3), False), (3, (1, 2, 3), True)])
def test_outputs_of_fully_connected(rows: int, shape: tuple[int, ...], allowed: bool) -> None:
    builder = GraphBuilder()
    x, w = builder.input("x", (*shape[:-1], 5), DType.FLOAT32), builder.constant("w", np.ones((rows, 5), np.float32))
    found = _lines(builder.build((builder.add("fully_connected", (x, w), shape, DType.FLOAT32),)))
    assert (f"output {shape} does not end in the {rows} outputs" in found) == (not allowed)


@pytest.mark.parametrize(("axes", "rank", "allowed"), [(1, 2, True), (1, 1, False), (2, 2, False), (1, 4, True)])
def test_axes_of_reverse(axes: int, rank: int, allowed: bool) -> None:
    builder = GraphBuilder()
    x, places = builder.input("x", (2,) * rank, DType.FLOAT32), builder.constant("a", np.zeros(axes, np.int32))
    found = _lines(builder.build((builder.add("reverse_v2", (x, places), (2,) * rank, DType.FLOAT32),)))
    assert (f"{axes} axes of {rank}; allowed is one of two or more" in found) == (not allowed)


@pytest.mark.parametrize("operator", ["space_to_batch_nd", "batch_to_space_nd"])
@pytest.mark.parametrize(("blocks", "rank"), [(1, 3), (2, 4), (1, 4), (2, 3), (3, 5), (0, 2)])
def test_axes_of_blocks(operator: str, blocks: int, rank: int) -> None:
    builder, shape = GraphBuilder(), (4,) * rank
    sizes = builder.constant("b", np.ones(blocks, np.int32)), builder.constant("s", np.zeros((blocks, 2), np.int32))
    x = builder.input("x", shape, DType.FLOAT32)
    found = _lines(builder.build((builder.add(operator, (x, *sizes), shape, DType.FLOAT32),)))
    words = f"blocks along {blocks} axes of {rank}; allowed are 1 of 3, 2 of 4"
    assert (words in found) == ((blocks, rank) not in ((1, 3), (2, 4)))


@pytest.mark.parametrize(
    ("source", "result", "allowed"),
    [
        (DType.FLOAT32, DType.INT32, True),
        (DType.INT32, DType.FLOAT32, True),
        (DType.BOOL, DType.FLOAT32, True),
        (DType.FLOAT32, DType.BOOL, True),
        (DType.FLOAT32, DType.FLOAT16, False),
        (DType.FLOAT32, DType.FLOAT32, False),
    ],
)
def test_types_of_casts(source: DType, result: DType, allowed: bool) -> None:
    builder = GraphBuilder()
    x = builder.input("x", X, source)
    found = _lines(builder.build((builder.add("cast", (x,), X, result),)))
    words = f"from {source.value} to {result.value}; allowed is from or to integers: take it out"
    assert (words in found) == (not allowed)


@pytest.mark.parametrize(
    ("operator", "values", "words"),
    [
        ("add", (0, 2**31 - 256), ""),
        ("add", (0, 2**31), "its input 1 holds 2.14748e+09; allowed are whole numbers of 32 bits"),
        ("add", (-(2**31) - 256, 0), "its input 1 holds 2.14748e+09; allowed are whole numbers of 32 bits"),
        ("add", (0.5, 3e9), ""),
        ("maximum", (0, 1e12), ""),
        ("minimum", (0, 1e12), ""),
    ],
)
def test_whole_constants_have_32_bits(operator: str, values: tuple[float, ...], words: str) -> None:
    """Limits that nothing reaches may be larger: such a layer is left out."""
    builder = GraphBuilder()
    x, c = builder.input("x", (1, 2), DType.FLOAT32), builder.constant("c", np.array(values, np.float32))
    found = _lines(builder.build((builder.add(operator, (x, c), (1, 2), DType.FLOAT32),)))
    assert words in found
    assert bool(found) == bool(words)
