"""A float network by a recipe."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.calibration import CalibrationSamples
from tflq.converters.settings import Options, Settings
from tflq.converters.tflite_quantiser.choose_kinds import PLAIN
from tflq.converters.tflite_quantiser.options import LayerOptions
from tflq.converters.tflite_quantiser.recipes.files import dynamic, recipe_of, static, weight_only
from tflq.converters.tflite_quantiser.recipes.plan import Choice, Plan, choose
from tflq.converters.tflite_quantiser.recipes.policy import INPUT, OUTPUT, operation_of
from tflq.converters.tflite_quantiser.recipes.rules import (
    ANY,
    CHANNELWISE,
    GPTQ,
    MIN_MAX,
    NO_QUANTIZE,
    OSCAR,
    TENSORWISE,
    Config,
    Rule,
)
from tflq.converters.tflite_quantiser.recipes.statistics import statistics_of
from tflq.converters.tflite_quantiser.recipes.write import Writer
from tflq.graph import ABSENT, Graph

_LEFT = Rule("", ANY, NO_QUANTIZE)


def quantise_by_recipe(
    graph: Graph, options: Options[LayerOptions], settings: Settings, samples: CalibrationSamples | None
) -> Graph:
    """Return the graph that a recipe makes of a float network.

    Args:
        graph: the network; its activations have ranges where the recipe asks for static ones.
        options: what the user asked for; type, weight_bits, per_channel, symmetric, inputs and outputs win.
        settings: which of them a rule for a layer gives.
        samples: that a calibration kept.

    Raises:
        OptionError: an unknown recipe, or one that contradicts what TFLite runs.
        InputError: a recipe file that cannot be read.
        UnsupportedError: tensors without a range; constants that an algorithm does not take.
    """
    rules = [_adapted(rule, options.whole) for rule in recipe_of(options.whole.recipe)]
    choices = [_choice(graph, index, rules, options, settings) for index in range(len(graph.nodes))]
    fitted = [node.inputs[0] for node, c in zip(graph.nodes, choices, strict=True) if c.rule.algorithm in (GPTQ, OSCAR)]
    plan = Plan(graph, statistics_of(graph, fitted, samples))
    operands = [plan.node(node, choice) for node, choice in zip(graph.nodes, choices, strict=True)]
    ends = []
    for operation, tensors, wanted in (
        (INPUT, graph.inputs, options.whole.inputs),
        (OUTPUT, graph.outputs, options.whole.outputs),
    ):
        chosen = choose(rules, operation, (graph.tensors[t].name for t in tensors))
        ends.append(plan.border(tensors, Choice(_LEFT) if wanted == "float" else chosen))
    plan.require_ranges()
    return Writer(graph, choices, operands, ends[0], ends[1]).written()


def _choice(graph: Graph, index: int, rules: list[Rule], options: Options[LayerOptions], settings: Settings) -> Choice:
    node = graph.nodes[index]
    operands = (graph.tensors[t] for t in (*node.inputs, *node.outputs) if t != ABSENT)
    if not any(tensor.dtype.is_floating for tensor in operands):
        return Choice(replace(_LEFT, operation=PLAIN))
    names = [graph.tensors[t].name for t in node.outputs]
    operation = operation_of(node.operator)
    found = choose(rules, operation, names)
    layer = options.layers[node.name]
    if settings.names(graph, index, ("type",)) and layer.kind == "float":
        return Choice(_LEFT)
    if settings.names(graph, index, ("type", "weight_bits")):
        named = settings.names(graph, index, ("type",)) or found.kind == "float"
        kind = layer.kind if named else found.kind
        bits = layer.weight_bits
        if not settings.names(graph, index, ("weight_bits",)) and found.rule.config.weights is not None:
            bits = found.rule.config.weights.bits
        found = choose([_adapted(Rule("", ANY, MIN_MAX, _config(kind, bits)), layer)], operation, names)
    return found


def _config(kind: str, bits: int) -> Config:
    if kind in ("int8", "int16x8"):
        return static(bits, 8 if kind == "int8" else 16)
    return dynamic(bits) if kind == "hybrid" else weight_only(bits)


def _adapted(rule: Rule, layer: LayerOptions) -> Rule:
    """Return a rule with one scale for all weights, or symmetric activations, where that is asked for."""
    config = rule.config
    weights, activations = config.weights, config.activations
    if weights is not None and weights.granularity == CHANNELWISE and not layer.per_channel:
        weights = replace(weights, granularity=TENSORWISE)
    if activations is not None and layer.symmetric:
        activations = replace(activations, symmetric=True)
    return replace(rule, config=replace(config, weights=weights, activations=activations))
