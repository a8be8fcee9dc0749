"""Steps 3 and 4 of docs/guides/recover.md: moments of a filter's windows and of its wanted outputs there.

Real numbers on grids of powers of two, so that their sums of products are exact: the same in any order of addition.

BLAS adds in an order that depends on the processor, and a weight at a tie may follow. Whole numbers whose sums stay
below 2^53 have one sum only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Doubles
from tflq.graph import Array
from tflq.precision.recover.records import RECOVERY, Objective

EXACT_BITS = 53
"""Of float64: whole numbers up to 2^53 are exact, and so are sums that stay below."""


def on_grid(x: Doubles, bits: int, axis: tuple[int, ...] | None = None) -> tuple[Doubles, Doubles]:
    """Return whole numbers n and steps s with x = n s, but for rounding to nearest: |n| <= 2^bits.

    Args:
        x: float64, finite.
        bits: of the whole numbers.
        axis: the axes that share a step; None for one step. The others keep their own.
    """
    largest = np.max(np.abs(x), axis=axis, keepdims=True, initial=0.0)
    exponent = np.frexp(np.where(largest > 0, largest, 1.0))[1]
    step = np.ldexp(1.0, exponent - bits)
    return np.rint(x / step), step


def exact_product(rows: Doubles, weights: Doubles) -> Doubles:
    """Return rows [G, N, K] times weights [G, K, C], float64[G, N, C], the same on every machine.

    Each row and each column of weights is put on a grid of (53 - log2 K) / 2 bits first: an error of about 2^-20 of the
    largest number in it.
    """
    bits = (EXACT_BITS - max(1, math.ceil(math.log2(max(2, rows.shape[2]))))) // 2
    a, row_steps = on_grid(rows, bits, (2,))
    b, column_steps = on_grid(weights, bits, (1,))
    return np.asarray((a @ b) * row_steps * column_steps)


_RIDGE = 0.1
_LEAST_RIDGE = 1e-3
"""lambda as a share of the mean of the diagonal of H: 0.1 K / N, at least 0.001 and at most 0.1.

It draws towards the model's own weights: where rows are few, or an input never changes, they are the better guess.
"""

_MAX_BLOCK = 1 << 24
"""Values of float64 that a product of windows takes at a time."""


@dataclass(frozen=True)
class Observed:
    """What a filter reads and should give at some places.

    Attributes:
        windows: [G, N, K], quantized values less the zero point (integers), or means of them, or real values.
        targets: T, float64[G, N, C].
        weight: of their mean squared error.
    """

    windows: Array
    targets: Doubles
    weight: float = 1.0


@dataclass(frozen=True)
class Moments:
    """What the descent needs of the windows of a filter, the bias eliminated; in units of `step`.

    Where the bias stays, T is what the filter should give without it, and no mean is taken off: mu, target_mean are 0.

    Attributes:
        h: sum of weight A'A / N, + lambda I, whole numbers: float64[G, K, K].
        r: sum of weight A'(T - mean T) / N, + lambda w: float64[G, K, C].
        step: of both, squared real units of the input.
        mu: means of the windows' columns, real: float64[G, K].
        target_mean: of what the filter should give: float64[G, C].
        target_power: sum of weight times mean square of T - mean T: float64[G, C].
    """

    h: Doubles
    r: Doubles
    step: float
    mu: Doubles
    target_mean: Doubles
    target_power: Doubles

    def loss(self, q: Doubles, scale: Doubles) -> Doubles:
        """Return S^2 q'Hq - 2 S q'r for weights q [G, K, P] with scales [G, P]; r has P columns then."""
        square, linear = (q * (self.h @ q)).sum(1), (q * self.r).sum(1)
        return np.asarray(scale**2 * square - 2 * scale * linear)


def moments_of(
    observed: Sequence[Observed], scale: float, weights: Doubles, largest_weight: int, objective: Objective = RECOVERY
) -> Moments:
    """Return the moments of all that was observed; the means are those of the last.

    Sums of whole numbers are exact, so that they do not depend on order or processor. Windows that are no whole
    numbers are put on a grid first, and so are targets.

    Args:
        observed: single places first.
        scale: of the quantized values; 1 for real values.
        weights: the model's own, w: float64[G, K, C].
        largest_weight: m; H has as many bits as let Hq stay exact.
        objective: whether the bias moves, and whether lambda is more than what keeps H positive.
    """
    parts = [_centered(part, scale, objective.moves_bias) for part in observed]
    centered, crossed, power = (
        np.sum([part.weight * found[i] for part, found in zip(observed, parts, strict=True)], axis=0) for i in range(3)
    )
    mu, mean = parts[-1][3:]
    depth, count = weights.shape[1], observed[0].windows.shape[1]
    diagonal = np.einsum("gkk->gk", centered)
    share = 0.0 if objective.rounds else max(_LEAST_RIDGE, _RIDGE * min(1.0, depth / count))
    ridge = np.maximum(share * diagonal.sum(1, keepdims=True) / depth, 1e-6 * scale**2)
    diagonal += ridge
    h, step = on_grid(centered, EXACT_BITS - 2 - depth.bit_length() - largest_weight.bit_length())
    np.einsum("gkk->gk", h)[...] = np.maximum(np.einsum("gkk->gk", h), 1.0)
    unit = float(step.reshape(()))
    return Moments(h, (crossed + ridge[:, :, None] * weights) / unit, unit, mu, mean, power)


def _centered(
    observed: Observed, scale: float, takes_means_off: bool
) -> tuple[Doubles, Doubles, Doubles, Doubles, Doubles]:
    """Return A'A / N, A'(T - mean T) / N, the mean square of T - mean T, and the means of windows and targets; real."""
    groups, count, depth = observed.windows.shape
    x = observed.windows.astype(np.float64)
    unit = np.float64(scale)
    if not np.issubdtype(observed.windows.dtype, np.integer):
        x, found = on_grid(x, 15)
        unit = found.reshape(()) * scale
    largest = max(1.0, float(np.max(np.abs(x), initial=1.0)))
    room = EXACT_BITS - 1 - math.ceil(math.log2(count)) - math.ceil(math.log2(largest + 1))
    t, t_step = on_grid(observed.targets, min(30, room), (1,))
    sums, t_sums = (a.sum(1) if takes_means_off else np.zeros_like(a[:, 0]) for a in (x, t))
    centered = np.empty((groups, depth, depth))
    crossed = np.empty((groups, depth, t.shape[2]))
    size = max(1, _MAX_BLOCK // (depth * depth + depth * count))
    for g in range(0, groups, size):
        part = slice(g, g + size)
        turned = x[part].transpose(0, 2, 1)
        centered[part] = (turned @ x[part]) / count - sums[part, :, None] * sums[part, None, :] / count**2
        crossed[part] = (turned @ t[part]) / count - sums[part, :, None] * t_sums[part, None, :] / count**2
    mean = t_sums / count
    power = np.maximum(np.square(t).sum(1) / count - mean**2, 0.0) * t_step[:, 0] ** 2
    return centered * unit**2, crossed * t_step * unit, power, sums / count * unit, mean * t_step[:, 0]
