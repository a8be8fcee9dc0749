"""Cost of a network on a target: figures with their grade of evidence (docs/guides/estimate.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from tflq.errors import GraphError
from tflq.graph import Graph


class Grade(Enum):
    """What a figure is worth, the best first."""

    EXACT = "exact"
    """A formula or count that was equal on every case tried."""
    FITTED = "fitted"
    """A formula with fitted constants, whose error on published cases is known."""
    SINGLE_CASE = "single case"
    """One published case, no test."""
    LOWER_BOUND = "lower bound"
    """It takes at least that; how much more is not known."""
    NOT_OFFERED = "not offered"
    """Too little evidence: there is no number."""

    @property
    def rank(self) -> int:
        """Its place: a sum has the grade of its worst part."""
        return list(Grade).index(self)


@dataclass(frozen=True)
class Figure:
    """A number that says what it is worth.

    Attributes:
        value: None where it is not offered.
        unit: cycles, bytes, %, us, uJ, MACs.
        grade: what it is worth.
        low: the smallest that the evidence allows.
        high: the largest; None for a lower bound.
        basis: what it rests on, or why there is none.
    """

    value: float | None
    unit: str
    grade: Grade
    low: float | None
    high: float | None
    basis: str

    def __post_init__(self) -> None:
        """Hold every figure to its grade.

        Raises:
            GraphError: a number without its error or its basis, or a reason with a number.
        """
        missing = (self.value is None, self.low is None, self.high is None)
        wanted = {Grade.NOT_OFFERED: (True, True, True), Grade.LOWER_BOUND: (False, False, True)}
        is_whole = missing == wanted.get(self.grade, (False, False, False)) and bool(self.basis)
        if is_whole and self.value is not None and self.low is not None:
            high = self.value if self.high is None else self.high
            is_whole = self.low <= self.value <= high and (self.grade is not Grade.EXACT or self.low == high)
        if not is_whole:
            raise GraphError(f"a figure must carry its error and its basis: {self!r}")

    @property
    def is_offered(self) -> bool:
        """Whether there is a number."""
        return self.value is not None

    def __str__(self) -> str:
        """Return the number with its grade and its error."""
        if self.value is None or self.low is None:
            return self.grade.value
        if self.grade is Grade.LOWER_BOUND:
            return f">= {_text(self.value)} {self.unit} ({self.grade.value})"
        span = "" if self.grade is Grade.EXACT or self.high is None else f", {_text(self.low)}..{_text(self.high)}"
        return f"{_text(self.value)} {self.unit} ({self.grade.value}{span})"


def exact(value: float, unit: str, basis: str) -> Figure:
    """Return a figure without error."""
    return Figure(value, unit, Grade.EXACT, value, value, basis)


def within(value: float, unit: str, grade: Grade, low: float, high: float, basis: str) -> Figure:
    """Return a figure whose error is given by factors of it: low 0.88 and high 1.12 are 12 %."""
    return Figure(value, unit, grade, low * value, high * value, basis)


def at_least(value: float, unit: str, basis: str) -> Figure:
    """Return a lower bound."""
    return Figure(value, unit, Grade.LOWER_BOUND, value, None, basis)


def not_offered(unit: str, reason: str) -> Figure:
    """Return a figure without a number."""
    return Figure(None, unit, Grade.NOT_OFFERED, None, None, reason)


def total(parts: Iterable[Figure], unit: str, basis: str) -> Figure:
    """Return a sum: the worst grade of its parts, the sums of their ends, which are all of one unit.

    Raises:
        GraphError: a part that is not offered; such a sum has no number.
    """
    figures = list(parts)
    value, low, high = 0.0, 0.0, 0.0
    for part in figures:
        if part.value is None or part.low is None:
            raise GraphError(f"a sum of what is not offered: {part.basis}")
        value, low, high = value + part.value, low + part.low, high + (part.high or 0.0)
    grade = max((part.grade for part in figures), key=lambda g: g.rank, default=Grade.EXACT)
    return Figure(value, unit, grade, low, None if grade is Grade.LOWER_BOUND else high, basis)


@dataclass(frozen=True)
class LayerEstimate:
    """What one layer costs.

    Attributes:
        index: of its node in the target's graph.
        name: of the node.
        operator: of the node.
        engine: what computes it.
        macs: multiply-accumulates.
        cycles: with its share of transfers and set-up.
        engine_cycles: of the accelerator alone; None where it does not run there.
        utilization: of the accelerator's array while it runs; None as before.
        bound: what most of its cycles go to.
        weights: weights and parameters in the accelerator's layout.
        working_set: inputs, outputs, weights and parameters together.
        remark: what does not fit, in words.
    """

    index: int
    name: str
    operator: str
    engine: str
    macs: Figure
    cycles: Figure
    engine_cycles: Figure | None
    utilization: Figure | None
    bound: str
    weights: Figure
    working_set: Figure
    remark: str


@dataclass(frozen=True)
class Estimate:
    """What a network costs on a target.

    Attributes:
        cycles: of the network; not offered where a layer is not.
        layers: each of them.
        totals: other figures of the network by name, cycles left out.
        memory: figures of memory by name.
        remarks: assumptions, and what does not fit.
    """

    cycles: Figure
    layers: tuple[LayerEstimate, ...]
    totals: Mapping[str, Figure]
    memory: Mapping[str, Figure]
    remarks: tuple[str, ...]

    @property
    def energy(self) -> Figure:
        """The first of the totals in uJ."""
        missing = not_offered("uJ", f"no energy of a network on this target is known; {self.cycles.basis}")
        return next((found for found in self.totals.values() if found.unit == "uJ"), missing)


AT_LEAST = "cycles, at least"
"""Name of the lower bound among the totals of a network with a layer that is not offered."""


def lower_bound(layers: Sequence[LayerEstimate]) -> Figure:
    """Return the cycles of a network at least: what is offered at its lower end, of other layers the jobs alone."""
    figures = (layer.cycles if layer.cycles.is_offered else layer.engine_cycles for layer in layers)
    value = sum(figure.low or 0 for figure in figures if figure is not None)
    return at_least(value, "cycles", "layers that are offered, and of the others the accelerator's jobs alone")


class Estimator(Protocol):
    """What a target estimates."""

    def __call__(self, graph: Graph, layers: Sequence[LayerEstimate] | None = None) -> Estimate:
        """Return what a quantized graph, lowered or not, costs.

        Args:
            graph: of the target.
            layers: what its layers cost, where that is known already; a layer's own settings alone decide it.
        """


def without_model(reason: str) -> Estimate:
    """Return the estimate of a target for which there is no evidence."""
    return Estimate(not_offered("cycles", reason), (), {}, {}, ())


def _text(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == round(value) else f"{value:.4g}"
