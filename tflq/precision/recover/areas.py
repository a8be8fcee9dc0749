"""Equations that a filter is fitted to: output positions, means over tiles and images (docs/guides/recover.md).

What later layers make of an error is mostly its mean over many positions: errors that cancel out cost little, those
that an image has everywhere cost much. So the fit counts the mean error of tiles and of whole images beside that of
single positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array
from tflq.precision.recover.filters import Filter

_TILE = 5
"""Rows and columns of a tile."""

_WEIGHTS = {"positions": 1.0, "tiles": 4.0, "images": 8.0}
_TILES_SHARE = 4
"""One tile is drawn for so many positions."""

_ENOUGH = 4
"""Areas for each weight of a channel, of which their share of the fit is full; with fewer it shrinks."""

_BLOCK = 1 << 22
"""Values of windows that are added up at a time."""


@dataclass(frozen=True)
class Areas:
    """Rectangles of output positions of a filter.

    Attributes:
        of: the filter.
        size: (rows, columns); those at the right and lower edges are smaller.
        chosen: ascending numbers below samples * `each`.
        weight: of their mean squared error in the fit.
    """

    of: Filter
    size: tuple[int, int]
    chosen: NDArray[np.int64]
    weight: float

    @property
    def grid(self) -> tuple[int, int]:
        """Areas of an image: rows, columns."""
        (height, width), (rows, columns) = self.of.output, self.size
        return -(-height // rows), -(-width // columns)

    @property
    def each(self) -> int:
        """Areas of one sample."""
        return self.of.batch * self.grid[0] * self.grid[1]

    def windows(self, x: Array, chosen: NDArray[np.int64]) -> Array:
        """Return windows of some areas, means over their positions: [G, N, K]; whole numbers where an area is one.

        Args:
            x: as for `Filter.windows`.
            chosen: N numbers of areas.
        """
        if self.size == (1, 1):
            return self.of.windows(x, chosen)
        parts = []
        for part in self._blocks(chosen):
            positions, starts, counts = self._positions(part)
            sums = np.add.reduceat(self.of.windows(x, positions).astype(np.float64), starts, axis=1)
            parts.append(sums / counts[:, None])
        return np.concatenate(parts, axis=1)

    def _blocks(self, chosen: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        values = self.size[0] * self.size[1] * int(np.prod(self.of.shape)) // self.of.channels * self.of.groups
        size = max(1, _BLOCK // max(1, values))
        for first in range(0, len(chosen), size):
            yield chosen[first : first + size]

    def _positions(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of areas, area after area, where each area begins, and how many it has."""
        (height, width), (rows, columns), (down, across) = self.of.output, self.size, self.grid
        image, place = np.divmod(chosen, down * across)
        top, left = (p * s for p, s in zip(np.divmod(place, across), self.size, strict=True))
        ys, xs = (
            first[:, None, None] + step
            for first, step in ((top, np.arange(rows)[:, None]), (left, np.arange(columns)[None]))
        )
        inside = (ys < height) & (xs < width)
        counts = inside.sum((1, 2))
        positions = ((image[:, None, None] * height + ys) * width + xs)[inside]
        return positions, np.cumsum(counts) - counts, counts


def areas_of(of: Filter, samples: int, count: int, seed: int) -> tuple[Areas, ...]:
    """Return what a filter is fitted to; the last ones cover whole images, where an image has more positions than one.

    Args:
        of: the filter.
        samples: how many there are.
        count: positions at most.
        seed: of the choice.
    """
    height, width = of.output
    sizes = {"positions": (1, 1), "tiles": (min(_TILE, height), min(_TILE, width)), "images": (height, width)}
    most = {"positions": count, "tiles": max(1, count // _TILES_SHARE), "images": count}
    depth = int(np.prod(of.shape)) // of.channels
    found: dict[tuple[int, int], Areas] = {}
    for name, size in sizes.items():
        whole = Areas(of, size, np.arange(0), _WEIGHTS[name])
        chosen = draw(samples * whole.each, most[name], seed)
        share = 1.0 if size == (1, 1) else min(1.0, len(chosen) / (_ENOUGH * depth))
        if size not in found:
            found[size] = Areas(of, size, chosen, _WEIGHTS[name] * share)
    return tuple(found.values())


def draw(total: int, count: int, seed: int) -> NDArray[np.int64]:
    """Return min(count, total) numbers below a total in ascending order, each once at most."""
    if total <= count:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, count, replace=False))
