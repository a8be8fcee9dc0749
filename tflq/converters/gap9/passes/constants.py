"""Weights, biases and constant operands in GAP9's types.

Source: docs/rules/gap9/quantization.md, docs/rules/gap9/operators.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers, Reals
from tflq.converters.gap9.affine_types import data_range, file_range, repaired, symmetric
from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import ARITHMETIC, EXPRESSION, FILTERS, LSTM, departing
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.converters.passes.patterns import bias_of
from tflq.converters.passes.rewrite import channel_maxima, constant
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import ABSENT, Affine, Array, Node, Tensor
from tflq.graph.operators import Trait, has_trait, row_of
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.kernels.gap9.rounding import dequantize, quantize, round_half_up, same_scales
from tflq.interpreter.kernels.gap9.unidirectional_sequence_lstm import BIASES, INPUT_WEIGHTS, RECURRENT_WEIGHTS

_SMALLEST_SCALE = 1e-6
_SMALLEST_WEIGHT = 1e-8
_LARGEST_BIAS = (1 << 31) - 1
_CELL_STATE, _LARGEST_CELL = 19, 64.0
_KEPT_BIAS = "NNTool keeps the file's bias at another scale, which it takes for the same (17.28)"


@dataclass(frozen=True, eq=False)
class FilterConstants:
    """Constants of one filter.

    Attributes:
        codes: weights, shaped as given: int8, or uint8 with the zero point 2^(bits-1) for NE16.
        weights: their scale, one for each output channel along `axis`.
        bias: B = rnd(b / (S_x * S_w)), int32[O]; zero points are folded when the graph is lowered.
        bias_scale: S_x * S_w, [O].
        guarded: channels whose bias would not fit int32, so that S_w became 1.
    """

    codes: Array
    weights: Affine
    bias: Integers
    bias_scale: Reals
    guarded: tuple[int, ...]


def quantize_filter(
    weights: Reals,
    bias: Reals | None,
    input_scale: Reals,
    axis: int,
    bits: int,
    offset_binary: bool,
    *,
    is_full: bool = False,
) -> FilterConstants:
    """Quantize weights per output channel, symmetric and narrow, and the bias at the scale of the accumulator.

    S_w[c] = max|w_c| / (2^(b-1) - 1), numbers below 1e-8 counting as 0 and a channel of zeros as 1;
    q = clip(rnd(w / S_w), -(2^(b-1) - 1), 2^(b-1) - 1); B = clip32(rnd(b / (S_x * S_w))). Where |b / (S_x * S_w)|
    exceeds 2^31 - 1, S_w of that channel is 1.

    With `is_full` q reaches down to -2^(b-1), and S_w[c] = max(max w_c / (2^(b-1) - 1), -min w_c / 2^(b-1)).

    Args:
        weights: real; float64 where they come from integers, float32 where the file holds them so.
        bias: real [O], or None.
        input_scale: S_x, [1].
        axis: of the output channels.
        bits: b, 2..8.
        offset_binary: whether quantized values are stored as q + 2^(b-1) (NE16).
        is_full: whether the lowest quantized value is used, which the vendor's tool never does.
    """
    kind = weights.dtype.type
    half = (1 << (bits - 1)) - 1
    reach = np.where(weights < 0, weights * kind(half / (half + 1)), weights) if is_full else weights
    largest = channel_maxima(reach, axis)
    largest = np.where(largest < _SMALLEST_WEIGHT, kind(0), largest)
    scale = np.where(largest == 0, kind(1), largest) / kind(half)
    real_bias = np.zeros(len(scale), kind) if bias is None else bias
    guarded = np.abs(real_bias / (input_scale * scale)) > _LARGEST_BIAS
    scale = np.where(guarded, kind(1), scale)
    offset = np.full(1, (half + 1) * offset_binary, np.int64)
    affine = Affine(scale, offset, axis, bits, not offset_binary, narrow_range=not is_full)
    q = np.clip(round_half_up(weights / affine.along(weights.ndim)[0]), -half - is_full, half).astype(np.int64)
    bias_scale = input_scale * scale
    codes = np.clip(round_half_up(real_bias / bias_scale), -_LARGEST_BIAS - 1, _LARGEST_BIAS).astype(np.int64)
    stored = (q + affine.zero_point[0]).astype(np.uint8 if offset_binary else np.int8)
    return FilterConstants(stored, affine, codes, bias_scale, tuple(int(c) for c in np.flatnonzero(guarded)))


def requantize_constants(editor: Gap9Editor) -> None:
    """Replace the constants of filters, elementwise operators and joins; inputs have their types already.

    Raises:
        OptionError: weight_bits below 8 for a layer that runs on SQ8, or for a graph without a layer on NE16.
    """
    _refuse_narrow_weights(editor)
    for node in editor.nodes:
        if node.operator in FILTERS:
            _requantize_filter(editor, node)
        elif node.operator in (*ARITHMETIC, EXPRESSION):
            requantize_operands(editor, node)
            if node.operator == "sub":
                editor.change(node, sub="nntool" if editor.is_vendor(node) else editor.option(node).sub)
        elif has_trait(node, Trait.JOIN):
            _requantize_joined(editor, node)


def keeps_bias(editor: GraphEditor, node: Node, made: FilterConstants, types: tuple[Affine, Affine]) -> bool:
    """Whether NNTool takes the bias that the file holds for the one that a filter needs, and leaves it as it is.

    It does on SQ8 where no zero point folds and the file's S_b is S_x S_w to it (same_scales). Example: S_b is
    1.20018e-5 in the file, 1.19956e-5 here: the bias stays 40496, where 40517 is right (docs/differences/gap9.md).

    Args:
        editor: Graph with the file's constants.
        node: the filter.
        made: its constants.
        types: of its input and of what it writes itself.
    """
    bias = bias_of(editor, node)
    folds = node.attributes.text("engine") == NE16 or any(affine.zero_point[0] for affine in types)
    return bias is not None and not folds and has_scales(bias, made.bias_scale)


def has_scales(stated: Tensor, scale: Reals) -> bool:
    """Whether NNTool takes a file's constant to have these scales, [O], in all channels."""
    return isinstance(stated.quantization, Affine) and same_scales(scale, stated.quantization.scale)


