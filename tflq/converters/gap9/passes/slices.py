"""A slice along one axis is a split whose other pieces nobody reads, as in NNTool's graphs."""

from __future__ import annotations

import numpy as np

from tflq.converters.gap9.check import vendor_failure
from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import departing
from tflq.converters.passes.rewrite import constant, derived_tensor
from tflq.errors import UnsupportedError
from tflq.graph import Array, Attributes, Node, Operands
from tflq.graph.operators import Trait, has_trait
from tflq.interpreter.registry import kernel

UNUSED = "unused_pieces"
"""Attribute: the outputs that nobody reads; they count as graph outputs where types are chosen."""
_FAILURE = "NNTool fails on a slice that drops what stands in front, and the convolution behind it (17.11)"


def split_slices(editor: Gap9Editor) -> None:
    """Replace slices with step 1 that cut one axis alone by SPLIT_V.

    Raises:
        UnsupportedError: NNTool fails on a slice, with numerics=nntool.
    """
    for node in editor.nodes:
        cut = _cut(editor, node) if has_trait(node, Trait.CROP) else None
        if cut is None:
            continue
        fails = cut[1] > 0 and _is_convolved(editor, node.outputs[0], editor.option(node).feature_bits)
        if fails and editor.is_vendor(node):
            raise UnsupportedError(f"{editor.where(node)}: {_FAILURE}; numerics=exact converts it")
        split = _split(editor, node, *cut)
        for text in filter(None, (_FAILURE if fails else "", vendor_failure(editor, node))):
            split = departing(split, text)
        editor.replace(node, split)


def _is_convolved(editor: Gap9Editor, tensor: int, feature_bits: int) -> bool:
    """Whether a convolution reads it: with 16-bit features any, else one with a kernel larger than 1x1."""
    kernels = [editor.shape(n.inputs[1])[1:3] for n in editor.readers(tensor) if n.operator == "conv_2d"]
    return any(feature_bits == 16 or kernel != (1, 1) for kernel in kernels)


def _cut(editor: Gap9Editor, node: Node) -> tuple[int, int, int] | None:
    """Return axis, first and count of the slice; None if it is more than a cut along one axis."""
    shape, kept = editor.shape(node.inputs[0]), editor.shape(node.outputs[0])
    if len(shape) != len(kept):
        return None
    axes = [a for a, (size, left) in enumerate(zip(shape, kept, strict=True)) if size != left]
    if len(axes) != 1 or axes[0] == 0:
        return None
    axis = axes[0]
    picked = _picked(editor, node, axis)
    return (axis, int(picked.min()), kept[axis]) if picked.size and np.all(np.diff(picked, axis=axis) == 1) else None


def _picked(editor: Gap9Editor, node: Node, axis: int) -> Array:
    """Return the place along one axis of each element that the operator's own kernel keeps."""
    operands, shape = Operands.from_node(editor.tensors, node, editor.where(node)), editor.shape(node.inputs[0])
    places = np.arange(shape[axis], dtype=np.int64).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    image = np.broadcast_to(places, (1, *shape))
    rule = kernel("gap9", node.operator)
    (result,) = rule.run(rule.lower(node, operands), image, *(None,) * (len(node.inputs) - 1))
    kept: Array = result.squeeze(axis=0)
    return kept


def _split(editor: Gap9Editor, node: Node, axis: int, first: int, count: int) -> Node:
    """Return the split into the piece in front of the slice, the slice and the piece behind it, without empty ones."""
    source, (written, *_) = node.inputs[0], node.outputs
    shape, name = editor.shape(source), node.name
    sizes = (first, count, shape[axis] - first - count)
    outputs, unused = list[int](), list[int]()
    for place, size in enumerate(sizes):
        if place == 1:
            outputs.append(written)
        elif size:
            piece = (*shape[:axis], size, *shape[axis + 1 :])
            outputs.append(derived_tensor(editor, source, f"{name}_unused{len(unused)}", piece))
            unused.append(len(outputs) - 1)
    lengths = editor.add_tensor(constant(f"{name}_sizes", np.array([s for s in sizes if s], np.int32)))
    place = editor.add_tensor(constant(f"{name}_axis", np.array(axis, np.int32)))
    attributes = Attributes({"layer": name, "num_splits": len(outputs), UNUSED: tuple(unused)})
    return Node("split_v", (source, lengths, place), tuple(outputs), attributes, name)
