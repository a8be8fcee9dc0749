"""Ways in which an array may hold a tensor: axes in the model's order or channels first, flat, padded, or cut short."""

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
        array: dtype[S, *shape]; [S, n] where it is cut short.
        words: how it lay.
        channels_first: whether channels stood before rows and columns; None where that makes no difference.
        is_certain: whether shapes alone tell the order of the axes.
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
    """Return every way in which the array may hold the tensor, the likelier first; raw bytes are of its own type."""
    array = _of_own_type(stored, tensor)
    if array is None or not array.size or not tensor.size:
        return []
    shape = tensor.shape
    moves = _moves(shape)
    planar = (*shape[:1], shape[-1], *shape[1:-1]) if moves else shape
    own, first = _samples(array.shape, shape), _samples(array.shape, planar)
    found = []
    if own is not None:
        kind = False if moves else None
        found.append(Arranged(array.reshape(own, *shape), "the model's order", kind, first is None))
    if moves and first is not None:
        found.append(Arranged(_last(array.reshape(first, *planar)), "channels first", True, own is None))
    if not found:
        found = _flat(array, shape, planar, moves) or _padded(array, shape) or _padded_flat(array, shape, planar)
    if not found and stored.may_be_short and array.shape[-1] < tensor.size and array.ndim <= 2:
        words = f"the first {array.shape[-1]} of {tensor.size} elements"
        found = [Arranged(array.reshape(-1, array.shape[-1]), words, None if not moves else False, is_short=True)]
    return found


def _of_own_type(stored: Stored, tensor: Tensor) -> Array | None:
    if not stored.is_raw:
        return stored.array
    own = tensor.dtype.storage
    if own.itemsize == 1 or stored.may_be_short:
        return stored.array.view(own) if own.itemsize == 1 else stored.array
    flat = np.ascontiguousarray(stored.array)
    return None if own.kind == "O" or flat.shape[-1] % own.itemsize else flat.view(own.newbyteorder("<"))


def _moves(shape: tuple[int, ...]) -> bool:
    """Whether it makes a difference where the channels stand."""
    return len(shape) > 2 and shape[-1] > 1 and prod(shape[1:-1]) > 1


def _samples(found: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """Return the number of samples in front of a shape, axes of size 1 left out of account; None where it is not it."""
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
    found = [Arranged(array.reshape(samples, *shape), "flat, in the model's order", kind)]
    if moves:
        found.append(Arranged(_last(array.reshape(samples, *planar)), "flat, channels first", True))
    return found


def _padded(array: Array, shape: tuple[int, ...]) -> list[Arranged]:
    """Channels filled up with a constant, in the model's order or in front."""
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
    found = []
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
            found.append(Arranged(_last(kept) if is_planar else kept, f"flat, {what}", is_planar))
    return found
