"""How a search goes: a strategy proposes settings, is told their figures, and goes on until it has its answer.

The strategies: `search.Cheapest` (the cheapest mixed precision that keeps a quality) and `backward.Backward` (from
which layer on a network needs more bits). What measures settings, and where, is not theirs to know.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Setting = TypeVar("Setting")
Figure = TypeVar("Figure")
Answer = TypeVar("Answer")
Figure_contra = TypeVar("Figure_contra", contravariant=True)
Answer_co = TypeVar("Answer_co", covariant=True)


@dataclass(frozen=True)
class Proposal(Generic[Setting]):
    """Settings to measure next, in any order: none depends on another one's figure.

    Attributes:
        what: they are for, in a word, for progress.
        settings: to measure.
    """

    what: str
    settings: Sequence[Setting]


Steps = Generator[Proposal[Setting], Sequence[Figure], Answer]
"""Yields proposals, is sent the figures of each one's settings in their order, and returns the answer."""


class Strategy(Protocol[Setting, Figure_contra, Answer_co]):
    """One way to search."""

    def steps(self) -> Steps[Setting, Figure_contra, Answer_co]:
        """Propose until the answer is known; it depends on the strategy and the figures alone."""


def follow(
    strategy: Strategy[Setting, Figure, Answer], measure: Callable[[str, Sequence[Setting]], Sequence[Figure]]
) -> Answer:
    """Measure what a strategy proposes until it has its answer.

    Args:
        strategy: proposes.
        measure: gets what settings are for and the settings, and returns the figure of each.
    """
    steps = strategy.steps()
    try:
        proposal = next(steps)
        while True:
            proposal = steps.send(measure(proposal.what, proposal.settings))
    except StopIteration as done:
        answer: Answer = done.value
        return answer
