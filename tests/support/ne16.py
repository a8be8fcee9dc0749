"""NE16 as its register page describes it (docs/rules/gap9/ne16.md): one job after the other on a flat memory.

Subtile by subtile, from the registers alone: it knows no filter. What the page leaves out is not modeled; bytes that
no register accounts for are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array

Job = Mapping[str, int]


@dataclass(frozen=True)
class Config:
    """CONFIG0, field by field."""

    bits: int
    streams_out: bool
    mode: str
    is_strided: bool
    streams_in: bool
    right_shift: int
    out_bytes: int
    is_signed: bool
    has_shifts: bool
    has_biases: bool

    @staticmethod
    def of(word: int) -> Config:
        """Read CONFIG0; its other bits are 8-bit features, M of 8 bits and the layer's weight offset."""
        assert (word >> 3 & 1, word >> 12 & 3, word >> 15 & 1) == (0, 0, 1)
        mode = "linear" if word >> 7 & 1 else ("3x3", "3x3dw", "1x1")[word >> 5 & 3]
        flags = [bool(word >> bit & 1) for bit in (4, 8, 14, 23, 24, 25)]
        size = (1, 2, 4)[word >> 21 & 3]
        return Config((word & 7) + 1, flags[0], mode, flags[1], flags[2], word >> 16 & 31, size, *flags[3:])


def run(memory: Array, job: Job) -> None:
    """Run one job: change the output in `memory`, uint8."""
    found = Config.of(job["CONFIG0"])
    outputs, weights = _outputs(job, found), _weights(memory, job, found)
    rows, columns = divmod(job["SUBTILE_NB1"], 1 << 16)
    assert found.mode != "linear" or (rows, columns) == (1, 1)
    for row in range(rows):
        for column in range(columns):
            sums = _sums(_inputs(memory, job, found, (row, column)), weights, found)
            for y in range(_count(job, row, rows, 16)):
                for x in range(_count(job, column, columns, 0)):
                    if not (found.is_strided and (y % 2 or x % 2)):
                        place = job["OUTFEAT_PTR"] + (3 * row + y) * job.get("OUTFEAT_D2_STRIDE", 0)
                        place += (3 * column + x) * job.get("OUTFEAT_D1_STRIDE", 0)
                        _write(memory, place, _left(memory, job, found, sums[y, x], place), found, outputs)


def _count(job: Job, place: int, count: int, bit: int) -> int:
    """Rows or columns of a subtile: 3, or what SUBTILE_REM1 leaves of the last; of strided ones 3, whose ends stay."""
    rest = job.get("SUBTILE_REM1", 0) >> bit & 0xFFFF
    return rest if place == count - 1 and rest else 3 if Config.of(job["CONFIG0"]).mode != "linear" else 1


def _outputs(job: Job, found: Config) -> int:
    block = 16 if found.mode == "3x3dw" else 32
    assert job["OUTFEAT_D0_STRIDE"] == 32
    return ((job["SUBTILE_NB0"] >> 16) - 1) * block + (job["SUBTILE_REM0"] >> 16)


def _channels(job: Job, found: Config) -> int:
    groups, rest = job["SUBTILE_NB0"] & 0xFFFF, job["SUBTILE_REM0"] & 0xFFFF
    return ((groups - 1) * 16 + rest) * 16 if found.mode == "linear" else (groups - 1) * 16 + rest


