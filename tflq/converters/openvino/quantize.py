"""From a float or quantized graph with ranges to levels between linear operators: refusals, and the passes."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.openvino.emit import unsupported
from tflq.converters.openvino.options import DYNAMIC, INT8, STATIC, LayerOptions, OpenBatch, options_of
from tflq.converters.openvino.passes import ARITHMETIC, FILTERS, LINEAR, PAIRS, RECTIFIERS
from tflq.converters.openvino.passes.propagate import propagate, quantize_inputs, quantize_outputs, split
from tflq.converters.openvino.passes.ranges import is_on_codes, rules_of
from tflq.converters.openvino.passes.weights import insert, weight_codes
from tflq.converters.passes.batch import twice_the_batch
from tflq.converters.passes.requirements import float_network, refuse
from tflq.converters.passes.take_in import fuse_activations
from tflq.converters.settings import Options, Settings
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Affine, FakeQuantize, Graph, Node, pruned, validate
from tflq.graph.operators import row_of
from tflq.graph.rewriting import GraphEditor, Pass, graph_pass, rewrite_graph
from tflq.interpreter.kernels.openvino.levels import CODES, rule_of
from tflq.interpreter.registry import has_kernel
from tflq.schemas.openvino import int8_levels

_SOURCE = "docs/rules/openvino.md#quantize-dequantize-requantize"


_FUSE = Pass[GraphEditor](
    "fuse_activations",
    lambda editor: fuse_activations(editor, (*FILTERS, *PAIRS), RECTIFIERS),
    "FakeQuantize follows the rectifier, not the sum",
    _SOURCE,
)
_PASSES: tuple[Pass[GraphEditor], ...] = (
    _FUSE,
    Pass("split_fake_quantize", split, "FakeQuantize(x) = Dequantize(Quantize(x))", _SOURCE),
    Pass("propagate", propagate, "the plug-in computes a layer in int8 only if it reads quantized values", _SOURCE),
)
_AT_INPUTS = (Pass("quantize_inputs", quantize_inputs, "input=int8: the network reads quantized values", _SOURCE),)
_AT_OUTPUTS = (
    Pass("quantize_outputs", quantize_outputs, "output=int8: the network returns quantized values", _SOURCE),
)
_REMOVE_UNUSED = graph_pass("remove_unused", pruned, "Quantize and Dequantize without a reader", _SOURCE)


def problems_of(graph: Graph, options: Options[LayerOptions]) -> tuple[str, ...]:
    """Return one line for each operator that cannot be mapped, or whose weights no arithmetic can use.

    Raises:
        GraphError: constants whose scales do not fit their shapes.
    """
    network = float_network(graph)
    found = list(unsupported(network))
    for index, node in enumerate(network.nodes):
        if node.operator not in FILTERS or not is_on_codes(node, options) or len(node.inputs) < 2:
            continue
        t = node.inputs[1]
        layer = options.of(node.name)
        try:
            weight_codes(graph.tensors[t], network.tensors[t], row_of(node).channel_axis or 0, layer)
        except (GraphError, UnsupportedError) as error:
            line = f"{network.where(index)}: {error}"
            if not any(known.startswith(f"{network.where(index)}:") for known in found):
                found.append(line)
    return tuple(found)


def quantize_graph(graph: Graph, settings: Settings) -> Graph:
    """Return the graph whose linear layers run on quantized values. A graph with FakeQuantize keeps its own levels.

    Raises:
        UnsupportedError: operators without a mapping, all at once; tensors without a range.
        GraphError: ranges, scales or weights that no arithmetic can use.
        OptionError: settings that do not fit the graph.
    """
    options = options_of(graph, settings)
    if options.whole.batch == DYNAMIC:
        alike = replace(settings, values={**settings.values, "batch": STATIC})
        once, twice = (quantize_graph(g, alike) for g in (graph, twice_the_batch(graph)))
        return replace(once, extra=OpenBatch(twice))
    if any(isinstance(t.quantization, FakeQuantize) for t in graph.tensors):
        return finished(graph, options)
    refuse(problems_of(graph, options))
    levels = graph_pass(
        "insert_levels",
        lambda network: insert(network, graph, rules_of(network, graph, options), options),
        "FakeQuantize follows each tensor that a quantized layer reads or writes; weights become quantized values",
        "docs/rules/openvino.md#fakequantize",
    )
    return finished(rewrite_graph(float_network(graph), [_FUSE, levels], owner="openvino-levels"), options)


def finished(graph: Graph, options: Options[LayerOptions]) -> Graph:
    """Return a graph with FakeQuantize nodes as integers: split, propagated, requantized, described."""
    passes = [*_PASSES, *(_AT_INPUTS if options.whole.input == INT8 else ())]
    passes += [*(_AT_OUTPUTS if options.whole.output == INT8 else ()), _REMOVE_UNUSED]
    result = rewrite_graph(graph, passes, owner="openvino")
    result.nodes = [_described(result, _placed(result, node)) for node in result.nodes]
    validate(result, "openvino graph")
    return result


def _placed(graph: Graph, node: Node) -> Node:
    """Name the arithmetic of a node that `openvino` has no kernel for: of plain integers tflite's, else float."""
    if node.arithmetic is not None:
        return node
    tensors = [graph.tensors[t] for t in (*node.inputs, *node.outputs) if t != ABSENT]
    if not any(t.dtype.is_floating or t.quantization is not None for t in tensors):
        return replace(node, arithmetic="tflite")
    return node if has_kernel(ARITHMETIC, node.operator) else replace(node, arithmetic="float")


def _described(graph: Graph, node: Node) -> Node:
    """Note in which precision the CPU plug-in runs a layer, and why."""
    if node.operator not in LINEAR:
        return node
    source = graph.tensors[node.inputs[0]]
    engine, reason = "f32", "its inputs are not quantized"
    if source.dtype in CODES:
        levels = rule_of(source.affine).levels
        known = int8_levels()
        engine, reason = ("u8/i8", "") if levels in known else ("f32", f"{levels} levels; int8 needs one of {known}")
        weights = graph.tensors[node.inputs[1]].quantization if node.operator in FILTERS else None
        if isinstance(weights, Affine) and weights.zero_point.any():
            engine, reason = "f32", "weights with zero points; int8 needs weight_scheme=symmetric"
        if engine != "f32" and levels % 2:
            reason = f"{levels} levels: the plug-in's int8 departs from FakeQuantize; use {levels + 1}"
    return replace(node, attributes=node.attributes.updated(engine=engine, engine_reason=reason))
