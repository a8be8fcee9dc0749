"""From TFLite's graph to GAP9's: the passes in their order."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.gap9.check import problems_of
from tflq.converters.gap9.choose_types import choose_types
from tflq.converters.gap9.options import LayerOptions, layer_options
from tflq.converters.gap9.passes.apply_types import apply_types
from tflq.converters.gap9.passes.arrange_layout import arrange_layout
from tflq.converters.gap9.passes.choose_engines import choose_engines
from tflq.converters.gap9.passes.fold_pad import fold_pad
from tflq.converters.gap9.passes.fuse import fuse
from tflq.converters.gap9.passes.merge_convolutions import merge_convolutions
from tflq.converters.gap9.passes.merge_equal import merge_equal
from tflq.converters.gap9.passes.raise_activations import raise_activations
from tflq.converters.gap9.passes.raise_pools import raise_pools
from tflq.converters.gap9.passes.remove_quantize import remove_quantize
from tflq.converters.gap9.passes.requantise_constants import requantise_constants
from tflq.converters.gap9.passes.requantise_recurrent import requantise_recurrent
from tflq.converters.gap9.passes.separate_activations import remove_idle_rectifiers, separate_activations
from tflq.converters.gap9.passes.state_ranges import state_ranges
from tflq.converters.gap9.precision import reduce_precision
from tflq.converters.gap9.rewrite import layer_of, pruned
from tflq.converters.settings import Settings
from tflq.errors import UnsupportedError
from tflq.graph import Graph, Tensor, validate

ARITHMETIC = "gap9"


def quantise_graph(graph: Graph, settings: Settings) -> Graph:
    """Return the graph that GAP9's tool makes of a quantised TFLite graph.

    Raises:
        UnsupportedError: operators without a mapping, all at once; tensors without a range.
        OptionError: settings that do not fit the graph.
    """
    options = layer_options(graph, settings)
    problems = problems_of(graph, options)
    if problems:
        raise UnsupportedError("; ".join(problems))
    result = state_ranges(remove_quantize(graph))
    result = merge_equal(fold_pad(result))
    result = remove_idle_rectifiers(separate_activations(result))
    result = raise_activations(raise_pools(result))
    result = choose_engines(merge_convolutions(fuse(result), options), options)
    result = _typed(result, options)
    result = requantise_recurrent(requantise_constants(result, options), options)
    result = pruned(arrange_layout(result))
    result = _without_file_facts(result)
    validate(result, "gap9 graph")
    return result


def _without_file_facts(graph: Graph) -> Graph:
    """Leave out what only the .tflite file knew: open shapes, ranks, variables, ranges of constants, intermediates."""
    tensors = [
        Tensor(t.name, t.shape, t.dtype, t.quantisation, None if t.is_constant else t.range, t.data)
        for t in graph.tensors
    ]
    nodes = [replace(node, arithmetic=ARITHMETIC, extra=None) for node in graph.nodes]
    return Graph(tensors, nodes, graph.inputs, graph.outputs, graph.name)


def _typed(graph: Graph, options: dict[str, LayerOptions]) -> Graph:
    first = next(iter(options.values()), None)
    bits = first.feature_bits if first else 8
    allow = first.allow_asymmetric_out if first else False
    short = frozenset(n.name for n in graph.nodes if n.operator == "softmax" and options[layer_of(n)].softmax_out_8bits)
    plan = choose_types(graph, bits, allow, short)
    return apply_types(graph, reduce_precision(graph, plan, options) if bits == 16 else plan)
