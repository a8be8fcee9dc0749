"""Quantization of a float network by a recipe: ai-edge-quantizer quantizes the file, tflq reads it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.calibration import CalibrationSamples
from tflq.converters.passes.requirements import refuse_missing_ranges
from tflq.converters.settings import Options, Settings
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.converters.tflite_quantizer.choose_kinds import PLAIN
from tflq.converters.tflite_quantizer.options import LayerOptions
from tflq.converters.tflite_quantizer.recipes.layers import (
    Layer,
    border_rules,
    choose_layers,
    layer_rules,
    refuse_keys,
)
from tflq.converters.tflite_quantizer.recipes.overflow import LARGER, grow_scales
from tflq.converters.tflite_quantizer.recipes.package import MissingRangeError, Package
from tflq.converters.tflite_quantizer.recipes.rules import FLOAT_CASTING, GPTQ, OSCAR, adapt_rule, read_recipe
from tflq.converters.tflite_quantizer.recipes.statistics import HESSIAN, Statistics, moments_of, ranges_of
from tflq.converters.tflite_quantizer.rules import INTEGER_KINDS, VERSIONS
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, DType, Graph, Model, Node, Signature, pruned

_WAY_OUT = "calibrate the model on samples (--calibrate) or give a file of ranges (--ranges)"


def quantize_by_recipe(
    graph: Graph, options: Options[LayerOptions], settings: Settings, samples: CalibrationSamples | None
) -> Graph:
    """Return the graph that a recipe makes of a float network.

    Args:
        graph: Float network; its activations have ranges if the recipe is static.
        options: Values of the target's keys; `type`, `weight_bits` and `per_channel` of a layer, and `per_channel`,
            `symmetric`, `inputs` and `outputs` of the graph override the recipe.
        settings: The same as given by the user.
        samples: Samples that a calibration kept.

    Raises:
        MissingExtraError: ai-edge-quantizer is not installed.
        OptionError: An unknown recipe, or keys that no rule of a recipe expresses.
        InputError: A recipe file that cannot be read.
        UnsupportedError: Tensors without a range; constants that an algorithm does not take.
    """
    whole = options.whole
    rules = [adapt_rule(rule, whole) for rule in read_recipe(whole.recipe)]
    refuse_keys(graph, options, settings)
    package = Package(whole.recipe)
    graph = _with_unique_names(graph)
    package.load(rules)
    package.load([*rules, *layer_rules(graph, options, settings, package), *border_rules(graph, whole, package)])
    layers = choose_layers(graph, package)
    _refuse_constants(graph, layers)
    statistics = _statistics_of(graph, layers, samples)
    try:
        content = package.quantize(_as_file(graph), {graph.tensors[t].name: known for t, known in statistics.items()})
    except MissingRangeError:
        _refuse_ranges(graph, layers)
        raise
    return _restore_nodes(model_from_bytes(content, whole.recipe).main, graph, layers)


def _as_file(graph: Graph) -> bytes:
    """Return the .tflite of a float network, with the signature that the package needs for other types of outputs."""
    plain = replace(graph, extra=None, tensors=[replace(tensor, range=None) for tensor in graph.tensors])
    inputs, outputs = ({graph.tensors[t].name: t for t in tensors} for tensors in (graph.inputs, graph.outputs))
    return model_to_bytes(Model([plain], [Signature("serving_default", 0, inputs, outputs)]))


def _with_unique_names(graph: Graph) -> Graph:
    """Return the graph with another name for a tensor that shares an earlier one's: the package refuses such files."""
    seen: set[str] = set()
    tensors = []
    for t, tensor in enumerate(graph.tensors):
        name = tensor.name
        while name in seen or not name:
            name = f"{name}_{t}"
        seen.add(name)
        tensors.append(tensor if name == tensor.name else replace(tensor, name=name))
    return replace(graph, tensors=tensors)


