"""A floating-point map from accumulators to quantized values, applied in blocks that stay in the cache."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array
from tflq.interpreter.layout import is_samples_last, logical, stored

Reals = NDArray[np.floating]
"""float32 or float64."""

BLOCK = 1 << 16
"""Elements at a time: the block and its buffer stay in the first and second-level cache."""
TILE = 1 << 13
"""Length to which the channels' constants are repeated, so that inner loops are long."""
Fixups = tuple[tuple[int, int, int], ...]
"""Channel, accumulator, quantized value."""
_REMEMBERED = 8
"""Counts of elements of which a map remembers the constants."""

_Constants = tuple[Reals, Reals, Reals | None, Reals | None]


@dataclass(frozen=True, eq=False)
class StepMap:
    """y = rint(clip(u + correction(u), minimum, maximum)), u = (acc + offset) * scale; then the listed exceptions.

    correction(u) = clip(u, low, high), or 0 if `low` is None. It serves rules that round half away from zero or round
    twice: thresholds of quantized values above and below the zero point then move away from each other by 2 * d, which
    no affine map can do. With u = real + z/2, low = z/2 - d, high = z/2 + d the result is real + z + d * sign(real) if
    |real| >= d.

    Attributes:
        scale: float32[O] or float64[O]; the type in which the map is computed.
        offset: the same type, in units of the accumulator; biases and zero points are in it.
        low: the same type, or None.
        high: the same type, or None.
        minimum: smallest quantized value.
        maximum: largest quantized value.
        exceptions: the few accumulators for which the map without them is off by one.
        changes: Accumulators at which the code changes, in rising order, for channels with few changes.
        wide: Map by the same rule in float64 without exceptions and changes, if there are any of these: for few
            elements, the calls that search accumulators cost more time than the wider type.
        after: Zero point added after rounding, y = clip(rint(u) + after, minimum, maximum); None if `offset` has it.
    """

    scale: Reals
    offset: Reals
    low: Reals | None
    high: Reals | None
    minimum: int
    maximum: int
    exceptions: Fixups = ()
    changes: Fixups = ()
    wide: StepMap | None = None
    after: np.floating | None = None

    def rounded(self, accumulators: Array) -> Reals:
        """Return y of accumulators [..., O] in the map's type, without exceptions, as the proof evaluates it."""
        values: Reals = accumulators.astype(self.scale.dtype)
        return self.evaluate((self.offset, self.scale, self.low, self.high), values, np.empty_like(values))

    @cached_property
    def tiles(self) -> _Constants:
        """The constants repeated to about TILE elements."""
        repeats = max(1, TILE // self.scale.size)
        low = None if self.low is None else np.tile(self.low, repeats)
        high = None if self.high is None else np.tile(self.high, repeats)
        return np.tile(self.offset, repeats), np.tile(self.scale, repeats), low, high

    def first(self, count: int) -> _Constants:
        """Return the first elements of the tiles; some counts are remembered."""
        found = self._firsts.get(count)
        if found is None:
            if len(self._firsts) >= _REMEMBERED:
                self._firsts.clear()
            offset, scale, low, high = self.tiles
            ends = (None, None) if low is None or high is None else (low[:count], high[:count])
            found = self._firsts[count] = offset[:count], scale[:count], *ends
        return found

    @cached_property
    def _firsts(self) -> dict[int, _Constants]:
        return {}

    @cached_property
    def _ends(self) -> tuple[np.floating, np.floating]:
        return self.scale.dtype.type(self.minimum), self.scale.dtype.type(self.maximum)

    def evaluate(self, constants: _Constants, accumulators: Array, out: Reals) -> Reals:
        """Write y of accumulators, in the map's type or a wider one, into `out` and return it."""
        offset, scale, low, high = constants
        np.add(accumulators, offset, out=out)
        np.multiply(out, scale, out=out)
        if self.after is not None:
            np.rint(out, out=out)
            np.add(out, self.after, out=out)
            return out.clip(*self._ends, out=out)
        if low is not None and high is not None:
            np.add(out, _clipped(out, low, high), out=out)
        out.clip(*self._ends, out=out)
        return np.rint(out, out=out)


def apply(step_map: StepMap, accumulators: Array, dtype: np.dtype[np.generic]) -> Array:
    """Map exact integers [..., O] in float32, float64 or int64 to quantized values [..., O]."""
    if accumulators.size <= step_map.tiles[0].size:
        return _at_once(step_map.wide or step_map, accumulators, dtype)
    if is_samples_last(accumulators):
        return _map_channels(step_map, accumulators, dtype)
    flat = accumulators.reshape(-1)
    if flat.dtype != np.float32 and step_map.scale.dtype == np.float32:
        flat = flat.astype(np.float32)  # exact: a float32 map serves accumulators below 2^24 only
    result = np.empty(accumulators.shape, dtype)
    _map_in_blocks(step_map, flat, result.reshape(-1))
    channels = accumulators.shape[-1]
    _correct(step_map, flat.reshape(-1, channels).T, result.reshape(-1, channels).T)
    return result


def _clipped(x: Reals, low: Reals, high: Reals) -> Reals:
    """Clip by arrays; numpy's clip is fast if each bound serves a whole run, its minimum and maximum elsewhere."""
    return np.clip(x, low, high) if low.shape[-1] == 1 else np.minimum(np.maximum(x, low), high)


def _at_once(step_map: StepMap, accumulators: Array, dtype: np.dtype[np.generic]) -> Array:
    """Map no more elements than the tiles have, in as few calls as there can be; the map has no exceptions."""
    flat = accumulators.reshape(-1)
    if flat.dtype != step_map.scale.dtype:
        flat = flat.astype(step_map.scale.dtype)
    out: Reals = np.empty(flat.size, step_map.scale.dtype)
    codes = step_map.evaluate(step_map.first(flat.size), flat, out).astype(dtype)
    return codes.reshape(accumulators.shape)


def _map_in_blocks(step_map: StepMap, flat: Array, out: Array) -> None:
    tiles = step_map.tiles
    tile = tiles[0].size
    whole = flat.size // tile * tile
    rows = max(1, BLOCK // tile) * tile
    buffer: Reals = np.empty(min(rows, max(whole, tile)), step_map.scale.dtype)
    for i in range(0, whole, rows):
        n = min(rows, whole - i)
        step_map.evaluate(tiles, flat[i : i + n].reshape(-1, tile), buffer[:n].reshape(-1, tile))
        np.copyto(out[i : i + n], buffer[:n], casting="unsafe")
    rest = flat.size - whole
    if rest:
        step_map.evaluate(step_map.first(rest), flat[whole:], buffer[:rest])
        np.copyto(out[whole:], buffer[:rest], casting="unsafe")


def _map_channels(step_map: StepMap, accumulators: Array, dtype: np.dtype[np.generic]) -> Array:
    """Map [S, N, H, W, O] with samples last: constants of a channel meet a run of all its pixels and samples."""
    source = stored(accumulators)
    result = np.empty(source.shape, dtype)
    channels, kind = source.shape[1], step_map.scale.dtype
    run = source[0, 0].size
    rows, length = max(1, BLOCK // run), min(run, BLOCK)
    buffer: Reals = np.empty((rows, length), kind)
    for image, codes in zip(source.reshape(-1, channels, run), result.reshape(-1, channels, run), strict=True):
        for c in range(0, channels, rows):
            constants = _columns(step_map, slice(c, c + rows))
            for i in range(0, run, length):
                block = image[c : c + rows, i : i + length].astype(kind, copy=False)
                out = buffer[: block.shape[0], : block.shape[1]]
                np.copyto(codes[c : c + rows, i : i + length], step_map.evaluate(constants, block, out), "unsafe")
        _correct(step_map, image, codes)
    return logical(result)


def _columns(step_map: StepMap, part: slice) -> _Constants:
    low = None if step_map.low is None else step_map.low[part, None]
    high = None if step_map.high is None else step_map.high[part, None]
    return step_map.offset[part, None], step_map.scale[part, None], low, high


def _correct(step_map: StepMap, accumulators: Array, codes: Array) -> None:
    """Correct the exceptions of a map, in arrays [O, n]."""
    for channel, accumulator, code in step_map.changes:
        codes[channel, accumulators[channel] >= accumulator] = code
    for channel, accumulator, code in step_map.exceptions:
        hit = np.equal(accumulators[channel], accumulator)
        if hit.any():
            codes[channel, hit] = code
