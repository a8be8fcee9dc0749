"""Steps 5 to 8 of docs/guides/recover.md: quantized weights and scales by coordinate descent from several starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles
from tflq.precision.recover.moments import Moments
from tflq.precision.recover.records import Objective

_BLOCK = 48
"""Weights whose products are brought up to date one by one; the others follow in one product."""

_SWEEPS = 12
_MANY_STARTS, _FEW_STARTS, _FEW_FROM = 14, 5, 256
"""Start scales; the few where a channel has more weights than that."""

_ROUNDS, _COPIES, _SHARE = 10, 8, 0.1
"""How often, and in how many copies at a time, that share of the weights moves by a step at random before a descent."""


@dataclass(frozen=True)
class Grid:
    """What a target allows of a layer's weights.

    Attributes:
        largest: m, the largest quantized weight.
        least: -m; -m - 1 where the target uses it.
        per_tensor: whether the layer has one scale.
        q: what the target's own rounding gives, whole numbers: float64[G, K, C].
        scale: the target's own: float64[G, C].
    """

    largest: int
    least: int
    per_tensor: bool
    q: Doubles
    scale: Doubles

    @property
    def bounds(self) -> tuple[Doubles, Doubles]:
        """The least and the largest of each weight: float64[1, K, 1]."""
        shape = (1, self.q.shape[1], 1)
        return np.full(shape, float(self.least)), np.full(shape, float(self.largest))

    def peak(self, weights: Doubles) -> Doubles:
        """Return the largest magnitude of the weights that share a channel's scale: [G, C]."""
        found = np.abs(weights).max(1)
        return np.full_like(found, found.max()) if self.per_tensor else np.asarray(found)

    def clipped(self, q: Doubles) -> Doubles:
        """Return the nearest quantized weights."""
        return np.clip(np.rint(q), self.least, self.largest)

    def reaches(self, q: Doubles) -> NDArray[np.bool_]:
        """Return for each channel whether one of its weights is the largest or the least: bool[G, P]."""
        return np.asarray((q.max(1) == self.largest) | (q.min(1) == self.least))


@dataclass(frozen=True)
class Rounding:
    """Quantized weights with their scales, and which channels the target's own rounding already serves best.

    Attributes:
        q: whole numbers: float64[G, K, C].
        scale: float64[G, C].
        is_plain: bool[G, C].
    """

    q: Doubles
    scale: Doubles
    is_plain: NDArray[np.bool_]


def descend(
    moments: Moments,
    q: Doubles,
    scale: Doubles,
    grid: Grid,
    starts: int,
    bounds: tuple[Doubles, Doubles] | None = None,
    moves_scale: bool = True,
) -> tuple[Doubles, Doubles]:
    """Sweep over the weights, each set to its best value given the others, and scales in between.

    q_k <- clip(rint(q_k + (r_k / S - (Hq)_k) / H_kk)); after a sweep S <- q'r / q'Hq where both are positive, of a
    layer with one scale both summed over its channels. No step raises S^2 q'Hq - 2 S q'r. H and q are whole numbers
    below 2^53 in sum, so that Hq is exact in any order.

    Args:
        moments: r has P = starts * C columns.
        q: float64[G, K, P], whole numbers.
        scale: float64[G, P].
        grid: m, and whether there is one scale.
        starts: F.
        bounds: the least and the largest of each weight, that broadcast to q; None for the grid's.
        moves_scale: whether S changes.

    Returns:
        q and scale behind at most 12 sweeps.
    """
    h, r = moments.h, moments.r
    diagonal = np.einsum("gkk->gk", h)
    q = q.copy()
    products = h @ q
    low, high = grid.bounds if bounds is None else bounds
    for _ in range(_SWEEPS):
        changed = False
        for first in range(0, q.shape[1], _BLOCK):
            block = slice(first, first + _BLOCK)
            inner, near, before = h[:, block, block], products[:, block].copy(), q[:, block].copy()
            for k in range(inner.shape[1]):
                row = q[:, first + k]
                wanted = row + (r[:, first + k] / scale - near[:, k]) / diagonal[:, first + k, None]
                found = np.clip(np.rint(wanted), low[:, first + k], high[:, first + k])
                near[:, k + 1 :] += inner[:, k + 1 :, k, None] * (found - row)[:, None]
                q[:, first + k] = found
            step = q[:, block] - before
            if step.any():
                changed = True
                products += h[:, :, block] @ step
        if moves_scale:
            scale = _best_scale((q * r).sum(1), (q * products).sum(1), scale, grid.per_tensor, starts)
        if not changed:
            break
    return q, scale


