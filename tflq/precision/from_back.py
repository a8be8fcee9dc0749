"""From which layer on a network needs more bits, found by halving from the back (docs/search.md).

Deep layers are small and move accuracy most, so that raising them costs least. A stage raises every layer from number p
to the end; the largest p is wanted whose score is near enough to floating point. Where no p of one stage is, the next,
stronger one is tried: Zhouyi has 16 bits first, then floating point.

Source: whitepaper ACN-AWP-1002A, 6.4; Compass Optimizer, mixed_precision_auto_search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tflq.converters.stages import Stage

Score = Callable[[tuple[str, ...]], float]
"""From `PATTERN:key=value,...` texts to a figure that is larger where the network is better."""


@dataclass(frozen=True)
class Tried:
    """A trial: the first raised layer (the number of layers for none), the stage's name, and the score."""

    first: int
    stage: str
    score: float


@dataclass(frozen=True)
class BackSearch:
    """What was found.

    Attributes:
        reference: score of floating point.
        largest_drop: what was allowed.
        tried: in order.
        chosen: the last trial that was near enough; None where none was.
        rules: `PATTERN:key=value,...` that raise these layers; empty where none needs it, or none is enough.
    """

    reference: float
    largest_drop: float
    tried: tuple[Tried, ...]
    chosen: Tried | None
    rules: tuple[str, ...]

    @property
    def best(self) -> Tried:
        """The trial with the highest score; of equals the one that raises least."""
        return max(self.tried, key=lambda t: (t.score, t.first))


def search_from_back(
    layers: int, stages: Sequence[Stage], score: Score, reference: float, largest_drop: float
) -> BackSearch:
    """Search; takes about log2(layers) + 2 trials a stage.

    A score is taken to fall or stay where fewer layers are raised. The setting that is returned was tried itself, so
    that it keeps its promise also where that is not so.

    Args:
        layers: number of operators.
        stages: how layers are raised, the cheapest first.
        score: tries a setting.
        reference: score of floating point.
        largest_drop: how much lower a score may be.
    """
    tried = [Tried(layers, "none", score(()))]
    chosen = tried[0] if reference - tried[0].score <= largest_drop else None
    rules: tuple[str, ...] = ()
    for stage in stages:
        if chosen is not None:
            break
        enough, too_few = 0, layers
        while enough < too_few:
            middle = 0 if chosen is None else (enough + too_few) // 2
            tried.append(Tried(middle, stage.name, score(_rules(middle, layers, stage))))
            if reference - tried[-1].score <= largest_drop:
                chosen, rules, enough = tried[-1], _rules(middle, layers, stage), middle + 1
            else:
                too_few = middle
    return BackSearch(reference, largest_drop, tuple(tried), chosen, rules)


def _rules(first: int, layers: int, stage: Stage) -> tuple[str, ...]:
    return (f"{first}-{layers - 1}:{stage.values}",)
