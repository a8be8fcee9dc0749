"""Real ranges, and scale and zero point from them, as GAP9's tool computes them.

Source: docs/rules/gap9/quantization.md#activations.

The precision of a scale is that of its range: float32 ranges (a file's min/max) give float32 scales, float64 ranges
give float64. The params of a network depend on it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.arrays import Reals
from tflq.converters.passes.requirements import refuse_missing_ranges
from tflq.graph import ABSENT, Affine, Range, Tensor
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.kernels.gap9.rounding import same_scales


def real_range(low: float, high: float) -> Range:
    """Return a range in float64, such as [0, 6]."""
    return Range(np.array([low], np.float64), np.array([high], np.float64))


def file_range(tensor: Tensor) -> Range | None:
    """Return the range that a file states for a tensor, None where it states none.

    The stored min/max in float32 if there, else (qmin - Z) * S .. (qmax - Z) * S of the whole type in float64.
    """
    if tensor.range is not None and tensor.range.minimum.size:
        return Range(tensor.range.minimum.min(keepdims=True), tensor.range.maximum.max(keepdims=True))
    if not isinstance(tensor.quantization, Affine) or not tensor.dtype.is_integer or not tensor.quantization.scale.size:
        return None
    scale, zero_point = tensor.quantization.scale.astype(np.float64), tensor.quantization.zero_point
    low, high = (tensor.dtype.minimum - zero_point) * scale, (tensor.dtype.maximum - zero_point) * scale
    return Range(low.min(keepdims=True), high.max(keepdims=True))


def data_range(real: Reals) -> Range:
    """Return the repaired range of a constant's values, in their precision."""
    return repaired(Range(real.min(keepdims=True).reshape(1), real.max(keepdims=True).reshape(1)))


def repaired(range_: Range) -> Range:
    """Return a range that contains 0 and is not empty.

    Where min and max agree (|min - max| <= 1e-8 + 1e-5 |max|): a negative min gives [min, -min], a positive one
    [-min, min], 0 gives [0, 1]. Then min = min(min, 0), max = max(max, 0).
    """
    low, high = range_.minimum, range_.maximum
    kind = low.dtype.type
    if np.isclose(low, high)[0]:
        if low[0] == 0:
            high = np.array([1], kind)
        elif low[0] < 0:
            high = -low
        else:
            low, high = -low, low
    return Range(np.minimum(low, kind(0)), np.maximum(high, kind(0)))


def asymmetric(range_: Range, bits: int = 8, signed: bool = False) -> Affine:
    """S = (max - min) / (2^n - 1) and the zero point that is nearest to a whole number.

    z1 = qmin - min / S, z2 = qmax - max / S; Z is the one nearer to a whole number (a tie takes z2), rounded half to
    even. NNTool's limits qmin and qmax for Z do nothing: the range holds 0.

    Args:
        range_: repaired.
        bits: n.
        signed: int or uint.
    """
    low, high = range_.minimum, range_.maximum
    kind, steps = low.dtype.type, (1 << bits) - 1
    lowest = -(1 << (bits - 1)) if signed else 0
    scale = np.asarray((high - low) / kind(steps))
    if scale[0] == 0:
        scale = np.ones(1, kind)
    z1, z2 = kind(lowest) - low / scale, kind(lowest + steps) - high / scale
    z = float((z1 if _distance(z1) < _distance(z2) else z2)[0])
    return Affine(np.asarray(scale), np.array([np.round(z)], np.int64), None, bits, signed)


def symmetric(range_: Range, bits: int = 8, signed: bool = True) -> Affine:
    """S = max(|max| / (2^(n-1) - 1), |min| / 2^(n-1)); Z = 0, or 2^(n-1) where unsigned; S = 0 becomes 1."""
    kind, half = range_.minimum.dtype.type, 1 << (bits - 1)
    scale = np.maximum(np.abs(range_.maximum) / kind(half - 1), np.abs(range_.minimum) / kind(half))
    if scale[0] == 0:
        scale = np.ones(1, kind)
    return Affine(np.asarray(scale), np.array([0 if signed else half], np.int64), None, bits, signed)


def power_of_two(affine: Affine) -> Affine:
    """Return a symmetric type with the scale 2^ceil(log2 S) in float64: what the integer softmax takes."""
    scale = np.exp2(np.ceil(np.log2(affine.scale.astype(np.float64))))
    return Affine(scale, affine.zero_point, None, affine.bits, affine.signed)


def nearly_equal(a: Affine, b: Affine) -> bool:
    """Whether NNTool takes two types as the same: same_scales, all else equal."""
    same_codes = (a.bits, a.signed) == (b.bits, b.signed) and np.array_equal(a.zero_point, b.zero_point)
    return same_codes and same_scales(a.scale, b.scale)


def _distance(z: Reals) -> float:
    """How far |z| is from a whole number."""
    return float(np.abs(np.abs(z) - np.round(np.abs(z)))[0])


def state_ranges(editor: GraphEditor) -> None:
    """Set a repaired `range` on each computed tensor of numbers.

    The file's min/max (float32) if it states them, else the whole type's range from scale and zero point (float64).

    Raises:
        UnsupportedError: tensors without either: a float model, or one that is quantized in part; all are counted.
    """
    missing = []
    computed = dict.fromkeys([*editor.inputs, *(t for node in editor.nodes for t in node.outputs if t != ABSENT)])
    for t in computed:
        tensor = editor.tensors[t]
        stated = file_range(tensor)
        if stated is not None:
            editor.tensors[t] = replace(tensor, range=repaired(stated))
        elif tensor.dtype.is_floating or tensor.quantization is not None:
            missing.append(tensor.name)
    way_out = "GAP9 takes ranges from the file; give a model that is quantized to int8, or calibrate this one first"
    refuse_missing_ranges(missing, len(computed), way_out)
