"""LayerNorm, InstanceNorm, GroupNorm: mean and spread over axes, then one weight and bias each (docs/aipu.md, 5).

m = RNE(mean of quantized values), zp included. 8 bits, n elements: V = sum (q - m)^2 >> v,
v = 30 + ceil(log2 n) - 34, one more where odd; g = (isqrt(V) + 2^15) >> 16;
u = clamp(RNE((q - m) * g * 2^-(8 + v / 2 + adj))), in the output's limits, stands for the normalised value times s_n,
whose range is +-sqrt(n) * 2^adj. 16 bits: V = trunc(mean (q - m)^2), g = clamp(RNE(g * M_n * 2^-N_n), 0..65535) with
M_n / 2^N_n of s_n / 127, u = clamp(RNE(((q - m) >> 1) * g * 2^-7)).
y = clamp(RNE((w * u + b) * M * 2^-N) - zp_y), r = s_y / (s_n * s_w); beyond 8 bits w * u and the sum are float32
where the Optimizer quantised the constants itself, and integers where it read them from a file.

Source: Compass Optimizer, ops/groupnorm.py, layernorm.py, instancenorm.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Doubles, Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.imported import imported_multiplier, multiplier_bits, number_of
from tflq.interpreter.kernels.aipu.multiplier import (
    Multiplier,
    OutputCodes,
    codes_of,
    find_multiplier,
    find_multipliers,
    unify_shifts,
)
from tflq.interpreter.kernels.aipu.normalization import reciprocal_root
from tflq.interpreter.kernels.aipu.scales import bits_of, is_wide, reciprocal, required_constant, scale_of
from tflq.interpreter.registry import Kernel

NORMALISED_SCALE = "normalised_scale"
"""Requested option of these layers: s_n, which the mode of the activations decides."""

_LARGEST_ROOT = 127.0
_SMALLEST_COUNT = 5
_WIDE = 1 << 16
_ONE = np.ones(1, np.int64)


@dataclass(frozen=True, eq=False)
class NormParams:
    """The params of one normalisation.

    Attributes:
        groups: in how many groups of neighbouring channels; 1 for all of them.
        axes: behind the sample axis, the channels of a group being the last.
        variance_shift: v.
        norm: M_n and N_n; 1 and N at 8 bits.
        weights: int64, shaped for the input.
        biases: likewise.
        rescale: M and N, one for all or one a channel.
        codes: how the output is stored.
        is_wide: whether quantized values have more than 8 bits.
        rounds: whether w * u and the sum are float32: with more than 8 bits, but not where the Optimizer reads its own
            file, whose constants are integers (`scripts/peer compass --forward` sets it).
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


def normalised_axes(node: Node, x: Tensor) -> tuple[int, ...]:
    """Return the axes that a layer normalises over; of GroupNorm all but the batch."""
    rank = len(x.shape)
    if node.operator == "layer_norm":
        return tuple(int(a) % rank for a in np.atleast_1d(np.asarray(node.attributes["axis"])))
    return tuple(range(1, rank if node.operator == "group_norm" else rank - 1))


def group_of(node: Node) -> int:
    """Return the number of groups of a GroupNorm; 1 of others."""
    return node.attributes.integer("group") if node.operator == "group_norm" else 1


def count_of(node: Node, x: Tensor) -> int:
    """Return how many elements are normalised together."""
    return int(np.prod([x.shape[a] for a in normalised_axes(node, x)])) // group_of(node)


def adjustment(count: int, bits: int) -> int:
    """Return adj, below 0 where a normalised value of 8 bits may leave the table's range."""
    root = float(np.sqrt(count))
    return int(np.ceil(np.log2(127.5 / root / 4))) if bits <= 8 and root > _LARGEST_ROOT else 0


def lower(node: Node, operands: Operands) -> NormParams:
    """Decide v, M_n, N_n, M and N.

    Raises:
        UnsupportedError: too few elements for 8 bits; weights of another shape than the axes.
    """
    x, output = operands.input(0), operands.output()
    weights, biases = (required_constant(operands, key) for key in ("weights", "biases"))
    count, wide, axes = count_of(node, x), is_wide(x), normalised_axes(node, x)
    if count < _SMALLEST_COUNT and not wide:
        raise UnsupportedError(f"{count} elements are normalised together; allowed at 8 bits are {_SMALLEST_COUNT}")
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
    axes = normalised_axes(node, x) if node.operator == "layer_norm" else (len(x.shape) - 1,)
    shape = tuple(n if a in axes else 1 for a, n in enumerate(x.shape))
    if int(np.prod(shape)) != weights.size:
        raise UnsupportedError(f"weights {weights.shape} for the axes {axes} of {x.shape}: allowed is one each")
    return shape


def _rescale(node: Node, weights: Tensor, output: Tensor, s_n: np.float32) -> Multiplier:
    ratios = scale_of(output) / (s_n * reciprocal(weights.affine)).astype(np.float32)
    found = find_multipliers(ratios.astype(np.float32), multiplier_bits(node, output))
    return unify_shifts(found) if node.operator == "group_norm" and found.m.size > 1 else found


def _norm(node: Node, count: int, bits: int) -> tuple[int, Multiplier]:
    """Return v, and what is left to shift."""
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
    parts, axes = grouped(q, params.groups, params.axes)
    mean = np.rint(parts.mean(axis=axes, keepdims=True, dtype=np.float64)).astype(np.int64)
    apart = parts - mean
    squares = np.square(apart)
    if params.is_wide:
        variance = squares.mean(axis=axes, keepdims=True, dtype=np.float64).astype(np.int64)
    else:
        variance = squares.sum(axis=axes, keepdims=True) >> params.variance_shift
    root = (reciprocal_root(variance) + (1 << 15)) >> 16
    normalised = _normalised(params, apart, root).reshape(q.shape)
    limited = np.clip(normalised, params.codes.minimum, params.codes.maximum).astype(np.int64)
    if params.rounds:
        product = (params.weights.astype(np.float32) * limited.astype(np.float32)).astype(np.float32)
        total = (product + params.biases.astype(np.float32)).astype(np.float32).astype(np.int64)
    else:
        total = params.weights * limited + params.biases
    return (params.codes.requantise(total, params.rescale),)


def grouped(values: Array, groups: int, axes: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
    """Return values [S, ..., C] with groups of channels on an axis of their own, and the axes of one group."""
    if groups == 1:
        return values, axes
    parts = values.reshape(*values.shape[:-1], groups, -1)
    return parts, (*axes[:-1], parts.ndim - 1)


def _normalised(params: NormParams, apart: Integers, root: Integers) -> Doubles:
    if params.is_wide:
        scaled = np.clip(params.norm.apply(root), 0, _WIDE - 1).astype(np.int64)
        return Multiplier(_ONE, 7 * _ONE).apply((apart >> 1) * scaled)
    return Multiplier(_ONE, _ONE * (8 + params.norm.first_n)).apply(apart * root)


_RULE = "RNE((w * u + b) * M * 2^-N) - zp_y, u = (q - mean) * isqrt(variance)"
KERNELS = {
    name: Kernel(lower, run, _RULE, "Compass Optimizer, ops/groupnorm.py; docs/aipu.md, 5")
    for name in ("group_norm", "instance_norm", "layer_norm")
}
