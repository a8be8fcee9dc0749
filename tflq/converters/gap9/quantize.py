"""From TFLite's graph to GAP9's: the passes in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tflq.converters.calibration import samples_of
from tflq.converters.gap9.affine_types import file_range, state_ranges
from tflq.converters.gap9.check import FORGOTTEN, forgotten_range, problems_of
from tflq.converters.gap9.expressions.match import match_expressions
from tflq.converters.gap9.loaded import loader_conversions
from tflq.converters.gap9.options import LayerOptions, layer_options
from tflq.converters.gap9.passes.apply_types import apply_types
from tflq.converters.gap9.passes.channels_first import channels_first, stand_channels_first
from tflq.converters.gap9.passes.choose_engines import choose_engines
from tflq.converters.gap9.passes.columns import find_columns, permute_columns
from tflq.converters.gap9.passes.constants import requantize_constants, requantize_recurrent
from tflq.converters.gap9.passes.cut_kernels import cut_kernels
from tflq.converters.gap9.passes.external_bias import take_in_biases
from tflq.converters.gap9.passes.global_pools import arrange_layout, name_global_pools
from tflq.converters.gap9.passes.hard_sigmoid import find_hard_sigmoids, refuse_asked_hard_sigmoids
from tflq.converters.gap9.passes.merge_convolutions import merge_convolutions
from tflq.converters.gap9.passes.move_up import raise_activations, raise_pools, remove_undone_reshapes
from tflq.converters.gap9.passes.separate_activations import remove_idle_rectifiers, separate_activations
from tflq.converters.gap9.passes.slices import split_slices
from tflq.converters.gap9.types.plan import choose_types
from tflq.converters.gap9.units import fuse
from tflq.converters.passes.conversions import remove_conversions
from tflq.converters.passes.merge_equal import merge_equal
from tflq.converters.passes.requirements import refuse
from tflq.converters.passes.rewrite import with_attributes
from tflq.converters.passes.take_in import fold_padding
from tflq.converters.settings import Settings
from tflq.graph import Graph, Tensor, pruned, validate
from tflq.graph.rewriting import GraphEditor, Pass, graph_pass, run_passes

ARITHMETIC = "gap9"


class _Network(GraphEditor):
    """A graph under conversion.

    Attributes:
        options: Settings of each layer, by name.
        positive: Inputs with a range above 0 before ranges are widened to include it; they are symmetric.
    """

    def __init__(self, graph: Graph, options: dict[str, LayerOptions], positive: frozenset[int]) -> None:
        super().__init__(graph)
        self.options, self.positive = options, positive


def _step(name: str, function: Callable[[Graph, _Network], Graph], why: str, source: str = "") -> Pass[_Network]:
    """Return a pass that also reads the settings."""
    return Pass(name, lambda network: network.load(function(network.graph(), network)), why, source)


def quantize_graph(graph: Graph, settings: Settings) -> Graph:
    """Return the graph that GAP9's tool makes of a quantized TFLite graph.

    Raises:
        UnsupportedError: operators without a mapping, all at once; tensors without a range.
        OptionError: settings that do not fit the graph.
    """
    options = layer_options(graph, settings)
    refuse(problems_of(graph, options))
    network = _Network(graph, options, _positive_inputs(graph))
    run_passes(network, _PASSES, owner="gap9")
    result = network.graph()
    validate(result, "gap9 graph")
    return result


def _positive_inputs(graph: Graph) -> frozenset[int]:
    """Return the inputs whose range begins above 0, before ranges are widened to hold it: they are symmetric."""
    samples = samples_of(graph)
    stated = {t: file_range(graph.tensors[t]) for t in graph.inputs}
    known = frozenset(t for t, range_ in stated.items() if range_ is not None and range_.minimum[0] > 0)
    return known | (samples.positive if samples is not None else frozenset())


def _without_idle_rectifiers(graph: Graph, options: dict[str, LayerOptions], positive: frozenset[int]) -> Graph:
    return remove_idle_rectifiers(graph, lambda: loader_conversions(graph, options, positive))


def _without_conversions(graph: Graph) -> Graph:
    forgotten = {t for node in graph.nodes if (t := forgotten_range(graph, node)) is not None}
    plain = [replace(node, intermediates=None) for node in graph.nodes]
    marked = [with_attributes(n, departure=FORGOTTEN) if forgotten.intersection(n.outputs) else n for n in plain]
    editor = GraphEditor(replace(graph, nodes=marked))
    remove_conversions(editor, lambda tensor: file_range(tensor) is not None)
    return editor.graph(prune=True)


def _without_file_facts(graph: Graph) -> Graph:
    """Leave out what only the .tflite file knew: open shapes, ranks, variables, ranges of constants, intermediates."""
    tensors = [
        Tensor(t.name, t.shape, t.dtype, t.quantization, None if t.is_constant else t.range, t.data)
        for t in graph.tensors
    ]
    nodes = [replace(node, arithmetic=ARITHMETIC, extra=None) for node in graph.nodes]
    return Graph(tensors, nodes, graph.inputs, graph.outputs, graph.name)


def _arrange_columns(graph: Graph, options: dict[str, LayerOptions]) -> Graph:
    """Return the graph with columns as NNTool leaves them, those of maps that it holds channels first apart."""
    found = channels_first(graph)
    return stand_channels_first(permute_columns(graph, options, found), options, found)


def _typed(graph: Graph, options: dict[str, LayerOptions], positive: frozenset[int]) -> Graph:
    return apply_types(graph, choose_types(graph, options, positive))


_PASSES: tuple[Pass[_Network], ...] = (
    graph_pass(
        "remove_conversions",
        _without_conversions,
        "types are chosen anew; nodes come back only where two of them meet",
    ),
    graph_pass("state_ranges", state_ranges, "every type follows from a real range"),
    _step(
        "find_columns",
        lambda graph, network: find_columns(graph, network.options, network.positive),
        "NNTool's loader searches before anything is fused",
    ),
    Pass("fold_padding", fold_padding, "NE16 and the cluster's convolutions pad by themselves"),
    Pass(
        "merge_equal",
        lambda editor: merge_equal(editor, ("add", "mul", "minimum", "maximum")),
        "several pads of one tensor have become the same convolution input, and NNTool makes equal nodes once",
    ),
    graph_pass(
        "remove_undone_reshapes", remove_undone_reshapes, "nothing may stand between a convolution and its pool"
    ),
    _step(
        "separate_activations",
        lambda graph, network: separate_activations(graph, network.options),
        "NNTool moves and fuses activations as nodes",
    ),
    graph_pass(
        "name_global_pools", name_global_pools, "a pool over the whole map with stride 1 is a mean or a maximum"
    ),
    _step(
        "find_hard_sigmoids",
        lambda graph, network: find_hard_sigmoids(graph, network.options),
        "a filter takes it along as one activation",
    ),
    _step(
        "take_in_biases",
        lambda graph, network: take_in_biases(graph, network.options),
        "NNTool's importer adds a constant behind a filter to its bias",
    ),
    _step(
        "split_slices",
        lambda graph, network: split_slices(graph, network.options),
        "the piece that nobody reads decides types, too",
    ),
    _step(
        "remove_idle_rectifiers",
        lambda graph, network: _without_idle_rectifiers(graph, network.options, network.positive),
        "a ReLU behind what is not negative would break a fusion for nothing",
    ),
    graph_pass(
        "raise_activations", raise_activations, "so that a layer takes its activation with it; a pool keeps its own"
    ),
    graph_pass("raise_pools", raise_pools, "a convolution takes a pool into its fusion only directly behind it"),
    _step(
        "cut_kernels",
        lambda graph, network: cut_kernels(graph, network.options),
        "engines and scales of weights follow the cut kernel",
    ),
    _step(
        "fuse",
        lambda graph, network: fuse(graph, network.options),
        "generators take convolution, pool and activation together",
    ),
    _step(
        "merge_convolutions",
        lambda graph, network: merge_convolutions(graph, network.options),
        "parallel convolutions load their input once",
    ),
    _step(
        "match_expressions",
        lambda graph, network: match_expressions(graph, network.options),
        "element-wise operators are compiled together",
    ),
    _step(
        "choose_engines", lambda graph, network: choose_engines(graph, network.options), "types depend on who computes"
    ),
    _step(
        "choose_types",
        lambda graph, network: _typed(graph, network.options, network.positive),
        "types follow from ranges and readers",
        "docs/gap9.md, 8",
    ),
    _step(
        "refuse_asked_hard_sigmoids",
        lambda graph, network: refuse_asked_hard_sigmoids(graph, network.options),
        "what NNTool fails on is named",
    ),
    _step(
        "requantize_constants",
        lambda graph, network: requantize_constants(graph, network.options),
        "weights and biases follow the types",
    ),
    _step(
        "arrange_columns",
        lambda graph, network: _arrange_columns(graph, network.options),
        "NNTool moves its transposes",
        "docs/gap9.md, 17.15",
    ),
    _step(
        "requantize_recurrent",
        lambda graph, network: requantize_recurrent(graph, network.options),
        "the tables of a cell follow the types",
        "docs/gap9.md, 13",
    ),
    graph_pass("arrange_layout", arrange_layout, "global means read channels first"),
    graph_pass("remove_unused", pruned, "constants of the file that were replaced"),
    graph_pass("remove_file_facts", _without_file_facts, "the target's graph knows no .tflite"),
)
"""Rewrites of NNTool and of its preparation, in order."""
