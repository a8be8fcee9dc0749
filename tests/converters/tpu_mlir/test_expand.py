"""Operators that are several nodes in TPU-MLIR: which, their ranges, and that they compute what the one did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from tflq.converters.tpu_mlir.passes.expand import expand
from tflq.graph import Array, DType, Graph, GraphBuilder, Range
from tflq.interpreter import Engine, lower

Ends = tuple[float, float]
FLOAT = DType.FLOAT32
SHAPE = (1, 3, 2, 4)
X, Z, Y = (-1.5, 2.0), (-0.5, 4.0), (-3.0, 6.25)
Case = tuple[str, int, Sequence[Array], tuple[int, ...], dict[str, Any], list[tuple[str, Ends | None]]]


def of(operator: str, count: int, constants: Sequence[Array], shape: tuple[int, ...], options: dict[str, Any]) -> Graph:
    """Return y = operator(x, z, ..., constants), ranges X, Z, X, ... and Y."""
    b = GraphBuilder(operator)
    inputs = [b.input(f"x{i}", SHAPE, FLOAT) for i in range(count)]
    y = b.add(operator, [*inputs, *(b.constant(f"c{i}", c) for i, c in enumerate(constants))], shape, FLOAT, **options)
    graph = b.build([y])
    for t, ends in [*zip(inputs, (X, Z, X), strict=False), (y, Y)]:
        graph.tensors[t] = replace(graph.tensors[t], range=Range(*(np.array([end], np.float32) for end in ends)))
    return graph


def ranges(graph: Graph) -> list[tuple[str, Ends | None]]:
    """Operators, and the ranges of what they write."""
    found = [(node.operator, graph.tensors[node.outputs[0]].range) for node in graph.nodes]
    return [(name, None if r is None else (float(r.minimum[0]), float(r.maximum[0]))) for name, r in found]


def single(end: float) -> float:
    return float(np.float32(end))


PADS = np.array([[0, 0], [1, 2], [1, 0], [0, 3]], np.int32)
CASES: list[Case] = [
    ("square", 1, [], SHAPE, {}, [("mul", Y)]),
    ("pow", 1, [np.array(2, np.float32)], SHAPE, {}, [("mul", Y)]),
    ("pow", 1, [np.full(4, 2, np.float32)], SHAPE, {}, [("mul", Y)]),
    ("rsqrt", 1, [], SHAPE, {}, [("pow", Y)]),
    ("prelu", 1, [np.full(4, 0.25, np.float32)], SHAPE, {}, [("leaky_relu", Y)]),
    ("prelu", 1, [np.zeros((1, 1, 4), np.float32)], SHAPE, {}, [("leaky_relu", Y)]),
    ("squared_difference", 2, [], SHAPE, {}, [("sub", (-2.5, 2.5)), ("mul", Y)]),
    ("add_n", 2, [], SHAPE, {}, [("add", Y)]),
    ("add_n", 3, [], SHAPE, {}, [("add", (-2.0, 6.0)), ("add", Y)]),
    ("floor_div", 2, [], SHAPE, {}, [("div", (-3.0, 7.25)), ("floor", Y)]),
    ("pack", 2, [], (1, 2, 3, 2, 4), {"axis": 1}, [("reshape", X), ("reshape", Z), ("concatenation", Y)]),
    ("pack", 3, [], (1, 3, 2, 4, 3), {"axis": -1},
     [("reshape", X), ("reshape", Z), ("reshape", X), ("concatenation", Y)]),
    ("mirror_pad", 1, [PADS], (1, 6, 3, 7), {"mode": "reflect"},
     [("mirror_pad", X), ("mirror_pad", X), ("mirror_pad", Y)]),
    ("mirror_pad", 1, [PADS * [[0], [1], [0], [1]]], (1, 6, 2, 7), {"mode": "symmetric"},
     [("mirror_pad", X), ("mirror_pad", Y)]),
    ("l2_normalization", 1, [], SHAPE, {}, [("mul", (0.0, 4.0)), ("sum", (0.0, 16.0)), ("sqrt", (0.0, 4.0)),
                                            ("maximum", (0.0, 4.0)), ("div", Y)]),
]  # fmt: skip
SAME: list[Case] = [
    ("pow", 1, [np.array(3, np.float32)], SHAPE, {}, []),
    ("pow", 1, [np.array([2, 2, 3, 2], np.float32)], SHAPE, {}, []),
    ("pow", 2, [], SHAPE, {}, []),
    ("prelu", 1, [np.array([0.25, 0.25, 0.5, 0.25], np.float32)], SHAPE, {}, []),
    ("prelu", 1, [np.full(4, -0.25, np.float32)], SHAPE, {}, []),
    ("mirror_pad", 1, [PADS * [[0], [1], [0], [0]]], (1, 6, 2, 4), {"mode": "symmetric"}, []),
    ("mirror_pad", 1, [PADS * 0], SHAPE, {"mode": "symmetric"}, []),
    ("pack", 1, [np.ones(SHAPE, np.float32)], (2, *SHAPE), {"axis": 0}, []),
]


def values(graph: Graph, feeds: Sequence[Array]) -> Array:
    engine = Engine(lower(graph, "tflite"))
    found: Array = engine.run(list(feeds))[engine.graph.outputs[0]]
    return found


def feeds_of(graph: Graph, operator: str) -> list[Array]:
    """Positive numbers for a root, no small divisors."""
    random = np.random.default_rng(4)
    found = [random.uniform(0.5, 2, (2, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]
    signs = [np.sign(random.normal(size=x.shape)).astype(np.float32) for x in found]
    return found if operator in ("rsqrt", "pow") else [x * s for x, s in zip(found, signs, strict=True)]


@pytest.mark.parametrize("case", CASES)
def test_what_becomes_several(case: Case) -> None:
    operator, count, constants, shape, options, wanted = case
    graph = of(operator, count, constants, shape, options)
    found = expand(graph)
    assert ranges(found) == wanted
    assert found.outputs == graph.outputs
    assert found.nodes[-1].name == graph.nodes[0].name
    names = [found.tensors[t].name for node in found.nodes for t in node.outputs]
    assert len(set(names)) == len(names)
    feeds = feeds_of(graph, operator)
    assert np.allclose(values(found, feeds), values(graph, feeds), rtol=1e-6, atol=1e-7)
    shapes = [t.shape for t in found.tensors]
    settled = lower(found, "tflite")
    assert [settled.tensors[t].shape for n in found.nodes for t in n.outputs] == [
        shapes[t] for n in found.nodes for t in n.outputs
    ]


@pytest.mark.parametrize("case", CASES)
def test_without_ranges_there_are_none(case: Case) -> None:
    graph = of(*case[:5])
    graph.tensors = [replace(t, range=None) for t in graph.tensors]
    assert ranges(expand(graph)) == [(operator, None) for operator, _ in case[5]]


@pytest.mark.parametrize("case", [c for c in CASES if c[0] in ("mirror_pad", "pack", "l2_normalization", "add_n")])
def test_ranges_inside_hold_all_that_inputs_can_be(case: Case) -> None:
    """Inputs at both ends of their ranges, which reach further below 0 than above: each range is reached, none left."""
    graph = of(*case[:5])
    ends = [(-2.0, 1.5), (-4.0, 0.5), (-2.0, 1.5)]
    for t, (low, high) in zip(graph.inputs, ends, strict=False):
        found = Range(np.array([low], np.float32), np.array([high], np.float32))
        graph.tensors[t] = replace(graph.tensors[t], range=found)
    made = expand(graph)
    inside = [t for node in made.nodes[:-1] for t in node.outputs if made.tensors[t].dtype is FLOAT]
    feeds = [np.stack([np.full(SHAPE, v, np.float32) for v in (*pair, 0)]) for pair in ends[: len(graph.inputs)]]
    values = Engine(lower(made, "tflite")).run(feeds, inside)
    for t in inside:
        held = made.tensors[t].range
        assert held is not None
        assert (held.minimum[0], held.maximum[0]) == (min(values[t].min(), 0), values[t].max())


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("case", [c for c in CASES if c[0] == "add_n"])
def test_one_range_is_not_enough_for_a_sum(case: Case, place: int) -> None:
    graph = of(*case[:5])
    t = graph.inputs[place]
    graph.tensors[t] = replace(graph.tensors[t], range=None)
    assert ranges(expand(graph)) == [*((operator, None) for operator, _ in case[5][:-1]), case[5][-1]]


@pytest.mark.parametrize("case", SAME)
def test_what_stays_one(case: Case) -> None:
    graph = of(*case[:5])
    assert [n.operator for n in expand(graph).nodes] == [case[0]]


def test_an_integer_quotient_stays() -> None:
    b = GraphBuilder("integers")
    x, z = (b.input(name, (1, 4), DType.INT32) for name in "xz")
    graph = b.build([b.add("floor_div", [x, z], (1, 4), DType.INT32)])
    assert [n.operator for n in expand(graph).nodes] == ["floor_div"]


@pytest.mark.parametrize("most", [0.0, -1.0, 2.25])
def test_a_difference_reaches_to_the_root_of_its_square(most: float) -> None:
    graph = of("squared_difference", 2, [], SHAPE, {})
    y = graph.outputs[0]
    graph.tensors[y] = replace(
        graph.tensors[y], range=Range(np.array([-5.0], np.float32), np.array([most], np.float32))
    )
    root = max(most, 0.0) ** 0.5
    assert ranges(expand(graph)) == [("sub", (-root, root)), ("mul", (-5.0, most))]


RECTIFIERS = {"relu": inf, "relu6": 6.0, "relu_0_to_1": 1.0}
LIMITS = [(-1.5, 2.0), (0.25, 7.5), (-9.0, -2.0), (-0.5, 0.75)]


@pytest.mark.parametrize("operator", RECTIFIERS)
@pytest.mark.parametrize("form", ["alone", "read twice", "an output", "rectified", "a constant", "no range"])
def test_rectifiers_go_in_front_of_what_is_joined(operator: str, form: str) -> None:
    b = GraphBuilder("joined")
    inputs = [b.input(f"x{i}", (1, 2), FLOAT) for i in range(len(LIMITS))]
    joined_of = [*inputs, b.constant("c", np.ones((1, 2), np.float32))] if form == "a constant" else inputs
    width = 2 * len(joined_of)
    fused = "relu" if form == "rectified" else "none"
    joined = b.add("concatenation", joined_of, (1, width), FLOAT, axis=1, fused_activation_function=fused)
    outputs = [b.add(operator, [joined], (1, width), FLOAT)]
    if form == "read twice":
        outputs.append(b.add("abs", [joined], (1, width), FLOAT))
    graph = b.build([*outputs, *([joined] if form == "an output" else [])])
    for t, ends in zip(inputs, LIMITS, strict=True):
        if form != "no range":
            graph.tensors[t] = replace(graph.tensors[t], range=Range(*(np.array([end], np.float32) for end in ends)))
    found = expand(graph)
    feeds = [np.random.default_rng(i).uniform(-3, 9, (2, 1, 2)).astype(np.float32) for i in range(len(LIMITS))]
    if form != "rectified":  # which the reference kernels do not know
        assert np.array_equal(values(found, feeds), values(graph, feeds))
    if form in ("alone", "no range"):
        top = RECTIFIERS[operator]
        cut = [(max(low, 0.0), min(max(high, 0.0), top)) if form == "alone" else None for low, high in LIMITS]
        assert ranges(found) == [*((operator, ends) for ends in cut), ("concatenation", None)]
        assert len({found.tensors[n.outputs[0]].name for n in found.nodes}) == len(LIMITS) + 1
    else:
        assert [n.operator for n in found.nodes] == [n.operator for n in graph.nodes]


@pytest.mark.parametrize("operator", ["add", "mul", "maximum", "minimum", "sub", "div"])
def test_constants_stand_behind_where_the_order_does_not_count(operator: str) -> None:
    b = GraphBuilder("pair")
    x, c = b.input("x", SHAPE, FLOAT), b.constant("c", np.full(4, 3, np.float32))
    y = b.input("y", SHAPE, FLOAT)
    graph = b.build([b.add(operator, pair, SHAPE, FLOAT) for pair in ([c, x], [x, c], [y, x])])
    turned = operator not in ("sub", "div")
    assert [n.inputs for n in expand(graph).nodes] == [(x, c) if turned else (c, x), (x, c), (y, x)]


def test_what_nobody_reads_is_left_out() -> None:
    b = GraphBuilder("unread")
    x = b.input("x", SHAPE, FLOAT)
    first = b.add("abs", [x], SHAPE, FLOAT)
    second = b.add("neg", [first], SHAPE, FLOAT)
    b.add("tanh", [second], SHAPE, FLOAT)
    b.add("exp", [first], SHAPE, FLOAT)
    kept = b.add("sqrt", [first], SHAPE, FLOAT)
    assert [n.operator for n in expand(b.build([kept])).nodes] == ["abs", "sqrt"]
