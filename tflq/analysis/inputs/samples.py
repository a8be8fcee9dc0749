"""A source of samples that a run takes chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tflq.graph import Array


class Samples(Protocol):
    """Samples by number; what a number gives does not depend on how they are taken."""

    @property
    def count(self) -> int:
        """Number of samples."""

    def take(self, start: int, stop: int) -> list[Array]:
        """Return samples start..stop-1 as one array [stop - start, *shape] for each graph input."""


@dataclass(frozen=True)
class GivenSamples:
    """Samples that are there already.

    Attributes:
        arrays: one array [S, *shape] for each graph input.
        clipped: number of real values that lay outside the input's range and were clipped.
    """

    arrays: Sequence[Array]
    clipped: int = 0

    @property
    def count(self) -> int:
        """Number of samples; 1 for a graph without inputs."""
        return int(self.arrays[0].shape[0]) if self.arrays else 1

    def take(self, start: int, stop: int) -> list[Array]:
        """Return samples start..stop-1."""
        return [array[start:stop] for array in self.arrays]
