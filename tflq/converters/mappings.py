"""Operators that other packages add to a target: the entry-point group `tflq.operators`.

An entry point has the name of the operator (TFLite's name in snake case, or the code of a custom operator) and refers
to a mapping target -> rule. The rule is a record of that target, or an `Expansion`. The operator's kernels come from
the group `tflq.kernels`. Rules of tflq take precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from tflq.errors import TflqError
from tflq.graph import Graph, Node
from tflq.graph.rewriting import GraphEditor, Pass, rewrite_graph
from tflq.interpreter.registry import kernel_name
from tflq.plugins import find_entry_points

ENTRY_POINT_GROUP = "tflq.operators"
RuleType = TypeVar("RuleType")


@dataclass(frozen=True)
class Expansion:
    """A rule for every target: the operators of TFLite that compute a custom operator.

    Attributes:
        build: Replaces a node in its graph. The last new node writes the outputs of the node. Tensors that it adds have
            ranges if the tensors of the node have ranges.
    """

    build: Callable[[GraphEditor, Node], None]


def expand_operators(target: str, graph: Graph) -> Graph:
    """Return the graph with each custom operator replaced that has an `Expansion` for a target; inner tensors follow.

    Raises:
        TflqError: An entry point that cannot be loaded.
    """
    codes = dict.fromkeys(node.custom_code for node in graph.nodes if node.custom_code)
    rules = {code: rule for code in codes if isinstance(rule := _load_rules(code).get(target), Expansion)}
    if not rules:
        return graph

    def expand(editor: GraphEditor) -> None:
        for node in editor.nodes:
            if node.custom_code in rules:
                rules[node.custom_code].build(editor, node)

    return rewrite_graph(
        graph, [Pass("expand_operators", expand, "the target has no layer for them")], ENTRY_POINT_GROUP
    )


def find_rule(target: str, node: Node, rule_type: type[RuleType]) -> RuleType | None:
    """Return the rule that another package has for a node; None if no package has one for this target.

    Raises:
        TflqError: An entry point that cannot be loaded, or a rule of another type.
    """
    operator = kernel_name(node)
    rule = _load_rules(operator).get(target)
    if rule is not None and not isinstance(rule, rule_type):
        kind = rule_type.__name__
        place = f"operator '{operator}' of group {ENTRY_POINT_GROUP}"
        raise TflqError(f"{place}: target {target} needs a {kind} or an Expansion")
    return rule


@cache
def _load_rules(operator: str) -> Mapping[str, object]:
    rules: dict[str, object] = {}
    for entry in find_entry_points(ENTRY_POINT_GROUP).select(name=operator):
        try:
            rules |= entry.load()
        except Exception as error:
            raise TflqError(f"operator '{operator}' of {entry.value}: {error}") from error
    return rules