def _weights(memory: Array, job: Job, found: Config) -> Integers:
    """Return int64[outputs, KH, KW, inputs]; of depthwise [channels, 3, 3, 1]."""
    outputs, channels, bits = _outputs(job, found), _channels(job, found), found.bits
    each, plane = job.get("WEIGHTS_D1_STRIDE", 0), job["WEIGHTS_D0_STRIDE"]
    o, p, c = np.ogrid[:outputs, :bits, :channels]
    if found.mode == "linear":
        block = o // 32 * job["WEIGHTS_D2_STRIDE"] + o % 32 * each
        places = (block + p * plane + c // 8)[:, :, None, None, :]
    elif found.mode == "1x1":
        places = (o * each + c // 16 * plane + p * 2 + c % 16 // 8)[:, :, None, None, :]
    else:
        taps = np.arange(9).reshape(1, 1, 3, 3, 1) * 2
        c = o if found.mode == "3x3dw" else c
        places = (o * each + c // 16 * bits * plane + p * plane + c % 16 // 8)[:, :, None, None, :] + taps
    planes = memory[job["WEIGHTS_PTR"] + places].astype(np.int64) >> (c % 8)[:, :, None, None, :] & 1
    codes: Integers = (planes << np.arange(bits).reshape(1, bits, 1, 1, 1)).sum(axis=1)
    return codes + _signed(job["WEIGHT_OFFSET"])


def _inputs(memory: Array, job: Job, found: Config, subtile: tuple[int, int]) -> Integers:
    """Return the pixels of a subtile, int64[5, 5, channels] (1x1: [3, 3], linear [1, 1]); what is not read is 0."""
    side = {"1x1": 3, "linear": 1}.get(found.mode, 5)
    channels = _channels(job, found)
    if found.mode == "3x3dw":
        channels = _outputs(job, found)
    start = _signed(job["INFEAT_PTR"]) + 3 * subtile[0] * job.get("INFEAT_D1_STRIDE", 0)
    start += 3 * subtile[1] * job["INFEAT_D0_STRIDE"]
    image = np.zeros((side, side, channels), np.int64)
    padding, rest = job.get("PADDING", 0), job.get("SUBTILE_REM2", 0)
    counts = divmod(job["SUBTILE_NB1"], 1 << 16)
    shown = [_shown(side, subtile[a], counts[a], padding, rest, a) for a in range(2)]
    for y in range(side):
        for x in range(side):
            if shown[0][y] == "padding" or shown[1][x] == "padding":
                image[y, x] = padding & 0xFFFF
            elif shown[0][y] == shown[1][x] == "read":
                place = start + y * job.get("INFEAT_D1_STRIDE", 0) + x * job["INFEAT_D0_STRIDE"]
                image[y, x] = memory[place : place + channels]
    return image


def _shown(side: int, place: int, count: int, padding: int, rest: int, axis: int) -> list[str]:
    """Say of each row (axis 0) or column of a subtile whether it is padding, read, or not read."""
    before, after = (padding >> bit & 15 for bit in ((28, 20), (16, 24))[axis])
    left = rest >> (16, 0)[axis] & 0xFFFF
    found = ["read"] * side
    if place == 0:
        found[:before] = ["padding"] * before
    if place == count - 1:
        found = found[: side - after] + ["padding"] * after
        if left:
            found[left:] = ["beyond"] * (side - left)
    return found


def _sums(image: Integers, weights: Integers, found: Config) -> Integers:
    """Return the sums of a subtile, int64[3, 3, outputs] (linear [1, 1])."""
    kernel = weights.shape[1]
    size = len(image) - kernel + 1
    result = np.zeros((size, size, len(weights)), np.int64)
    for y in range(kernel):
        for x in range(kernel):
            seen = image[y : y + size, x : x + size]
            taps = weights[:, y, x]
            result += seen * taps[:, 0] if found.mode == "3x3dw" else seen @ taps.T
    return result


def _left(memory: Array, job: Job, found: Config, sums: Integers, place: int) -> Integers:
    """Return what one pixel leaves: sums, or (sum M + bias) >> N in 32 bits, cut to the output's type."""
    count = len(sums)
    if found.streams_in:
        sums = sums + memory[place : place + 4 * count].view("<i4")
    if not found.streams_out:
        fields = (found.has_shifts, found.has_biases, found.right_shift, found.out_bytes, found.is_signed)
        assert fields == (False, False, 0, 4, True), "a job that only sums (docs/rules/gap9/ne16.md#jobs)"
        return sums
    at = [job[name] for name in ("SCALE_PTR", "SCALE_SHIFT_PTR", "SCALE_BIAS_PTR")]
    shift = memory[at[1] : at[1] + count].astype(np.int64) if found.has_shifts else found.right_shift
    bias = memory[at[2] : at[2] + 4 * count].view("<i4") if found.has_biases else 0
    product = _wrapped(_wrapped(sums) * memory[at[0] : at[0] + count].astype(np.int64))
    scaled = _wrapped(product + bias) >> shift
    top = 1 << (8 * found.out_bytes - found.is_signed)
    return np.clip(scaled, -top if found.is_signed else 0, top - 1)


def _write(memory: Array, place: int, values: Integers, found: Config, outputs: int) -> None:
    kind = "<i4" if found.out_bytes == 4 else np.uint8
    memory[place : place + outputs * found.out_bytes] = values.astype(np.int64).astype(kind).view(np.uint8)


def _wrapped(values: Integers) -> Integers:
    return values.astype(np.int64).astype(np.int32).astype(np.int64)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >= 1 << 31 else word
