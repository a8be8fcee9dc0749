"""Lookup tables: an operator with one small input is a table, made once when it is lowered (docs/rules/fixed_point.md).

A table is indexed by the raw bits of the code: entry i of a table for int8 belongs to the byte i, so that int8 tables
begin with 0..127 and continue with -128..-1.

Operators of two 8-bit inputs as tables of all 65536 pairs of codes: exact by construction, whatever the rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers
from tflq.graph import Array, DType
from tflq.interpreter.numerics.fixed_point import float_to_int32, round_half_away, wrap_int32
from tflq.interpreter.recording.primitive import note_table, primitive, recorder
from tflq.interpreter.samples import align

Table = NDArray[np.generic]
FloatFunction = Callable[[NDArray[np.floating]], NDArray[np.floating]]


def all_codes(dtype: DType) -> Integers:
    """Return every quantized value of a type of 8 or 16 bits, in the order of its raw bits.

    Int64[256] or int64[65536].
    """
    raw = np.arange(1 << dtype.bits, dtype=f"uint{dtype.bits}")
    return raw.view(dtype.storage).astype(np.int64)


def make_table(compute: Callable[[Integers], Array], source: DType, target: DType) -> Table:
    """Return compute(code) for each quantized value of `source`, stored as `target`; read-only."""
    table = compute(all_codes(source)).astype(target.storage)
    table.setflags(write=False)
    note_table(table, compute)
    return table


def is_used(table: Array | None) -> TypeGuard[Array]:
    """Whether a table replaces its rule: if there is one, and the rule's operations are not recorded."""
    recording = recorder()
    return table is not None and (recording is None or recording.stands(table))


def look_up(table: Table, x: Array) -> Array:
    """Return table[raw bits of x]: shape of x, type of the table.

    Args:
        table: 256 or 65536 entries.
        x: integers of 8 or 16 bits.
    """
    recording = recorder()
    if recording is not None:
        compute = recording.computation(table)
        return np.take(table, x.view(f"uint{8 * x.itemsize}")) if compute is None else _by_rule(compute, table, x)
    raw = x.view(f"uint{8 * x.itemsize}")
    if table.itemsize == 1 and x.itemsize == 1:
        # Half the time of np.take, which widens each index to 64 bits.
        found = bytearray(np.ascontiguousarray(raw)).translate(table.tobytes())
        return np.frombuffer(found, table.dtype).reshape(x.shape)
    return np.take(table, raw)


def _by_rule(compute: Callable[[Integers], Array], table: Table, x: Array) -> Array:
    """Return the rule's results for x only."""
    entries: Array = np.asarray(compute(x.astype(np.int64))).astype(table.dtype)
    return entries


def lut256(
    function: FloatFunction,
    dtype: DType,
    input_scale: np.float32,
    input_zero_point: int,
    output: tuple[np.float32, int],
) -> Table:
    """Return the table of a real function between two quantized 8-bit tensors, all in float32.

    t = function(f32(input_scale * (q - input_zero_point))); r = round_half_away(f32(t * f32(1 / output_scale)));
    entry = clamp(int32(f32(r + output_zero_point))): the reciprocal of the scale, not a division by it.
    Beyond int32 C++ leaves the result undefined; in both wheels int8 saturates with NaN as 0, uint8 becomes 0.

    Args:
        function: takes and returns float32.
        dtype: INT8 or UINT8, of both sides.
        input_scale: float32.
        input_zero_point: Zero point of the input, in quantized values.
        output: scale and zero point of the output.

    Source: TFLite kernels/internal/common.h, LUTPopulateInt8.
    """
    output_scale, output_zero_point = output
    one = np.float32(1)

    def entry(code: Integers) -> Integers:
        real = input_scale * (code - input_zero_point).astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = round_half_away(function(real) * (one / output_scale)) + np.float32(output_zero_point)
        if dtype is DType.INT8:
            return np.where(np.isnan(rounded), 0, np.clip(rounded, -128, 127)).astype(np.int64)
        return np.clip(float_to_int32(rounded), dtype.minimum, dtype.maximum)

    return make_table(entry, dtype, dtype)


