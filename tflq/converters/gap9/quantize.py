"""From TFLite's graph to GAP9's: the passes in their order."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.calibration import samples_of
from tflq.converters.gap9.affine_types import file_range, state_ranges
from tflq.converters.gap9.check import FORGOTTEN, forgotten_range, problems_of
from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.expressions.match import match_expressions
from tflq.converters.gap9.loaded import loader_conversions
from tflq.converters.gap9.operators import departing
from tflq.converters.gap9.options import layer_options
from tflq.converters.gap9.passes.apply_types import apply_types
from tflq.converters.gap9.passes.channels_first import arrange_columns
from tflq.converters.gap9.passes.choose_engines import choose_engines
from tflq.converters.gap9.passes.columns import find_columns
from tflq.converters.gap9.passes.constants import requantize_constants, requantize_recurrent
from tflq.converters.gap9.passes.cut_kernels import cut_kernels
from tflq.converters.gap9.passes.external_bias import fold_biases
from tflq.converters.gap9.passes.global_pools import arrange_layout, name_global_pools
from tflq.converters.gap9.passes.hard_sigmoid import find_hard_sigmoids, refuse_asked_hard_sigmoids
from tflq.converters.gap9.passes.merge_convolutions import merge_convolutions
from tflq.converters.gap9.passes.move_up import raise_activations, raise_pools, remove_undone_reshapes
from tflq.converters.gap9.passes.separate_activations import READ_IN_FILE, remove_idle_rectifiers, separate_activations
from tflq.converters.gap9.passes.shared_constants import copy_shared_constants
from tflq.converters.gap9.passes.slices import split_slices
from tflq.converters.gap9.types.plan import choose_types
from tflq.converters.gap9.units import fuse
from tflq.converters.passes.conversions import remove_conversions
from tflq.converters.passes.merge_equal import merge_equal
from tflq.converters.passes.requirements import refuse
from tflq.converters.passes.rewrite import with_attributes
from tflq.converters.passes.take_in import fold_padding
from tflq.converters.settings import Settings
from tflq.graph import Graph, Node, Tensor, validate
from tflq.graph.operators import CONVOLUTIONS
from tflq.graph.rewriting import Pass, run_passes
from tflq.interpreter.operands.sliding_windows import Window

ARITHMETIC = "gap9"


def quantize_graph(graph: Graph, settings: Settings) -> Graph:
    """Return the graph that GAP9's tool makes of a quantized TFLite graph.

    Raises:
        UnsupportedError: operators without a mapping, all at once; tensors without a range.
        OptionError: settings that do not fit the graph.
    """
    options = layer_options(graph, settings)
    refuse(problems_of(graph, options))
    editor = Gap9Editor(graph, options, _positive_inputs(graph))
    run_passes(editor, _PASSES, owner="gap9")
    result = editor.graph(prune=True)
    validate(result, "gap9 graph")
    return result


def _positive_inputs(graph: Graph) -> frozenset[int]:
    """Return the inputs with a range above 0, before ranges are widened to include it: they are symmetric."""
    samples = samples_of(graph)
    stated = {t: file_range(graph.tensors[t]) for t in graph.inputs}
    known = frozenset(t for t, range_ in stated.items() if range_ is not None and range_.minimum[0] > 0)
    return known | (samples.positive if samples is not None else frozenset())


def _remove_conversions(editor: Gap9Editor) -> None:
    forgotten = {t for node in editor.nodes if (t := forgotten_range(editor, node)) is not None}
    for node in editor.nodes:
        plain = editor.replace(node, replace(node, intermediates=None))
        if forgotten.intersection(node.outputs):
            editor.change(plain, departure=FORGOTTEN)
        if node.operator == "fully_connected" and editor.readers(node.outputs[0]):
            editor.replace(plain, with_attributes(plain, **{READ_IN_FILE: True}))
    remove_conversions(editor, lambda tensor: file_range(tensor) is not None)


_LOST_PADDING = "NNTool loses the SAME padding of an operator that folds a PAD; its output is smaller (17.35)"


def _fold_padding(editor: Gap9Editor) -> None:
    """Fold PADs into convolutions and max pools; note the operators that lose their own padding in NNTool."""

    def note_lost_padding(node: Node, window: Window) -> None:
        if any(window.padding):
            editor.replace(node, departing(node, _LOST_PADDING))

    fold_padding(editor, (*CONVOLUTIONS, "max_pool_2d"), note_lost_padding)


def _remove_file_facts(editor: Gap9Editor) -> None:
    """Remove open shapes, ranks, variables and ranges of constants, which only the .tflite file knows."""
    editor.tensors[:] = [
        Tensor(t.name, t.shape, t.dtype, t.quantization, None if t.is_constant else t.range, t.data)
        for t in editor.tensors
    ]
    for node in editor.nodes:
        editor.replace(node, replace(node, arithmetic=ARITHMETIC, extra=None))
    editor.extra = None


_PASSES: tuple[Pass[Gap9Editor], ...] = (
    Pass(
        "remove_conversions",
        _remove_conversions,
        "types are chosen anew; nodes come back only where two of them meet",
    ),
    Pass(
        "copy_shared_constants",
        copy_shared_constants,
        "the scale of a constant belongs to its first reader in NNTool",
        "docs/differences/gap9.md#shared-constants",
    ),
    Pass("state_ranges", state_ranges, "every type follows from a real range"),
    Pass("find_columns", find_columns, "NNTool's loader searches before anything is fused", "docs/differences/gap9.md"),
    Pass(
        "fold_padding",
        _fold_padding,
        "NE16 and the cluster's convolutions pad by themselves",
    ),
    Pass(
        "merge_equal",
        lambda editor: merge_equal(editor, ("add", "mul", "minimum", "maximum")),
        "several pads of one tensor have become the same convolution input, and NNTool makes equal nodes once",
    ),
    Pass("remove_undone_reshapes", remove_undone_reshapes, "nothing may stand between a convolution and its pool"),
    Pass("separate_activations", separate_activations, "NNTool moves and fuses activations as nodes"),
    Pass("name_global_pools", name_global_pools, "a pool over the whole map with stride 1 is a mean or a maximum"),
    Pass(
        "find_hard_sigmoids",
        find_hard_sigmoids,
        "a filter fuses it as one activation",
        "docs/rules/gap9/operators.md#activations",
    ),
    Pass(
        "fold_biases",
        fold_biases,
        "NNTool's importer adds a constant behind a filter to its bias",
        "docs/rules/gap9/filters.md#filters",
    ),
    Pass("split_slices", split_slices, "the piece without a reader decides types, too"),
    Pass(
        "remove_idle_rectifiers",
        lambda editor: remove_idle_rectifiers(editor, lambda: loader_conversions(editor)),
        "a ReLU of a non-negative tensor would prevent a fusion for nothing",
        "docs/rules/gap9/types.md#types",
    ),
    Pass("raise_activations", raise_activations, "so that a layer fuses its activation; a pool keeps its own"),
    Pass("raise_pools", raise_pools, "a convolution fuses a pool only directly behind it"),
    Pass("cut_kernels", cut_kernels, "engines and scales of weights follow the cut kernel", "docs/differences/gap9.md"),
    Pass("fuse", fuse, "generators take convolution, pool and activation together"),
    Pass("merge_convolutions", merge_convolutions, "parallel convolutions load their input once"),
    Pass(
        "match_expressions",
        match_expressions,
        "element-wise operators are compiled together",
        "docs/rules/gap9/expressions.md",
    ),
    Pass("choose_engines", choose_engines, "types depend on the engine"),
    Pass(
        "choose_types",
        lambda editor: apply_types(editor, choose_types(editor)),
        "types follow from ranges and readers",
        "docs/rules/gap9/types.md#types",
    ),
    Pass(
        "refuse_asked_hard_sigmoids",
        refuse_asked_hard_sigmoids,
        "NNTool fails on them",
        "docs/differences/gap9_failures.md#hard-sigmoid-in-a-fusion",
    ),
    Pass(
        "requantize_constants",
        requantize_constants,
        "weights and biases follow the types",
        "docs/rules/gap9/quantization.md",
    ),
    Pass("arrange_columns", arrange_columns, "NNTool moves its transposes", "docs/differences/gap9.md"),
    Pass(
        "requantize_recurrent",
        requantize_recurrent,
        "the tables of a cell follow the types",
        "docs/rules/gap9/operators.md#lstm",
    ),
    Pass("arrange_layout", arrange_layout, "global means read channels first"),
    Pass("remove_file_facts", _remove_file_facts, "the target's graph knows no .tflite"),
)
"""Rewrites of NNTool and of its preparation, in order."""
