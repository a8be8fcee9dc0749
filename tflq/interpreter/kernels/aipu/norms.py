"""LayerNorm, InstanceNorm, GroupNorm, LRN: values over their spread (docs/rules/aipu/operators.md).

Norms: m = RNE(mean of quantized values), zp included. 8 bits, n elements: V = sum (q - m)^2 >> v, v = 30 + ceil(log2 n)
- 34, one more if odd; g = (isqrt(V) + 2^15) >> 16; u = clamp(RNE((q - m) * g * 2^-(8 + v / 2 + adj))), in the output's
limits, is the normalized value times s_n, of range +-sqrt(n) * 2^adj. 16 bits: V = trunc(mean (q - m)^2), g =
clamp(RNE(g * M_n * 2^-N_n), 0..65535) with M_n / 2^N_n of s_n / 127, u = clamp(RNE(((q - m) >> 1) * g * 2^-7)). y =
clamp(RNE((w * u + b) * M * 2^-N) - zp_y), r = s_y / (s_n * s_w); beyond 8 bits w * u and the sum are float32 if the
Optimizer quantized the constants itself, and integers if it read them from a file.

LRN: y = x / (bias + alpha * q / size)^beta, q the sum of squares over channels or pixels. Q = sum of (x + zp_x)^2; a =
clamp(RNE(Q * M_s * 2^-N_s)) in 16 bits without sign, r_s = s_q / (s_x^2 * size); y = clamp(RNE((x + zp_x) * t(a) * M *
2^-N) - zp_y), r = s_y / (s_x * s_t); t is a table of uint16.

Source: Compass Optimizer, ops/groupnorm.py, layernorm.py, instancenorm.py, LRN.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles, Integers, Singles
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.imported import imported_multiplier, imported_numbers, multiplier_bits, number_of
from tflq.interpreter.kernels.aipu.multiplier import (
    Multiplier,
    OutputCodes,
    codes_of,
    find_multiplier,
    find_multipliers,
    unify_shifts,
)
from tflq.interpreter.kernels.aipu.normalization import reciprocal_root
from tflq.interpreter.kernels.aipu.scales import bits_of, is_wide, offset_of, reciprocal, required_constant, scale_of
from tflq.interpreter.kernels.aipu.tables import Table, even_steps, table_bits, table_shift
from tflq.interpreter.registry import Kernel

NORMALISED_SCALE = "normalized_scale"
"""Requested option of these layers: s_n, which the mode of the activations decides."""

_LARGEST_ROOT = 127.0
_SMALLEST_COUNT = 5
_WIDE = 1 << 16
_ONE = np.ones(1, np.int64)


@dataclass(frozen=True, eq=False)
class NormParams:
    """The params of one normalization.

    Attributes:
        groups: Number of groups of neighboring channels; 1 for all of them.
        axes: Axes after the sample axis, the channels of a group being the last.
        variance_shift: v.
        norm: M_n and N_n; 1 and N at 8 bits.
        weights: int64, shaped for the input.
        biases: likewise.
        rescale: M and N, one for all or one a channel.
        codes: Quantized values of the output.
        is_wide: whether quantized values have more than 8 bits.
        rounds: whether w * u and the sum are float32: with more than 8 bits, except if the Optimizer reads its own
            file, which stores integer constants (`scripts/peer compass --forward` sets it).
    """

    groups: int
    axes: tuple[int, ...]
    variance_shift: int
    norm: Multiplier
    weights: Integers
    biases: Integers
    rescale: Multiplier
    codes: OutputCodes
    is_wide: bool
    rounds: bool


def normalized_axes(node: Node, x: Tensor) -> tuple[int, ...]:
    """Return the axes that a layer normalizes over; of GroupNorm all but the batch."""
    rank = len(x.shape)
    if node.operator == "layer_norm":
        return tuple(int(a) % rank for a in np.atleast_1d(np.asarray(node.attributes["axis"])))
    return tuple(range(1, rank if node.operator == "group_norm" else rank - 1))


def group_of(node: Node) -> int:
    """Return the number of groups of a GroupNorm; 1 of others."""
    return node.attributes.integer("group") if node.operator == "group_norm" else 1


def count_of(node: Node, x: Tensor) -> int:
    """Return how many elements are normalized together."""
    return int(np.prod([x.shape[a] for a in normalized_axes(node, x)])) // group_of(node)


def adjustment(count: int, bits: int) -> int:
    """Return adj, below 0 if a normalized value of 8 bits may leave the table's range."""
    root = float(np.sqrt(count))
    return int(np.ceil(np.log2(127.5 / root / 4))) if bits <= 8 and root > _LARGEST_ROOT else 0