def lut513(
    function: FloatFunction,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    real: type[np.floating] = np.float64,
) -> NDArray[np.int16]:
    """Return the 513 sampling points of a function between two int16 tensors.

    With v(i) = function(lowest + i * step), step = (highest - lowest) / 512 and k = 65536 / (range of the output):
    entry(i) = clamp(rha(v(i) k) - rha((rha((v(i+1) k + rha(v(i) k)) / 2) - rha(v(i+1/2) k)) / 2)); half of the error of
    the straight line at its middle is taken off each point. rha is round_half_away. The last entry is rha(v(512) k).
    If infinities meet in an entry it is 0, as x86 cuts NaN to int16.

    Args:
        function: takes and returns `real`.
        input_scale: step of the input's quantized values.
        input_zero_point: Zero point of the input.
        output_scale: step of the output's quantized values; its zero point is 0.
        real: float64 or float32, in which every operation is done.

    Source: TFLite kernels/internal/common.h, LUTPopulateInt16.
    """
    scale, steps = real(input_scale), np.arange(513).astype(real)
    lowest, highest = (scale * real(code - input_zero_point) for code in (-32768, 32767))
    k = real(65536) / (real(output_scale) * real(32767) - real(output_scale) * real(-32768))
    step = (highest - lowest) / real(512)
    start = lowest + steps * step
    with np.errstate(over="ignore", invalid="ignore"):
        value = round_half_away(function(start[:-1]) * k)
        middle = round_half_away(function(start[:-1] + step / real(2)) * k)
        following = function(start[1:]) * k
        bias = round_half_away((round_half_away((following + value) / real(2)) - middle) / real(2))
        last = round_half_away(function(np.array([highest])) * k)
        points = np.concatenate([value - bias, last])
    table = np.where(np.isnan(points), 0, np.clip(points, -32768, 32767)).astype(np.int16)
    table.setflags(write=False)
    return table


@primitive("interpolated", "between the points of the table around {x}")
def look_up_513(table: NDArray[np.int16], x: Integers) -> Integers:
    """Interpolate between the 513 points: i = 256 + (x >> 7), o = x & 127; t[i] + ((slope * o + 64) >> 7).

    slope = t[i+1] - t[i] wraps to int16, as does the result.

    Args:
        table: Table returned by `lut513`.
        x: values of int16.

    Source: TFLite kernels/internal/common.h, LUTLookup(int16_t).
    """
    wide = table.astype(np.int64)
    index = 256 + (x >> 7)
    slope = _wrap_int16(wide[index + 1] - wide[index])
    return _wrap_int16(wide[index] + ((slope * (x & 127) + 64) >> 7))


def _wrap_int16(x: Integers) -> Integers:
    return wrap_int32(x).astype(np.int16).astype(np.int64)


@dataclass(frozen=True, eq=False)
class RescaledPair:
    """The params of an operator of two quantized tensors with a result that is rescaled once.

    Attributes:
        input_zero_points: Zero points of both inputs.
        output_zero_point: Zero point of the output.
        multiplier: int32; 0 if no rescaling is needed.
        shift: positive is left.
        minimum: smallest quantized value after the fused activation.
        maximum: largest one.
        dtype: Type of the output.
        pairs: T8[65536]: the result of every pair of 8-bit values, by 256 raw(x_1) + raw(x_2); None for int16.
    """

    input_zero_points: tuple[int, int]
    output_zero_point: int
    multiplier: int
    shift: int
    minimum: int
    maximum: int
    dtype: DType
    pairs: Array | None = None


def make_pairs(compute: Callable[[Integers, Integers], Array], first: DType, second: DType, target: DType) -> Array:
    """Return compute(x, y) for all pairs of quantized values, by 256 raw(x) + raw(y), stored as `target`; read-only.

    Args:
        compute: takes int64[256, 1] and int64[1, 256], returns quantized values [256, 256].
        first: 8-bit type of x.
        second: 8-bit type of y.
        target: Type of the result.
    """
    pairs: Array = compute(all_codes(first)[:, None], all_codes(second)[None]).astype(target.storage).reshape(-1)
    pairs.setflags(write=False)
    note_table(pairs, compute)
    return pairs


def look_up_pairs(pairs: Array, x: Array, y: Array) -> Array:
    """Return pairs[256 raw(x) + raw(y)], x and y broadcast against each other; while recording, the rule's results.

    Args:
        pairs: T8[65536].
        x: 8-bit integers.
        y: 8-bit integers, of the same rank.
    """
    recording = recorder()
    compute = None if recording is None else recording.computation(pairs)
    if compute is not None:
        found: Array = compute(x.astype(np.int64), y.astype(np.int64)).astype(pairs.dtype)
        return found
    index = x.view(np.uint8).astype(np.uint16) << np.uint16(8)
    # Every index is below 65536: "clip" only spares numpy the check.
    return np.asarray(np.take(pairs, index | y.view(np.uint8), mode="clip"))


def run_pairs(pairs: Array, first: Array, second: Array) -> Array:
    """Apply a table to arrays of 8 bits that broadcast: [S or 1, *shape] twice -> [S, *shape]."""
    x, y = align(first, second)
    return look_up_pairs(pairs, np.ascontiguousarray(x), np.ascontiguousarray(y))
