"""What TFLite's converter took apart is put together where that computes the same, and nowhere else.

Each written-out form, and everything one step away from it: operands swapped, another reader or an output inside, a
rectifier on a part, another operator in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import rewritten
from tests.support.nearby_graphs import EPSILON, nearby, outputs_of
from tflq.converters.tpu_mlir.passes.recognize import recognize_layer_normalization, recognize_prelu
from tflq.graph import DType, Graph, GraphBuilder
from tflq.graph.rewriting import GraphEditor

FLOAT = DType.FLOAT32
ROWS, SINGLE = (2, 5, 8), (2, 5, 1)


class Written:
    """A graph that is written node by node."""

    def __init__(self) -> None:
        self.b = GraphBuilder("rows")
        self.x = self.b.input("x", ROWS, FLOAT)
        self.axes = self.b.constant("axes", np.array([2], np.int32))

    def reals(self, *shape: int) -> int:
        return self.b.constant("reals",
                               np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32))  # fmt: skip

    def do(self, operator: str, *operands: int, shape: tuple[int, ...] = ROWS) -> int:
        options = {"keep_dims": True} if operator == "mean" else {}
        return self.b.add(operator, list(operands), shape, FLOAT, **options)

    def inverse(self) -> tuple[int, int]:
        mean = self.do("mean", self.x, self.axes, shape=SINGLE)
        variance = self.do("mean", self.do("squared_difference", self.x, mean), self.axes, shape=SINGLE)
        epsilon = self.b.constant("epsilon", np.array(EPSILON, np.float32))
        return mean, self.do("rsqrt", self.do("add", variance, epsilon, shape=SINGLE), shape=SINGLE)


def by_difference(gamma: bool, beta: bool) -> Graph:
    w = Written()
    mean, inverse = w.inverse()
    y = w.do("mul", w.do("sub", w.x, mean), inverse)
    y = w.do("mul", y, w.reals(8)) if gamma else y
    y = w.do("add", y, w.b.constant("beta", np.linspace(-1, 2, 8).astype(np.float32))) if beta else y
    return w.b.build([w.do("neg", y)])


def by_scale(gamma: bool, beta: bool, negated: bool) -> Graph:
    w = Written()
    mean, s = w.inverse()
    shape = SINGLE
    if gamma:
        s, shape = w.do("mul", s, w.reals(8)), ROWS
    scaled = w.do("mul", w.x, s)
    shift = w.do("mul", w.do("neg", mean, shape=SINGLE) if negated else mean, s, shape=shape)
    if beta:
        c = w.b.constant("beta", np.linspace(-1, 2, 8).astype(np.float32))
        shift = w.do("add", shift, c) if negated else w.do("sub", c, shift)
    return w.b.build([w.do("neg", w.do("add", scaled, shift))])


def slope(left: bool) -> Graph:
    w = Written()
    positive = w.do("relu", w.x)
    inner = w.do("neg", w.do("relu", w.do("neg", w.x)))
    product = w.do("mul", inner, w.reals(8))
    return w.b.build([w.do("neg", w.do("add", *((positive, product) if left else (product, positive))))])


FORMS: dict[str, tuple[Graph, Callable[[GraphEditor], None], str]] = {
    **{f"difference {g} {b}": (by_difference(g, b), recognize_layer_normalization, "layer_normalization")
       for g in (False, True) for b in (False, True)},
    **{f"scale {g} {b} {n}": (by_scale(g, b, n), recognize_layer_normalization, "layer_normalization")
       for g in (False, True) for b in (False, True) for n in (False, True) if b or n},
    **{f"slope {left}": (slope(left), recognize_prelu, "prelu") for left in (False, True)},
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_forms_that_are_one_layer(name: str) -> None:
    graph, rule, operator = FORMS[name]
    found = rewritten(graph, rule)
    assert [n.operator for n in found.nodes] == [operator, "neg"]
    assert np.allclose(outputs_of(found), outputs_of(graph), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", FORMS)
def test_what_is_nearby_computes_the_same(name: str) -> None:
    graph, rule, _ = FORMS[name]
    for number, other in enumerate(nearby(graph)):
        found = rewritten(other, rule)
        for made, wanted in zip(outputs_of(found), outputs_of(other), strict=True):
            assert np.allclose(made, wanted, rtol=1e-5, atol=1e-6, equal_nan=True), (
                number,
                [n.operator for n in found.nodes],
            )


@pytest.mark.parametrize("name", FORMS)
def test_order_counts_where_it_changes_what_is_computed(name: str) -> None:
    """Sums and products of a form in the other order are the same form."""
    graph, rule, operator = FORMS[name]
    for index, node in enumerate(graph.nodes[:-1]):
        if node.operator in ("add", "mul") and not any(graph.tensors[t].is_constant for t in node.inputs):
            other = graph.copy()
            other.nodes[index] = replace(node, inputs=node.inputs[::-1])
            assert operator in [n.operator for n in rewritten(other, rule).nodes]
