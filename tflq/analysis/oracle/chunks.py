"""Sizes of chunks, and chunks put together again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.oracle.results import OracleRun, OracleTensor

# What a string or a tensor of unknown size is taken for.
_UNKNOWN_ITEM_BYTES = 64


def chunk_samples(details: Mapping[int, OracleTensor], indices: Iterable[int], chunk_bytes: int) -> int:
    """Return how many samples of these tensors fit into `chunk_bytes`, at least one."""
    sample_bytes = sum(math.prod(details[index].shape) * _item_bytes(details[index].dtype) for index in indices)
    return max(1, chunk_bytes // max(1, sample_bytes))


def _item_bytes(dtype: str) -> int:
    try:
        return np.dtype(dtype).itemsize or _UNKNOWN_ITEM_BYTES
    except TypeError:
        return _UNKNOWN_ITEM_BYTES


def joined(chunks: Sequence[OracleRun]) -> OracleRun:
    """Put the chunks of one run together; a tensor that one chunk lacks is unavailable in the whole."""
    if len(chunks) == 1:
        return chunks[0]
    unavailable: dict[int, str] = {}
    for chunk in reversed(chunks):
        unavailable |= {
            i: f"from sample {chunk.start} on: {why}" if chunk.start else why for i, why in chunk.unavailable.items()
        }
    tensors: dict[int, NDArray[np.generic]] = {}
    ragged: dict[int, tuple[NDArray[np.generic], ...]] = {}
    for index in {**chunks[0].tensors, **chunks[0].ragged}:
        if index in unavailable:
            continue
        parts = [chunk.tensors.get(index) for chunk in chunks]
        whole = [part for part in parts if part is not None]
        if len(whole) == len(chunks) and len({(part.shape[1:], part.dtype) for part in whole}) == 1:
            tensors[index] = np.concatenate(whole)
        else:
            ragged[index] = tuple(chunk.sample(index, n) for chunk in chunks for n in range(chunk.samples))
    samples = sum(chunk.samples for chunk in chunks)
    return replace(chunks[0], samples=samples, tensors=tensors, ragged=ragged, unavailable=unavailable)