def weight_axis(node: Node) -> int:
    """Return the axis of the output channels in TFLite's layout of a filter's weights."""
    axis = row_of(node).channel_axis
    assert axis is not None
    return axis


def real_constant(tensor: Tensor) -> Reals:
    """Return a constant's real values: float64 from integers, else float32, or what is stored if that is more."""
    assert tensor.data is not None
    if isinstance(tensor.quantization, Affine) and tensor.dtype.is_integer:
        return dequantize(tensor.data, tensor.quantization)
    return np.asarray(tensor.data, np.promote_types(tensor.data.dtype, np.float32))


def quantize_layer(editor: Gap9Editor, node: Node, input_scale: Reals) -> FilterConstants:
    """Return the constants of a filter for a scale of its input."""
    weights, stated, options = editor.tensors[node.inputs[1]], bias_of(editor, node), editor.option(node)
    bias = real_constant(stated) if stated is not None else None
    on_ne16 = node.attributes.text("engine") == NE16
    bits = _weight_bits(weights, options, on_ne16)
    real = real_constant(weights)
    if options.numerics == "nntool" and tiny_channels(weights, weight_axis(node)).size:
        real = np.zeros_like(real)
    return quantize_filter(
        *(real, bias, input_scale, weight_axis(node), bits, on_ne16),
        is_full=on_ne16 and options.weight_range == "full",
    )


def _weight_bits(weights: Tensor, options: LayerOptions, on_ne16: bool) -> int:
    """The file's width is an upper bound, but for a layer that was named."""
    if not on_ne16:
        return 8
    stored = weights.affine.bits if isinstance(weights.quantization, Affine) else 8
    return options.weight_bits if options.weight_bits_requested else min(stored, options.weight_bits)


