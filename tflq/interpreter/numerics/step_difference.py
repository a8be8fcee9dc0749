"""Two requantization rules over every sum that a layer can reach: number and size of the differences.

Both rules are nondecreasing step functions of the sum, given by thresholds T[k] = min{sum: F(sum) >= k}. Between two
neighboring thresholds of either rule both are constant, so that at most 2 * 255 intervals per channel decide all sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.interpreter.numerics.reachable_sums import ReachableSums


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A sum at which two rules differ.

    Attributes:
        channel: Output channel.
        total: Sum of products, zero points and bias not included.
        first: Quantized value of the first rule.
        second: Quantized value of the second rule.
        taps: int64[K], inputs x of the channel's filter with this sum.
    """

    channel: int
    total: int
    first: int
    second: int
    taps: Integers


@dataclass(frozen=True)
class StepDifference:
    """Sums at which two rules differ.

    Attributes:
        reachable: Number of sums, of all channels.
        differing: Number of sums with different quantized values.
        largest: Largest difference of quantized values.
        example: A sum with the largest difference; None if the rules are equal.
    """

    reachable: int
    differing: int
    largest: int
    example: Counterexample | None


def compare_steps(sums: list[ReachableSums], first: Integers, second: Integers, minimum: int) -> StepDifference:
    """Compare two rules over all sums of a layer.

    Args:
        sums: Reachable sums of each channel.
        first: Thresholds int64[K, O] of the quantized values minimum + 1 and on.
        second: Thresholds of the other rule.
        minimum: Smallest quantized value.

    Raises:
        LimitError: A filter with too many sums.
    """
    reachable = sum(channel.count for channel in sums)
    differing = largest = 0
    example: tuple[int, int, int, int] | None = None
    for o in np.flatnonzero((first != second).any(axis=0)).tolist():
        starts = np.unique(np.concatenate((first[:, o], second[:, o])))
        values = [np.searchsorted(t[:, o], starts, "right") + minimum for t in (first, second)]
        distances = np.abs(values[0] - values[1])
        for i in np.flatnonzero(distances).tolist():
            count = sums[o].count_between(int(starts[i]), int(starts[i + 1]))
            differing += count
            if count and distances[i] > largest:
                largest = int(distances[i])
                example = (o, i, int(values[0][i]), int(values[1][i]))
                bounds = int(starts[i]), int(starts[i + 1])
    if example is None:
        return StepDifference(reachable, 0, 0, None)
    total = sums[example[0]].find_between(*bounds)
    assert total is not None
    taps = sums[example[0]].find_input(total)
    return StepDifference(
        reachable, differing, largest, Counterexample(example[0], total, example[2], example[3], taps)
    )
