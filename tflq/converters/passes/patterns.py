"""Questions that passes ask of a graph, and its two layouts.

Channels last, as TFLite has tensors of four axes, and channels first, as most other formats have them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tflq.graph import ABSENT, Graph, Node, Tensor
from tflq.graph.rewriting import GraphEditor

Readers = Mapping[int, Sequence[int]]
"""Tensor -> the nodes that read it, as `Graph.consumers` gives it."""


def bias_of(graph: Graph | GraphEditor, filter_: Node) -> Tensor | None:
    """Return the bias of a convolution or fully connected layer, its input 2; None where it has none."""
    given = len(filter_.inputs) > 2 and filter_.inputs[2] != ABSENT
    return graph.tensors[filter_.inputs[2]] if given else None


def only_reader(graph: Graph, tensor: int, readers: Readers) -> int | None:
    """Return the node that alone reads a tensor, once; None where several read it, or it is an output.

    Args:
        graph: with the tensor.
        tensor: its index.
        readers: `graph.consumers()`.
    """
    found = readers.get(tensor, ())
    return found[0] if len(found) == 1 and tensor not in graph.outputs else None


def computed_inputs(graph: Graph | GraphEditor, node: Node) -> list[tuple[int, int]]:
    """Return (position, tensor) of the inputs that are neither absent nor constant."""
    return [(p, t) for p, t in enumerate(node.inputs) if t != ABSENT and not graph.tensors[t].is_constant]


def constant_operand(graph: Graph | GraphEditor, node: Node) -> int | None:
    """Return the position of the first constant operand; None where all are computed."""
    return next((p for p, t in enumerate(node.inputs) if t != ABSENT and graph.tensors[t].is_constant), None)


TO_FIRST = (0, 3, 1, 2)
"""Order of the axes [N, H, W, C] in [N, C, H, W]."""
TO_LAST = (0, 2, 3, 1)


def joined(editor: GraphEditor, tensor: int, operators: Collection[str]) -> list[int]:
    """Return the computed tensors that nodes of these operators join with one, as operands or results; itself first."""
    tensors = [tensor]
    for t in tensors:
        writer = editor.writer(t)
        around = [*editor.readers(t), *([writer] if writer is not None else ())]
        reached = (other for node in around if node.operator in operators for other in (*node.inputs, *node.outputs))
        for other in reached:
            if other != ABSENT and other not in tensors and not editor.tensors[other].is_constant:
                tensors.append(other)
    return tensors


def shape_first(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape with channels first; of other ranks than 4 as it is."""
    return tuple(shape[axis] for axis in TO_FIRST) if len(shape) == 4 else tuple(shape)


def axis_first(axis: int, rank: int) -> int:
    """Return where an axis stands with channels first; negative ones count from the back."""
    return TO_FIRST.index(axis % rank) if rank == 4 else axis % rank


def order_first(order: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of a transposition with channels first on both sides."""
    return tuple(TO_FIRST.index(order[a]) for a in TO_FIRST) if len(order) == 4 else tuple(order)
