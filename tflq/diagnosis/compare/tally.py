"""Counts of the differences between two versions of one tensor, chunk by chunk: only sums are kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles
from tflq.diagnosis.difference import differing
from tflq.graph import Affine, Array, Tensor
from tflq.parallel.executions import real_values

LAST_BIN = 8
"""The histogram counts differences -8..8 in LSB; its outer bins include larger ones."""


@dataclass(frozen=True)
class Place:
    """An element that differs.

    Attributes:
        sample: number of the sample.
        index: position within it.
        first: value of the first side, as it stores it.
        second: value of the second side.
    """

    sample: int
    index: tuple[int, ...]
    first: float
    second: float


@dataclass(frozen=True, eq=False)
class TensorFigures:
    """How one tensor differs; differences are first side minus second (the reference).

    Attributes:
        elements: number compared.
        differing: number that differ: quantized values if both sides have one encoding, else floating-point values.
        lsb: the step in which differences are counted: the first side's scale, or the second's; None for two floats.
        largest: largest |difference| in LSB; as a floating-point value if lsb is None.
        histogram: int64[17], rounded differences -8..8 in LSB, the ends open.
        cosine: Cosine of the angle between both, 1 for equal directions; NaN if one is all zero.
        sqnr_db: 10 log10(sum reference^2 / sum difference^2); inf without a difference.
        rms_lsb: root of the mean squared difference, in LSB (or real units).
        rms_coarser: the same in steps of the side with the larger ones.
        saturated: share of the first side's quantized values at an end of its type, the zero point not counted.
        clipped: share of them with a reference more than half an LSB beyond that end.
        clipped_noise: Share of clipped elements in the squared difference.
        unused: share of the first side's quantized values outside the smallest and largest that occurred; 0 without
            quantized values.
        same_encoding: whether both sides store the same quantized values for the same numbers.
        channels: (channel of the last axis, largest |difference|, differing elements) of differing ones, worst first.
        first_place: the first element that differs, by sample and place.
        worst_place: the element of the largest difference.
        limits: (least, greatest) floating-point value of the first side's encoding; None without one for all channels.
        reach: least and greatest finite number of the reference.
    """

    elements: int
    differing: int
    lsb: float | None
    largest: float
    histogram: tuple[int, ...]
    cosine: float
    sqnr_db: float
    rms_lsb: float
    rms_coarser: float
    saturated: float
    clipped: float
    clipped_noise: float
    unused: float
    same_encoding: bool
    channels: tuple[tuple[int, float, int], ...]
    first_place: Place | None
    worst_place: Place | None
    limits: tuple[float, float] | None
    reach: tuple[float, float]


_SUMS = (
    *("_elements", "_differing", "_saturated", "_clipped", "_histogram", "_product", "_first", "_second", "_noise"),
    *("_clipped_noise", "_lsb_noise"),
)
"""Attributes that are summed when tallies are joined."""


class Tally:
    """Adds up chunks of one tensor."""

    def __init__(self, first: Tensor | None, second: Tensor | None, cut: tuple[int, ...] | None = None) -> None:
        """Start with all sums zero.

        Args:
            first: Tensor with the encoding of the first side's values.
            second: the same of the second side.
            cut: shape of the tensor if only its first elements are compared, [S, n]; None if all are.
        """
        self._cut = cut
        self._tensors = (first, second)
        self._same = _same_encoding(first, second)
        self._lsb = _lsb(first, second)
        self._finer = _finer(first, second)
        self._elements = self._differing = self._saturated = self._clipped = 0
        self._largest, self._low, self._high = 0.0, np.inf, -np.inf
        self._histogram = np.zeros(2 * LAST_BIN + 1, np.int64)
        self._product = self._first = self._second = self._noise = self._clipped_noise = 0.0
        self._lsb_noise = 0.0
        self._channel_largest: Doubles = np.zeros(0)
        self._channel_count = np.zeros(0, np.int64)
        self._first_place: Place | None = None
        self._worst_place: Place | None = None
        self._least, self._greatest = np.inf, -np.inf

    def add(self, first: Array, second: Array, start: int) -> None:
        """Add a chunk of samples, dtype[S, *shape] each, the first of which has the number `start`."""
        a, b = self._real(first, 0), self._real(second, 1).reshape(first.shape)
        stored = second.reshape(first.shape)
        unequal = self._unequal(first, stored, a, b)
        with np.errstate(invalid="ignore"):
            noise = np.where(unequal, a - b, 0.0)
        lsb = self._lsb if self._lsb is None or self._cut is None else self._lsb.reshape(-1)[0]
        steps = noise if lsb is None else noise / lsb
        if self._same and first.dtype == stored.dtype and first.dtype.kind in "iu":
            steps = first.astype(np.float64) - stored.astype(np.float64)
        steps = np.where(np.isnan(steps), np.inf, steps)
        self._elements += first.size
        self._differing += int(np.count_nonzero(unequal))
        self._count_steps(steps, unequal, first, stored, start)
        a, b, finite = np.nan_to_num(a), np.nan_to_num(b), np.nan_to_num(noise)
        self._least, self._greatest = min(self._least, float(b.min())), max(self._greatest, float(b.max()))
        self._product += float(np.vdot(a, b))
        self._first += float(np.vdot(a, a))
        self._second += float(np.vdot(b, b))
        self._noise += float(np.vdot(finite, finite))
        self._count_codes(first, b, finite)

    def join(self, following: Tally) -> None:
        """Add the sums of another tally of this tensor over later chunks."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(following, name))
        self._low, self._high = min(self._low, following._low), max(self._high, following._high)
        if len(self._channel_count):
            self._channel_largest = np.maximum(self._channel_largest, following._channel_largest)
            self._channel_count = self._channel_count + following._channel_count
        else:
            self._channel_largest, self._channel_count = following._channel_largest, following._channel_count
        if self._first_place is None:
            self._first_place = following._first_place
        if self._worst_place is None or following._largest > self._largest:
            self._worst_place = following._worst_place
        self._largest = max(self._largest, following._largest)
        self._least, self._greatest = min(self._least, following._least), max(self._greatest, following._greatest)

    def figures(self) -> TensorFigures:
        """Return the figures over all chunks."""
        n = max(self._elements, 1)
        norm = np.sqrt(self._first * self._second)
        order = np.lexsort((np.arange(len(self._channel_count)), -self._channel_largest))
        return TensorFigures(
            self._elements,
            self._differing,
            None if self._lsb is None else float(self._lsb.reshape(-1)[0]),
            self._largest,
            tuple(int(x) for x in self._histogram),
            float(self._product / norm) if norm else float("nan"),
            sqnr_db(self._second, self._noise),
            float(np.sqrt(self._lsb_noise / n)),
            float(np.sqrt(self._lsb_noise / n)) * self._finer,
            self._saturated / n,
            self._clipped / n,
            self._clipped_noise / self._noise if self._noise else 0.0,
            self._unused(),
            self._same,
            tuple(
                (int(c), float(self._channel_largest[c]), int(self._channel_count[c]))
                for c in order
                if self._channel_count[c]
            ),
            self._first_place,
            self._worst_place,
            _limits(self._tensors[0]),
            (self._least, self._greatest),
        )

    def _unequal(self, first: Array, second: Array, a: Doubles, b: Doubles) -> NDArray[np.bool_]:
        """Compare quantized values if both have one encoding, else floating-point values.

        They are compared in float32 if one side is float32.
        """
        if self._same and first.dtype == second.dtype:
            return differing(first, second)
        if np.float32 in (first.dtype.type, second.dtype.type):
            return np.asarray(a.astype(np.float32) != b.astype(np.float32), bool)
        return np.asarray(a != b, bool)

    def _real(self, codes: Array, side: int) -> Doubles:
        tensor = self._tensors[side]
        return np.asarray(codes, np.float64) if tensor is None else real_values(codes, tensor)

    def _count_steps(self, steps: Doubles, unequal: NDArray[np.bool_], first: Array, second: Array, start: int) -> None:
        magnitude = np.abs(steps)
        self._lsb_noise += float(np.square(np.nan_to_num(magnitude)).sum())
        bins = np.clip(np.rint(steps), -LAST_BIN, LAST_BIN).astype(np.int64) + LAST_BIN
        self._histogram += np.bincount(bins.ravel(), minlength=2 * LAST_BIN + 1)
        channels = (self._cut or steps.shape)[-1] if steps.ndim > 1 else 1
        filled = [(0, 0), (0, -steps.shape[-1] % channels)] if self._cut else [(0, 0)] * steps.ndim
        largest = np.pad(magnitude, filled).reshape(-1, channels).max(axis=0, initial=0.0)
        count = np.count_nonzero(np.pad(unequal, filled).reshape(-1, channels), axis=0)
        if not len(self._channel_count):
            self._channel_largest, self._channel_count = np.zeros(channels), np.zeros(channels, np.int64)
        self._channel_largest = np.maximum(self._channel_largest, largest)
        self._channel_count = self._channel_count + count
        if not unequal.any():
            return
        if self._first_place is None:
            self._first_place = self._place(int(np.argmax(unequal)), first, second, start)
        worst = int(np.argmax(magnitude))
        if self._worst_place is None or magnitude.reshape(-1)[worst] > self._largest:
            self._worst_place = self._place(worst, first, second, start)
        self._largest = max(self._largest, float(magnitude.max()))

    def _place(self, flat: int, first: Array, second: Array, start: int) -> Place:
        where = tuple(int(i) for i in np.unravel_index(flat, first.shape))
        index = where[1:] if self._cut is None else tuple(int(i) for i in np.unravel_index(where[1], self._cut))
        return Place(start + where[0], index, first[where].item(), second[where].item())

    def _count_codes(self, codes: Array, reference: Doubles, noise: Doubles) -> None:
        tensor = self._tensors[0]
        if tensor is None or not isinstance(tensor.quantization, Affine) or not tensor.dtype.is_integer:
            return
        if self._cut is not None:
            return
        low, high = _ends(tensor.quantization, tensor)
        scale, zero_point = tensor.quantization.along(len(tensor.shape))
        wide = codes.astype(np.int64)
        at_low, at_high = wide == low, wide == high
        self._saturated += int(np.count_nonzero((at_low | at_high) & (wide != zero_point)))
        half = np.asarray(scale, np.float64) / 2
        beyond = at_low & (reference < (low - zero_point) * scale - half)
        beyond |= at_high & (reference > (high - zero_point) * scale + half)
        # A ReLU's floor is no saturation: everything below 0 belongs there.
        beyond &= wide != zero_point
        self._clipped += int(np.count_nonzero(beyond))
        self._clipped_noise += float(np.square(noise[beyond]).sum())
        self._low, self._high = min(self._low, float(wide.min())), max(self._high, float(wide.max()))

    def _unused(self) -> float:
        tensor = self._tensors[0]
        if tensor is None or not isinstance(tensor.quantization, Affine) or not np.isfinite(self._low):
            return 0.0
        codes = tensor.quantization.maximum_code - tensor.quantization.minimum_code + 1
        return max(0.0, 1.0 - (self._high - self._low + 1) / codes)


