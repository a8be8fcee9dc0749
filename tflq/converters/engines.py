"""Which engine a target's layers run on, chosen by its estimate: what was tried, and what it saves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tflq.converters.estimate import Estimate, Figure, LayerEstimate, at_least, lower_bound, not_offered, total
from tflq.converters.settings import Settings
from tflq.graph import Graph


@dataclass(frozen=True)
class EngineChoice:
    """A layer that was tried on another engine.

    Attributes:
        index: of its node in the graph that is quantized.
        name: of that node.
        engine: that it runs on now.
        tried: the engine that the settings do not give it.
        saved: cycles that the tried engine saves, with all that changes beside the layer; not offered where either side
            has too little evidence.
        setting: `PATTERN:key=value` that chooses the tried engine.
    """

    index: int
    name: str
    engine: str
    tried: str
    saved: Figure
    setting: str

    @property
    def is_moved(self) -> bool:
        """Whether it runs on the tried engine."""
        return self.engine == self.tried


@dataclass(frozen=True)
class EngineChoices:
    """The layers that were tried on another engine, and what came of it.

    Attributes:
        settings: complete, with the chosen engines.
        layers: in order of execution.
        before: cycles of the network as the user's settings have it; a lower bound where the estimate has no total.
        after: cycles with the chosen engines, likewise.
    """

    settings: Settings
    layers: tuple[EngineChoice, ...]
    before: Figure
    after: Figure

    @property
    def moved(self) -> tuple[EngineChoice, ...]:
        """The layers that run elsewhere than the settings say."""
        return tuple(layer for layer in self.layers if layer.is_moved)


EngineChooser = Callable[[Graph, Settings], EngineChoices]
"""Returns the engines of a graph with ranges, chosen by the target's estimate. Raises as the target's `quantize`."""


def network_cycles(estimate: Estimate) -> Figure:
    """Return the cycles of a network; a lower bound where there is no total."""
    return estimate.cycles if estimate.cycles.is_offered else lower_bound(estimate.layers)


def saved_cycles(before: Estimate, after: Estimate) -> Figure:
    """Return the cycles of a network before less those after; layers that cost the same in both do not count.

    The low end is the least that the changed layers took before less the most that they take after. A layer before
    whose cycles are not offered took at least its jobs; then the figure is a lower bound. Where a layer after has no
    largest number of cycles, nothing is offered.
    """
    gone, come = _changed(before, after), _changed(after, before)
    unknown = [layer for layer in come if layer.cycles.high is None]
    if unknown:
        return not_offered("cycles", "; ".join(f"{layer.name}: {layer.cycles.basis}" for layer in unknown))
    basis = "of the layers that change: the least before less the most after"
    now = total((layer.cycles for layer in come), "cycles", basis)
    low = (lower_bound(gone).value or 0) - (now.high or 0)
    if any(layer.cycles.high is None for layer in gone):
        return at_least(low, "cycles", basis)
    then = total((layer.cycles for layer in gone), "cycles", basis)
    grade = max(then.grade, now.grade, key=lambda found: found.rank)
    high = (then.high or 0) - (now.low or 0)
    return Figure((then.value or 0) - (now.value or 0), "cycles", grade, low, high, basis)


def _changed(one: Estimate, other: Estimate) -> list[LayerEstimate]:
    """Return the layers of one estimate that the other one has not, wherever they stand."""
    shared = {replace(layer, index=0) for layer in other.layers}
    return [layer for layer in one.layers if replace(layer, index=0) not in shared]
