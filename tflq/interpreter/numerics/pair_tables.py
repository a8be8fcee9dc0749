"""Operators of two 8-bit inputs as tables of all 65536 pairs of codes: exact by construction, whatever the rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, DType
from tflq.interpreter.numerics.lookup_tables import all_codes
from tflq.interpreter.recording.primitive import note_table, recorder
from tflq.interpreter.samples import align


@dataclass(frozen=True, eq=False)
class RescaledPair:
    """The params of an operator of two quantised tensors whose result is rescaled once.

    Attributes:
        input_zero_points: of both inputs.
        output_zero_point: of the output.
        multiplier: int32; 0 where nothing is rescaled.
        shift: positive is left.
        minimum: smallest quantized value after the fused activation.
        maximum: largest one.
        dtype: of the output.
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
        target: of the result.
    """
    pairs: Array = compute(all_codes(first)[:, None], all_codes(second)[None]).astype(target.storage).reshape(-1)
    pairs.setflags(write=False)
    note_table(pairs, compute)
    return pairs


def look_up_pairs(pairs: Array, x: Array, y: Array) -> Array:
    """Return pairs[256 raw(x) + raw(y)], x and y broadcast against each other; while recording, what they are made of.

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
