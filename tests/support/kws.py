"""The 1000 keyword clips as real numbers, with their classes."""

from __future__ import annotations

import csv
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tests.support.data import data_path

SCALE, ZERO_POINT = np.float32(0.5847029), 83
"""Of the int8 model's input."""


@cache
def clips(count: int = 1000) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return real values float32[count, 1, 49, 10, 1] and classes of the first clips."""
    folder = data_path("datasets", "kws01")
    with (folder / "y_labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[:count]
    codes = np.stack([np.fromfile(folder / row[0].strip(), np.int8).reshape(1, 49, 10, 1) for row in rows])
    return (codes.astype(np.float32) - ZERO_POINT) * SCALE, np.array([int(row[2]) for row in rows])


def right(outputs: NDArray[np.generic], labels: NDArray[np.int64]) -> int:
    """Count right predictions, the lowest index on ties."""
    return int((outputs.reshape(len(labels), -1).argmax(axis=1) == labels).sum())
