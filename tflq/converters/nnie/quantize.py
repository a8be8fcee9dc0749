"""From a float or quantized graph with ranges to NNIE's: each quantizing layer gets its clipping values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.converters.nnie.check import (
    WEIGHTED,
    is_assumed,
    is_quantizing,
    is_relu_enough,
    layer_inputs,
    prepare,
    problems_of,
)
from tflq.converters.nnie.rewrites import origin
from tflq.converters.passes.requirements import refuse, refuse_missing_ranges
from tflq.converters.settings import Settings, key, read_options
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Graph, Logarithmic, Node, validate
from tflq.graph.rewriting import fused_activation, graph_pass, rewrite_graph
from tflq.interpreter.kernels.nnie.logarithm import FORMULAS, clipping_of, scheme_of, z_of

ARITHMETIC = "nnie"
ASSUMPTION = "assumed: inputs with one z, constants float; how NNIE quantizes this layer is not published"
DEPTHWISE_ADVICE = "depthwise: HiSilicon advises to avoid it; it runs, slowly"
_FORMULA = "HiSilicon's library, the published page, or MQBench's code (docs/differences/nnie.md)"


@dataclass(frozen=True)
class LayerOptions:
    """The target's keys, for one layer; those of the mapper only stand in its cfg."""

    bits: int = key(8, "width of the logarithmic quantized values of weights and activations", choices=(8, 16))
    formula: str = key("library", _FORMULA, choices=FORMULAS, per_layer=False)
    internal_stride: int = key(16, "mapper: alignment of rows in the chip's memory", choices=(16, 32), per_layer=False)
    compress_mode: int = key(0, "mapper: 1 compresses the parameters", choices=(0, 1), per_layer=False)
    is_simulation: int = key(0, "mapper: 0 for the chip, 1 for the simulation on a PC", choices=(0, 1), per_layer=False)
    batch_num: int = key(1, "mapper: frames of one inference", minimum=0, maximum=256, per_layer=False)


MAPPER_KEYS = ("internal_stride", "compress_mode", "is_simulation", "batch_num")


def quantize_graph(graph: Graph, settings: Settings) -> Graph:
    """Return the graph whose layers NNIE runs in logarithmic quantized values.

    Raises:
        UnsupportedError: operators without a layer in Caffe, all at once; tensors without a range.
        OptionError: settings that do not fit the graph.
    """
    options = read_options(LayerOptions, graph, settings).layers
    try:
        result = prepare(graph)
    except GraphError as error:
        raise UnsupportedError(str(error)) from None
    refuse(problems_of(graph, result))
    _require_ranges(result)
    layers = graph_pass(
        "quantize_layers",
        lambda network: _quantize_layers(network, options),
        "one clipping value for all inputs of a layer, one for its weights",
        "docs/rules/nnie.md#layers",
    )
    result = rewrite_graph(result, [layers], owner="nnie-layers")
    validate(result, "nnie graph")
    return result


def _quantize_layers(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    readers = graph.consumers()
    return replace(graph, nodes=[_layer(graph, node, options[origin(node)], readers) for node in graph.nodes])


def _require_ranges(graph: Graph) -> None:
    needed = dict.fromkeys(t for node in graph.nodes if is_quantizing(node) for t in layer_inputs(graph, node))
    missing = [graph.tensors[t].name for t in needed if graph.tensors[t].range is None]
    way_out = (
        "calibrate the model on samples (--calibrate), give a file of ranges (--ranges), or convert a model that is "
        "quantized"
    )
    refuse_missing_ranges(missing, len(needed), way_out)


def _layer(graph: Graph, node: Node, options: LayerOptions, readers: Mapping[int, Sequence[int]]) -> Node:
    attributes, operator = node.attributes, node.operator
    if fused_activation(node) == "relu6" and is_relu_enough(graph, node.outputs[0], readers):
        attributes = attributes.updated(fused_activation_function="relu")
    if operator == "relu6" and is_relu_enough(graph, node.outputs[0], readers):
        operator = "relu"
    attributes = attributes.updated(**{name: getattr(options, name) for name in MAPPER_KEYS})
    if not is_quantizing(node):
        is_float = any(graph.tensors[t].dtype.is_floating for t in (*node.inputs, *node.outputs) if t != ABSENT)
        return replace(node, operator=operator, arithmetic="float" if is_float else "tflite", attributes=attributes)
    scheme = scheme_of(options.bits)
    maximum = max(_magnitude(graph, t) for t in layer_inputs(graph, node))
    attributes = attributes.updated(
        bits=options.bits,
        formula=options.formula,
        activation_maximum=float(maximum),
        activation_clipping=_clipping(maximum, options, f"inputs of '{node.name}'"),
        engine=f"nnie, {options.bits} bits",
        engine_reason=_reason(graph, node),
    )
    if node.operator in WEIGHTED:
        weights = graph.tensors[node.inputs[1]]
        assert weights.data is not None  # check.py refuses weights that are computed
        largest = np.float32(np.abs(weights.data).max())
        clipping = _clipping(largest, options, f"weights '{weights.name}'")
        attributes = attributes.updated(weight_maximum=float(largest), weight_clipping=clipping)
        if len(readers[node.inputs[1]]) == 1:
            graph.tensors[node.inputs[1]] = replace(weights, quantization=Logarithmic(clipping, scheme.bits))
    return replace(node, arithmetic=ARITHMETIC, attributes=attributes)


def _reason(graph: Graph, node: Node) -> str:
    if is_assumed(graph, node):
        return ASSUMPTION
    return DEPTHWISE_ADVICE if node.operator == "depthwise_conv_2d" else ""


def _magnitude(graph: Graph, t: int) -> np.float32:
    found = graph.tensors[t].range
    assert found is not None
    largest = max(abs(float(found.minimum.min())), abs(float(found.maximum.max())))
    rounded: np.float32 = np.float32(largest)
    return rounded


def _clipping(maximum: np.float32, options: LayerOptions, what: str) -> float:
    """Return the value of the grid that stands for z."""
    scheme = scheme_of(options.bits)
    try:
        return float(clipping_of(z_of(maximum, scheme, options.formula), scheme))
    except UnsupportedError as error:
        raise UnsupportedError(f"{what}: {error}") from None
