"""What the oracle answers: tensors, chunk by chunk and put together again, or what went wrong in TFLite."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.errors import OracleError


class OracleRefused(OracleError):  # noqa: N818 - named by what happened
    """TFLite rejects the model or cannot run it; the message is its own, in one line."""


class OracleAborted(OracleError):  # noqa: N818 - named by what happened
    """The worker process died: a failed CHECK in TFLite (SIGABRT), a segmentation fault, or a signal from outside."""


class OracleTimeout(OracleError):  # noqa: N818 - named by what happened
    """The worker gave no sign of life for as long as the caller allows one sample to take."""


@dataclass(frozen=True)
class OracleIdentity:
    """Who judged: distribution, version and kernel set, as every report prints it."""

    package: str
    version: str
    kernels: str

    def __str__(self) -> str:
        return f"{self.package} {self.version} {self.kernels}"


@dataclass(frozen=True)
class OracleTensor:
    """A tensor as TFLite describes it.

    `shape` is that of one invocation, after the inputs were resized; `shape_signature` has -1 where the file leaves a
    dimension open. `dtype` is numpy's name ("int8"; "str" and "resource" are TFLite's own types). `scales` are float32
    values, empty where the tensor is not quantized; several of them run along `quantized_dimension`.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    quantized_dimension: int


@dataclass(frozen=True)
class OracleModel:
    """A model as TFLite loads it, before memory is planned.

    `inputs` and `outputs` are tensor indices in the model's order; with a signature they are in the order of
    `input_names` and `output_names`, which TFLite sorts. `constants` have their data in the file; strings are not
    counted among them, because TFLite cannot be asked.
    """

    tensors: Mapping[int, OracleTensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    constants: frozenset[int]
    signatures: tuple[str, ...]


@dataclass(frozen=True)
class OracleRun:
    """The tensors of `samples` samples, the first of which is sample `start` of the caller's inputs.

    `tensors`: [S, *shape] by tensor index; strings are object arrays of bytes. `ragged`: the same, one array per
    sample, for tensors whose shape differs between samples. `unavailable`: the reason, for each tensor asked for that
    TFLite cannot return. Constants are in none of them unless asked for by index: `model.constants` lists them.
    A tensor of zero elements is an empty array.
    """

    identity: OracleIdentity
    model: OracleModel
    details: Mapping[int, OracleTensor]
    start: int
    samples: int
    tensors: Mapping[int, NDArray[np.generic]]
    ragged: Mapping[int, tuple[NDArray[np.generic], ...]]
    unavailable: Mapping[int, str]

    @property
    def outputs(self) -> tuple[NDArray[np.generic], ...]:
        """The model's outputs, [S, ...] each, in the model's order; KeyError where one is ragged or unavailable."""
        return tuple(self.tensors[index] for index in self.model.outputs)

    def sample(self, index: int, number: int) -> NDArray[np.generic]:
        """One tensor of one sample (`number` counts from 0 in this run), whether its shape varies or not."""
        if index in self.ragged:
            return self.ragged[index][number]
        return np.asarray(self.tensors[index][number])


@dataclass(frozen=True)
class OracleTiming:
    """Seconds per invocation, measured around TFLite's Invoke alone inside the worker."""

    identity: OracleIdentity
    min_s: float
    median_s: float
    invocations: int


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
