"""What quantizers ask of a graph before they begin, and how they refuse: all reasons at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tflq.converters.calibration import ranges_from_quantization
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Graph, Node, float_view
from tflq.graph.operators import Trait, has_trait


def float_network(graph: Graph) -> Graph:
    """Return the float view, with the ranges that a calibration or the file's quantization gives."""
    return float_view(ranges_from_quantization(graph))


def collect_problems(graph: Graph, reason: Callable[[int, Node], str]) -> tuple[str, ...]:
    """Return one line for each node that `reason` has words for, in order of the file.

    Args:
        graph: with the nodes.
        reason: why a target cannot take a node of this index, and the way out; empty where it can.
    """
    reasons = (reason(index, node) for index, node in enumerate(graph.nodes))
    return tuple(f"{graph.where(index)}: {found}" for index, found in enumerate(reasons) if found)


def refuse_custom(node: Node) -> str:
    """Return why a custom operator is refused; empty for others."""
    if not node.custom_code:
        return ""
    return (
        f"custom operator '{node.custom_code}' has no mapping: the target needs a rule of the entry-point group "
        "tflq.operators (docs/internals/extending.md); or replace it, or cut the graph in front of it"
    )


def no_mapping(node: Node, what: str) -> str:
    """Return why an operator that a target does not know is refused, and the way out.

    Args:
        node: custom operators are named by their code.
        what: the words for others, as "no mapping to GAP9".
    """
    way = "replace it or cut the graph in front of it"
    if node.operator == "while":
        way = f"Keras writes recurrent layers without it where they have unroll=True; else {way}"
    return refuse_custom(node) or f"{what}; docs/reference/coverage.md lists what it takes: {way}"


def refuse_state(graph: Graph) -> tuple[str, ...]:
    """Return one line for each use of a variable that only TFLite's own integers support; recurrent layers keep theirs.

    A variable is refused if an operator reads it before one writes it, if two operators write it, or if it is an output
    that no operator writes.
    """
    reasons: list[str] = []
    written: set[int] = set()
    for index, node in enumerate(graph.nodes):
        states = [t for t in node.inputs if t != ABSENT and graph.tensors[t].is_variable and t not in written]
        again = [t for t in node.outputs if graph.tensors[t].is_variable and t in written]
        if states and not has_trait(node, Trait.RECURRENT):
            name = graph.tensors[states[0]].name
            reasons.append(
                f"{graph.where(index)}: it reads variable '{name}' of an earlier run; make it an input and an output"
            )
        elif again:
            name = graph.tensors[again[0]].name
            reasons.append(f"{graph.where(index)}: it writes variable '{name}' a second time; write another tensor")
        written.update(node.outputs)
    names = [graph.tensors[t].name for t in graph.outputs if graph.tensors[t].is_variable and t not in written]
    return (*reasons, *(f"output '{name}' is a variable that no operator writes; make it an input" for name in names))


def refuse(problems: Sequence[str]) -> None:
    """Refuse a graph for all its problems; without any nothing happens.

    Raises:
        UnsupportedError: they stand in one message.
    """
    if problems:
        raise UnsupportedError("; ".join(problems))


def refuse_missing_ranges(missing: Sequence[str], total: int, way_out: str) -> None:
    """Refuse a graph of which tensors have no range.

    Args:
        missing: names of those tensors.
        total: how many need one.
        way_out: what the user can do.

    Raises:
        UnsupportedError: some are missing.
    """
    if missing:
        raise UnsupportedError(f"{len(missing)} of {total} tensors have no range (first '{missing[0]}'): {way_out}")