def tiny_channels(weights: Tensor, axis: int) -> Integers:
    """Return the channels on which NNTool's loader stumbles: 0 < max|w_c| / 127 < 1e-6 (docs/differences/gap9.md).

    It looks at them where it gives each channel a scale of its own: of asymmetric weights, and of several channels with
    one scale. Example: 8-bit weights of scale 1e-4, a channel of which holds 1 at most.
    """
    q = weights.quantization
    if not isinstance(q, Affine) or not weights.dtype.is_integer:
        return np.zeros(0, np.int64)
    if not q.zero_point.any() and (q.scale.size > 1 or weights.shape[axis] == 1):
        return np.zeros(0, np.int64)
    largest = channel_maxima(real_constant(weights), axis)
    return np.flatnonzero((largest > 0) & (largest / 127 < _SMALLEST_SCALE))


def tiny_words(tiny: Integers, channels: int) -> str:
    """Say what NNTool does with tiny channels: it takes the only one for zeros, and fails on one of several."""
    does = "takes the filter's only channel for zeros" if channels == 1 else f"fails on channel {tiny[0]}"
    return f"NNTool {does}, whose weights are all below 1.27e-4 (17.29)"


def _refuse_narrow_weights(editor: Gap9Editor) -> None:
    """A layer that falls back to SQ8 keeps 8 bits, unless it was named, or no layer takes the requested width."""
    filters = [node for node in editor.nodes if node.operator in FILTERS]
    nowhere = not any(node.attributes.text("engine") == NE16 for node in filters)
    for node in filters:
        options, engine = editor.option(node), node.attributes.text("engine")
        if options.weight_bits < 8 and (options.weight_bits_requested or nowhere) and engine != NE16:
            raise OptionError(
                f"{editor.where(node)}: weight_bits={options.weight_bits} on a layer that runs on SQ8 "
                f"({node.attributes.text('engine_reason')}); SQ8 takes 8: set use_ne16=true or weight_bits=8 for it"
            )


def _requantize_filter(editor: Gap9Editor, node: Node) -> None:
    x, y = (editor.tensors[t].affine for t in (node.inputs[0], node.outputs[0]))
    weights, bias = editor.tensors[node.inputs[1]], bias_of(editor, node)
    made, departures = quantize_layer(editor, node, x.scale), list[str]()
    if (tiny := tiny_channels(weights, weight_axis(node))).size:
        departures.append(tiny_words(tiny, len(made.weights.scale)))
    if bias is not None and keeps_bias(editor, node, made, (x, y)):
        assert bias.data is not None
        if np.any(bias.data != made.bias):
            departures.append(_KEPT_BIAS)
            made = replace(made, bias=bias.data.astype(np.int64)) if editor.is_vendor(node) else made
    w = editor.add_tensor(constant(weights.name, made.codes, made.weights))
    affine = Affine(made.bias_scale, np.zeros(1, np.int64), 0, 32, True)
    name = f"{node.name}_bias" if bias is None else bias.name
    b = editor.add_tensor(constant(name, made.bias.astype(np.int32), affine))
    for text in departures:
        node = departing(node, text)
    editor.replace(node, node)
    editor.change(node, inputs=(node.inputs[0], w, b), guarded_channels=made.guarded)


def requantize_operands(editor: GraphEditor, node: Node) -> None:
    """Requantize constant operands: an Add of unsigned values and expressions keep the file's quantized values.

    All others are int8 symmetric on the constant's range.
    """
    for position, tensor in [(p, editor.tensors[t]) for p, t in enumerate(node.inputs)]:
        keeps = node.operator == EXPRESSION or not editor.tensors[node.outputs[0]].affine.signed
        if not tensor.is_constant or (keeps and isinstance(tensor.quantization, Affine)):
            continue
        real, stated = real_constant(tensor), file_range(tensor)
        affine = symmetric(repaired(stated) if stated is not None else data_range(real))
        data = quantize(real, affine).astype(np.int8)
        new = editor.add_tensor(constant(tensor.name, data, affine, range_=tensor.range))
        editor.set_input(node, position, new)


def _requantize_joined(editor: Gap9Editor, node: Node) -> None:
    """Give constants that are joined with computed tensors the type of the result."""
    result = editor.tensors[node.outputs[0]]
    for position, tensor in [(p, editor.tensors[t]) for p, t in enumerate(node.inputs)]:
        if tensor.is_constant:
            data = quantize(real_constant(tensor), result.affine).astype(result.dtype.storage)
            editor.set_input(node, position, editor.add_tensor(constant(tensor.name, data, result.affine)))


