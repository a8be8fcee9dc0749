"""From a float or quantised graph with ranges to levels between linear operators: the passes in their order."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.openvino.check import problems_of
from tflq.converters.openvino.options import INT8, LayerOptions, options_of
from tflq.converters.openvino.passes.insert import insert
from tflq.converters.openvino.passes.operators import FILTERS, LINEAR, PAIRS, RECTIFIERS
from tflq.converters.openvino.passes.propagate import codes_at_inputs, codes_at_outputs, propagate, split
from tflq.converters.openvino.passes.ranges import rules_of
from tflq.converters.passes.fuse_activations import fuse_activations
from tflq.converters.passes.requirements import float_network, refuse
from tflq.converters.settings import Options, Settings
from tflq.graph import FakeQuantize, Graph, Node, pruned, validate
from tflq.interpreter.kernels.openvino.levels import CODES, rule_of
from tflq.schemas.openvino import int8_levels


def quantise_graph(graph: Graph, settings: Settings) -> Graph:
    """Return the graph whose linear layers run on codes. A graph with FakeQuantize keeps its own levels.

    Raises:
        UnsupportedError: operators without a mapping, all at once; tensors without a range.
        GraphError: ranges, scales or weights that no arithmetic can use.
        OptionError: settings that do not fit the graph.
    """
    options = options_of(graph, settings)
    if any(isinstance(t.quantisation, FakeQuantize) for t in graph.tensors):
        return finished(graph, options)
    refuse(problems_of(graph, options))
    network = _fused(float_network(graph))
    return finished(insert(network, graph, rules_of(network, graph, options), options), options)


def finished(graph: Graph, options: Options[LayerOptions]) -> Graph:
    """Return a graph with FakeQuantize nodes as integers: split, propagated, requantised, described."""
    result = propagate(split(_fused(graph)))
    if options.whole.input == INT8:
        result = codes_at_inputs(result)
    if options.whole.output == INT8:
        result = codes_at_outputs(result)
    result = pruned(result)
    result.nodes = [_described(result, node) for node in result.nodes]
    validate(result, "openvino graph")
    return result


def _fused(graph: Graph) -> Graph:
    """FakeQuantize follows the rectifier, not the sum."""
    return fuse_activations(graph, (*FILTERS, *PAIRS), RECTIFIERS)


def _described(graph: Graph, node: Node) -> Node:
    """Note in which precision the CPU plug-in runs a layer, and why."""
    source = graph.tensors[node.inputs[0]] if node.inputs and node.inputs[0] >= 0 else None
    if node.operator not in LINEAR:
        return node
    engine, reason = "f32", "its inputs are not quantised"
    if source is not None and source.dtype in CODES:
        levels = rule_of(source.affine).levels
        known = int8_levels()
        engine, reason = ("u8/i8", "") if levels in known else ("f32", f"{levels} levels; int8 needs one of {known}")
        if engine != "f32" and levels % 2:
            reason = f"{levels} levels: the plug-in's int8 departs from FakeQuantize; use {levels + 1}"
    return replace(node, attributes=node.attributes.updated(engine=engine, engine_reason=reason))
