"""What a graph costs: the memory of activations over the execution order, and multiply-accumulates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from tflq.errors import GraphError
from tflq.graph.graph import ABSENT, Graph, Node, Operands, Tensor

ALIGNMENT = 16
"""Bytes; what TFLite Micro aligns its buffers to."""
_Rule = Callable[[Operands, Node], int]


@dataclass(frozen=True)
class Buffer:
    """One tensor in the arena.

    Attributes:
        tensor: its index.
        first: operator at which it must be there; -1 for what is there from the start.
        last: the last operator that needs it; the number of operators for what stays to the end.
        size: bytes.
        offset: where the plan puts it.
    """

    tensor: int
    first: int
    last: int
    size: int
    offset: int


@dataclass(frozen=True)
class Arena:
    """The activations of a graph, one sample.

    Attributes:
        buffers: in order of the tensors.
        live_bytes: for each operator, the sum of the tensors that must be there while it runs.
        planned_bytes: size of the arena that the plan needs: at least the largest sum.
    """

    buffers: tuple[Buffer, ...]
    live_bytes: tuple[int, ...]
    planned_bytes: int

    @property
    def peak_bytes(self) -> int:
        """The largest sum: no plan needs less."""
        return max(self.live_bytes, default=0)

    @property
    def peak_operator(self) -> int | None:
        """The first operator at which the sum is largest; None without operators."""
        return self.live_bytes.index(self.peak_bytes) if self.live_bytes else None

    def alive_at(self, operator: int) -> tuple[Buffer, ...]:
        """Return the tensors that must be there while an operator runs, the largest first."""
        found = [b for b in self.buffers if b.first <= operator <= b.last]
        return tuple(sorted(found, key=lambda b: (-b.size, b.tensor)))


def arena_of(graph: Graph) -> Arena:
    """Return who is alive when, and a plan.

    A tensor is alive from the operator that writes it to the last one that reads it; inputs from the start to their
    last reader, outputs and variables to the end. Constants lie elsewhere. The plan puts the largest tensors first,
    each at the lowest offset where it meets none that is alive with it; offsets are multiples of 16.

    Source: Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, arXiv:2001.03288, greedy by
    size; TFLite Micro's GreedyMemoryPlanner does the same.
    """
    lives = _lives(graph)
    buffers: list[Buffer] = []
    for t in sorted(lives, key=lambda t: (-tensor_bytes(graph.tensors[t]), lives[t][0], t)):
        first, last = lives[t]
        size = tensor_bytes(graph.tensors[t])
        buffers.append(Buffer(t, first, last, size, _lowest_gap(buffers, first, last, size)))
    live = tuple(sum(b.size for b in buffers if b.first <= i <= b.last) for i in range(len(graph.nodes)))
    planned = max((b.offset + b.size for b in buffers), default=0)
    return Arena(tuple(sorted(buffers, key=lambda b: b.tensor)), live, planned)


def tensor_bytes(tensor: Tensor) -> int:
    """Return the size of one sample in bytes, types below a byte packed; strings count their bytes where known."""
    if tensor.dtype.bits == 0:
        return sum(len(text) for text in tensor.data.ravel().tolist()) if tensor.data is not None else 0
    return (tensor.size * tensor.dtype.bits + 7) // 8


def _lives(graph: Graph) -> dict[int, tuple[int, int]]:
    """Return (first, last) operator of each tensor that is no constant and that anything touches."""
    lives: dict[int, tuple[int, int]] = dict.fromkeys(graph.inputs, (-1, -1))
    for index, node in enumerate(graph.nodes):
        for t in (*node.inputs, *node.outputs):
            if t != ABSENT:
                lives[t] = (lives[t][0] if t in lives else index, index)
    end = len(graph.nodes)
    lives.update({t: (lives[t][0], end) for t in graph.outputs if t in lives})
    lives.update({t: (-1, end) for t in lives if graph.tensors[t].is_variable})
    return {t: life for t, life in lives.items() if not graph.tensors[t].is_constant}


def _lowest_gap(placed: list[Buffer], first: int, last: int, size: int) -> int:
    """Return the lowest aligned offset at which nothing lies that is alive at the same time."""
    offset = 0
    for other in sorted(placed, key=lambda b: b.offset):
        if other.last < first or last < other.first:
            continue
        if offset + size <= other.offset:
            break
        offset = max(offset, -(-(other.offset + other.size) // ALIGNMENT) * ALIGNMENT)
    return offset


def macs(graph: Graph, index: int) -> int:
    """Return the multiply-accumulates of node `index` for one sample; 0 for operators that have no weights to multiply.

    conv_2d, conv_3d:     N * output positions * C_out * filter positions * C_in / groups
    depthwise_conv_2d:    N * output positions * C_out * filter positions
    transpose_conv:       N * input positions * C_in * filter positions * C_out
    fully_connected:      rows * C_in * C_out
    batch_matmul:         output elements * the inner size

    Compass's layers likewise: convolution, depthwise_conv, convolution_3d, conv_transpose, mat_mul.

    Padded positions count, as they do in the figures that vendors publish.
    """
    rule = _RULES.get(graph.nodes[index].operator)
    if rule is None:
        return 0
    operands = graph.operands(index)
    try:
        return rule(operands, graph.nodes[index])
    except (GraphError, IndexError):  # a malformed operator: whoever runs it says so
        return 0


def precision(graph: Graph, index: int) -> str:
    """Return the types of what node `index` multiplies: "int8 x int4", input times weights."""
    operands = graph.operands(index)
    first, second = (2, 1) if graph.nodes[index].operator == "transpose_conv" else (0, 1)
    return f"{operands.input(first).dtype.value} x {operands.input(second).dtype.value}"


def _outputs_by(first: int, last: int | None = None) -> _Rule:
    """Count the output's elements times some of the weights' axes."""
    return lambda operands, _: operands.output().size * prod(operands.input(1).shape[first:last])


def _inputs_by_filters(position: int) -> _Rule:
    """Count the elements of an input times the first three axes of the weights, which scatter each of them."""
    return lambda operands, _: operands.input(position).size * prod(operands.input(1).shape[:3])


def _dense(operands: Operands, _: Node) -> int:
    return operands.output().size * operands.input(1).shape[-1]


def _matrix_product(operands: Operands, node: Node, is_turned: str = "adj_x") -> int:
    left = operands.input(0).shape
    return operands.output().size * left[-2 if node.attributes.boolean(is_turned, False) else -1]


_RULES: dict[str, _Rule] = {
    "conv_2d": _outputs_by(1),
    "conv_3d": _outputs_by(0, 4),
    "depthwise_conv_2d": _outputs_by(1, 3),
    "transpose_conv": _inputs_by_filters(2),
    "fully_connected": _dense,
    "batch_matmul": _matrix_product,
    "convolution": _outputs_by(1),
    "convolution_3d": _outputs_by(1),
    "depthwise_conv": _outputs_by(1),
    "conv_transpose": _inputs_by_filters(0),
    "mat_mul": lambda operands, node: _matrix_product(operands, node, "trans_a"),
}