def find_rounding(moments: Moments, weights: Doubles, grid: Grid) -> Rounding:
    """Return the best quantized weights that the target's own quantizer can give back.

    Of all ends the one of least loss, for each channel (for the layer where it has one scale), among those of which
    some weight is the largest or the least: a target that derives S from these then finds the same S. The target's own
    rounding is among them.

    Args:
        moments: of the filter.
        weights: the model's own: float64[G, K, C].
        grid: what the target allows.
    """
    groups, depth, channels = weights.shape
    starts = _MANY_STARTS if depth <= _FEW_FROM else _FEW_STARTS
    largest = grid.peak(weights)
    base = np.where(largest > 0, largest, 1.0) / grid.largest
    scale = (np.linspace(0.25, 1.1, starts)[None, :, None] * base[:, None]).reshape(groups, -1)
    q = grid.clipped(np.tile(weights, (1, 1, starts)) / scale[:, None])
    plain = Rounding(grid.q, grid.scale, np.ones((groups, channels), np.bool_))
    found = _better(moments, plain, grid, *descend(_wide(moments, starts), q, scale, grid, starts), starts)
    random = np.random.default_rng(0)
    for _ in range(0 if grid.per_tensor else _ROUNDS if depth <= _FEW_FROM else 1):
        q, scale = np.tile(found.q, (1, 1, _COPIES)), np.tile(found.scale, (1, _COPIES))
        moved = grid.clipped(q + random.integers(-1, 2, q.shape) * (random.random(q.shape) < _SHARE))
        found = _better(moments, found, grid, *descend(_wide(moments, _COPIES), moved, scale, grid, _COPIES), _COPIES)
    return found


def find_neighbors(moments: Moments, weights: Doubles, grid: Grid, objective: Objective) -> Rounding:
    """Return quantized weights by a tool's objective: each is one of the two values around w / S, from nearest on.

    The largest weights of a scale stay, since the target derives S from them. What is not below the loss of the
    target's own rounding is left, for each channel (for the layer where it has one scale).

    Args:
        moments: of the filter, by the same objective.
        weights: the model's own: float64[G, K, C].
        grid: what the target allows.
        objective: whether S moves.
    """
    low = np.floor(weights / grid.scale[:, None])
    stays = np.abs(weights) >= grid.peak(weights)[:, None]
    bounds = (
        np.where(stays, grid.q, np.minimum(grid.q, np.maximum(low, grid.least))),
        np.where(stays, grid.q, np.maximum(grid.q, np.minimum(low + 1, grid.largest))),
    )
    plain = Rounding(grid.q, grid.scale, np.ones(grid.scale.shape, np.bool_))
    found = descend(moments, grid.q, grid.scale, grid, 1, bounds, objective.moves_scale)
    return _better(moments, plain, grid, *found, 1)


def _wide(moments: Moments, copies: int) -> Moments:
    return replace(moments, r=np.tile(moments.r, (1, 1, copies)))


def _better(moments: Moments, known: Rounding, grid: Grid, q: Doubles, scale: Doubles, copies: int) -> Rounding:
    """Return the best of what is known and of some copies: for each channel; for the layer where it has one scale."""
    groups, depth, channels = known.q.shape
    loss = _wide(moments, copies).loss(q, scale).reshape(groups, copies, channels)
    reaches = grid.reaches(q).reshape(groups, copies, channels)
    before = moments.loss(known.q, known.scale)
    if grid.per_tensor:
        loss = np.broadcast_to(loss.sum((0, 2), keepdims=True), loss.shape)
        reaches = np.broadcast_to(reaches.any((0, 2), keepdims=True), loss.shape)
        before = np.broadcast_to(before.sum(), before.shape)
    best = np.argmin(np.where(reaches, loss, np.inf), axis=1)[:, None]
    found = np.take_along_axis(np.where(reaches, loss, np.inf), best, 1)[:, 0]
    is_better = found < before
    q = np.take_along_axis(q.reshape(groups, depth, copies, channels), best[:, None], 2)[:, :, 0]
    scale = np.take_along_axis(scale.reshape(groups, copies, channels), best, 1)[:, 0]
    return Rounding(
        np.where(is_better[:, None], q, known.q),
        np.where(is_better, scale, known.scale),
        known.is_plain & ~is_better,
    )


def _best_scale(linear: Doubles, square: Doubles, scale: Doubles, per_tensor: bool, starts: int) -> Doubles:
    if per_tensor:
        groups = len(linear)
        linear, square = (
            np.broadcast_to(
                a.reshape(groups, starts, -1).sum((0, 2), keepdims=True),
                (groups, starts, a.shape[1] // starts),
            ).reshape(groups, -1)
            for a in (linear, square)
        )
    usable = (linear > 0) & (square > 0)
    return np.where(usable, linear / np.where(usable, square, 1.0), scale)