def _refuse_constants(graph: Graph, layers: Sequence[Layer]) -> None:
    for layer in layers:
        if layer.rule is None or layer.rule.algorithm == FLOAT_CASTING:
            continue
        for t in layer.node.inputs:
            tensor = None if t == ABSENT else graph.tensors[t]
            if tensor is None or tensor.data is None or not tensor.dtype.is_floating:
                continue
            if not np.isfinite(tensor.data.astype(np.float64)).all():
                raise UnsupportedError(f"constant '{tensor.name}' holds NaN or infinity; its values must be finite")


def _statistics_of(graph: Graph, layers: Sequence[Layer], samples: CalibrationSamples | None) -> dict[int, Statistics]:
    """Return the ranges of activations of static layers, and the moments of the inputs of GPTQ's and OSCAR's."""
    ranges = ranges_of(graph)
    static = _static_activations(graph, layers)
    for t in (t for t in static if t in ranges):
        if not all(np.isfinite(end).all() for end in ranges[t].values()):
            raise UnsupportedError(f"tensor '{graph.tensors[t].name}' has a range that is not finite")
    fitted = [(layer, layer.rule.algorithm) for layer in layers if layer.rule and layer.rule.algorithm in (GPTQ, OSCAR)]
    moments = moments_of(graph, (layer.node.inputs[0] for layer, _ in fitted), samples)
    for layer, algorithm in fitted:
        if algorithm == GPTQ and HESSIAN not in moments.get(layer.node.inputs[0], {}):
            raise UnsupportedError(
                "GPTQ needs samples (--calibrate), or a calibration that ai-edge-quantizer saved (--ranges)"
            )
    return {t: {**ranges.get(t, {}), **moments.get(t, {})} for t in ranges | moments}


def _static_activations(graph: Graph, layers: Sequence[Layer]) -> list[int]:
    """Return the float32 activations that layers with integer activations read and write, and the graph's borders."""
    operands = [t for layer in layers if layer.kind in INTEGER_KINDS for t in (*layer.node.inputs, *layer.node.outputs)]
    wanted = dict.fromkeys([*graph.inputs, *operands, *graph.outputs] if operands else [])
    return [
        t for t in wanted if t != ABSENT and graph.tensors[t].dtype is DType.FLOAT32 and graph.tensors[t].data is None
    ]


def _refuse_ranges(graph: Graph, layers: Sequence[Layer]) -> None:
    activations = _static_activations(graph, layers)
    missing = [graph.tensors[t].name for t in activations if graph.tensors[t].range is None]
    refuse_missing_ranges(missing, len(activations), _WAY_OUT)


def _restore_nodes(result: Graph, graph: Graph, layers: Sequence[Layer]) -> Graph:
    """Return the package's graph with the float network's names of nodes and each node's type.

    A node of the float network writes a tensor of the same name. Other nodes are conversions, rotations and factors.
    """
    known = {graph.tensors[layer.node.outputs[0]].name: layer for layer in layers if layer.node.outputs}
    for index, node in enumerate(result.nodes):
        name = result.tensors[node.outputs[0]].name if node.outputs else ""
        layer = known.get(name)
        if layer is None:
            result.nodes[index] = _restore_conversion(result, replace(node, name=f"{node.operator.upper()}_{name}"))
            continue
        grown = grow_scales(result, node, graph, layer.node) if layer.kind in INTEGER_KINDS else node
        attributes = node.attributes
        if layer.kind != PLAIN:
            reason = LARGER if grown is not node else layer.reason
            attributes = attributes.updated(engine=layer.kind, engine_reason=reason)
        version = max(layer.node.version, VERSIONS.get(node.operator, {}).get(layer.kind, 1))
        result.nodes[index] = replace(grown, name=layer.node.name, attributes=attributes, version=version)
    return pruned(replace(result, name=graph.name, extra=None))


def _restore_conversion(graph: Graph, node: Node) -> Node:
    """Return a QUANTIZE or DEQUANTIZE with the lowest version that takes its types; other nodes are unchanged."""
    if node.operator not in ("quantize", "dequantize"):
        return node
    dtypes = {graph.tensors[t].dtype for t in (*node.inputs, *node.outputs)}
    kind = "int16x8" if dtypes & {DType.INT16, DType.FLOAT16} else "int8"
    return replace(node, version=VERSIONS[node.operator][kind])