def sqnr_db(signal: float, noise: float) -> float:
    """10 log10(signal / noise) of two sums of squares; inf without noise, -inf without signal."""
    if noise == 0.0:
        return float("inf")
    return float(10.0 * np.log10(signal / noise)) if signal > 0.0 else float("-inf")


def _ends(affine: Affine, tensor: Tensor) -> tuple[int, int]:
    """Return the least and the greatest quantized value."""
    return max(affine.minimum_code, tensor.dtype.minimum), min(affine.maximum_code, tensor.dtype.maximum)


def _limits(tensor: Tensor | None) -> tuple[float, float] | None:
    if tensor is None or not isinstance(tensor.quantization, Affine) or tensor.quantization.is_per_axis:
        return None
    affine = tensor.quantization
    scale, zero_point = float(affine.scale[0]), int(affine.zero_point[0])
    low, high = _ends(affine, tensor)
    return (low - zero_point) * scale, (high - zero_point) * scale


def _same_encoding(first: Tensor | None, second: Tensor | None) -> bool:
    if first is None or second is None:
        return first is second
    return first.dtype is second.dtype and first.quantization == second.quantization


def _finer(first: Tensor | None, second: Tensor | None) -> float:
    """Return the first side's step divided by the larger step; 1 if only one side has steps."""
    ours, theirs = _lsb(first, None), _lsb(second, None)
    if ours is None or theirs is None:
        return 1.0
    return float(ours.reshape(-1)[0] / max(ours.reshape(-1)[0], theirs.reshape(-1)[0]))


def _lsb(first: Tensor | None, second: Tensor | None) -> Doubles | None:
    for tensor in (first, second):
        if tensor is not None and isinstance(tensor.quantization, Affine) and tensor.dtype.is_integer:
            return np.asarray(tensor.quantization.along(len(tensor.shape))[0], np.float64)
    return None
