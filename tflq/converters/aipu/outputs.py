"""Types of outputs that a rule of the layer decides, one by one: counts, indices, boxes, codes that pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.ranges import range_of, type_of_range
from tflq.converters.aipu.special import negative_type
from tflq.graph import Affine, DType, Node, Operands, Quantisation, Tensor
from tflq.interpreter.kernels.aipu.bounding_box import OUTPUT_SCALE
from tflq.interpreter.kernels.aipu.boxes import hidden_scale
from tflq.interpreter.kernels.aipu.log_softmax import LOWEST
from tflq.interpreter.kernels.aipu.periodic import SCALE
from tflq.interpreter.kernels.aipu.pow import EXPONENT
from tflq.interpreter.kernels.aipu.pyramid_crop import is_normalised
from tflq.interpreter.kernels.aipu.pyramid_shared import has_own_scales
from tflq.interpreter.kernels.aipu.scales import (
    affine_of,
    bits_of,
    code_limits,
    is_plain,
    is_signed,
    offset_of,
    scale_of,
)

OutputType = tuple[DType, Quantisation | None]
_Rule = Callable[[Node, Operands, LayerOptions], tuple[OutputType, ...]]


def fixed_types(node: Node, operands: Operands, asked: LayerOptions) -> tuple[OutputType, ...]:
    """Return the type of each output of a layer with `Signs.FIXED`; inputs and hidden tensors have theirs."""
    return _RULES[node.operator](node, operands, asked)


def shared_map(maps: Sequence[Tensor]) -> Tensor:
    """Return the map whose largest value is the median of all, the upper one of two: its type holds them all.

    Source: whitepaper ACN-AWP-1002A, 5.1.3.4, which takes P2 of P2 to P5 for that reason.
    """
    return sorted(maps, key=scale_of, reverse=True)[len(maps) // 2]


def code_type(affine: Affine) -> DType:
    """Return the element type that holds codes."""
    bits = next(b for b in (8, 16, 32) if affine.bits <= b)
    return DType(f"{'int' if affine.signed else 'uint'}{bits}")


def _typed(affine: Affine) -> OutputType:
    return code_type(affine), affine


def _plain(bits: int, signed: bool = False, zp: int = 0) -> OutputType:
    """Return the type of counts, indices and truth values: scale 1."""
    return _typed(affine_of(np.float32(1), zp, bits, signed))


def _like(tensor: Tensor) -> OutputType:
    return tensor.dtype, tensor.quantisation


def _of_range(tensor: Tensor, signed: bool, asked: LayerOptions, is_symmetric: bool) -> OutputType:
    low, high = range_of(tensor)
    return _typed(type_of_range(low, high, asked.activation_bits, signed, is_symmetric, asked.restricted))


def _log_softmax(_node: Node, operands: Operands, asked: LayerOptions) -> tuple[OutputType, ...]:
    """Always -16..0, signed, of the input's width."""
    bits = bits_of(operands.input(0))
    return (_typed(type_of_range(LOWEST, 0, bits, True, asked.is_symmetric, asked.restricted)),)


def _one_hot(node: Node, _operands: Operands, asked: LayerOptions) -> tuple[OutputType, ...]:
    """Whole values as they are, others by their own range."""
    values = np.asarray(node.attributes["values"], np.float64)
    low, high = values.min(), values.max()
    if np.array_equal(values, np.trunc(values)):
        bits = next(b for b in (8, 16, 32) if low >= -(1 << (b - 1)) and high < 1 << (b - (low < 0)))
        return (_plain(bits, bool(low < 0)),)
    affine = type_of_range(low, high, asked.activation_bits, bool(low < 0), asked.is_symmetric, asked.restricted)
    return (_typed(affine),)


def _pow(node: Node, operands: Operands, asked: LayerOptions) -> tuple[OutputType, ...]:
    """By the output's range where the exponent is one constant; else by that of exp(p * log|x|), always symmetric."""
    x, signed = operands.input(0), is_signed(operands.input(0))
    if EXPONENT in node.attributes:
        exponent = node.attributes.real(EXPONENT)
        signed = signed and exponent % 2 != 0
        if is_plain(x) and exponent == np.rint(exponent):
            return (_plain(asked.activation_bits, signed),)
        return (_of_range(operands.output(), signed, asked, asked.is_symmetric),)
    if is_plain(x) and is_plain(operands.input(1)):
        return (_plain(asked.activation_bits, signed),)
    power = operands.intermediates[2]
    assert power is not None
    return (_of_range(power, signed, replace(asked, restricted=True), True),)


def _periodic(_node: Node, operands: Operands, asked: LayerOptions) -> tuple[OutputType, ...]:
    """At 16 bits always -1..1."""
    if asked.activation_bits > 8:
        return (_typed(affine_of(np.float32(SCALE), 0, asked.activation_bits, True, True)),)
    return (_of_range(operands.output(), True, asked, asked.is_symmetric),)