def requantize_recurrent(editor: Gap9Editor) -> None:
    """Replace the weights of LSTM layers by quantized values; biases become float32, states disappear.

    NE16: per output channel and gate, uint8 with zero point 2^(bits-1). SQ8: per tensor and gate, int8.

    Raises:
        UnsupportedError: no range of the cell; or on SQ8 scales so close that NNTool would merge them.
    """
    for node in editor.nodes:
        if node.operator == LSTM:
            _requantize_cell(editor, node)


def cell_maximum(editor: GraphEditor, node: Node) -> float:
    """Return the largest |c|: cell_clip if it is not 0, else the cell's statistics (NE16: at least 1); at most 64.

    Raises:
        UnsupportedError: neither is there.
    """
    clip = node.attributes.real("cell_clip", 0.0)
    if clip:
        return min(clip, _LARGEST_CELL)
    state = editor.tensors[node.inputs[_CELL_STATE]]
    if state.range is None:
        raise UnsupportedError(f"the cell state '{state.name}' has no range: calibrate the model or give a cell_clip")
    largest = max(abs(float(state.range.minimum.min())), abs(float(state.range.maximum.max())))
    on_ne16 = node.attributes.text("engine") == NE16
    return min(max(largest, 1.0) if on_ne16 else largest, _LARGEST_CELL)


def _requantize_cell(editor: Gap9Editor, node: Node) -> None:
    on_ne16 = node.attributes.text("engine") == NE16
    inputs, bits = list(node.inputs), editor.option(node).weight_bits
    for position in (*INPUT_WEIGHTS, *RECURRENT_WEIGHTS):
        inputs[position] = editor.add_tensor(_gate_weights(editor.tensors[inputs[position]], bits, on_ne16))
    units = editor.shape(inputs[RECURRENT_WEIGHTS[0]])[0]
    for position in BIASES:
        stated = None if inputs[position] == ABSENT else editor.tensors[inputs[position]]
        real: Reals = np.zeros(units, np.float32) if stated is None else real_constant(stated).astype(np.float32)
        name = f"{node.name}_bias{position}" if stated is None else stated.name
        inputs[position] = editor.add_tensor(constant(name, real))
    if not on_ne16:
        _refuse_merging(editor, node, inputs)
    editor.change(node, inputs=inputs[: BIASES[-1] + 1], cell_max=cell_maximum(editor, node))


def _gate_weights(tensor: Tensor, bits: int, on_ne16: bool) -> Tensor:
    real = real_constant(tensor)
    if on_ne16:
        made = quantize_filter(real, None, np.ones(1, real.dtype), 0, bits, True)
        codes, affine = made.codes, made.weights
    else:
        half = (1 << (bits - 1)) - 1
        scale = np.atleast_1d(np.abs(real).max() / real.dtype.type(half))
        affine = Affine(scale, np.zeros(1, np.int64), None, bits, True, narrow_range=True)
        codes = np.clip(round_half_up(real / scale), -half, half).astype(np.int8)
    return constant(tensor.name, codes, affine)


def _refuse_merging(editor: Gap9Editor, node: Node, inputs: list[int]) -> None:
    """Refuse what NNTool treats in a way that nobody has run: all of S_x and S_h, S_w and S_r nearly equal."""
    s_x, s_h = (editor.tensors[t].affine.scale[0] for t in (node.inputs[0], node.outputs[0]))
    pairs = [
        (editor.tensors[inputs[w]].affine.scale[0], editor.tensors[inputs[r]].affine.scale[0])
        for w, r in zip(INPUT_WEIGHTS, RECURRENT_WEIGHTS, strict=True)
    ]
    if abs(1 - s_x / s_h) < 0.1 and all(abs(1 - w / r) < 0.2 for w, r in pairs):
        raise UnsupportedError(
            f"{editor.where(node)}: input and output scales ({s_x:.4g}, {s_h:.4g}) and all weight scales are so close "
            f"that GAP9's tool merges them on SQ8, for which there is no reference; run this layer on NE16"
        )
