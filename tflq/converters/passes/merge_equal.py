"""Equal nodes that read the same tensors become one."""

from __future__ import annotations

from collections.abc import Collection

from tflq.graph import Node
from tflq.graph.rewriting import GraphEditor


def merge_equal(editor: GraphEditor, commutative: Collection[str] = ()) -> None:
    """Merge equal operators with the same inputs and equal ranges of their results; remove unread nodes.

    Args:
        editor: Graph with ranges.
        commutative: Operators that are equal in any order of their inputs.
    """
    seen: dict[tuple[str, tuple[int, ...]], list[Node]] = {}
    for name in [node.name for node in editor.nodes]:
        node = editor.node(name)
        inputs = tuple(sorted(node.inputs)) if node.operator in commutative else node.inputs
        twins = seen.setdefault((node.operator, inputs), [])
        twin = next((t for t in twins if _is_twin(editor, t, node)), None)
        if twin is None:
            twins.append(node)
            continue
        for old, new in zip(node.outputs, twin.outputs, strict=True):
            editor.redirect(old, new)
        editor.remove(node)
    editor.remove_dead()


def _is_twin(editor: GraphEditor, a: Node, b: Node) -> bool:
    if a.attributes != b.attributes or len(a.outputs) != len(b.outputs):
        return False
    if any(map(editor.is_output, a.outputs)) and any(map(editor.is_output, b.outputs)):
        return False
    pairs = [(editor.tensors[x], editor.tensors[y]) for x, y in zip(a.outputs, b.outputs, strict=True)]
    return all(x.range == y.range and x.shape == y.shape for x, y in pairs)
