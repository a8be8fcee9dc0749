"""Which operators become one expression: connected ones, cut where a value comes back through a node outside."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tflq.converters.calibration.calibrate import DIFFERENCE_RANGE
from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import ARITHMETIC, RECTIFIERS
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.passes.patterns import computed_inputs, constant_operand
from tflq.errors import UnsupportedError
from tflq.graph import Node
from tflq.graph.rewriting import GraphEditor

NEEDING = frozenset(
    ("div", "maximum", "minimum", "pow", "squared_difference", "abs", "exp", "sqrt", "rsqrt", "sin", "cos")
)
"""Operators that NNTool has as parts of expressions only."""
ACTIVATIONS = frozenset((*RECTIFIERS, "tanh", "logistic", "hard_sigmoid"))
CANDIDATES = NEEDING | ACTIVATIONS | {*ARITHMETIC}

COPY = "copy"
"""Takes part like a candidate: hands a tensor on."""


def is_matching(editor: Gap9Editor) -> bool:
    """Whether the matcher runs: setting expressions, or with "auto" an operator that needs it."""
    chosen = next((options.expressions for options in editor.options.values()), "auto")
    return chosen == "true" or (chosen == "auto" and any(node.operator in NEEDING for node in editor.nodes))


def expression_problem(editor: GraphEditor, node: Node, options: LayerOptions) -> str:
    """Say why an operator cannot become part of an expression; "" where it can."""
    if options.expressions == "false":
        return "NNTool takes it as a part of an expression only: set expressions=auto or true"
    if node.operator == "squared_difference" and DIFFERENCE_RANGE not in node.attributes:
        return (
            "NNTool computes it from two differences, and no file holds their range: give the float model, and "
            "calibrate it with samples"
        )
    return _exponent_problem(editor, node) if node.operator == "pow" else ""


def _exponent_problem(editor: GraphEditor, node: Node) -> str:
    """NNTool takes one constant 1, 2, or between 0 and 1, rounded to 4 decimals; of an int8 file the code itself."""
    allowed = "NNTool takes one constant 1, 2 or between 0 and 1"
    exponent = editor.tensors[node.inputs[1]]
    if constant_operand(editor, node) != 1 or exponent.data is None or exponent.size != 1:
        return f"its exponent is no constant of one element; {allowed}"
    p = float(np.round(float(exponent.data.reshape(-1)[0]), 4))
    return "" if p in (1.0, 2.0) or 0 < p < 1 else f"its exponent is {p:g} as NNTool reads it; {allowed}"


Group = tuple[Node, ...]
"""Nodes in order of execution."""


def groups_of(editor: GraphEditor) -> list[Group]:
    """Return the groups, in the order in which NNTool numbers them: by the sorted names of their nodes.

    Alone stay an Add of two equal shapes, a ReLU, a sigmoid and a tanh; the nodes of a fusion take no part.

    Raises:
        UnsupportedError: a group that a value enters again at several places.
    """
    groups = [part for group in _connected(editor) for part in _cut(editor, group)]
    kept = [group for group in groups if not _stays_alone(editor, group)]
    return sorted(kept, key=lambda group: "".join(sorted(node.name for node in group)))


def _takes_part(editor: GraphEditor, node: Node) -> bool:
    return (
        node.operator in (*CANDIDATES, COPY)
        and "fusion" not in node.attributes
        and all(editor.tensors[t].range is not None for t in node.outputs)
    )


def _connected(editor: GraphEditor) -> list[Group]:
    """Return the connected components; an edge in either direction joins, and a tensor that two of them read."""
    members = {node.name: node for node in editor.nodes if _takes_part(editor, node)}
    readers, root = dict[int, str](), {name: name for name in members}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    for name, node in members.items():
        for _, t in computed_inputs(editor, node):
            writer = editor.writer(t)
            is_inside = writer is not None and writer.name in members
            first = writer.name if writer is not None and is_inside else readers.setdefault(t, name)
            root[find(name)] = find(first)
    groups: dict[str, list[Node]] = {}
    for name, node in members.items():
        groups.setdefault(find(name), []).append(node)
    return [tuple(group) for group in groups.values()]


def _cut(editor: GraphEditor, group: Group) -> list[Group]:
    """Return the group, or the part above the node where a value of it comes back, and the rest."""
    inside, come_back = {node.name for node in group}, set[int]()
    written = {t for node in group for t in node.outputs}
    entries: list[Node] = []
    for node in editor.nodes:
        reads_back = not come_back.isdisjoint(node.inputs)
        if node.name in inside:
            if reads_back:
                entries.append(node)
        elif reads_back or not written.isdisjoint(node.inputs):
            come_back.update(node.outputs)
    if not entries:
        return [group]
    below = _behind(group, entries)
    if len([e for e in entries if e.name not in _behind(group, [other for other in entries if other is not e])]) > 1:
        names = ", ".join(node.name for node in entries)
        raise UnsupportedError(
            f"values of one expression come back into it at {names}; NNTool's cut is known for one place only: set "
            "expressions=false, or put a RESHAPE between"
        )
    return [tuple(n for n in group if n.name not in below), tuple(n for n in group if n.name in below)]


def _behind(group: Group, entries: Iterable[Node]) -> set[str]:
    """Return the names of some nodes and of the nodes of the group that read them, directly or indirectly."""
    names = {node.name for node in entries}
    written = {t for node in entries for t in node.outputs}
    for node in group:
        if node.name in names or not written.isdisjoint(node.inputs):
            names.add(node.name)
            written.update(node.outputs)
    return names


def _stays_alone(editor: GraphEditor, group: Group) -> bool:
    if len(group) > 1:
        return False
    (node,) = group
    shapes = {_without_leading_ones(editor.shape(t)) for t in node.inputs}
    return node.operator in (*ACTIVATIONS, COPY) or (node.operator == "add" and len(shapes) == 1)


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    first = next((place for place, size in enumerate(shape) if size != 1), len(shape))
    return shape[first:]
