"""Backward search: from which layer on a network needs more bits, found by halving from the back.

Source: docs/guides/search.md.

Deep layers are small and move accuracy most, so that promoting them costs least. A promotion gives more bits to every
layer from number p to the end; the largest p is wanted whose score is near enough to floating point. Where no p of one
promotion is, the next, stronger one is tried: Zhouyi has 16 bits first, then floating point.

Source: whitepaper ACN-AWP-1002A, 6.4; Compass Optimizer, mixed_precision_auto_search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.benchmarks.metrics import Metric
from tflq.converters.precision import Promotion
from tflq.precision.strategy import Proposal, Steps

Rules = tuple[str, ...]
"""`PATTERN:key=value,...` texts, as `--layer` takes them."""


@dataclass(frozen=True)
class Tried:
    """A trial: the first promoted layer (the number of layers for none), the promotion's name, and the score."""

    first: int
    stage: str
    score: float


@dataclass(frozen=True)
class BackwardSearch:
    """What was found.

    Attributes:
        reference: score of floating point.
        largest_drop: what was allowed.
        tried: in order.
        chosen: the last trial that was near enough; None where none was.
        rules: that promote these layers; empty where none needs it, or none is enough.
        metric: what the score is; None for a cosine.
    """

    reference: float
    largest_drop: float
    tried: tuple[Tried, ...]
    chosen: Tried | None
    rules: Rules
    metric: Metric | None = None

    @property
    def score_name(self) -> str:
        """What the score is."""
        return "cosine" if self.metric is None else self.metric.name

    def drop(self, tried: Tried) -> float:
        """Return how much worse than the reference a trial is."""
        return _drop(self.metric, self.reference, tried)

    @property
    def best(self) -> Tried:
        """The trial with the best score; of equals the one that promotes least."""
        return max(self.tried, key=lambda t: (-self.drop(t), t.first))


@dataclass(frozen=True)
class Backward:
    """The strategy; it takes about log2(layers) + 2 trials a promotion.

    Its settings are rules, a setting's figure is its score. A score is taken to get worse or stay where fewer layers
    are promoted. The setting that is returned was tried itself, so that it keeps its promise also where that is not so.

    Attributes:
        layers: number of operators.
        promotions: the cheapest first.
        reference: score of floating point.
        largest_drop: how much worse a score may be.
        metric: what the score is; None for a cosine.
    """

    layers: int
    promotions: Sequence[Promotion]
    reference: float
    largest_drop: float
    metric: Metric | None = None

    def steps(self) -> Steps[Rules, float, BackwardSearch]:
        """Try the network as it is, then halve for each promotion until one is enough."""
        tried: list[Tried] = []
        chosen: Tried | None = None
        rules: Rules = ()
        (score,) = yield Proposal("backward", [()])
        tried.append(Tried(self.layers, "none", score))
        if self._is_enough(tried[-1]):
            chosen = tried[-1]
        for promotion in self.promotions:
            if chosen is not None:
                break
            enough, too_few = 0, self.layers
            while enough < too_few:
                middle = 0 if chosen is None else (enough + too_few) // 2
                promoted = (f"{middle}-{self.layers - 1}:{promotion.values}",)
                (score,) = yield Proposal("backward", [promoted])
                tried.append(Tried(middle, promotion.name, score))
                if self._is_enough(tried[-1]):
                    chosen, rules, enough = tried[-1], promoted, middle + 1
                else:
                    too_few = middle
        return BackwardSearch(self.reference, self.largest_drop, tuple(tried), chosen, rules, self.metric)

    def _is_enough(self, tried: Tried) -> bool:
        return _drop(self.metric, self.reference, tried) <= self.largest_drop


def _drop(metric: Metric | None, reference: float, tried: Tried) -> float:
    """Return how much worse than the reference a trial is, by a metric's direction; of a cosine more is better."""
    return reference - tried.score if metric is None else metric.worth(reference) - metric.worth(tried.score)
