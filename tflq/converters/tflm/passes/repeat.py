"""TILE as concatenations, and concatenations of more operands than the kernel takes.

CONCATENATION takes ten operands. m copies are c copies of a block of q copies, and a rest: q = ceil(m / 10),
c = floor(m / q), rest m - c * q. Example: 33 = 8 * 4 + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflq.converters.passes.rewrite import derived_tensor
from tflq.converters.tflite_quantizer.rules import version_of
from tflq.converters.tflm.kernels import LARGEST_CONCATENATION
from tflq.graph import Attributes, Node
from tflq.graph.rewriting import GraphEditor


def replace_tiles(editor: GraphEditor) -> None:
    """Replace TILE with constant multiples by CONCATENATION along each axis that it repeats."""
    for node in editor.nodes_of("tile"):
        multiples = editor.constant(node.inputs[1])
        if multiples is None:
            continue
        t = node.inputs[0]
        repeated = [(axis, int(count)) for axis, count in enumerate(multiples) if count > 1]
        for axis, count in repeated:
            t = _repeat(editor, node, t, axis, count)
        if 0 not in multiples:
            _finish(editor, node, t)


def split_concatenations(editor: GraphEditor) -> None:
    """Replace a CONCATENATION of more than ten operands by concatenations of their parts."""
    for node in editor.nodes_of("concatenation"):
        parts = node.inputs
        axis = node.attributes.integer("axis") % len(editor.shape(node.outputs[0]))
        while len(parts) > LARGEST_CONCATENATION:
            groups = [parts[i : i + LARGEST_CONCATENATION] for i in range(0, len(parts), LARGEST_CONCATENATION)]
            parts = tuple(g[0] if len(g) == 1 else join(editor, node, g, axis) for g in groups)
        if parts != node.inputs:
            editor.change(node, inputs=parts)


def join(editor: GraphEditor, before: Node, parts: Sequence[int], axis: int) -> int:
    """Add a CONCATENATION before a node and return its result."""
    first = editor.tensors[parts[0]]
    shape = list(first.shape)
    shape[axis] = sum(editor.shape(t)[axis] for t in parts)
    number = len(editor.tensors)
    result = derived_tensor(editor, parts[0], f"{editor.tensors[before.outputs[0]].name};joined{number}", tuple(shape))
    attributes = Attributes({"axis": axis, "fused_activation_function": "none"})
    node = Node("concatenation", tuple(parts), (result,), attributes, f"{before.name}_joined")
    editor.add(replace(node, version=version_of("concatenation", first.dtype)), before=before)
    return result


def _repeat(editor: GraphEditor, before: Node, t: int, axis: int, count: int) -> int:
    if count == 1:
        return t
    if count <= LARGEST_CONCATENATION:
        return join(editor, before, [t] * count, axis)
    size = -(-count // LARGEST_CONCATENATION)
    block = _repeat(editor, before, t, axis, size)
    rest = count % size
    parts = [block] * (count // size) + ([_repeat(editor, before, t, axis, rest)] if rest else [])
    return join(editor, before, parts, axis)


def _finish(editor: GraphEditor, node: Node, t: int) -> None:
    """Let `t` be the result of a node that is removed; an output of the graph keeps its tensor."""
    (result,) = node.outputs
    writer = editor.writer(t)
    if writer is not None and t not in node.inputs:
        editor.remove(node)
        editor.change(writer, outputs=(result,))
    elif editor.is_output(result):
        shape = editor.shape(result)
        attributes = Attributes({"new_shape": tuple(shape)})
        editor.replace(node, Node("reshape", (t,), (result,), attributes, node.name))
    else:
        editor.bypass(node)
