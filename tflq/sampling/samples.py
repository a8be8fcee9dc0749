"""Samples by number, which a run reads chunk by chunk: arrays, files, or random values."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tflq.errors import InputError, OptionError
from tflq.graph import Array, DType, Graph, Tensor
from tflq.sampling.legal import Legal, legal_values


class Samples(Protocol):
    """Samples by number; the sample of a number does not depend on the chunks."""

    @property
    def count(self) -> int:
        """Number of samples."""

    def take(self, start: int, stop: int) -> list[Array]:
        """Return samples start..stop-1 as one array [stop - start, *shape] for each graph input."""


@dataclass(frozen=True)
class GivenSamples:
    """Samples in memory or mapped from files.

    Attributes:
        arrays: One array [S, *shape] for each graph input.
        clipped: Number of floating-point values outside the input's range, which were clipped.
        files: File of each array; empty for arrays without files.
    """

    arrays: Sequence[Array]
    clipped: int = 0
    files: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of samples; 1 for a graph without inputs."""
        return int(self.arrays[0].shape[0]) if self.arrays else 1

    def take(self, start: int, stop: int) -> list[Array]:
        """Return samples start..stop-1; mapped files are copied, so that their pages can leave memory."""
        return [_part(array, start, stop) for array in self.arrays]


@dataclass(frozen=True)
class FileSamples:
    """Samples of a graph's only input, one per file, which are read on demand to limit memory.

    Attributes:
        files: File of each sample.
        read: Function that returns the samples of some files as one array [S, *shape].
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
            InputError: As for `read`.
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


@dataclass(frozen=True)
class Span:
    """Samples start..stop-1."""

    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.start}:{self.stop}"

    def select(self, samples: Samples) -> GivenSamples:
        """Return the samples of this range.

        Raises:
            InputError: There are fewer samples.
        """
        if self.stop > samples.count:
            raise InputError(f"samples {self} were requested; there are 0:{samples.count}")
        return GivenSamples(samples.take(self.start, self.stop))


class RandomSamples:
    """Random samples: seed and number determine a sample, independently of the chunks.

    Integers are uniform over the legal values (`legal_values`), bools are uniform, floats are normal with mean 0 and
    standard deviation 1.
    """

    def __init__(self, graph: Graph, count: int, seed: int = 0) -> None:
        """Prepare the draws.

        Raises:
            OptionError: Fewer than one sample, or a negative seed.
            InputError: An input without a range of legal values, such as strings.
        """
        if count < 1:
            raise OptionError(f"the number of samples is {count}; it must be 1 or more")
        if seed < 0:
            raise OptionError(f"seed {seed}: it must be 0 or more")
        self._count, self._seed = count, seed
        self._inputs = [(graph.tensors[t], legal_values(graph, t)) for t in graph.inputs]
        for tensor, _ in self._inputs:
            _refuse(tensor)

    @property
    def count(self) -> int:
        """Number of samples."""
        return self._count

    def take(self, start: int, stop: int) -> list[Array]:
        """Return samples start..stop-1, one array [S, *shape] for each graph input."""
        arrays = []
        for position, (tensor, legal) in enumerate(self._inputs):
            array = np.empty((stop - start, *tensor.shape), tensor.dtype.storage)
            for row, number in enumerate(range(start, stop)):
                array[row] = _draw(np.random.default_rng((self._seed, position, number)), tensor, legal)
            arrays.append(array)
        return arrays


@dataclass(frozen=True)
class Portion:
    """A range of samples for another process: random samples by number, other samples as arrays.

    Attributes:
        samples: Source of the samples.
        start: First sample.
        stop: End of the range, after the last sample.
    """

    samples: Samples
    start: int
    stop: int

    @classmethod
    def from_samples(cls, samples: Samples, start: int, stop: int) -> Portion:
        """Return samples start..stop-1, limited to the existing samples."""
        stop = min(stop, samples.count)
        if isinstance(samples, RandomSamples):
            return cls(samples, start, stop)
        return cls(GivenSamples(samples.take(start, stop)), 0, stop - start)

    def arrays(self) -> list[Array]:
        """Return one array [S, *shape] for each graph input."""
        return self.samples.take(self.start, self.stop)


def _draw(generator: np.random.Generator, tensor: Tensor, legal: Legal) -> Array:
    if legal.fixed is not None:
        return legal.fixed
    if tensor.dtype is DType.BOOL:
        return generator.integers(0, 2, tensor.shape, np.uint8).astype(np.bool_)
    if tensor.dtype.is_integer:
        kind = np.dtype(np.int64) if isinstance(legal.low, np.ndarray) else tensor.dtype.storage
        values = np.asarray(generator.integers(legal.low, legal.high, tensor.shape, kind, endpoint=True))
        return np.sort(values, axis=0) if legal.is_sorted else values
    if np.any(legal.high):  # indices in a floating-point type
        return np.asarray(
            generator.integers(legal.low, legal.high, tensor.shape, endpoint=True).astype(tensor.dtype.storage)
        )
    real: NDArray[np.float32] = np.asarray(generator.standard_normal(tensor.shape, np.float32))
    if tensor.dtype is DType.BFLOAT16:
        return np.asarray((real.view(np.uint32) >> np.uint32(16)).astype(np.uint16))
    if tensor.dtype.storage.kind == "c":
        return np.asarray(real + 1j * generator.standard_normal(tensor.shape, np.float32))
    return np.asarray(real.astype(tensor.dtype.storage))


def _refuse(tensor: Tensor) -> None:
    if tensor.dtype.storage.kind == "O" or tensor.dtype.value.startswith("float8"):
        raise InputError(
            f"input '{tensor.name}' has type {tensor.dtype.value}, which has no random values; pass --input"
        )
