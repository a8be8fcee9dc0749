"""Which values an input may have: indices must lie within what they index, and some inputs are shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError
from tflq.graph import ABSENT, Affine, Array, Graph, Node, Operands, Tensor

Bound = int | NDArray[np.int64]

# Integers that stand for nothing quantized: small enough that no sum or product of a few of them overflows, which C++
# leaves undefined.
_PLAIN_INTEGER_BOUND = 1000
# Operators that hand the values of their first input on, so that what is legal behind them is legal in front of them.
_VALUE_PRESERVING = {
    "reshape",
    "squeeze",
    "expand_dims",
    "cast",
    "transpose",
    "concatenation",
    "pack",
    "slice",
    "split",
}
# Operators that choose between values: what is legal behind them is a good draw in front of them, and not all that is
# legal there (Keras counts negative tokens from the end of a table: SELECT_V2 of x and x + rows).
_VALUE_CHOOSING = {"select": (1, 2), "select_v2": (1, 2), "maximum": (0, 1), "minimum": (0, 1)}


@dataclass(frozen=True)
class Legal:
    """The legal values of an integer tensor.

    Attributes:
        low: smallest value, one for all elements or an array that broadcasts against the tensor's shape.
        high: largest value, likewise.
        fixed: the one legal value, where the tensor states a shape; None elsewhere.
        is_sorted: whether values must not fall along the first axis.
        why: what asks for it, for messages; empty where only the type does.
    """

    low: Bound
    high: Bound
    fixed: Array | None = None
    is_sorted: bool = False
    why: str = ""


def legal_values(graph: Graph, tensor_index: int) -> Legal:
    """Return what is legal for a graph input: the values of its type, narrowed by the operators that read it.

    Quantized integers and integers of up to 16 bits use their whole range; wider plain integers are kept within
    +-1000 (only for drawing: `why` is empty, so nothing is refused). Real numbers have bounds where CAST makes indices
    of them.

    Raises:
        GraphError: an operator reads another number of values than the input has.
    """
    tensor = graph.tensors[tensor_index]
    for rule, node, operands, is_chosen in _readers(graph, tensor_index):
        found = rule(operands, node)
        if found is not None:
            _require_fit(found, tensor)
            return replace(found, why="") if is_chosen or not tensor.dtype.is_integer else found
    if not tensor.dtype.is_integer:
        return Legal(0, 0)
    kind = tensor.dtype
    if isinstance(tensor.quantization, Affine) or kind.bits <= 16:
        return Legal(kind.minimum, kind.maximum)
    return Legal(max(kind.minimum, -_PLAIN_INTEGER_BOUND), _PLAIN_INTEGER_BOUND)


Rule = Callable[[Operands, Node], Legal | None]


def _readers(graph: Graph, tensor_index: int) -> Iterator[tuple[Rule, Node, Operands, bool]]:
    """Yield the rules that bear on a tensor, looking through operators that hand values on or choose between them."""
    is_real = not graph.tensors[tensor_index].dtype.is_integer
    for number, node in enumerate(graph.nodes):
        if tensor_index not in node.inputs or (is_real and node.operator != "cast"):
            continue
        for position, t in enumerate(node.inputs):
            if t == tensor_index and t != ABSENT and (node.operator, position) in _RULES:
                yield _RULES[node.operator, position], node, graph.operands(number), False
        chosen = any(node.inputs[p] == tensor_index for p in _VALUE_CHOOSING.get(node.operator, ()))
        if chosen or (node.operator in _VALUE_PRESERVING and node.inputs[0] == tensor_index):
            for output in node.outputs:
                behind = (r for r in _readers(graph, output) if r[0] in _ELEMENTWISE)
                yield from ((*r[:3], chosen or r[3]) for r in behind)


def _require_fit(legal: Legal, tensor: Tensor) -> None:
    try:
        np.broadcast_shapes(np.shape(legal.high), tensor.shape)
    except ValueError:
        raise GraphError(f"input '{tensor.name}' has shape {tensor.shape}; it {legal.why}") from None


def _where(operands: Operands, what: str) -> str:
    return f"{operands.where} {what}"


def _gather(operands: Operands, node: Node) -> Legal:
    source, axis = operands.input(0), node.attributes.integer("axis", 0)
    size = source.shape[axis]
    return Legal(0, size - 1, why=_where(operands, f"indexes axis {axis} of '{source.name}', which has {size}"))


def _gather_nd(operands: Operands, _: Node) -> Legal:
    shape = operands.input(0).shape
    depth = operands.input(1).shape[-1]
    high = np.array(shape[:depth], np.int64) - 1
    return Legal(np.zeros_like(high), high, why=_where(operands, f"indexes a tensor of shape {shape}"))


def _embedding(operands: Operands, _: Node) -> Legal:
    rows = operands.input(1).shape[0]
    return Legal(0, rows - 1, why=_where(operands, f"indexes a table of {rows} rows"))


def _scatter_nd(operands: Operands, _: Node) -> Legal:
    shape = operands.output().shape
    high = np.array(shape[: operands.input(0).shape[-1]], np.int64) - 1
    return Legal(np.zeros_like(high), high, why=_where(operands, f"writes into a tensor of shape {shape}"))


def _segments(operands: Operands, node: Node) -> Legal | None:
    count = operands.output().shape[0] if operands.output().shape else 0
    is_sorted = node.operator == "segment_sum"
    return Legal(0, count - 1, is_sorted=is_sorted, why=_where(operands, f"has {count} segments")) if count else None


def _lengths(operands: Operands, node: Node) -> Legal:
    size = operands.input(0).shape[node.attributes.integer("seq_dim", 0)]
    return Legal(0, size, why=_where(operands, f"reverses a sequence of {size}"))


def _start(operands: Operands, node: Node) -> Legal:
    """Starts of a slice whose size is known: 0 .. size - part along each axis."""
    part = operands.input(1).shape if node.operator == "dynamic_update_slice" else operands.output().shape
    high = np.array(operands.input(0).shape, np.int64) - np.array(part, np.int64)
    return Legal(np.zeros_like(high), high, why=_where(operands, f"cuts {part} out of {operands.input(0).shape}"))


def _output_shape(operands: Operands, _: Node) -> Legal:
    return _fixed(operands, operands.output().shape, "states the shape of its output")


def _output_size(operands: Operands, _: Node) -> Legal:
    return _fixed(operands, operands.output().shape[1:3], "states the height and width of its output")


def _multiples(operands: Operands, _: Node) -> Legal:
    sizes = zip(operands.output().shape, operands.input(0).shape, strict=True)
    return _fixed(operands, tuple(out // max(one, 1) for out, one in sizes), "states how often its input repeats")


def _fixed(operands: Operands, values: tuple[int, ...], what: str) -> Legal:
    data = np.array(values, np.int64)
    return Legal(data, data, fixed=data, why=_where(operands, what))


_RULES: dict[tuple[str, int], Rule] = {
    ("gather", 1): _gather,
    ("gather_nd", 1): _gather_nd,
    ("embedding_lookup", 0): _embedding,
    ("embedding_lookup_sparse", 0): _embedding,
    ("scatter_nd", 0): _scatter_nd,
    ("segment_sum", 1): _segments,
    ("unsorted_segment_sum", 1): _segments,
    ("unsorted_segment_prod", 1): _segments,
    ("unsorted_segment_max", 1): _segments,
    ("unsorted_segment_min", 1): _segments,
    ("reverse_sequence", 1): _lengths,
    ("slice", 1): _start,
    ("dynamic_update_slice", 2): _start,
    ("reshape", 1): _output_shape,
    ("broadcast_to", 1): _output_shape,
    ("fill", 0): _output_shape,
    ("transpose_conv", 0): _output_shape,
    ("tile", 1): _multiples,
    ("resize_bilinear", 1): _output_size,
    ("resize_nearest_neighbor", 1): _output_size,
}
_ELEMENTWISE = (_gather, _embedding)
