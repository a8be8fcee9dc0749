"""EXPRESSION of one type: the largest and smallest of real numbers are those of their codes, at every width."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from tflq.graph import Affine, Attributes, DType, Graph, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.gap9.expressions.tree import CONSTANT, INPUT, Symbol, Tree

SYMBOLS = [
    Symbol(INPUT, "", (), 1.0, (-1.5, 0.25)),
    Symbol(CONSTANT, "", (), -0.3),
    Symbol("pow", "a", (0, 1), 0.0, (0.0, 0.0)),
    Symbol("relu", "b", (2,)),
    Symbol("div", "-c", (3, 3), 0.0, (-2.0, 0.0)),
]


@pytest.mark.parametrize("outputs", [(4,), (2, 4), (0,)])
def test_attributes_hold_a_tree(outputs: tuple[int, ...]) -> None:
    for count in range(outputs[-1] + 1, len(SYMBOLS) + 1):
        tree = Tree(tuple(SYMBOLS[:count]), outputs)
        assert Tree.from_attributes(Attributes(tree.attributes())) == tree
        assert tree.shared_positions == tuple(
            i for i in (2, 3) if (i == 3 and count == 5) or (i == 2 and outputs == (2, 4))
        )


Kind = tuple[float, int, str]
KINDS = [(0.05, 0, "int8"), (0.05, -3, "int8"), (0.04, 117, "uint8"), (0.001, 0, "int16")]
WAYS = {"maximum": np.maximum, "minimum": np.minimum}


def extremes(kind: Kind, shapes: list[tuple[int, ...]], ways: list[str]) -> Graph:
    """One output a way: the largest, or smallest, of all inputs."""
    scale, zero_point, dtype = kind[0], kind[1], DType(kind[2])
    affine = Affine.per_tensor(scale, zero_point, dtype.bits, not kind[2].startswith("u"))
    range_ = (scale * (affine.minimum_code - zero_point), scale * (affine.maximum_code - zero_point))
    symbols = [Symbol(INPUT, "", (), float(i), range_) for i in range(len(shapes))]
    results = []
    for way in ways:
        last = 0
        for i in range(1, len(shapes)):
            symbols.append(Symbol(way, "m", (last, i), 0.0, range_))
            last = len(symbols) - 1
        results.append(last)
    b = GraphBuilder("extremes")
    inputs = [b.input(f"x{i}", shape, dtype, affine) for i, shape in enumerate(shapes)]
    shape = np.broadcast_shapes(*shapes)
    attributes = Tree(tuple(symbols), tuple(results)).attributes()
    outputs = [b.tensor(f"y_{way}", shape, dtype, affine) for way in ways]
    b.node("expression", inputs, outputs, **attributes)
    return b.build(outputs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shapes", [[(1, 5)], [(1, 5), (1, 5)], [(1, 3, 4), (4,)], [(2, 1, 3)] * 3])
@pytest.mark.parametrize("ways", [["maximum"], ["minimum"], ["maximum", "minimum"]])
def test_extremes(kind: Kind, shapes: list[tuple[int, ...]], ways: list[str]) -> None:
    graph = lower(extremes(kind, shapes, ways), "gap9")
    ends = np.iinfo(kind[2])
    random = np.random.default_rng(len(shapes))
    inputs = [random.integers(ends.min, ends.max, (3, *s), endpoint=True).astype(kind[2]) for s in shapes]
    found = Engine(graph).run(inputs)
    rank = max(map(len, shapes))
    wide = [x.reshape(3, *(1,) * (rank + 1 - x.ndim), *x.shape[1:]) for x in inputs]
    for way, t in zip(ways, graph.outputs, strict=True):
        assert found[t].tolist() == reduce(WAYS[way], wide).tolist()
        assert found[t].dtype == kind[2]
