"""Names of layers, as settings, cuts and explanations accept them."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tflq.errors import OptionError
from tflq.graph.graph import Graph

_NAMED = 5
"""Layers that a message names."""


def matches_layer(pattern: str, index: int, name: str, operator: str) -> bool:
    """Return whether a pattern names a layer; case counts in names only.

    Args:
        pattern: Number of an operator ("3"), range of numbers ("3-7", both included), name or glob of names
            ("CONV_2D_0_*"), or operator ("conv_2d").
        index: Number of the layer.
        name: Name of the layer.
        operator: Operator of the layer.
    """
    first, dash, last = pattern.partition("-")
    if first.isdecimal() and (last.isdecimal() or not dash):
        return int(first) <= index <= int(last or first)
    return pattern.lower() == operator.lower() or fnmatchcase(name, pattern)


def find_layer(graph: Graph, pattern: str) -> int | None:
    """Return the node that a pattern names; None if it names none.

    Raises:
        OptionError: The pattern names several nodes; the message lists them.
    """
    matches = [i for i, node in enumerate(graph.nodes) if matches_layer(pattern, i, node.name, node.operator)]
    exact = [i for i in matches if graph.nodes[i].name == pattern]
    if len(exact or matches) > 1:
        names = ", ".join(f"'{graph.nodes[i].name}'" for i in matches[:_NAMED])
        more = f" and {len(matches) - _NAMED} more" if len(matches) > _NAMED else ""
        raise OptionError(f"'{pattern}' names {len(matches)} layers: {names}{more}; name one of them")
    return next(iter(exact or matches), None)
