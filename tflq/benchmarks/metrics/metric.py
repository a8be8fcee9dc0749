"""Metrics by name, for `--metric`: top-K, sqnr, or FILE.py:function."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.metrics.scores import snr_db, top_k_percent
from tflq.errors import InputError, OptionError
from tflq.user_code import run_user_file

Reals = NDArray[np.float64]
Compute = Callable[[Reals, NDArray[np.int64], Reals], float]


@dataclass(frozen=True)
class Metric:
    """A figure of a model on a labelled data set.

    Attributes:
        name: as it was asked for.
        unit: "%", "dB" or nothing.
        compute: the figure, of outputs real[S, classes], the labels int64[S] and the outputs of the model as it is.
    """

    name: str
    unit: str
    compute: Compute

    def text(self, value: float) -> str:
        """Write a value with its unit."""
        return f"{value:.4g} {self.unit}".rstrip()


def find_metric(text: str) -> Metric:
    """Return a metric by name: "top-3" and the like, "sqnr", or "FILE.py:function".

    A function of the user's is called with the outputs as real numbers, float64[S, elements], and the labels, int64[S],
    and returns one number. Its file is run: only files that you trust.

    Raises:
        OptionError: no such metric.
        InputError: a file without that function.
    """
    if match := re.fullmatch(r"top-([1-9]\d*)", text):
        k = int(match[1])
        return Metric(text, "%", lambda outputs, labels, _: top_k_percent(outputs, labels, k))
    if text == "sqnr":
        return Metric(text, "dB", lambda outputs, _, reference: snr_db(outputs, reference))
    path, colon, name = text.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise OptionError(f"no metric is called '{text}'; there are top-K (as top-3), sqnr and FILE.py:function")
    function = _function(Path(path), name)
    return Metric(text, "", lambda outputs, labels, _: _called(function, text, outputs, labels))


def _function(path: Path, name: str) -> Callable[..., object]:
    try:
        names: dict[str, object] = vars(run_user_file(f"tflq_metric_{path.stem}", str(path), path.read_text("utf-8")))
    except Exception as error:
        raise InputError(f"{path}: cannot be run: {type(error).__name__}: {error}") from None
    function = names.get(name)
    if not callable(function):
        there = ", ".join(key for key, value in names.items() if callable(value) and not key.startswith("_"))
        raise InputError(f"{path}: has no function '{name}'; there are {there or 'none'}")
    return function


def _called(function: Callable[..., object], text: str, outputs: Reals, labels: NDArray[np.int64]) -> float:
    try:
        value = function(outputs, labels)
    except Exception as error:
        raise InputError(f"metric {text} failed: {type(error).__name__}: {error}") from None
    if isinstance(value, (int, float, np.integer, np.floating)):
        return float(value)
    raise InputError(f"metric {text} returned {type(value).__name__}; one number is needed")