def lower(node: Node, operands: Operands) -> NormParams:
    """Decide v, M_n, N_n, M and N.

    Raises:
        UnsupportedError: too few elements for 8 bits; weights of another shape than the axes.
    """
    x, output = operands.input(0), operands.output()
    weights, biases = (required_constant(operands, key) for key in ("weights", "biases"))
    count, wide, axes = count_of(node, x), is_wide(x), normalized_axes(node, x)
    if count < _SMALLEST_COUNT and not wide:
        raise UnsupportedError(f"{count} elements are normalized together; allowed at 8 bits are {_SMALLEST_COUNT}")
    s_n = np.float32(node.attributes.real(NORMALISED_SCALE, 1.0))
    shape = weight_shape(node, x, weights)
    rescale = imported_multiplier(node) or _rescale(node, weights, output, s_n)
    shift, norm = (0, _wide_norm(node, s_n, output)) if wide else _norm(node, count, bits_of(x))
    values, offsets = (np.asarray(t.data, np.int64).reshape(shape) for t in (weights, biases))
    return NormParams(
        group_of(node),
        tuple(a + 1 for a in axes),
        shift,
        norm,
        values,
        offsets,
        rescale,
        codes_of(output),
        wide,
        wide,
    )


def weight_shape(node: Node, x: Tensor, weights: Tensor) -> tuple[int, ...]:
    """Return the shape in which weights meet the input.

    Raises:
        UnsupportedError: another number of weights.
    """
    axes = normalized_axes(node, x) if node.operator == "layer_norm" else (len(x.shape) - 1,)
    shape = tuple(n if a in axes else 1 for a, n in enumerate(x.shape))
    if int(np.prod(shape)) != weights.size:
        raise UnsupportedError(f"weights {weights.shape} for the axes {axes} of {x.shape}: allowed is one each")
    return shape


def _rescale(node: Node, weights: Tensor, output: Tensor, s_n: np.float32) -> Multiplier:
    ratios = scale_of(output) / (s_n * reciprocal(weights.affine)).astype(np.float32)
    multipliers = find_multipliers(ratios.astype(np.float32), multiplier_bits(node, output))
    return unify_shifts(multipliers) if node.operator == "group_norm" and multipliers.m.size > 1 else multipliers


def _norm(node: Node, count: int, bits: int) -> tuple[int, Multiplier]:
    """Return v, and the remaining shift."""
    shift = 30 + int(np.ceil(np.log2(count))) - 34
    shift += shift & 1
    v = number_of(node, "variance_shift", lambda: shift)
    left = number_of(node, "norm_shift", lambda: (shift >> 1) + adjustment(count, bits))
    return v, Multiplier(np.ones(1, np.int64), np.full(1, left, np.int64))


def _wide_norm(node: Node, s_n: np.float32, output: Tensor) -> Multiplier:
    given = imported_multiplier(node, "norm")
    return given or find_multiplier(np.float32(s_n / np.float32(_LARGEST_ROOT)), bits_of(output))


