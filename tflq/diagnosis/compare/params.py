"""Differences between the integers of two lowered nodes, per channel: weights, biases, multipliers.

Weights of both sides are also compared as floating-point values, channel by channel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

import numpy as np

from tflq.arrays import Doubles, is_same
from tflq.diagnosis.compare.tally import sqnr_db
from tflq.graph import Affine, Array, Tensor
from tflq.parallel.executions import real_values

_DERIVED = frozenset({"step_map", "prepared", "table", "pairs", "first", "second", "exponentials", "addends"})
"""Fields that other fields determine."""
_FOLDED = ("Rescale", "Rescaling")
"""Classes with a field `bias` that includes the zero points."""
_ORDER = ("weights", "bias", "multiplier", "shift")


@dataclass(frozen=True)
class IntegerDifference:
    """One field with different values.

    Attributes:
        name: Name of the field: "weights", "multiplier", "input_zero_point".
        channel: Index on the first axis with the largest difference; None for single numbers.
        channels: number of channels that differ.
        differing: number of elements that differ.
        first: value of the first side at the largest difference.
        second: value of the second side.
    """

    name: str
    channel: int | None
    channels: int
    differing: int
    first: str
    second: str

    @property
    def words(self) -> str:
        """Text for a report."""
        if self.channel is None:
            return f"{self.name} is {self.first}, reference {self.second}"
        more = f", {self.channels} channels in all" if self.channels > 1 else ""
        many = f" in {self.differing} elements" if self.differing > 1 else ""
        return f"{self.name} of channel {self.channel} differs{many}: {self.first}, reference {self.second}{more}"


def integer_differences(first: object, second: object) -> tuple[IntegerDifference, ...]:
    """Compare the integers of two nodes, field by field; () if they are of different kinds.

    Weights are first, then bias, multiplier, shift, and the rest in order of their fields.
    """
    if type(first) is not type(second) or not _of_one_kind(first, second):
        return ()
    by_name: dict[str, IntegerDifference] = {}
    for difference in _walk("", first, second):
        by_name.setdefault(difference.name, difference)
    order = {name: i for i, name in enumerate(_ORDER)}
    return tuple(sorted(by_name.values(), key=lambda d: order.get(d.name, len(order))))


def array_difference(name: str, first: Array, second: Array, axis: int = 0) -> IntegerDifference | None:
    """Compare two arrays; None if they are equal.

    Args:
        name: Name for the report.
        first: T[*shape].
        second: T[*shape].
        axis: Axis of the channels.
    """
    if first.shape != second.shape:
        return IntegerDifference(name, None, 0, 0, f"of shape {list(first.shape)}", f"{list(second.shape)}")
    unequal = np.asarray(first != second, bool)
    if first.dtype.kind == "f" and second.dtype.kind == "f":
        unequal &= ~(np.isnan(first) & np.isnan(second))
    if not unequal.any():
        return None
    rows = np.moveaxis(unequal, axis, 0).reshape(unequal.shape[axis], -1) if unequal.ndim else unequal.reshape(1, 1)
    numbers = first.dtype.kind in "fiub" and second.dtype.kind in "fiub"
    distance = np.abs(first.astype(np.float64) - second.astype(np.float64)) if numbers else unequal.astype(np.float64)
    distance = np.where(unequal, np.nan_to_num(distance, nan=np.inf), -1.0)
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(distance)), unequal.shape))
    channel = place[axis] if place and unequal.shape[axis] > 1 else None
    return IntegerDifference(
        name,
        channel,
        int(np.count_nonzero(rows.any(axis=1))),
        int(np.count_nonzero(unequal)),
        str(first[place]),
        str(second[place]),
    )


def _of_one_kind(first: object, second: object) -> bool:
    """Tell if both have the same class, and all their fields too: a kernel may contain rules of several arithmetics."""
    if not (is_dataclass(first) and is_dataclass(second)):
        return True
    names = [f.name for f in fields(first)]
    return type(first) is type(second) and all(_of_one_kind(getattr(first, n), getattr(second, n)) for n in names)


def _walk(name: str, first: object, second: object) -> Iterator[IntegerDifference]:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        difference = array_difference(name, first, second)
        if difference is not None:
            yield difference
    elif is_dataclass(first) and type(first) is type(second):
        for f in fields(first):
            if f.name not in _DERIVED:
                folded = f.name == "bias" and type(first).__name__ in _FOLDED
                yield from _walk("folded bias" if folded else f.name, getattr(first, f.name), getattr(second, f.name))
    elif isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        for i, (a, b) in enumerate(zip(first, second, strict=True)):
            yield from _walk(f"{name}[{i}]", a, b)
    elif not is_same(first, second):
        yield IntegerDifference(name, None, 0, 1, str(first), str(second))


_OFF = 0.02
"""Relative difference from 1 above which a channel's weights have another factor than the reference's."""
_NOISE = 2.0
"""Remaining error, in units of the step's own rounding, up to which a factor is the only difference."""
_NARROW_BITS = 4
"""Channels that lose more bits than this compared with the largest one need a separate scale."""


