"""Slices of one tensor: a split if they partition an axis, or if there is one slice of one axis, as in NNTool's graphs.

Source: docs/rules/gap9/operators.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

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


@dataclass(frozen=True)
class Cut:
    """The part of a tensor that a slice with step 1 keeps.

    Attributes:
        starts: First index along each axis.
        sizes: Number of indices along each axis.
        axes: Axes that are cut.
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def axis(self) -> int:
        """The cut axis; 0, the batch axis, unless exactly one axis is cut."""
        return self.axes[0] if len(self.axes) == 1 else 0

    @property
    def start(self) -> int:
        """First index along the cut axis."""
        return self.starts[self.axis]

    @property
    def end(self) -> int:
        """End of the indices along the cut axis."""
        return self.start + self.sizes[self.axis]


def split_slices(editor: Gap9Editor) -> None:
    """Replace slices of one tensor by SPLIT_V where NNTool does.

    Equal slices are one slice. Several slices of a tensor become one split if each has step 1 and cuts the same single
    axis, none removes the axis, and they partition it; otherwise they stay. A single slice that cuts one axis becomes a
    split whose other pieces have no reader. An axis that a slice removes is removed by a RESHAPE `<slice>_0`.

    Swept on the live tool, both engines: 22 networks (partitions of channels, width, height and rank 2; removed axes;
    equal slices; steps above 1; pieces read by a ReLU, a sigmoid, a sum, an output). One answer differs: on SQ8, if a
    ReLU and a padded convolution request two scales for two pieces, NNTool uses the scale of the ReLU. The split of a
    single slice that removes an axis rests on one network.

    Raises:
        UnsupportedError: NNTool fails on a slice, with numerics=nntool.
    """
    for group in _slices_by_source(editor).values():
        cuts = [cut for node in group if (cut := find_cut(editor, node)) is not None]
        if len(cuts) < len(group):
            continue
        group, cuts = _merge_equal_slices(editor, group, cuts)
        removes_axes = any(len(editor.shape(n.outputs[0])) < len(c.sizes) for n, c in zip(group, cuts, strict=True))
        group = [_restore_axes(editor, node, cut) for node, cut in zip(group, cuts, strict=True)]
        if len(group) == 1 and cuts[0].axis:
            _split_alone(editor, group[0], cuts[0])
        elif len(group) > 1 and not removes_axes and _is_partition(editor.shape(group[0].inputs[0]), cuts):
            _join(editor, group, cuts)


def _slices_by_source(editor: Gap9Editor) -> dict[int, list[Node]]:
    sources: dict[int, list[Node]] = {}
    for node in editor.nodes:
        if has_trait(node, Trait.CROP):
            sources.setdefault(node.inputs[0], []).append(node)
    return sources


def _merge_equal_slices(editor: Gap9Editor, group: list[Node], cuts: list[Cut]) -> tuple[list[Node], list[Cut]]:
    """Return the different slices; readers of a repeated slice read the first one, unless both are graph outputs."""
    kept: dict[tuple[str, Cut, tuple[int, ...]], Node] = {}
    result = list[tuple[Node, Cut]]()
    for node, cut in zip(group, cuts, strict=True):
        first = kept.setdefault((node.operator, cut, editor.shape(node.outputs[0])), node)
        if first is node or (editor.is_output(first.outputs[0]) and editor.is_output(node.outputs[0])):
            result.append((node, cut))
        else:
            editor.redirect(node.outputs[0], first.outputs[0])
            editor.remove(node)
    return [node for node, _ in result], [cut for _, cut in result]


def find_cut(editor: Gap9Editor, node: Node) -> Cut | None:
    """Return the part that a slice keeps; None for steps other than 1, added axes, and a slice that keeps all."""
    shape, kept = editor.shape(node.inputs[0]), editor.shape(node.outputs[0])
    picks = [np.unique(_find_places(editor, node, axis)) for axis in range(len(shape))]
    sizes = tuple(pick.size for pick in picks)
    axes = tuple(axis for axis, (size, left) in enumerate(zip(shape, sizes, strict=True)) if size != left)
    is_box = len(kept) <= len(shape) and int(np.prod(sizes)) == int(np.prod(kept)) > 0
    if not axes or not is_box or any(np.any(np.diff(pick) != 1) for pick in picks) or _is_reversed(node, editor):
        return None
    return Cut(tuple(int(pick[0]) for pick in picks), sizes, axes)


def _is_reversed(node: Node, editor: Gap9Editor) -> bool:
    strides = editor.constant(node.inputs[3]) if node.operator == "strided_slice" else None
    return strides is not None and int(strides.min()) < 0


def _find_places(editor: Gap9Editor, node: Node, axis: int) -> Array:
    """Return the place along one axis of each element that the operator's own kernel keeps."""
    operands, shape = Operands.from_node(editor.tensors, node, editor.where(node)), editor.shape(node.inputs[0])
    places = np.arange(shape[axis], dtype=np.int64).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    image = np.broadcast_to(places, (1, *shape))
    rule = kernel("gap9", node.operator)
    (result,) = rule.run(rule.lower(node, operands), image, *(None,) * (len(node.inputs) - 1))
    kept: Array = result.squeeze(axis=0)
    return kept


