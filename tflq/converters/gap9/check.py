"""Which operators GAP9 cannot take, and why: all at once, each with its way out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflq.converters.gap9.affine_types import file_range
from tflq.converters.gap9.expressions.groups import NEEDING, expression_problem
from tflq.converters.gap9.operators import (
    ACTIVATIONS,
    ARITHMETIC,
    FILTERS,
    FLATTENING,
    GLOBAL_POOLS,
    LSTM,
    MOVES,
    POOLS,
    RECTIFIERS,
)
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.constants import tiny_channels, tiny_words, weight_axis
from tflq.converters.passes.patterns import bias_of, computed_inputs
from tflq.converters.passes.requirements import collect_problems, no_mapping
from tflq.converters.passes.take_in import foldable_padding
from tflq.graph import ABSENT, Affine, Graph, Node, Tensor
from tflq.graph.operators import CONVOLUTIONS, Trait, has_trait, row_of
from tflq.graph.rewriting import GraphEditor, fused_activation

_ACTIVATIONS = ("none", *RECTIFIERS)
_PASSED = ("dequantize", "softmax", *RECTIFIERS, "hard_swish", "logistic", "tanh", "max_pool_2d")
_WITHOUT_REFERENCE = {
    **dict.fromkeys(("log", "neg"), "NNTool's importer does not know it"),
    **dict.fromkeys(("ceil", "floor_mod"), "NNTool imports it, and has no integer kernel of it"),
    **dict.fromkeys(("unidirectional_sequence_rnn", "bidirectional_sequence_lstm"), "no reference but for LSTM"),
}


def problems_of(graph: Graph, options: Mapping[str, LayerOptions]) -> tuple[str, ...]:
    """Return one line for each operator that cannot be mapped, in order of the file."""
    editor = GraphEditor(graph)
    return collect_problems(graph, lambda _, node: _reason(editor, node, options[node.name]))


def supported_operators() -> tuple[str, ...]:
    """Return the operators that GAP9 takes, all or in part."""
    return tuple(sorted({*_PASSED, *_RULES}))


def _reason(editor: GraphEditor, node: Node, options: LayerOptions) -> str:
    if node.operator in _WITHOUT_REFERENCE:
        return f"not mapped: {_WITHOUT_REFERENCE[node.operator]}; replace it or cut the graph in front of it"
    if node.operator not in _PASSED and node.operator not in _RULES:
        return no_mapping(node, "no mapping to GAP9")
    fused = fused_activation(node)
    if fused not in _ACTIVATIONS and node.operator != LSTM:
        return f"fused activation {fused}; GAP9 takes {', '.join(_ACTIVATIONS)}: make it an operator of its own"
    return _RULES[node.operator](editor, node, options) if node.operator in _RULES else ""


def _filter(editor: GraphEditor, node: Node, options: LayerOptions) -> str:
    weights = editor.tensors[node.inputs[1]]
    bias = bias_of(editor, node)
    if not weights.is_constant or (bias is not None and not bias.is_constant):
        return "weights or bias are computed at run time; GAP9 takes constants"
    if isinstance(weights.quantization, Affine) is False and weights.quantization is not None:
        return "blockwise weights; GAP9 takes one scale for each output channel"
    tiny, channels = tiny_channels(weights, weight_axis(node)), weights.shape[weight_axis(node)]
    if options.numerics == "nntool" and tiny.size and channels > 1:
        return f"{tiny_words(tiny, channels)}; numerics=exact converts it"
    return ""


def _mean(editor: GraphEditor, node: Node, _options: LayerOptions) -> str:
    rank = len(editor.tensors[node.inputs[0]].shape)
    data = editor.tensors[node.inputs[1]].data
    if data is None:
        return "its axes are computed at run time; GAP9 takes constants"
    axes = sorted({int(a) % rank for a in data.reshape(-1)})
    if not axes or 0 in axes:
        return f"{node.operator} over axes {axes} of rank {rank}; GAP9 takes any but the batch axis"
    return ""


def _is_taken_in(editor: GraphEditor, node: Node) -> bool:
    """Whether a convolution folds a PAD of zeros."""
    reader = editor.only_reader(node.outputs[0])
    follows = reader is not None and has_trait(reader, Trait.CONVOLUTION)
    return follows and foldable_padding(editor.tensors, node) is not None


def _move(editor: GraphEditor, node: Node, options: LayerOptions) -> str:
    data = row_of(node).data
    pads = node.operator == "space_to_batch_nd" or (node.operator == "pad" and not _is_taken_in(editor, node))
    if options.feature_bits == 16 and pads:
        return "padding of 16-bit features that no convolution takes over; set feature_bits=8"
    if options.numerics == "nntool" and vendor_failure(editor, node):
        return f"{vendor_failure(editor, node)}; numerics=exact converts it"
    if not has_trait(node, Trait.JOIN):
        late = [editor.tensors[t].name for p, t in computed_inputs(editor, node) if p != data]
        if late:
            return f"operand '{late[0]}' is computed at run time; GAP9 takes a constant"
    return ""


def vendor_failure(editor: GraphEditor, node: Node) -> str:
    """Say what NNTool fails on in a move; "" for what it takes."""
    operand = editor.tensors[node.inputs[1]].data if len(node.inputs) > 1 and node.inputs[1] != ABSENT else None
    if node.operator == "gather" and operand is not None and operand.ndim:
        return "NNTool fails on GATHER with a list of indices (18)"
    readers = editor.readers(node.outputs[0]) if node.operator == "space_to_batch_nd" else ()
    if any(reader.operator != "batch_to_space_nd" for reader in readers):
        return "NNTool fails on what computes between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND (17.9)"
    sizes = editor.tensors[node.inputs[2]].data if node.operator == "slice" else None
    if sizes is not None and sizes.size and int(sizes.reshape(-1)[0]) == -1:
        return "NNTool fails on SLICE with size -1 on the batch axis (18)"
    if node.operator == "slice" and (reader := _reader_by_axes(editor, node)):
        return f"NNTool's SLICE loses the batch axis, and {reader} behind it fails, or takes other axes (17.31)"
    if node.operator == "resize_bilinear" and 1 in editor.tensors[node.inputs[0]].shape[1:3]:
        return "NNTool's own execution fails on a bilinear resize of a map of height or width 1 (17.32)"
    return ""


_BY_AXES = frozenset({*CONVOLUTIONS, *POOLS, *GLOBAL_POOLS, *MOVES} - {*FLATTENING})
_ELEMENT_WISE = (*ARITHMETIC, "quantize", *ACTIVATIONS)


def _reader_by_axes(editor: GraphEditor, node: Node) -> str:
    """Return what reads a map by its axes, itself or through what changes single elements; "" for nothing."""
    open_ = [] if len(editor.shape(node.inputs[0])) < 3 else [node.outputs[0]]
    for tensor in open_:
        for reader in editor.readers(tensor):
            if reader.operator in _BY_AXES:
                return reader.operator.upper()
            open_ += [t for t in reader.outputs if reader.operator in _ELEMENT_WISE and t not in open_]
    return ""


FORGOTTEN = "NNTool forgets the range of a float tensor in front of QUANTIZE, and takes [0, 1] (17.12)"


def forgotten_range(editor: GraphEditor, node: Node) -> int | None:
    """Return the float tensor without range that a QUANTIZE reads and an operator computes; None for any other node."""
    tensor = editor.tensors[node.inputs[0]] if node.operator == "quantize" else None
    if tensor is None or not tensor.dtype.is_floating or file_range(tensor) is not None:
        return None
    writer = editor.writer(node.inputs[0])
    return None if writer is None or writer.operator == "dequantize" else node.inputs[0]


def _quantize(editor: GraphEditor, node: Node, options: LayerOptions) -> str:
    forgotten = options.numerics == "nntool" and forgotten_range(editor, node) is not None
    return f"{FORGOTTEN}; numerics=exact takes the range of QUANTIZE" if forgotten else ""


def _leaky(_editor: GraphEditor, node: Node, _options: LayerOptions) -> str:
    alpha = node.attributes.real("alpha")
    return "" if -1 <= alpha < 0.996 else f"alpha is {alpha}; GAP9 takes -1 to below 0.996 (8 bits, 7 of them fraction)"


def _padv2(editor: GraphEditor, node: Node, _options: LayerOptions) -> str:
    if not _is_taken_in(editor, node):
        return "padding with a value; GAP9 takes zeros on height and width in front of a convolution"
    return ""


def _average_pool(_editor: GraphEditor, node: Node, _options: LayerOptions) -> str:
    taps = node.attributes.integer("filter_height") * node.attributes.integer("filter_width")
    return "" if taps <= 65536 else f"a window of {taps} taps; GAP9 takes up to 65536"


def _elementwise(editor: GraphEditor, node: Node, _options: LayerOptions) -> str:
    bare = [t for t in (editor.tensors[t] for t in node.inputs) if _is_bare(t)]
    return (
        f"operand '{bare[0].name}' is {bare[0].dtype.value} without a scale; GAP9 takes quantized ones" if bare else ""
    )


def _expression(editor: GraphEditor, node: Node, options: LayerOptions) -> str:
    return expression_problem(editor, node, options) or _elementwise(editor, node, options)


def _is_bare(tensor: Tensor) -> bool:
    return not tensor.dtype.is_floating and file_range(tensor) is None


_LSTM_PARTS = {
    "peephole weights": (9, 10, 11),
    "a projection": (16, 17),
    "layer normalization": (20, 21, 22, 23),
}


def _lstm(editor: GraphEditor, node: Node, options: LayerOptions) -> str:
    if options.feature_bits == 16:
        return "LSTM with features of 16 bits has no reference; set feature_bits=8"
    if not editor.tensors[node.inputs[0]].dtype.is_floating:
        return "an LSTM that is quantized already has no reference; give the float model with calibrated ranges"
    if node.inputs[1] == ABSENT:
        return "an LSTM without input gate (CIFG); GAP9 takes all four gates"
    for part, positions in _LSTM_PARTS.items():
        if any(p < len(node.inputs) and node.inputs[p] != ABSENT for p in positions):
            return f"an LSTM with {part}; GAP9 takes it without"
    activation = node.attributes.text("fused_activation_function", "tanh")
    return "" if activation == "tanh" else f"an LSTM with activation {activation}; GAP9 takes tanh"


_Rule = Callable[[GraphEditor, Node, LayerOptions], str]
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(FILTERS, _filter),
    **dict.fromkeys(GLOBAL_POOLS, _mean),
    **dict.fromkeys(MOVES, _move),
    "quantize": _quantize,
    "leaky_relu": _leaky,
    "padv2": _padv2,
    "average_pool_2d": _average_pool,
    **dict.fromkeys(ARITHMETIC, _elementwise),
    **dict.fromkeys(NEEDING, _expression),
    LSTM: _lstm,
}
