"""Random samples whose values are legal for the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.inputs.legal import Legal, legal_values
from tflq.analysis.inputs.samples import GivenSamples, Samples
from tflq.errors import InputError, OptionError
from tflq.graph import Array, DType, Graph, Tensor


class RandomSamples:
    """Draws samples: the same seed gives the same sample for the same number, however many are taken at a time.

    Integers are uniform over what is legal (`legal_values`), bools are even, floats are normal with mean 0 and standard
    deviation 1.
    """

    def __init__(self, graph: Graph, count: int, seed: int = 0) -> None:
        """Prepare to draw.

        Raises:
            OptionError: fewer than one sample, or a negative seed.
            InputError: an input whose legal values nobody can guess, such as strings.
        """
        if count < 1:
            raise OptionError(f"{count} samples were asked for; 1 or more are needed")
        if seed < 0:
            raise OptionError(f"seed {seed}: a whole number of 0 or more is needed")
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
    """Some samples as they are sent to another process: drawn ones as the numbers to draw, others as arrays.

    Attributes:
        samples: to take from.
        start: the first.
        stop: the one behind the last.
    """

    samples: Samples
    start: int
    stop: int

    @classmethod
    def of(cls, samples: Samples, start: int, stop: int) -> Portion:
        """Return samples start..stop-1, at most those that there are."""
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
    if np.any(legal.high):  # indices in a type of real numbers
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
            f"input '{tensor.name}' holds {tensor.dtype.value}: random values cannot be drawn; give them with --input"
        )
