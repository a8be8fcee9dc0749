"""Several nodes that are one in TPU-MLIR: joined where it computes the same, and what lies one step away is kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import rewritten
from tests.support.nearby_graphs import nearby, outputs_of
from tflq.converters.tpu_mlir.passes.expand import expand
from tflq.converters.tpu_mlir.passes.fusions import (
    fold_constants,
    fold_factors,
    fuse_silu,
    fuse_softsign,
    merge_pointwise,
)
from tflq.errors import UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder
from tflq.graph.rewriting import GraphEditor

FLOAT = DType.FLOAT32
IMAGE = (2, 3, 5, 4)
NONE = {"fused_activation_function": "none"}
WINDOW = {"padding": "valid", "stride_h": 1, "stride_w": 1, **NONE}
Rule = Callable[[GraphEditor], None]


class Written:
    """A graph that is written node by node, and ends in tanh."""

    def __init__(self, shape: tuple[int, ...] = IMAGE) -> None:
        self.b, self.shape = GraphBuilder("fused"), shape
        self.x = self.b.input("x", shape, FLOAT)

    def reals(self, *shape: int) -> int:
        data = np.random.default_rng(sum(shape)).uniform(0.5, 2, shape).astype(np.float32)
        return self.b.constant(
            f"c{len(shape)}", data * np.where(np.arange(data.size) % 3, 1, -1).reshape(shape).astype(np.float32)
        )

    def number(self, value: float) -> int:
        return self.b.constant("number", np.array(value, np.float32))

    def do(self, operator: str, *operands: int, activation: str = "none") -> int:
        options = {"fused_activation_function": activation} if len(operands) > 1 else {}
        return self.b.add(operator, list(operands), self.shape, FLOAT, **options)

    def conv(self, x: int, bias: bool, activation: str = "none") -> int:
        given = [self.reals(4, 1, 1, 4), *([self.reals(4)] if bias else [-1])]
        options = {**WINDOW, "fused_activation_function": activation}
        return self.b.add("conv_2d", [x, *given], self.shape, FLOAT, **options)

    def dense(self, x: int, activation: str = "none") -> int:
        options = {"fused_activation_function": activation}
        return self.b.add("fully_connected", [x, self.reals(4, 4), self.reals(4)], self.shape, FLOAT, **options)

    def end(self, x: int) -> Graph:
        return self.b.build([self.b.add("tanh", [x], self.shape, FLOAT)])


def silu(gate_first: bool) -> Graph:
    w = Written()
    gate = w.do("logistic", w.x)
    return w.end(w.do("mul", *((gate, w.x) if gate_first else (w.x, gate))))


def softsign() -> Graph:
    w = Written()
    return w.end(w.do("div", w.x, w.do("add", w.do("abs", w.x), w.number(1.0))))


def behind(operator: str, constant: float | None, bias: bool, dense: bool = False, activation: str = "none") -> Graph:
    """A filter, and an operator with a constant behind it; None: one number a channel."""
    w = Written((6, 4) if dense else IMAGE)
    x = w.dense(w.x, activation) if dense else w.conv(w.x, bias, activation)
    return w.end(w.do(operator, x) if operator == "neg" else
                 w.do(operator, x, w.reals(4) if constant is None else w.number(constant)))  # fmt: skip


def two(first: bool, second: bool) -> Graph:
    w = Written()
    return w.end(w.conv(w.conv(w.x, first), second))


FOLDED = [("mul", None), ("add", None), ("div", None), ("mul", -0.5), ("div", 4.0), ("neg", 0.0)]
PAIR = ["conv_2d", "depthwise_conv_2d"]
FORMS: dict[str, tuple[Graph, Rule, list[str]]] = {
    **{f"silu {first}": (silu(first), fuse_silu, ["silu"]) for first in (False, True)},
    "softsign": (softsign(), fuse_softsign, ["softsign"]),
    **{f"{operator} {constant} {bias}": (behind(operator, constant, bias), fold_constants, ["conv_2d"])
       for operator, constant in FOLDED
       for bias in (False, True)},
    "add of one number": (behind("add", 0.5, True), fold_constants, ["conv_2d", "add"]),
    "mul behind a dense layer": (behind("mul", -0.5, True, True), fold_constants, ["fully_connected"]),
    "neg behind a dense layer": (behind("neg", 0.0, True, True), fold_constants, ["fully_connected"]),
    "a rectified filter": (behind("mul", None, True, False, "relu"), fold_constants, PAIR),
    "a rectified filter, a sum": (behind("add", None, True, False, "relu"), fold_constants, PAIR),
    **{f"a positive factor, {operator}": (behind(operator, 0.5, True, False, "relu"), fold_factors, ["conv_2d"])
       for operator in ("mul", "div")},
    "a negative factor": (behind("mul", -0.5, True, False, "relu"), fold_factors, ["conv_2d", "mul"]),
    "no factor": (behind("mul", 0.0, True, False, "relu"), fold_factors, ["conv_2d", "mul"]),
    "a positive factor of rows": (behind("mul", 0.5, True, True, "relu"), fold_factors, ["fully_connected"]),
    "factors of channels": (behind("mul", None, True, False, "relu"), fold_factors, ["conv_2d", "mul"]),
    **{f"two filters {first} {second}": (two(first, second), merge_pointwise, ["conv_2d"])
       for first in (False, True) for second in (False, True)},
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    graph, rule, operators = FORMS[name]
    found = rewritten(expand(graph), rule)
    assert [n.operator for n in found.nodes] == [*operators, "tanh"]
    assert np.allclose(outputs_of(found), outputs_of(graph), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("inputs", "middle", "outputs", "window", "merged"), [
    (40, 1, 40, 1, True), (40, 1, 41, 1, False), (41, 1, 40, 1, False), (80, 2, 80, 1, True), (80, 2, 81, 1, False),
    (22, 1, 220, 1, True), (60, 1, 30, 1, True), (60, 1, 31, 1, False), (20, 1, 90, 3, True), (21, 1, 1, 3, True),
    (24, 1, 60, 3, False), (25, 1, 20, 3, False), (23, 1, 70, 3, False), (30, 1, 6, 3, True), (30, 1, 7, 3, False),
])  # fmt: skip
def test_filters_that_would_grow_too_much_stay_two(
    inputs: int, middle: int, outputs: int, window: int, merged: bool
) -> None:
    """More than 20 times the weights of both: w2 has outputs x window^2 x middle, w1 middle x inputs."""
    assert merged is (outputs * inputs * window**2 <= 20 * (outputs * window**2 * middle + middle * inputs))
    b = GraphBuilder("two")
    x = b.input("x", (1, 4, 4, inputs), FLOAT)
    between = b.add("conv_2d", [x, b.constant("w1", np.ones((middle, 1, 1, inputs), np.float32)), -1],
                    (1, 4, 4, middle), FLOAT, **WINDOW)  # fmt: skip
    side = 5 - window
    y = b.add("conv_2d", [between, b.constant("w2", np.ones((outputs, window, window, middle), np.float32)), -1],
              (1, side, side, outputs), FLOAT, **WINDOW)  # fmt: skip
    assert len(rewritten(b.build([y]), merge_pointwise).nodes) == (1 if merged else 2)


@pytest.mark.parametrize("name", FORMS)
def test_what_is_nearby_computes_the_same(name: str) -> None:
    graph, rule, _ = FORMS[name]
    for number, other in enumerate(nearby(graph)):
        try:
            found = rewritten(expand(other), rule)
        except UnsupportedError:
            continue
        for made, wanted in zip(outputs_of(found), outputs_of(other), strict=True):
            assert np.allclose(made, wanted, rtol=1e-4, atol=1e-5, equal_nan=True), number
