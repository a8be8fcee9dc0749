"""Feat, Width and Height of element-wise layers, as NNTool passes them to AutoTiler.

Source: docs/targets/gap9.md#hand-over-to-greenwaves-flow.
"""

from __future__ import annotations

from math import isqrt, prod

from tflq.converters.gap9.operators import ACTIVATIONS, ARITHMETIC, FILTERS, GLOBAL_POOLS, POOLS, RESIZES
from tflq.converters.passes.patterns import joined
from tflq.graph import Node
from tflq.graph.rewriting import GraphEditor

Sizes = tuple[int, int, int]
_IMAGE_CHANNELS = (1, 3)
_JOINED = (*ARITHMETIC, "concatenation", "quantize", *ACTIVATIONS)
_FIRST = "transpose"


def lone_sizes(editor: GraphEditor, node: Node) -> Sizes:
    """Return (Feat, Width, Height) of an activation that stands alone.

    A map whose axes have names gives (C, W, H), as does one that stands channels first; else its axes are read in
    order, [H, W, C] as Feat, Height, Width. Between reshapes that undo each other it has the map's axes.
    """
    source, tensor = _unmoved(editor, node), node.outputs[0]
    shape = editor.tensors[source].shape
    if len(shape) == 4 and (_is_named(editor, source) or _is_channels_first(editor, tensor)):
        return shape[3], shape[2], shape[1]
    *before, height, width = 1, *shape
    return prod(before), width, height


def sum_sizes(editor: GraphEditor, node: Node) -> Sizes:
    """Return (Feat, Width, Height) of an Add: the axes of its map in order.

    Where the first operand has one axis, and all elements, 1 and the two factors of their number that are nearest to
    each other.
    """
    shape, first = editor.tensors[node.outputs[0]].shape, editor.tensors[node.inputs[0]]
    rank = len(first.shape) - (not first.is_constant)
    count = editor.tensors[node.outputs[0]].size
    if rank == 1 and first.size == count:
        less = next(n for n in range(isqrt(count), 0, -1) if count % n == 0)
        return 1, less, count // less
    if len(shape) == 4 and _is_channels_first(editor, node.outputs[0]):
        return shape[3], shape[1], shape[2]
    feat, width, height = [1, 1, 1, *shape[1:]][-3:]
    return feat, width, height


def _unmoved(editor: GraphEditor, node: Node) -> int:
    """Return what it reads, or the map in front of a reshape that the ones behind it undo."""
    writer = editor.writer(node.inputs[0])
    if writer is None or writer.operator != "reshape":
        return node.inputs[0]
    before, written = writer.inputs[0], node.outputs[0]
    readers = editor.readers(written)
    back = [
        reader.operator == "reshape" and editor.shape(reader.outputs[0]) == editor.shape(before) for reader in readers
    ]
    return before if back and all(back) and not editor.is_output(written) else node.inputs[0]


def _is_named(editor: GraphEditor, tensor: int) -> bool:
    """Whether NNTool knows which axis is which: of filters, pools and resizes, and of an input of 1 or 3 channels.

    What changes single elements keeps the names, a concatenation those of its first operand.
    """
    while (node := editor.writer(tensor)) is not None:
        if node.operator in (*FILTERS, *POOLS, *RESIZES) or node.name.endswith("_merged_split"):
            return True
        if node.operator not in ("concatenation", "quantize", *ACTIVATIONS):
            return False
        tensor = node.inputs[0]
    shape = editor.tensors[tensor].shape
    return tensor in editor.inputs and len(shape) == 4 and shape[3] in _IMAGE_CHANNELS


def _is_channels_first(editor: GraphEditor, tensor: int) -> bool:
    """Whether the transpose of a mean over height and width moves up to the graph's inputs.

    It does where all that is joined with the tensor element by element comes from inputs, and goes to such means,
    filters, pools, fully connected layers and outputs.
    """
    is_reduced = False
    for t in joined(editor, tensor, _JOINED):
        writer = editor.writer(t)
        around = [*editor.readers(t), *([writer] if writer is not None else ())]
        for node in (n for n in around if n.operator not in _JOINED):
            if node.operator == _FIRST and _is_of_a_mean(editor, node):
                is_reduced = True
            elif t in node.outputs or node.operator not in (*FILTERS, *POOLS, "reshape"):
                return False
    return is_reduced


def _is_of_a_mean(editor: GraphEditor, node: Node) -> bool:
    return any(reader.operator in GLOBAL_POOLS for reader in editor.readers(node.outputs[0]))
