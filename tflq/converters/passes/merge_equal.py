"""Equal nodes that read the same tensors become one."""

from __future__ import annotations

from collections.abc import Collection

from tflq.graph import Attribute, Node
from tflq.graph.rewriting import GraphEditor


def merge_equal(editor: GraphEditor, commutative: Collection[str] = (), *, keeps_ranges: bool = True) -> None:
    """Merge equal operators with the same inputs; remove unread nodes.

    Args:
        editor: Graph with ranges.
        commutative: Operators that are equal in any order of their inputs.
        keeps_ranges: True if nodes with different ranges of their results stay, and constants are equal by identity.
            False if constants of one element, shapes and axes are equal by value, and the name and range of the first
            node count, or of the one that writes an output of the graph.
    """
    seen: dict[tuple[str, tuple[object, ...]], list[Node]] = {}
    for name in [node.name for node in editor.nodes]:
        node = editor.node(name)
        inputs: tuple[object, ...] = node.inputs
        if node.operator in commutative:
            inputs = tuple(sorted(node.inputs))
        elif not keeps_ranges:
            inputs = tuple(_operand_key(editor, t) for t in node.inputs)
        twins = seen.setdefault((node.operator, inputs), [])
        twin = next((t for t in twins if _is_twin(editor, t, node, keeps_ranges)), None)
        if twin is None:
            twins.append(node)
            continue
        is_kept = not keeps_ranges and any(map(editor.is_output, node.outputs))
        kept, gone = (node, twin) if is_kept else (twin, node)
        for old, new in zip(gone.outputs, kept.outputs, strict=True):
            editor.redirect(old, new)
        if is_kept:
            editor.swap(twin, node)
        editor.remove(gone)
        twins[twins.index(twin)] = kept
    editor.remove_dead()


def _operand_key(editor: GraphEditor, t: int) -> object:
    """Return the value of a constant that is an attribute in other formats, else the index of the tensor."""
    data = editor.constant(t)
    if data is None or (data.size != 1 and data.dtype.kind == "f"):
        return t
    return data.dtype.str, data.shape, data.tobytes()


def _real_attributes(node: Node) -> dict[str, Attribute]:
    """Return the attributes that change a result in floating point and are not the default."""
    defaults = ("fused_activation_function", "none"), ("pot_scale_int16", True), ("pot_scale_int16", False)
    return {key: value for key, value in node.attributes.items() if (key, value) not in defaults}


def _is_twin(editor: GraphEditor, a: Node, b: Node, keeps_ranges: bool) -> bool:
    is_equal = a.attributes == b.attributes if keeps_ranges else _real_attributes(a) == _real_attributes(b)
    if not is_equal or len(a.outputs) != len(b.outputs):
        return False
    if any(map(editor.is_output, a.outputs)) and any(map(editor.is_output, b.outputs)):
        return False
    pairs = [(editor.tensors[x], editor.tensors[y]) for x, y in zip(a.outputs, b.outputs, strict=True)]
    return all((x.range == y.range or not keeps_ranges) and x.shape == y.shape for x, y in pairs)
