"""Which operators become one expression: connected ones, cut where a value comes back through a node outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tflq.converters.calibration.calibrate import DIFFERENCE_RANGE
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.passes.patterns import computed_inputs, constant_operand
from tflq.errors import UnsupportedError
from tflq.graph import Graph, Node

NEEDING = frozenset(
    ("div", "maximum", "minimum", "pow", "squared_difference", "abs", "exp", "sqrt", "rsqrt", "sin", "cos")
)
"""Operators that NNTool has as parts of expressions only."""
ACTIVATIONS = frozenset(("relu", "relu6", "tanh", "logistic", "hard_sigmoid"))
CANDIDATES = NEEDING | ACTIVATIONS | {"add", "sub", "mul"}

COPY = "copy"
"""Takes part like a candidate: hands a tensor on."""


def is_matching(graph: Graph, options: Mapping[str, LayerOptions]) -> bool:
    """Whether the matcher runs: setting expressions, or with "auto" an operator that needs it."""
    chosen = next((o.expressions for o in options.values()), "auto")
    return chosen == "true" or (chosen == "auto" and any(n.operator in NEEDING for n in graph.nodes))


def expression_problem(graph: Graph, node: Node, options: LayerOptions) -> str:
    """Say why an operator cannot become part of an expression; "" where it can."""
    if options.expressions == "false":
        return "NNTool takes it as a part of an expression only: set expressions=auto or true"
    if node.operator == "squared_difference" and DIFFERENCE_RANGE not in node.attributes:
        return (
            "NNTool computes it from two differences, and no file holds their range: give the float model, and "
            "calibrate it with samples"
        )
    return _exponent_problem(graph, node) if node.operator == "pow" else ""


def _exponent_problem(graph: Graph, node: Node) -> str:
    """NNTool takes one constant 1, 2, or between 0 and 1, rounded to 4 decimals; of an int8 file the code itself."""
    allowed = "NNTool takes one constant 1, 2 or between 0 and 1"
    exponent = graph.tensors[node.inputs[1]]
    if constant_operand(graph, node) != 1 or exponent.data is None or exponent.size != 1:
        return f"its exponent is no constant of one element; {allowed}"
    p = float(np.round(float(exponent.data.reshape(-1)[0]), 4))
    return "" if p in (1.0, 2.0) or 0 < p < 1 else f"its exponent is {p:g} as NNTool reads it; {allowed}"


Group = tuple[int, ...]
"""Nodes in order of execution."""


def groups_of(graph: Graph) -> list[Group]:
    """Return the groups, in the order in which NNTool numbers them: by the sorted names of their nodes.

    Alone stay an Add of two equal shapes, a ReLU, a sigmoid and a tanh; what a fusion holds already takes no part.

    Raises:
        UnsupportedError: a group that a value enters again at several places.
    """
    members = {i for i, node in enumerate(graph.nodes) if _takes_part(graph, node)}
    found = [part for group in _connected(graph, members) for part in _cut(graph, group)]
    kept = [group for group in found if not _stays_alone(graph, group)]
    return sorted(kept, key=lambda group: "".join(sorted(graph.nodes[i].name for i in group)))


def _takes_part(graph: Graph, node: Node) -> bool:
    return (
        node.operator in (*CANDIDATES, COPY)
        and "fusion" not in node.attributes
        and all(graph.tensors[t].range is not None for t in node.outputs)
    )


def _connected(graph: Graph, members: set[int]) -> list[Group]:
    """Return the connected components; an edge in either direction joins, and a tensor that two of them read."""
    producers, readers = graph.producers(), dict[int, int]()
    root = {i: i for i in members}

    def find(i: int) -> int:
        while root[i] != i:
            i = root[i]
        return i

    for i in members:
        for _, t in computed_inputs(graph, graph.nodes[i]):
            writer = producers.get(t)
            first = readers.setdefault(t, i) if writer not in members else writer
            root[find(i)] = find(first)
    found: dict[int, list[int]] = {}
    for i in sorted(members):
        found.setdefault(find(i), []).append(i)
    return [tuple(group) for group in found.values()]


def _cut(graph: Graph, group: Group) -> list[Group]:
    """Return the group, or what stands above the node where a value of it comes back, and the rest."""
    inside, producers = set(group), graph.producers()
    come_back: set[int] = set()
    entries: list[int] = []
    for index, node in enumerate(graph.nodes):
        reads_back = not come_back.isdisjoint(node.inputs)
        if index in inside:
            if reads_back:
                entries.append(index)
        elif reads_back or any(producers.get(t) in inside for t in node.inputs):
            come_back.update(node.outputs)
    if not entries:
        return [group]
    below = _behind(graph, inside, entries)
    if len([i for i in entries if i not in _behind(graph, inside, [e for e in entries if e != i])]) > 1:
        names = ", ".join(graph.nodes[i].name for i in entries)
        raise UnsupportedError(
            f"values of one expression come back into it at {names}; NNTool's cut is known for one place only: set "
            "expressions=false, or put a RESHAPE between"
        )
    return [tuple(i for i in group if i not in below), tuple(i for i in group if i in below)]


def _behind(graph: Graph, inside: set[int], entries: Iterable[int]) -> set[int]:
    """Return some nodes and those of the group that read them, one after the other."""
    found = set(entries)
    written = {t for i in found for t in graph.nodes[i].outputs}
    for index, node in enumerate(graph.nodes):
        if index in inside and (index in found or not written.isdisjoint(node.inputs)):
            found.add(index)
            written.update(node.outputs)
    return found


def _stays_alone(graph: Graph, group: Group) -> bool:
    if len(group) > 1:
        return False
    node = graph.nodes[group[0]]
    shapes = {_without_leading_ones(graph.tensors[t].shape) for t in node.inputs}
    return node.operator in (*ACTIVATIONS, COPY) or (node.operator == "add" and len(shapes) == 1)


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    first = next((place for place, size in enumerate(shape) if size != 1), len(shape))
    return shape[first:]