@dataclass(frozen=True)
class WeightFigures:
    """Differences between the weights of one layer.

    Attributes:
        sqnr_db: SQNR of the first side's weights against the second's.
        factors: (channel, w / reference) of channels with weights equal to the reference's times one number, not 1.
        narrow: channels that use less than 1/16 of the quantized values, while another channel uses all.
    """

    sqnr_db: float
    factors: tuple[tuple[int, float], ...]
    narrow: tuple[int, ...]


def weight_figures(ours: Tensor, theirs: Tensor, channel_axis: int) -> WeightFigures | None:
    """Compare the weights of a layer; None if both are the same.

    With w our weights and v the reference's, channel c has the factor r = <w, v> / <v, v> if |r - 1| > 0.02, the
    mean of (w - r v)^2 is at most twice the rounding noise of our steps, s^2 / 12, and the mean of (w - v)^2 is more
    than 4 times that noise.

    Args:
        ours: the first side's constant.
        theirs: the reference's, of the same shape.
        channel_axis: Axis of the output channels.
    """
    x, y = (_real(t) for t in (ours, theirs))
    noise = float(np.square(x - y).sum())
    if not noise:
        return None
    w, v = (np.moveaxis(a, channel_axis, 0).reshape(a.shape[channel_axis], -1) for a in (x, y))
    power = np.square(v).sum(axis=1)
    ratio = np.divide((w * v).sum(axis=1), power, out=np.ones(len(w)), where=power > 0)
    left = np.square(w - ratio[:, None] * v).mean(axis=1)
    step = _steps(ours, len(w))
    allowed = _NOISE * np.square(step) / 12 + np.square(1e-5 * np.abs(v).max(axis=1, initial=0))
    is_rounding = np.square(w - v).mean(axis=1) <= 2 * allowed
    is_off = (np.abs(ratio - 1) > _OFF) & (left <= allowed) & ~is_rounding & (power > 0)
    factors = tuple((int(c), float(ratio[c])) for c in np.flatnonzero(is_off))
    return WeightFigures(sqnr_db(float(np.square(y).sum()), noise), factors, _narrow(ours, w))


def _real(tensor: Tensor) -> Doubles:
    assert tensor.data is not None
    real: Doubles = real_values(tensor.data[None], tensor)
    return real.reshape(tensor.data.shape)


def _steps(tensor: Tensor, channels: int) -> Doubles:
    if not isinstance(tensor.quantization, Affine) or not tensor.dtype.is_integer:
        return np.zeros(channels)
    scale = np.asarray(tensor.quantization.scale, np.float64)
    return np.broadcast_to(scale, channels) if scale.size in (1, channels) else np.full(channels, scale.max())


def _narrow(tensor: Tensor, w: Doubles) -> tuple[int, ...]:
    if not isinstance(tensor.quantization, Affine) or tensor.quantization.is_per_axis or not tensor.dtype.is_integer:
        return ()
    largest = np.abs(w).max(axis=1, initial=0)
    narrow = (largest > 0) & (largest * 2.0**_NARROW_BITS < largest.max(initial=0))
    return tuple(int(c) for c in np.flatnonzero(narrow))
