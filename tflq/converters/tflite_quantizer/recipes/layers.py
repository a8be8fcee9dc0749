"""Rules for single layers and for the borders of the graph, and the rule that applies to each node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tflq.converters.settings import Options, Settings
from tflq.converters.tflite_quantizer.choose_kinds import PLAIN
from tflq.converters.tflite_quantizer.options import LayerOptions
from tflq.converters.tflite_quantizer.recipes.package import ChosenRule, Package
from tflq.converters.tflite_quantizer.recipes.rules import (
    LEFT,
    Rule,
    adapt_rule,
    limit_to_border,
    limit_to_node,
    rule_of_kind,
)
from tflq.errors import OptionError
from tflq.graph import ABSENT, Graph, Node

_WHOLE_ONLY = "recipe: type and weight_bits of the whole graph are the recipe's; give them to single layers (--layer)"
_NOT_FOR_RECIPES = (
    "recipe: least_weights and asymmetric_inputs are not for recipes; a recipe's file has min_weight_elements"
)


def refuse_keys(graph: Graph, options: Options[LayerOptions], settings: Settings) -> None:
    """Refuse keys that no rule of a recipe expresses.

    Raises:
        OptionError: `type` or `weight_bits` of the whole graph; `least_weights`; `asymmetric_inputs`.
    """
    whole, default = options.whole, LayerOptions()
    if (whole.kind, whole.weight_bits) != (default.kind, default.weight_bits):
        raise OptionError(_WHOLE_ONLY)
    is_changed = (whole.least_weights, whole.asymmetric_inputs) != (default.least_weights, default.asymmetric_inputs)
    keys = ("least_weights", "asymmetric_inputs")
    if is_changed or any(settings.names(graph, index, keys) for index in range(len(graph.nodes))):
        raise OptionError(_NOT_FOR_RECIPES)


def operation_of(operator: str) -> str:
    """Return the package's name of an operator."""
    return "CONV_2D_TRANSPOSE" if operator == "transpose_conv" else operator.upper()


def scope_of(graph: Graph, tensors: Iterable[int]) -> str:
    """Return the text in which the package searches a rule's regex."""
    return "".join(f"{graph.tensors[t].name};" for t in tensors)[:10000]


def layer_rules(graph: Graph, options: Options[LayerOptions], settings: Settings, package: Package) -> Iterator[Rule]:
    """Yield a rule for each layer with `type`, `weight_bits` or `per_channel` set by the user."""
    for index, node in enumerate(graph.nodes):
        has_kind, has_bits, has_axis = (
            settings.names(graph, index, (key,)) for key in ("type", "weight_bits", "per_channel")
        )
        if not (has_kind or has_bits or has_axis) or not _is_floating(graph, node):
            continue
        layer, operation, scope = options.layers[node.name], operation_of(node.operator), scope_of(graph, node.outputs)
        chosen = package.choose(operation, scope)
        rule = LEFT if chosen is None else chosen.saved
        if has_kind or has_bits:
            kind = layer.kind if has_kind or chosen is None else chosen.kind
            bits = layer.weight_bits if has_bits or chosen is None else chosen.weight_bits
            rule = LEFT if kind == "float" else rule_of_kind(kind, bits)
        rule = adapt_rule(rule, layer)
        yield limit_to_node(rule if package.allows(rule, operation) else LEFT, operation, scope)


def border_rules(graph: Graph, whole: LayerOptions, package: Package) -> Iterator[Rule]:
    """Yield the rules for the graph's inputs and outputs; uint8 replaces int8 only."""
    for operation, tensors, kind in (("INPUT", graph.inputs, whole.inputs), ("OUTPUT", graph.outputs, whole.outputs)):
        chosen = package.choose(operation, scope_of(graph, tensors))
        if kind == "float" or (kind == "uint8" and chosen is not None and chosen.kind == "int8"):
            yield limit_to_border(operation, kind)


@dataclass(frozen=True)
class Layer:
    """A node of the float network and the rule that the package applies to it.

    Attributes:
        node: The node.
        rule: The rule; None if the node is unchanged.
        kind: Type of the target: int8, int16x8, hybrid, weights, float, or PLAIN without floating-point values.
        reason: Reason for float; empty if the user or the recipe requests it.
    """

    node: Node
    rule: ChosenRule | None
    kind: str
    reason: str = ""


def choose_layers(graph: Graph, package: Package) -> list[Layer]:
    """Return the rule of each node of a float network; the package has loaded all rules."""
    return [_choose_layer(graph, node, package) for node in graph.nodes]


def _choose_layer(graph: Graph, node: Node, package: Package) -> Layer:
    if not _is_floating(graph, node):
        return Layer(node, None, PLAIN)
    operation = operation_of(node.operator)
    scope = scope_of(graph, node.outputs)
    rule = package.choose(operation, scope)
    if rule is not None:
        return Layer(node, rule, rule.kind)
    return Layer(node, None, "float", package.why_float(operation, scope))


def _is_floating(graph: Graph, node: Node) -> bool:
    return any(graph.tensors[t].dtype.is_floating for t in (*node.inputs, *node.outputs) if t != ABSENT)
