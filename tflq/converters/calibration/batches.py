"""Samples cut into batches, whether they come as arrays or in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.converters.calibration.options import StatisticsOptions
from tflq.errors import InputError, OptionError
from tflq.graph import Array

Batch = Sequence[Array]
"""One array [S, *shape] for each graph input, in the encoding of that input."""


def chunks_of(data: Batch | Iterable[Batch], inputs: int, options: StatisticsOptions) -> Iterator[Batch]:
    """Yield lists of arrays, one for each input; arrays that are there already may be shuffled."""
    whole = _as_arrays(data)
    if whole is None:
        if options.shuffle_seed is not None:
            raise OptionError("calibration: only arrays can be shuffled, the data come in chunks")
        yield from data  # type: ignore[misc]  # an iterable of batches
        return
    if len(whole) != inputs:
        raise InputError(f"calibration: {len(whole)} arrays were given, the model has {inputs} inputs")
    if options.shuffle_seed is not None:
        order = shuffled(len(whole[0]), options.shuffle_seed)
        for start in range(0, len(order), options.batch_size):
            yield [x[order[start : start + options.batch_size]] for x in whole]
        return
    yield whole


def shuffled(samples: int, seed: int) -> NDArray[np.int64]:
    """Return the numbers of samples in the order in which a seed takes them."""
    return np.random.default_rng(seed).permutation(samples)


def original_number(data: Batch | Iterable[Batch], options: StatisticsOptions, position: int) -> int:
    """Return the number of the sample that comes at a position."""
    whole = _as_arrays(data)
    if whole is None or options.shuffle_seed is None:
        return position
    return int(shuffled(len(whole[0]), options.shuffle_seed)[position])


def _as_arrays(data: Batch | Iterable[Batch]) -> list[Array] | None:
    if not isinstance(data, (list, tuple)):
        return None
    arrays = [x for x in data if isinstance(x, np.ndarray)]
    return arrays if len(arrays) == len(data) else None


def batches_of(chunks: Iterator[Batch], size: int) -> Iterator[list[Array]]:
    """Cut chunks of any length into batches of `size` samples; the last may be shorter."""
    rest: list[Array] = []
    for chunk in chunks:
        counts = {len(x) for x in chunk}
        if len(counts) > 1:
            raise InputError(f"calibration: inputs have {sorted(counts)} samples; they need the same number")
        arrays = [np.concatenate([a, b]) for a, b in zip(rest, chunk, strict=True)] if rest else list(chunk)
        count = len(arrays[0]) if arrays else 0
        full = count - count % size
        for start in range(0, full, size):
            yield [x[start : start + size] for x in arrays]
        rest = [x[full:] for x in arrays] if full < count else []
    if rest:
        yield rest
