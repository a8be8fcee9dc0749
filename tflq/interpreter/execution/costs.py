"""What steps cost on the machine that tflq was tuned on: choices of order and blocking weigh them, results do not.

`scripts/bench_interpreter.py --costs` measures those of samples first and last, and prints them beside these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dense:
    """Nanoseconds for each product of a dense convolution.

    Attributes:
        channels: up to so many output channels.
        first: with samples first.
        last: with samples last, where few output channels make a low matrix.
    """

    channels: float
    first: float
    last: float


@dataclass(frozen=True)
class Costs:
    """Nanoseconds; only their ratios matter.

    Attributes:
        reordering: for each element that comes into the other order.
        depthwise_output: for each output of a depthwise convolution with samples first,
        depthwise_tap: and for each of its taps.
        band_product: for each product with a band matrix, samples last,
        band_call: and for each call of the BLAS, a sample.
        dense: by output channels, ascending.
        patch_product: for each product with patches of few channels,
        narrow: more by this number over the matrix's columns,
        copied_run: for each run of columns that is copied into a patch,
        copied_element: and for each of its elements.
    """

    reordering: float = 0.5
    depthwise_output: float = 0.6
    depthwise_tap: float = 1 / 7
    band_product: float = 1 / 70
    band_call: float = 5
    dense: tuple[Dense, ...] = (
        Dense(16, 1 / 85, 1 / 40),
        Dense(32, 1 / 103, 1 / 73),
        Dense(float("inf"), 1 / 107, 1 / 90),
    )
    patch_product: float = 1 / 55
    narrow: float = 8
    copied_run: float = 4
    copied_element: float = 1 / 20


COSTS = Costs()
