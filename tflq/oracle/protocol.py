"""Messages between `Oracle` and its worker: frames over a private pair of pipes.

Frame: uint32 count, count x uint64 sizes, then that many blocks of bytes. The first block is the pickled message, the
others are its arrays' own memory (pickle protocol 5, out of band), so that no array is copied on its way into the pipe.
Both ends are the same package on the same machine, started one by the other.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from tflq.oracle.results import OracleTensor


@dataclass(frozen=True)
class Hello:
    """First message of a worker that is ready: the version of the package it imported."""

    version: str


@dataclass(frozen=True)
class Load:
    """Take a model. `content`: uint8[size_bytes]. `signature` None means subgraph 0 as it stands."""

    content: NDArray[np.uint8]
    signature: str | None
    preserve: bool


@dataclass(frozen=True)
class Loaded:
    """The loaded model before memory is planned. `constants` have their data in the file."""

    tensors: tuple[OracleTensor, ...]
    inputs: dict[str, int]
    outputs: dict[str, int]
    constants: frozenset[int]
    signatures: tuple[str, ...]


@dataclass(frozen=True)
class Prepare:
    """Give the inputs these shapes (None: as in the file), in order of `Loaded.inputs`, and plan the memory."""

    shapes: tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True)
class Prepared:
    """Every tensor with the shape that it has now."""

    tensors: tuple[OracleTensor, ...]


@dataclass(frozen=True)
class Run:
    """Run the samples of `inputs` (one array [S, ...] per input) and return the tensors `wanted`.

    `fresh`: state is cleared before each sample; else it is cleared before the first one if `first`, and carried on.
    """

    inputs: tuple[NDArray[np.generic], ...]
    samples: int
    wanted: tuple[int, ...]
    fresh: bool
    first: bool


@dataclass(frozen=True)
class Ran:
    """Tensors [S, ...] by index; `ragged` where the shape differs between samples; `unavailable` with the reason."""

    tensors: dict[int, NDArray[np.generic]]
    ragged: dict[int, tuple[NDArray[np.generic], ...]]
    unavailable: dict[int, str]


@dataclass(frozen=True)
class Time:
    """Invoke `repeats` times, the samples of `inputs` in turn, after one invocation that is not counted."""

    inputs: tuple[NDArray[np.generic], ...]
    samples: int
    repeats: int


@dataclass(frozen=True)
class Timed:
    """Seconds of each invocation."""

    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Alive:
    """A sign of life between two samples, before the reply proper."""


@dataclass(frozen=True)
class Refused:
    """TFLite raised an error; the loaded model is gone."""

    message: str


Request = Load | Prepare | Run | Time
Reply = Hello | Loaded | Prepared | Ran | Timed | Alive | Refused
Message = Request | Reply


GREETING = b"\0tflq oracle\0"


def greet(pipe: BinaryIO) -> None:
    """Mark where frames begin: whatever an interpreter's start-up files print comes before it."""
    pipe.write(GREETING)
    pipe.flush()


def await_greeting(pipe: BinaryIO) -> None:
    """Skip to the first frame; EOFError where none comes."""
    seen = b""
    while not seen.endswith(GREETING):
        seen = seen[-len(GREETING) :] + bytes(_exactly(pipe, 1))


def send(pipe: BinaryIO, message: Message) -> None:
    """Write one frame and flush it; OSError where the other end is gone."""
    arrays: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=arrays.append)
    blocks = [memoryview(head), *(array.raw() for array in arrays)]
    pipe.write(struct.pack(f"<I{len(blocks)}Q", len(blocks), *(block.nbytes for block in blocks)))
    for block in blocks:
        pipe.write(block)
    pipe.flush()


def receive(pipe: BinaryIO) -> Message:
    """Read one frame; EOFError where the other end has closed, also in the middle of a frame."""
    (count,) = struct.unpack("<I", _exactly(pipe, 4))
    sizes = struct.unpack(f"<{count}Q", _exactly(pipe, 8 * count))
    head, *arrays = [_exactly(pipe, size) for size in sizes]
    message: Message = pickle.loads(head, buffers=arrays)
    return message


def _exactly(pipe: BinaryIO, size: int) -> bytearray:
    block = bytearray(size)
    view, filled = memoryview(block), 0
    while filled < size:
        got = pipe.readinto(view[filled:])  # type: ignore[attr-defined]  # BinaryIO does not name it, buffered pipes have it
        if not got:
            raise EOFError("the other end of the pipe is closed")
        filled += got
    return block
