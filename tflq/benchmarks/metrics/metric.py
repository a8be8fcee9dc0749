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
"""The class of a mask whose pixels do not count."""


@dataclass(frozen=True)
class Metric:
    """A figure of a model on a labeled data set; worker processes take it as it is.

    Attributes:
        name: as it was asked for.
        unit: "%", "dB" or nothing.
        k: the class counts as right among the `k` highest outputs; 0 where the metric is no share of right answers.
        is_lower_better: whether less is better, as of an error.
        text: of the user's file; empty for the metrics that tflq has.
        kind: of labels that it is for: "classes", "boxes", "masks", "texts"; empty for all.
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
        """Return itself, where it is for labels of a kind.

        Raises:
            UsageError: it is for others.
        """
        if self.kind not in ("", kind):
            raise UsageError(f"--metric {self.name} is for {self.kind}; the labels of this data set are {kind}")
        return self

    def require(self, at_least: float | None, at_most: float | None) -> None:
        """Refuse bounds of the worse side, and those in another unit than the metric's.

        Raises:
            UsageError: it is one of these.
        """
        sides = (("--at-least", at_least, at_most), ("--at-most", at_most, at_least))
        bound, value, other = sides[self.is_lower_better]
        if other is not None:
            raise UsageError(f"of {self.name} {'less' if self.is_lower_better else 'more'} is better: use {bound}")
        if value is None or self.unit == "dB" or self.text:
            return
        if not 0 <= value <= (100 if self.unit else 1):
            raise UsageError(f"{bound} {value:g}: {self.name} is {'0..100 %' if self.unit else '0..1'}")
        if self.k and 0 < value <= 1:
            raise UsageError(f"{bound} {value:g} is {value:g} %; write {100 * value:g} for {100 * value:g} %")

    def compute(self, outputs: Doubles, labels: Labels, reference: Doubles) -> float:
        """Return the figure.

        Args:
            outputs: real[S, classes].
            labels: int64[S].
            reference: outputs of the model that the figure compares with.

        Raises:
            InputError: the user's function failed, or returned no number.
        """
        if self.k:
            return 100.0 * float(np.count_nonzero(self.right(outputs, labels))) / len(labels)
        if self.is_against_reference:
            return snr_db(outputs, reference)
        return _called(self.name, self.text, outputs, labels)

    def compare(self, found: Found, truth: Found) -> float:
        """Return the figure of a metric whose labels are no classes, of what was found in each sample and is there.

        Raises:
            InputError: as `compute`; nothing to find.
        """
        if self.text:
            return _called(self.name, self.text, found, truth)
        if self.kind == "boxes":
            overlaps = {"map50": (0.5,), "map75": (0.75,)}.get(self.name, IOUS)
            return mean_average_precision(cast(Sequence[Boxes], found), cast(Sequence[Boxes], truth), overlaps)
        if self.kind == "texts":
            return word_error_rate(cast(Sequence[str], found), cast(Sequence[str], truth))
        masks, wanted = np.asarray(found, np.int64), np.asarray(truth, np.int64)
        known = wanted[wanted != IGNORED]
        return mean_iou(masks, wanted, 1 + int(max(masks.max(), known.max(initial=0))), IGNORED)

    def right(self, outputs: Doubles, labels: Labels) -> NDArray[np.bool_]:
        """Return which samples are right, bool[S], of a metric that is a share of these (`k` > 0)."""
        return among_highest(outputs, labels, self.k)

    def worth(self, value: float) -> float:
        """Return a value of which more is better: itself, or its negative; of NaN -inf."""
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
"""Metrics of labels that are no classes."""
SCORES = {"classes": TOP_1, "boxes": OF_TRUTHS["map"], "masks": OF_TRUTHS["miou"], "texts": OF_TRUTHS["wer"]}
"""Kind of labels -> the metric that is their score."""


NAMES = f"top-K (as top-3), sqnr, {', '.join(OF_TRUTHS)}"


def find_metric(text: str) -> Metric:
    """Return a metric by name: "top-3" and the like, "sqnr", or one of OF_TRUTHS, or "FILE.py:function".

    A function of the user's is called with the outputs as real numbers, float64[S, elements], and the labels, int64[S],
    or with what was found and the truth where labels are no classes, and returns one number. Of a function with an
    attribute `is_lower_better` that is true, less is better. Its file is run: only files that you trust.

    Raises:
        OptionError: no such metric.
        InputError: a file without that function.
    """
    if match := re.fullmatch(r"top-([1-9]\d*)", text):
        return Metric(text, "%", int(match[1]))
    if text == "sqnr":
        return Metric(text, "dB", kind="")
    if text in OF_TRUTHS:
        return OF_TRUTHS[text]
    path, colon, name = text.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise OptionError(f"no metric is called '{text}'; there are {NAMES} and FILE.py:function")
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
        raise InputError(f"{path}: has no function '{name}'; there are {there or 'none'}")
    return function


def _called(metric: str, text: str, outputs: object, labels: object) -> float:
    path, _, name = metric.rpartition(":")
    try:
        value = _function(path, name, text)(outputs, labels)
    except Exception as error:
        raise InputError(f"metric {metric} failed: {type(error).__name__}: {error}") from None
    if isinstance(value, (int, float, np.integer, np.floating)):
        return float(value)
    raise InputError(f"metric {metric} returned {type(value).__name__}; one number is needed")
