"""One setting that is tried, and what came out of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from tflq.benchmarks.metrics import TOP_1, Metric
from tflq.benchmarks.significance import wilson_percent

Bits = tuple[int, ...]
"""Of each layer of a plan, in its order."""


class Floating(Enum):
    """Which layers run in floating point instead of the target's integers."""

    NONE = "none"
    THIS = "this"
    OTHERS = "others"


@dataclass(frozen=True)
class Trial:
    """A setting.

    Attributes:
        bits: of each layer of the plan, in its order.
        floating: which layers run in floating point.
        layer: position in the plan of the layer that THIS and OTHERS speak of; -1 for NONE.
    """

    bits: Bits
    floating: Floating = Floating.NONE
    layer: int = -1

    @property
    def key(self) -> str:
        """A text that tells it from all other trials of one problem."""
        bits = ",".join(map(str, self.bits))
        return bits if self.floating is Floating.NONE else f"{bits} float {self.floating.value} {self.layer}"


@dataclass(frozen=True)
class Result:
    """What a trial gave.

    Attributes:
        trial: the setting.
        samples: number of samples.
        right: how many were right by a metric that is a share of right answers; None with another one, without labels,
            or where the target refused.
        sqnr_db: 10 log10(sum of squares of the reference's outputs / sum of squared differences), rounded to 1e-6;
            inf without a difference, NaN where the target refused.
        refused: why the target refused; empty where it did not.
        score: the figure of a metric that is no share of right answers; None with one that is, without labels, or
            where the target refused.
    """

    trial: Trial
    samples: int
    right: int | None
    sqnr_db: float
    refused: str = ""
    score: float | None = None

    @property
    def accuracy_percent(self) -> float | None:
        """100 * right / samples."""
        return None if self.right is None else 100.0 * self.right / self.samples

    @property
    def value(self) -> float | None:
        """The metric's figure: `score`, or else `accuracy_percent`."""
        return self.accuracy_percent if self.score is None else self.score

    @property
    def interval_percent(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the accuracy."""
        return None if self.right is None else wilson_percent(self.right, self.samples)

    @property
    def noise_ratio(self) -> float:
        """Sum of squared differences / sum of squares; inf where there is no ratio."""
        return math.inf if math.isnan(self.sqnr_db) else 10.0 ** (-self.sqnr_db / 10.0)


@dataclass(frozen=True)
class Requirement:
    """What a setting has to keep.

    Attributes:
        score: of the metric, at least, or at most where less is better; None not to ask for it.
        sqnr_db: at least; None not to ask for it.
        metric: that judges.
    """

    score: float | None = None
    sqnr_db: float | None = None
    metric: Metric = TOP_1

    def worth(self, result: Result) -> float:
        """Return the metric's figure of a result, turned so that more is better; -inf where there is none."""
        return -math.inf if result.value is None else self.metric.worth(result.value)

    def holds(self, result: Result) -> bool:
        """Return whether a result keeps all of it."""
        if result.refused:
            return False
        is_good = self.score is None or self.worth(result) >= self.metric.worth(self.score)
        return is_good and (self.sqnr_db is None or result.sqnr_db >= self.sqnr_db)
