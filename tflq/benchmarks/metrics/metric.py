"""Metrics by name, for `--metric`: top-K, sqnr, map, miou, wer, or FILE.py:function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles
from tflq.benchmarks.metrics.scores import (
    IOUS,
    Boxes,
    among_highest,
    mean_average_precision,
    mean_iou,
    snr_db,
    word_error_rate,
)
from tflq.errors import InputError, OptionError, UsageError
from tflq.user_code import run_user_file

Labels = NDArray[np.int64]
Found = Sequence[Boxes] | Sequence[str] | Labels
"""In each sample: boxes, a text, or classes of pixels (int64[S, H, W])."""
IGNORED = 255
"""Class of ignored pixels in masks."""


@dataclass(frozen=True)
class Metric:
    """A figure of a model on a labeled data set; it can be pickled for worker processes.

    Attributes:
        name: Name in the user's notation.
        unit: "%", "dB" or empty.
        k: Number of highest outputs that may contain the true class; 0 if the metric is not a share of correct
            predictions.
        is_lower_better: True for error metrics.
        text: Content of the user's file; empty for the metrics of tflq.
        kind: Kind of labels that it needs: "classes", "boxes", "masks", "texts"; empty for all.
    """

    name: str
    unit: str = ""
    k: int = 0
    is_lower_better: bool = False
    text: str = ""
    kind: str = "classes"

    @property
    def is_against_reference(self) -> bool:
        """Whether the figure compares outputs with the reference's, and not with labels."""
        return self.name == "sqnr"

    def for_labels(self, kind: str) -> Metric:
        """Return the metric itself after a check of the kind of labels.

        Raises:
            UsageError: It needs another kind of labels.
        """
        if self.kind not in ("", kind):
            raise UsageError(f"--metric {self.name} needs {self.kind}; the labels of this data set are {kind}")
        return self

    def require(self, at_least: float | None, at_most: float | None) -> None:
        """Refuse bounds on the wrong side of the metric or in another unit.

        Raises:
            UsageError: A bound does not fit the metric.
        """
        sides = (("--at-least", at_least, at_most), ("--at-most", at_most, at_least))
        bound, value, other = sides[self.is_lower_better]
        if other is not None:
            raise UsageError(f"{self.name} is better if {'lower' if self.is_lower_better else 'higher'}; use {bound}")
        if value is None or self.unit == "dB" or self.text:
            return
        if not 0 <= value <= (100 if self.unit else 1):
            raise UsageError(f"{bound} {value:g}: {self.name} is {'0..100 %' if self.unit else '0..1'}")
        if self.k and 0 < value <= 1:
            raise UsageError(f"{bound} {value:g} is {value:g} %; write {100 * value:g} for {100 * value:g} %")

    def compute(self, outputs: Doubles, labels: Labels, reference: Doubles) -> float:
        """Return the figure.

        Args:
            outputs: Outputs, real[S, classes].
            labels: True classes, int64[S].
            reference: Outputs of the model that the figure compares with.

        Raises:
            InputError: The user's function failed, or returned another type than a number.
        """
        if self.k:
            return 100.0 * float(np.count_nonzero(self.right(outputs, labels))) / len(labels)
        if self.is_against_reference:
            return snr_db(outputs, reference)
        return _call_user_function(self.name, self.text, outputs, labels)

    def compare(self, predicted: Found, truth: Found) -> float:
        """Return the figure of a metric for other labels than classes, of predictions and truth of each sample.

        Raises:
            InputError: As for `compute`; a truth without any object, pixel or word.
        """
        if self.text:
            return _call_user_function(self.name, self.text, predicted, truth)
        if self.kind == "boxes":
            overlaps = {"map50": (0.5,), "map75": (0.75,)}.get(self.name, IOUS)
            return mean_average_precision(cast(Sequence[Boxes], predicted), cast(Sequence[Boxes], truth), overlaps)
        if self.kind == "texts":
            return word_error_rate(cast(Sequence[str], predicted), cast(Sequence[str], truth))
        masks, wanted = np.asarray(predicted, np.int64), np.asarray(truth, np.int64)
        known = wanted[wanted != IGNORED]
        return mean_iou(masks, wanted, 1 + int(max(masks.max(), known.max(initial=0))), IGNORED)

    def right(self, outputs: Doubles, labels: Labels) -> NDArray[np.bool_]:
        """Return a mask of correct samples, bool[S], for a metric that is a share of them (`k` > 0)."""
        return among_highest(outputs, labels, self.k)

    def worth(self, value: float) -> float:
        """Return a value for comparisons, higher is better: the value or its negative; -inf for NaN."""
        if np.isnan(value):
            return -np.inf
        return -value if self.is_lower_better else value

    def text_of(self, value: float) -> str:
        """Write a value with its unit."""
        return f"{value:.4g} {self.unit}".rstrip()


