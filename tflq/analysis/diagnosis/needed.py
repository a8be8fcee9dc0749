"""Which accumulator, or which parameter, would give the number that a device has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.analysis.diagnosis.linear import linear_of
from tflq.graph import Array, Node

_REACH = 1 << 31


@dataclass(frozen=True)
class Needed:
    """What a linear layer would need for another result.

    Attributes:
        accumulator: the layer's own sum, bias and folded zero points in it.
        lowest: least sum that gives the device's number; None where no sum does.
        highest: greatest one.
    """

    accumulator: int
    lowest: int | None
    highest: int | None

    @property
    def words(self) -> str:
        """As a report says it."""
        if self.lowest is None or self.highest is None:
            return f"the accumulator is {self.accumulator}; none gives the device's number: its epilogue differs"
        near = self.lowest if self.accumulator < self.lowest else self.highest
        return (
            f"the accumulator is {self.accumulator}; {self.lowest}..{self.highest} would give the device's number, "
            f"{near - self.accumulator:+d} at least: in the bias, or in the products"
        )


def needed(node: Node, x: Array, place: tuple[int, ...], wanted: int) -> Needed | None:
    """Find the sums that give a number.

    Args:
        node: lowered.
        x: its input of one sample, dtype[*shape].
        place: of the element in the node's output.
        wanted: the device's number.

    Returns:
        None where the node is no linear layer of integers that can be taken apart.
    """
    linear = linear_of(node.params, x[None])
    if linear is None:
        return None
    outputs = linear.totals.shape[-1]
    channel = place[-1]
    row = linear.totals.reshape(-1, outputs)[_row(place, linear.totals.shape)]

    def result(total: int) -> int:
        totals = row.copy()
        totals[channel] = total
        return int(linear.result(totals[None])[0, channel])

    lowest = _first(lambda t: result(t) >= wanted)
    highest = _first(lambda t: result(t) > wanted) - 1
    own = int(row[channel])
    return Needed(own, lowest, highest) if result(lowest) == wanted and lowest <= highest else Needed(own, None, None)


def _first(holds: object) -> int:
    """Return the least sum of 32 bits for which a condition holds that does not cease to."""
    assert callable(holds)
    low, high = -_REACH, _REACH - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _row(place: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the row of an element among the totals [S, ..., O], S of one."""
    inner = shape[1:-1]
    index = place[len(place) - 1 - len(inner) : -1]
    return int(np.ravel_multi_index(index, inner)) if len(index) == len(inner) and inner else 0