def _restore_axes(editor: Gap9Editor, node: Node, cut: Cut) -> Node:
    """Let a slice keep the axes that it removes, with size 1, and let a RESHAPE remove them; return the slice."""
    kept = editor.shape(node.outputs[0])
    if node.operator != "strided_slice" or len(kept) == len(cut.sizes):
        return node
    name = node.name
    values = (cut.starts, [s + n for s, n in zip(cut.starts, cut.sizes, strict=True)], [1] * len(cut.sizes))
    inputs = [
        editor.add_tensor(constant(f"{name}_{end}", np.array(value, np.int32)))
        for end, value in zip(("begin", "end", "strides"), values, strict=True)
    ]
    masks = dict.fromkeys(("begin_mask", "end_mask", "shrink_axis_mask", "ellipsis_mask", "new_axis_mask"), 0)
    attributes = node.attributes.updated(**masks)
    node = editor.replace(node, replace(node, inputs=(node.inputs[0], *inputs), attributes=attributes))
    shape = editor.add_tensor(constant(f"{name}_shape", np.array(kept, np.int32)))
    reshape = Node("reshape", (-1, shape), (), Attributes({"layer": name}), f"{name}_0")
    whole = replace(editor.tensors[node.outputs[0]], name=name, shape=cut.sizes)
    editor.insert_after(node, reshape, whole)
    return editor.node(name)


def _is_partition(shape: Sequence[int], cuts: Sequence[Cut]) -> bool:
    """Whether slices cut one and the same axis, not the batch axis, into pieces without gap or overlap."""
    axis, pieces = cuts[0].axis, sorted(cuts, key=lambda cut: cut.start)
    if not axis or any(cut.axis != axis for cut in cuts):
        return False
    joins = all(a.end == b.start for a, b in pairwise(pieces))
    return joins and pieces[0].start == 0 and pieces[-1].end == shape[axis]


def _join(editor: Gap9Editor, group: Sequence[Node], cuts: Sequence[Cut]) -> None:
    """Replace slices that partition an axis by one split, `<slice at the start>_split`, with a piece a slice."""
    pairs = sorted(zip(group, cuts, strict=True), key=lambda pair: pair[1].start)
    first, axis = pairs[0][0], cuts[0].axis
    outputs = [node.outputs[0] for node, _ in pairs]
    split = _split(editor, first, axis, [cut.sizes[axis] for _, cut in pairs], outputs, f"{first.name}_split")
    for node in group[1:]:
        editor.remove(node)
    editor.replace(group[0], split)


def _split_alone(editor: Gap9Editor, node: Node, cut: Cut) -> None:
    """Replace a slice by a split into the piece in front of it, the slice and the piece behind it, if not empty."""
    fails = cut.start > 0 and _is_convolved(editor, node.outputs[0], editor.option(node).feature_bits)
    if fails and editor.is_vendor(node):
        raise UnsupportedError(f"{editor.where(node)}: {_FAILURE}; numerics=exact converts it")
    source, axis, outputs, unused = node.inputs[0], cut.axis, list[int](), list[int]()
    shape = editor.shape(source)
    sizes = (cut.start, cut.sizes[axis], shape[axis] - cut.end)
    for place, size in enumerate(sizes):
        if place == 1:
            outputs.append(node.outputs[0])
        elif size:
            piece = (*shape[:axis], size, *shape[axis + 1 :])
            outputs.append(derived_tensor(editor, source, f"{node.name}_unused{len(unused)}", piece))
            unused.append(len(outputs) - 1)
    split = _split(editor, node, axis, [s for s in sizes if s], outputs, node.name)
    split = replace(split, attributes=split.attributes.updated(**{UNUSED: tuple(unused)}))
    for text in filter(None, (_FAILURE if fails else "", vendor_failure(editor, node))):
        split = departing(split, text)
    editor.replace(node, split)


def _is_convolved(editor: Gap9Editor, tensor: int, feature_bits: int) -> bool:
    """Whether a convolution reads it: with 16-bit features any, else one with a kernel larger than 1x1."""
    kernels = [editor.shape(n.inputs[1])[1:3] for n in editor.readers(tensor) if n.operator == "conv_2d"]
    return any(feature_bits == 16 or kernel != (1, 1) for kernel in kernels)


def _split(editor: Gap9Editor, node: Node, axis: int, sizes: Sequence[int], outputs: Sequence[int], name: str) -> Node:
    lengths = editor.add_tensor(constant(f"{name}_sizes", np.array(sizes, np.int32)))
    place = editor.add_tensor(constant(f"{name}_axis", np.array(axis, np.int32)))
    attributes = Attributes({"layer": node.name, "num_splits": len(outputs)})
    return Node("split_v", (node.inputs[0], lengths, place), tuple(outputs), attributes, name)
