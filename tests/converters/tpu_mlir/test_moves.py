"""Ranges go back through what TPU-MLIR has as one layer; each case is as the live tool lowers it (scripts/peer)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import quantized
from tests.support.float_networks import Network, image
from tflq.graph import Attributes, DType, Graph, Node, Range

Move = tuple[int, ...] | str
"""The shape that a reshape gives, or the order of a transposition, as digits."""
Source = Callable[[Network], int]


def filtered(channels: int) -> Source:
    return lambda b: b.conv(image(b), channels)


def summed(*shape: int) -> Source:
    return lambda b: b.do("add", b.real("v", shape), b.real("w", shape))


def moved(b: Network, x: int, move: Move) -> int:
    if isinstance(move, tuple):
        return b.do("reshape", x, b.whole(*move), shape=move)
    order = [int(axis) for axis in move]
    return b.do("transpose", x, b.whole(*order), shape=tuple(b.shapes[x][axis] for axis in order))


def network(source: Source, moves: tuple[Move, ...], operator: str, shared: int = -1) -> tuple[Graph, str]:
    """A source, what moves it, and a reader with another operand; also the source's name.

    Ranges: 1 of the source and what is moved, 2 of what is read beside it, 3 of the result.
    """
    b = Network()
    own = [source(b)]
    for move in moves:
        own.append(moved(b, own[-1], move))
    shape = b.shapes[own[-1]]
    axis = len(shape) - 1
    other = b.do("add", b.real("y", shape), b.real("z", shape))
    joined = shape if operator == "maximum" else (*shape[:axis], 2 * shape[axis])
    options = {} if operator == "maximum" else {"axis": axis}
    y = b.do(operator, own[-1], other, shape=joined, **options)
    outputs = [y]
    if shared >= 0:
        outputs.append(b.do("add", own[shared], b.real("q", b.shapes[own[shared]])))
    graph = b.build(outputs)
    limits = {**dict.fromkeys(own, 1.0), other: 2.0, y: 3.0}
    for t, tensor in enumerate(graph.tensors):
        if not tensor.is_constant:
            high = np.array([limits.get(t, 1.0)], np.float32)
            graph.tensors[t] = replace(tensor, range=Range(-high, high))
    return graph, graph.tensors[own[0]].name


IMAGE = (1, 10, 3, 4)
CASES: list[tuple[Source, tuple[Move, ...], int, bool]] = [
    (filtered(4), (IMAGE,), -1, True),  # channels stay: one reshape
    (filtered(4), ((1, 30, 1, 4),), -1, True),
    (filtered(4), ((1, 10, 4, 3),), -1, False),  # they do not: permuted, reshaped, permuted
    (filtered(4), ((1, 30, 4), IMAGE), -1, True),
    (filtered(4), ((1, 10, 4, 3), (1, 3, 10, 4)), -1, True),
    (filtered(4), ((1, 30, 4), "021"), -1, True),
    (filtered(4), ((1, 30, 4), "021"), 1, False),  # read on the way
    (filtered(4), ((1, 30, 4),), -1, False),  # permuted, reshaped
    (filtered(1), ((1, 30, 1),), -1, True),  # of one channel nothing is permuted
    (filtered(1), ((1, 5, 2, 3),), -1, False),
    (filtered(4), ((1, 10, 12, 1),), -1, False),
    (summed(1, 4, 30), ("021", IMAGE), -1, True),
    (summed(1, 24), ((1, 4, 6), (1, 2, 12)), -1, True),
    (summed(2, 5, 6, 4), ((2, 10, 3, 4),), -1, True),
    (summed(2, 5, 6, 4), ((1, 20, 3, 4),), -1, False),
    (summed(1, 4, 5, 6), ("0213", "0231"), -1, True),
]


@pytest.mark.parametrize("operator", ["concatenation", "maximum"])
@pytest.mark.parametrize(("source", "moves", "shared", "is_one"), CASES)
def test_ranges_go_back_through_one_layer(
    source: Source, moves: tuple[Move, ...], shared: int, is_one: bool, operator: str
) -> None:
    graph, name = network(source, moves, operator, shared)
    found = quantized(graph)
    (scale,) = (t.affine.scale[0] for t in found.tensors if t.name in (f"{name}_Conv", f"{name}_Add"))
    assert scale == (3.0 if is_one else 1.0) / 127


def test_a_reshape_that_leaves_the_channels_moves_reals() -> None:
    """In the live tool, too: named after what it reads, nothing is quantized between two differences in float32."""
    b = Network()
    x = b.do("sub", b.conv(image(b), 4), b.conv(b.real("y"), 4))
    y = b.do("sub", moved(b, x, IMAGE), b.conv(b.real("z", IMAGE), 4))
    graph = b.build([b.conv(y, 3)])
    for t, tensor in enumerate(graph.tensors):
        if not tensor.is_constant:
            one = np.ones(1, np.float32)
            graph.tensors[t] = replace(tensor, range=Range(-one, one))
    found = quantized(graph, ["asymmetric=true"])
    (node,) = (n for n in found.nodes if n.operator == "reshape")
    read, made = (found.tensors[t] for t in (node.inputs[0], node.outputs[0]))
    assert (read.dtype, made.dtype) == (DType.FLOAT32, DType.FLOAT32)
    assert made.name == f"{graph.tensors[x].name}_Sub_r_Reshape"


def test_what_is_joined_to_itself_gives_its_range() -> None:
    """As the live tool has it: the smaller of a logistic and itself has S = 1/255."""
    b = Network()
    s = b.do("logistic", image(b))
    graph = b.build([b.do("minimum", s, s)])
    for t, tensor in enumerate(graph.tensors):
        graph.tensors[t] = replace(tensor, range=Range(np.zeros(1, np.float32), np.full(1, 0.9, np.float32)))
    made = quantized(graph)
    (found,) = (n for n in made.nodes if n.operator == "minimum")
    assert made.tensors[found.outputs[0]].affine.scale[0] == 1 / 255


@pytest.mark.parametrize("operator", ["concatenation", "maximum"])
@pytest.mark.parametrize(
    ("source", "moves"),
    [(filtered(4), (IMAGE,)), (summed(1, 4, 5, 6), ("0213", "0231")), (filtered(1), ((1, 10, 3, 1),))],
)
def test_a_pool_of_maxima_beside_does_not_count(source: Source, moves: tuple[Move, ...], operator: str) -> None:
    """Section 3, 5: what is read by it, too, is alone, and the range goes back through the layer in front."""
    graph, name = network(source, moves, operator)
    (joined,) = (n for n in graph.nodes if n.operator == operator)
    x = graph.tensors[joined.inputs[0]]
    shape = (x.shape[0], x.shape[1] - 1, *x.shape[2:])
    y = graph.add_tensor(replace(x, name="pooled", shape=shape))
    window = {"padding": "valid", "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 1}
    attributes = Attributes({**window, "fused_activation_function": "none"})
    graph.nodes.append(Node("max_pool_2d", (joined.inputs[0],), (y,), attributes=attributes, name="pool"))
    graph = replace(graph, outputs=(*graph.outputs, y))
    (scale,) = (t.affine.scale[0] for t in quantized(graph).tensors if t.name in (f"{name}_Conv", f"{name}_Add"))
    assert scale == 3.0 / 127
