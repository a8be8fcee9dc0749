"""Legal values of inputs: indices must be within the indexed axis, and some inputs are shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError
from tflq.graph import ABSENT, Affine, Array, Graph, Node, Operands, Tensor
from tflq.graph.operators import Trait, with_traits

Bound = int | NDArray[np.int64]

# Bound of integers that are not quantized: sums and products of a few of them do not overflow, which C++ leaves
# undefined.
_PLAIN_INTEGER_BOUND = 1000
# Operators that copy values of their first input: limits of their output are limits of their input.
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
# Operators that select values: the limits of their output are suitable for random inputs, but other values are legal,
# too (Keras counts negative tokens from the end of a table: SELECT_V2 of x and x + rows).
_VALUE_CHOOSING = {
    **dict.fromkeys(with_traits(Trait.CHOICE), (1, 2)),
    **dict.fromkeys(with_traits(Trait.EXTREME), (0, 1)),
}


@dataclass(frozen=True)
class Legal:
    """The legal values of an integer tensor.

    Attributes:
        low: Smallest value, one for all elements, or an array that broadcasts to the tensor's shape.
        high: Largest value, in the same form.
        fixed: The only legal value, for a tensor that states a shape; else None.
        is_sorted: True if values must not decrease along the first axis.
        why: Reason of the limits, for messages; empty for the limits of the type.
    """

    low: Bound
    high: Bound
    fixed: Array | None = None
    is_sorted: bool = False
    why: str = ""


def legal_values(graph: Graph, tensor_index: int) -> Legal:
    """Return the legal values of a graph input: the range of its type, restricted by the operators that read it.

    Quantized integers and integers of up to 16 bits have their full range; wider unquantized integers are restricted to
    +-1000 for random samples only (`why` is empty, so no value is refused). Floating-point inputs have limits if CAST
    converts them to indices.

    Raises:
        GraphError: An operator reads another number of values than the input has.
    """
    tensor = graph.tensors[tensor_index]
    for rule, node, operands, is_chosen in _readers(graph, tensor_index):
        legal = rule(operands, node)
        if legal is not None:
            _require_fit(legal, tensor)
            return replace(legal, why="") if is_chosen or not tensor.dtype.is_integer else legal
    if not tensor.dtype.is_integer:
        return Legal(0, 0)
    kind = tensor.dtype
    if isinstance(tensor.quantization, Affine) or kind.bits <= 16:
        return Legal(kind.minimum, kind.maximum)
    return Legal(max(kind.minimum, -_PLAIN_INTEGER_BOUND), _PLAIN_INTEGER_BOUND)


Rule = Callable[[Operands, Node], Legal | None]


def _readers(graph: Graph, tensor_index: int) -> Iterator[tuple[Rule, Node, Operands, bool]]:
    """Yield the rules that apply to a tensor, also through operators that copy or select values."""
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
                later = (r for r in _readers(graph, output) if r[0] in _ELEMENTWISE)
                yield from ((*r[:3], chosen or r[3]) for r in later)


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
    """Return the limits of a slice's start if its size is known: 0 .. size - part along each axis."""
    part = operands.input(1).shape if node.operator == "dynamic_update_slice" else operands.output().shape
    high = np.array(operands.input(0).shape, np.int64) - np.array(part, np.int64)
    return Legal(np.zeros_like(high), high, why=_where(operands, f"cuts {part} out of {operands.input(0).shape}"))


def _output_shape(operands: Operands, _: Node) -> Legal:
    return _fix_values(operands, operands.output().shape, "states the shape of its output")


def _output_size(operands: Operands, _: Node) -> Legal:
    return _fix_values(operands, operands.output().shape[1:3], "states the height and width of its output")


def _multiples(operands: Operands, _: Node) -> Legal:
    sizes = zip(operands.output().shape, operands.input(0).shape, strict=True)
    return _fix_values(operands, tuple(out // max(one, 1) for out, one in sizes), "states how often its input repeats")


def _fix_values(operands: Operands, values: tuple[int, ...], what: str) -> Legal:
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
