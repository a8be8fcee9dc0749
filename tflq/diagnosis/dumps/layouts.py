"""Layouts of a tensor in an array: axes in the model's order or channels first, flat, padded, or cut short."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.diagnosis.dumps.wanted import Stored
from tflq.graph import Array, DType, Tensor

_CHANNEL_BLOCKS = (4, 8, 16, 32, 64)
_ROW_BYTES = 16
"""HiSilicon's samples pad rows to a multiple of it."""


@dataclass(frozen=True, eq=False)
class Arranged:
    """An array in the model's order.

    Attributes:
        array: dtype[S, *shape]; [S, n] if it is cut short.
        words: Description of the stored layout.
        channels_first: True if channels were stored before rows and columns; None if the order makes no difference.
        is_certain: True if shapes alone determine the order of the axes.
        is_short: whether only the first elements are there.
    """

    array: Array
    words: str
    channels_first: bool | None = None
    is_certain: bool = False
    is_short: bool = False

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.array)


def arrangements(stored: Stored, tensor: Tensor) -> list[Arranged]:
    """Return every possible layout of the tensor in the array, the likelier first; raw bytes have the tensor's type."""
    array = _of_own_type(stored, tensor)
    if array is None or not array.size or not tensor.size:
        return []
    shape = tensor.shape
    moves = _moves(shape)
    planar = (*shape[:1], shape[-1], *shape[1:-1]) if moves else shape
    own, first = _samples(array.shape, shape), _samples(array.shape, planar)
    ways = []
    if own is not None:
        kind = False if moves else None
        ways.append(Arranged(array.reshape(own, *shape), "the model's order", kind, first is None))
    if moves and first is not None:
        ways.append(Arranged(_last(array.reshape(first, *planar)), "channels first", True, own is None))
    if not ways:
        ways = _flat(array, shape, planar, moves) or _padded(array, shape) or _padded_flat(array, shape, planar)
    if not ways and stored.may_be_short and array.shape[-1] < tensor.size and array.ndim <= 2:
        words = f"the first {array.shape[-1]} of {tensor.size} elements"
        ways = [Arranged(array.reshape(-1, array.shape[-1]), words, None if not moves else False, is_short=True)]
    return ways


def _of_own_type(stored: Stored, tensor: Tensor) -> Array | None:
    if not stored.is_raw:
        return stored.array
    own = tensor.dtype.storage
    if own.itemsize == 1 or stored.may_be_short:
        return stored.array.view(own) if own.itemsize == 1 else stored.array
    flat = np.ascontiguousarray(stored.array)
    return None if own.kind == "O" or flat.shape[-1] % own.itemsize else flat.view(own.newbyteorder("<"))


def _moves(shape: tuple[int, ...]) -> bool:
    """Whether the position of the channels makes a difference."""
    return len(shape) > 2 and shape[-1] > 1 and prod(shape[1:-1]) > 1


def _samples(found: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """Return the number of samples before a shape, ignoring axes of size 1; None if the shape differs."""
    core, own = [n for n in found if n != 1], [n for n in shape if n != 1]
    if core == own:
        return 1
    return core[0] if core[1:] == own and len(core) > len(own) else None


def _last(array: Array) -> Array:
    """[S, N, C, ...] -> [S, N, ..., C]."""
    return np.moveaxis(array, 2, -1)


def _flat(array: Array, shape: tuple[int, ...], planar: tuple[int, ...], moves: bool) -> list[Arranged]:
    core = [n for n in array.shape if n != 1]
    samples, rest = divmod(array.size, prod(shape))
    if rest or not (len(core) <= 1 or core == [samples, prod(shape)]):
        return []
    kind = False if moves else None
    ways = [Arranged(array.reshape(samples, *shape), "flat, in the model's order", kind)]
    if moves:
        ways.append(Arranged(_last(array.reshape(samples, *planar)), "flat, channels first", True))
    return ways


def _padded(array: Array, shape: tuple[int, ...]) -> list[Arranged]:
    """Channels padded with a constant, in the model's order or channels first."""
    channels = shape[-1]
    spatial = len(shape) - 2
    for axis, first in ((array.ndim - 1, False), (array.ndim - 1 - spatial, True)):
        if len(shape) < 2 or axis < 0 or array.shape[axis] <= channels or (first and not spatial):
            continue
        if array.shape[axis] % _CHANNEL_BLOCKS[0]:
            continue
        kept, rest = np.split(array, [channels], axis)
        if (rest == rest.reshape(-1)[0]).all():
            more = array.shape[axis] - channels
            for a in arrangements(Stored("", kept), Tensor("", shape, DType.INT8)):
                if a.channels_first is not (not first):
                    return [
                        Arranged(a.array, f"{a.words}, {more} padded channels left out", a.channels_first, a.is_certain)
                    ]
    return []


def _padded_flat(array: Array, shape: tuple[int, ...], planar: tuple[int, ...]) -> list[Arranged]:
    """Flat bytes with channels filled up to a block, or with rows of planes filled up to 16 bytes."""
    if len(shape) < 3 or len([n for n in array.shape if n != 1]) > 1:
        return []
    ways = []
    row = -(-shape[-2] * array.itemsize // _ROW_BYTES) * _ROW_BYTES // array.itemsize
    wide = [(*shape[:-1], -(-shape[-1] // block) * block) for block in _CHANNEL_BLOCKS]
    for padded, is_planar in [*((w, False) for w in dict.fromkeys(wide)), ((*planar[:-1], row), True)]:
        true = planar if is_planar else shape
        samples, rest = divmod(array.size, prod(padded))
        if rest or not samples or padded[-1] == true[-1]:
            continue
        kept, filling = np.split(array.reshape(samples, *padded), [true[-1]], -1)
        if (filling == filling.reshape(-1)[0]).all():
            what = f"{'rows' if is_planar else 'channels'} padded to {padded[-1]}"
            ways.append(Arranged(_last(kept) if is_planar else kept, f"flat, {what}", is_planar))
    return ways
