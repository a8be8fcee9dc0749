"""Operators that other packages add to a target: the entry-point group `tflq.operators`.

An entry point has the name of the operator (TFLite's name in snake case, or the code of a custom operator) and refers
to a mapping target -> rule. The rule is a record of that target. The operator's kernels come from the group
`tflq.kernels`. Rules of tflq take precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

from tflq.errors import TflqError
from tflq.graph import Node
from tflq.interpreter.registry import kernel_name
from tflq.plugins import find_entry_points

ENTRY_POINT_GROUP = "tflq.operators"
RuleType = TypeVar("RuleType")


def find_rule(target: str, node: Node, rule_type: type[RuleType]) -> RuleType | None:
    """Return the rule that another package has for a node; None if no package has one for this target.

    Raises:
        TflqError: An entry point that cannot be loaded, or a rule of another type.
    """
    operator = kernel_name(node)
    rule = _load_rules(operator).get(target)
    if rule is not None and not isinstance(rule, rule_type):
        kind = rule_type.__name__
        raise TflqError(f"operator '{operator}' of group {ENTRY_POINT_GROUP}: target {target} needs a {kind}")
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