def _squared(_node: Node, operands: Operands, asked: LayerOptions) -> tuple[OutputType, ...]:
    """Whole numbers give whole numbers of 32 bits."""
    if all(t is not None and is_plain(t) for t in operands.inputs):
        return (_plain(32),)
    return (_of_range(operands.output(), False, asked, asked.is_symmetric),)


def _top_k(node: Node, operands: Operands, _asked: LayerOptions) -> tuple[OutputType, ...]:
    x = operands.input(0)
    return _like(x), _plain(16 if x.shape[node.attributes.integer("axis")] <= 1 << 16 else 32)


def _nms(node: Node, operands: Operands, _asked: LayerOptions) -> tuple[OutputType, ...]:
    """Boxes: in pixels at scale 1, or as they are where they stay within 0..1; zp = 0. Scores pass."""
    boxes = operands.input(0)
    s, value = scale_of(boxes), node.attributes.integer
    is_sized = "image_height" in node.attributes and "image_width" in node.attributes
    if value("center_point_box", 0) and is_sized:
        s = np.float32(max(value("image_height"), value("image_width")))
    low, high = code_limits(boxes)
    largest = (high + offset_of(boxes)) / float(scale_of(boxes))
    if boxes.range is not None:
        largest = float(np.max(boxes.range.maximum))
    kept = s if s <= int(scale_of(boxes)) or largest <= 1 else np.float32(1)
    affine = affine_of(kept, 0, boxes.affine.bits, low < 0, boxes.affine.narrow_range)
    return _typed(affine), _plain(16), _like(operands.input(3)), _plain(16)


def _cast(_node: Node, operands: Operands, _asked: LayerOptions) -> tuple[OutputType, ...]:
    """Integers stay as they are; real numbers become integers of at most 32 bits, at scale 1."""
    x, wanted = operands.input(0), operands.output().dtype
    return (_like(x) if is_plain(x) else _plain(min(32, wanted.bits), wanted.is_signed),)


def _proposal(_node: Node, operands: Operands, _asked: LayerOptions) -> tuple[OutputType, ...]:
    """Scores pass; boxes have the largest power of two below the scale of the coordinates."""
    s = np.exp2(np.floor(np.log2(hidden_scale(operands, 0))))
    return _like(operands.input(0)), _typed(affine_of(np.float32(s), 0, 16)), _plain(16), _plain(16)


def _detection(_node: Node, operands: Operands, _asked: LayerOptions) -> tuple[OutputType, ...]:
    """Scores pass; boxes have the scale of the coordinates."""
    boxes = _typed(affine_of(hidden_scale(operands, 0), 0, 16))
    return _like(operands.input(0)), boxes, *(_plain(16),) * 3


def _pyramid(node: Node, operands: Operands, asked: LayerOptions) -> tuple[OutputType, ...]:
    """Boxes in 0..1: the type of the first map with zp = 0, or the shared type of maps with scales of their own.

    Boxes in pixels: an own range, signed where a map is.
    """
    maps = [operands.input(k) for k in range(1, len(operands.inputs))]
    if has_own_scales(node):
        return (_like(shared_map(maps)),)
    if is_normalised(node):
        first = maps[0].affine
        return (_typed(affine_of(scale_of(maps[0]), 0, first.bits, first.signed, first.narrow_range)),)
    signed = any(is_signed(m) for m in maps)
    low, high = range_of(operands.output())
    return (_typed(type_of_range(low, high, asked.activation_bits, signed, asked.is_symmetric, asked.restricted)),)


_RULES: dict[str, _Rule] = {
    "arg_min_max": lambda _, o, __: (_plain(16),) * len(o.outputs),
    "bounding_box": lambda _, __, ___: (_typed(affine_of(np.float32(OUTPUT_SCALE), 0, 16)),),
    "cast": _cast,
    "log_softmax": _log_softmax,
    "count": lambda _, o, __: (_plain(16, zp=offset_of(o.input(0))),),
    "ctc_greedy_decoder": lambda _, __, ___: (_plain(16),),
    "detection_output": _detection,
    "filter": lambda _, o, __: (*(_like(t) for t in o.inputs[:-1] if t is not None), _plain(16)),
    "in_top_k": lambda _, __, ___: (_plain(8),),
    "max_pooling_with_arg_max": lambda _, o, __: (_like(o.input(0)), _plain(32, True)),
    "cosine": _periodic,
    "logical": lambda _, o, __: (_plain(8),) * len(o.outputs),
    "negative": lambda _, o, __: (_typed(negative_type(o.input(0))),),
    "nms": _nms,
    "one_hot": _one_hot,
    "pow": _pow,
    "proposal": _proposal,
    "squared_difference": _squared,
    "top_k": _top_k,
    "pyramid_roi_align": _pyramid,
    "sine": _periodic,
    "sign": lambda _, o, __: (_plain(o.input(0).affine.bits, True),),
}
