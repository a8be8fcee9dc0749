"""Which samples are kept aside: nothing is fitted to them, and they decide what stays."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.inputs import GivenSamples, Samples
from tflq.errors import InputError, TflqWarning

_ASIDE = 10
"""One sample of so many: those whose number ends with 9."""

_FEW = 100


def split_numbers(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the samples to fit to, and of those kept aside: one of ten, one at least.

    Raises:
        InputError: fewer than 2.
    """
    if count < 2:
        raise InputError(f"recovery needs 2 samples or more, one of them to be kept aside; there is {count}")
    numbers = np.arange(count)
    is_aside = numbers % _ASIDE == min(count, _ASIDE) - 1
    return numbers[~is_aside], numbers[is_aside]


def taken(samples: Samples, numbers: NDArray[np.int64]) -> GivenSamples:
    """Return some of the samples."""
    return GivenSamples([array[numbers] for array in samples.take(0, samples.count)])


def split(samples: Samples) -> tuple[GivenSamples, GivenSamples]:
    """Return the samples to fit to, and those kept aside.

    Warns:
        TflqWarning: fewer than 100.

    Raises:
        InputError: fewer than 2.
    """
    count = samples.count
    fitted, aside = split_numbers(count)
    if count < _FEW:
        warnings.warn(f"weights are fitted to {count} samples; {_FEW} or more are better", TflqWarning, stacklevel=4)
    return taken(samples, fitted), taken(samples, aside)
