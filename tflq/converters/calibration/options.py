"""What a calibration is asked to do: a strategy by name, and the numbers around it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tflq.errors import OptionError


@dataclass(frozen=True)
class StrategyKind:
    """One rule that makes a range of statistics.

    Attributes:
        name: as the user writes it, behind its number.
        help: one line.
        number: the default of the number in front of the name; None where it takes none.
        minimum: smallest number.
        maximum: largest number.
        uses: which statistics it needs beside the extrema: "moments", "batch_histogram", "histogram".
    """

    name: str
    help: str
    number: float | None = None
    minimum: float = 0.0
    maximum: float = float("inf")
    uses: frozenset[str] = frozenset()


STRATEGIES = {
    kind.name: kind
    for kind in (
        StrategyKind("extrema", "smallest and largest value of all samples"),
        StrategyKind("mean", "moving average of each batch's extrema, as Arm China's Compass: 0.9 old + 0.1 new"),
        StrategyKind("weighted-mean", "weighted mean of each batch's extrema; equal weights unless given"),
        StrategyKind("std", "mean +- N standard deviations, such as 3std", 3, 0, uses=frozenset({"moments"})),
        StrategyKind(
            "kld",
            "smallest Kullback-Leibler divergence; the widest of the N best windows, such as 10kld",
            1,
            1,
            uses=frozenset({"histogram"}),
        ),
        StrategyKind(
            "compass-kld",
            "kld on Compass's histogram: the moving average of batches with different edges; N is 10 unless given",
            10,
            1,
            uses=frozenset({"batch_histogram"}),
        ),
        StrategyKind(
            "percentile", "the central P percent, such as 99.99percentile", 99.99, 0, 100, frozenset({"histogram"})
        ),
        StrategyKind("compass-percentile", "what Compass calls a percentile: R times the extrema", 1.0),
        StrategyKind("aciq-laplace", "ACIQ for a Laplace density, times R", 1.0, uses=frozenset({"moments"})),
        StrategyKind("aciq-gauss", "ACIQ for a normal density, times R", 1.0, uses=frozenset({"moments"})),
        StrategyKind("mse", "smallest mean squared error of quantizing", uses=frozenset({"histogram"})),
    )
}

_FORM = re.compile(r"^(\d+(?:\.\d*)?)?[-_]?([a-z][a-z_-]*)$")


@dataclass(frozen=True)
class Strategy:
    """A strategy with its number.

    Attributes:
        kind: the rule.
        number: its number; 0 where it takes none.
    """

    kind: StrategyKind
    number: float

    @property
    def name(self) -> str:
        """The rule's name, without the number."""
        return self.kind.name


def parse_strategy(text: str) -> Strategy:
    """Read "mean", "3std", "99.9percentile", "0.9aciq_laplace" and the like.

    Raises:
        OptionError: an unknown name, or a number that is missing its rule or outside its limits.
    """
    form = _FORM.match(text.strip().lower())
    name = form.group(2).replace("_", "-") if form else ""
    if form is None or name not in STRATEGIES:
        raise OptionError(f"unknown calibration strategy '{text}'; there are {', '.join(STRATEGIES)}")
    kind = STRATEGIES[name]
    if form.group(1) is None:
        return Strategy(kind, kind.number or 0.0)
    number = float(form.group(1))
    if kind.number is None:
        raise OptionError(f"calibration strategy '{text}': {name} takes no number")
    if not kind.minimum <= number <= kind.maximum:
        raise OptionError(f"calibration strategy '{text}': allowed is {kind.minimum:g} to {kind.maximum:g}")
    return Strategy(kind, number)


@dataclass(frozen=True)
class StatisticsOptions:
    """How to calibrate.

    Attributes:
        strategy: name with an optional number in front.
        batch_size: samples in one batch; the statistics of `mean`, `weighted-mean`, `std`, `aciq` and `compass-kld`
            depend on it.
        momentum: share of the old value in a moving average; the first batch starts it.
        bins: bins of a histogram; the ones that widen hold between `bins` and twice as many.
        bits: width of the quantized values to come, for `kld`, `aciq` and `mse`.
        symmetric: whether these quantized values are symmetric about zero.
        weights: of the batches, for `weighted-mean`; empty for equal ones.
        include_zero: whether to widen each range until it holds zero, which every integer type of the targets needs.
        shuffle_seed: shuffle the samples with this seed; None keeps their order.
        keep_samples: number of samples to keep beside the ranges, for targets that write them out.
    """

    strategy: str = "extrema"
    batch_size: int = 10
    momentum: float = 0.9
    bins: int = 2048
    bits: int = 8
    symmetric: bool = True
    weights: tuple[float, ...] = ()
    include_zero: bool = True
    shuffle_seed: int | None = None
    keep_samples: int = 0
    parsed: Strategy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parsed", parse_strategy(self.strategy))
        limits = {
            "batch_size": (1, 1 << 20),
            "momentum": (0, 1),
            "bins": (16, 1 << 20),
            "bits": (2, 16),
            "keep_samples": (0, 1 << 20),
        }
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise OptionError(f"calibration: {name} is {value}; allowed is {low} to {high}")
        if self.weights and not (min(self.weights) >= 0 and abs(sum(self.weights) - 1) < 1e-6):
            raise OptionError(
                f"calibration: the weights of the batches are not negative and add up to 1; found {sum(self.weights):g}"
            )