TOP_1 = Metric("top-1", "%", 1)
"""The accuracy."""
AUC = Metric("AUC", kind="windows")
"""The area under the curve of an anomaly detector's errors."""
OF_TRUTHS = {
    metric.name: metric
    for metric in (
        Metric("map", kind="boxes"),
        Metric("map50", kind="boxes"),
        Metric("map75", kind="boxes"),
        Metric("miou", kind="masks"),
        Metric("wer", "%", is_lower_better=True, kind="texts"),
    )
}
"""Metrics for other labels than classes."""
SCORES = {"classes": TOP_1, "boxes": OF_TRUTHS["map"], "masks": OF_TRUTHS["miou"], "texts": OF_TRUTHS["wer"]}
"""Kind of labels -> the metric that is their score."""


NAMES = f"top-K (as top-3), sqnr, {', '.join(OF_TRUTHS)}"


def find_metric(text: str) -> Metric:
    """Return a metric by name: "top-3" and the like, "sqnr", or one of OF_TRUTHS, or "FILE.py:function".

    The user's function is called with the dequantized outputs, float64[S, elements], and the labels, int64[S]; for
    other labels than classes, with predictions and truth. It returns one number. A true attribute `is_lower_better` of
    the function marks an error metric. The file is executed: only files that you trust.

    Raises:
        OptionError: The metric is unknown.
        InputError: The file does not contain the function.
    """
    if match := re.fullmatch(r"top-([1-9]\d*)", text):
        return Metric(text, "%", int(match[1]))
    if text == "sqnr":
        return Metric(text, "dB", kind="")
    if text in OF_TRUTHS:
        return OF_TRUTHS[text]
    path, colon, name = text.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise OptionError(f"no metric is called '{text}'; available: {NAMES} and FILE.py:function")
    try:
        content = Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be run: {type(error).__name__}: {error}") from None
    function = _function(path, name, content)
    return Metric(text, is_lower_better=bool(getattr(function, "is_lower_better", False)), text=content, kind="")


@cache
def _function(path: str, name: str, text: str) -> Callable[..., object]:
    try:
        names: dict[str, object] = vars(run_user_file(f"tflq_metric_{Path(path).stem}", path, text))
    except Exception as error:
        raise InputError(f"{path}: cannot be run: {type(error).__name__}: {error}") from None
    function = names.get(name)
    if not callable(function):
        there = ", ".join(key for key, value in names.items() if callable(value) and not key.startswith("_"))
        raise InputError(f"{path}: has no function '{name}'; available: {there or 'none'}")
    return function


def _call_user_function(metric: str, text: str, outputs: object, labels: object) -> float:
    path, _, name = metric.rpartition(":")
    try:
        value = _function(path, name, text)(outputs, labels)
    except Exception as error:
        raise InputError(f"metric {metric} failed: {type(error).__name__}: {error}") from None
    if isinstance(value, (int, float, np.integer, np.floating)):
        return float(value)
    raise InputError(f"metric {metric} returned {type(value).__name__}; it must return one number")