def run(params: NormParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run the norm: quantized [S, ..., C] -> quantized [S, ..., C]."""
    q = x.astype(np.int64)
    parts, axes = split_groups(q, params.groups, params.axes)
    mean = np.rint(parts.mean(axis=axes, keepdims=True, dtype=np.float64)).astype(np.int64)
    apart = parts - mean
    squares = np.square(apart)
    if params.is_wide:
        variance = squares.mean(axis=axes, keepdims=True, dtype=np.float64).astype(np.int64)
    else:
        variance = squares.sum(axis=axes, keepdims=True) >> params.variance_shift
    root = (reciprocal_root(variance) + (1 << 15)) >> 16
    normalized = _normalize(params, apart, root).reshape(q.shape)
    limited = np.clip(normalized, params.codes.minimum, params.codes.maximum).astype(np.int64)
    if params.rounds:
        product = (params.weights.astype(np.float32) * limited.astype(np.float32)).astype(np.float32)
        total = (product + params.biases.astype(np.float32)).astype(np.float32).astype(np.int64)
    else:
        total = params.weights * limited + params.biases
    return (params.codes.requantize(total, params.rescale),)


def split_groups(values: Array, groups: int, axes: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
    """Return values [S, ..., C] with groups of channels on a separate axis, and the axes of one group."""
    if groups == 1:
        return values, axes
    parts = values.reshape(*values.shape[:-1], groups, -1)
    return parts, (*axes[:-1], parts.ndim - 1)


def _normalize(params: NormParams, apart: Integers, root: Integers) -> Doubles:
    if params.is_wide:
        scaled = np.clip(params.norm.apply(root), 0, _WIDE - 1).astype(np.int64)
        return Multiplier(_ONE, 7 * _ONE).apply((apart >> 1) * scaled)
    return Multiplier(_ONE, _ONE * (8 + params.norm.first_n)).apply(apart * root)


_RULE = "RNE((w * u + b) * M * 2^-N) - zp_y, u = (q - mean) * isqrt(variance)"


Number = TypeVar("Number", np.int64, np.float64)

ACROSS, WITHIN = "ACROSS_CHANNELS", "WITHIN_CHANNEL"
INDEX_BITS = 16
_LARGEST_INDEX = (1 << INDEX_BITS) - 1


@dataclass(frozen=True, eq=False)
class LrnParams:
    """The params of one normalization.

    Attributes:
        method: ACROSS_CHANNELS or WITHIN_CHANNEL.
        size: Size of the window.
        input_offset: zp_x.
        table: Table of the factor, indexed by a.
        of_sum: M_s and N_s.
        rescale: M and N.
        codes: Quantized values of the output.
    """

    method: str
    size: int
    input_offset: int
    table: Table
    of_sum: Multiplier
    rescale: Multiplier
    codes: OutputCodes


def lower_lrn(node: Node, operands: Operands) -> LrnParams:
    """Decide the table and both multipliers.

    Raises:
        UnsupportedError: another method, an even window within channels.
    """
    method, size = node.attributes.text("method"), node.attributes.integer("size")
    if method not in (ACROSS, WITHIN) or (method == WITHIN and size % 2 == 0):
        raise UnsupportedError(f"method={method}, size={size}; allowed are {ACROSS}, and {WITHIN} with an odd size")
    x, output = operands.input(0), operands.output()
    bits, s_q = bits_of(output), _scale_of_squares(operands)
    given = imported_numbers(node)
    entries, s_t = _lrn_table(node, operands, s_q) if given is None else (given, np.float32(1))
    ratio = s_q / np.float32(np.float32(scale_of(x) * scale_of(x)) * np.float32(size))
    of_sum = imported_multiplier(node, "of_sum") or find_multiplier(ratio, bits)
    multiplier = imported_multiplier(node) or find_multiplier(np.float32(scale_of(output) / scale_of(x)) / s_t, bits)
    table = Table(entries, 0, table_shift(node, entries, INDEX_BITS), 0, _LARGEST_INDEX)
    return LrnParams(method, size, offset_of(x), table, of_sum, multiplier, codes_of(output))


def run_lrn(params: LrnParams, x: Array) -> tuple[Array, ...]:
    """Run LRN: quantized [S, N, H, W, C] -> quantized [S, N, H, W, C]."""
    v = x.astype(np.int64) + params.input_offset
    total = window_sums_of(params.method, params.size, np.square(v))
    index = np.clip(params.of_sum.apply(total), 0, _LARGEST_INDEX).astype(np.int64)
    return (params.codes.requantize(v * params.table.lookup(index), params.rescale),)


def window_sums_of(method: str, size: int, squares: NDArray[Number]) -> NDArray[Number]:
    """Return the sums over the channels or pixels around each place, [S, N, H, W, C]."""
    if method == ACROSS:
        return _window_sums(squares, -1, size // 2, (size - 1) // 2)
    half = (size - 1) // 2
    return _window_sums(_window_sums(squares, 2, half, half), 3, half, half)


def _window_sums(values: NDArray[Number], axis: int, before: int, behind: int) -> NDArray[Number]:
    """Return the sums over positions p - before .. p + after of an axis, with zeros outside."""
    running: NDArray[Number] = np.cumsum(np.moveaxis(values, axis, -1), axis=-1)
    running = np.concatenate([np.zeros_like(running[..., :1]), running], axis=-1)
    places = np.arange(values.shape[axis])
    last = np.minimum(places + behind + 1, places.size)
    return np.moveaxis(running[..., last] - running[..., np.maximum(places - before, 0)], -1, axis)


def _scale_of_squares(operands: Operands) -> np.float32:
    """Return s_q: that of the intermediate; 1 for WITHIN_CHANNEL, of which the Optimizer keeps no statistic."""
    internal = operands.intermediates[0] if operands.intermediates else None
    return scale_of(internal) if internal is not None and isinstance(internal.quantization, Affine) else np.float32(1)


def _lrn_table(node: Node, operands: Operands, s_q: np.float32) -> tuple[Integers, np.float32]:
    """Return clamp(RNE(s_t * g(u))), g(u) = (bias + alpha * u / s_q)^-beta, at even u in 0..65535, and s_t."""
    bias, alpha, beta = (np.float32(node.attributes.real(key)) for key in ("bias", "alpha", "beta"))
    count = 1 << table_bits(node, operands.input(0))
    u: Singles = (even_steps(0, _LARGEST_INDEX, count) / s_q).astype(np.float32)
    base: Singles = bias + alpha * u
    power: Singles = (base.astype(np.float64) ** np.float64(beta)).astype(np.float32)
    g: Singles = np.float32(1) / power
    s_t = np.float32(np.float32(_LARGEST_INDEX) / g.max())
    return np.clip(np.rint(g * s_t), 0, _LARGEST_INDEX).astype(np.int64), s_t


KERNELS = {
    **dict.fromkeys(
        ("group_norm", "instance_norm", "layer_norm"),
        Kernel(lower, run, _RULE, "Compass Optimizer, ops/groupnorm.py; docs/rules/aipu/operators.md"),
    ),
    "lrn": Kernel(lower_lrn, run_lrn,
        "(x + zp_x) * t(sum of squares) * M * 2^-N - zp_y, t a table of (bias + alpha * q / size)^-beta",
        "Compass Optimizer, ops/LRN.py; docs/rules/aipu/operators.md"),
}  # fmt: skip
