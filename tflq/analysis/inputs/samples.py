"""A source of samples that a run takes chunk by chunk."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

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
        files: where each array came from; empty where it came from no file.
    """

    arrays: Sequence[Array]
    clipped: int = 0
    files: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of samples; 1 for a graph without inputs."""
        return int(self.arrays[0].shape[0]) if self.arrays else 1

    def take(self, start: int, stop: int) -> list[Array]:
        """Return samples start..stop-1; of mapped files copies, so that what was read need not stay in memory."""
        return [_part(array, start, stop) for array in self.arrays]


@dataclass(frozen=True)
class FileSamples:
    """Samples of a graph's only input, one a file, read when they are taken: memory does not grow with their number.

    Attributes:
        files: one sample each.
        read: returns the samples of some files as one array [S, *shape].
    """

    files: tuple[Path, ...]
    read: Callable[[Sequence[Path]], Array]

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.files)

    def take(self, start: int, stop: int) -> list[Array]:
        """Read samples start..stop-1.

        Raises:
            InputError: as `read`.
        """
        return [self.read(self.files[start:stop])]


def _part(array: Array, start: int, stop: int) -> Array:
    mapped = _mapping_of(array)
    if mapped is None:
        return array[start:stop]
    part = np.array(array[start:stop])
    if hasattr(mapped, "madvise"):  # not on Windows
        mapped.madvise(mmap.MADV_DONTNEED)  # the file's pages count as this process's memory while they are mapped
    return part


def _mapping_of(array: Array) -> mmap.mmap | None:
    base: object = array
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base if isinstance(base, mmap.mmap) else None
