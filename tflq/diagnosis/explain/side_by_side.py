"""Two explanations of the same element, step by step, and the first step with different values."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.diagnosis.explain.explanation import Explanation
from tflq.diagnosis.explain.steps import Step, Value


@dataclass(frozen=True)
class Pair:
    """One step of both.

    Attributes:
        label: Label of the step.
        first: Step of the first computation; None if it has no such step.
        second: Step of the second computation; None if it has no such step.
        differs: whether the values differ; a step that one of them lacks does not count.
        place: Position of the first difference in nested values; empty for numbers.
    """

    label: str
    first: Step | None
    second: Step | None
    differs: bool
    place: tuple[int, ...] = ()


@dataclass(frozen=True)
class SideBySide:
    """Two computations of one element.

    Attributes:
        first: Explanation by the model in question.
        second: Explanation by the other model.
        pairs: the steps in order.
    """

    first: Explanation
    second: Explanation
    pairs: tuple[Pair, ...]

    @property
    def parting(self) -> Pair | None:
        """The first step with different values; None if all are equal."""
        return next((pair for pair in self.pairs if pair.differs), None)

    def words(self) -> str:
        """Describe the first difference."""
        pair = self.parting
        if pair is None or pair.first is None or pair.second is None:
            return f"both computations agree: {self.first.stored}"
        where = f" at {list(pair.place)}" if pair.place else ""
        here, there = at(pair.first.value, pair.place), at(pair.second.value, pair.place)
        stored = f"stored {self.first.stored} against {self.second.stored}"
        if self.first.real is not None and self.second.real is not None:
            stored += f", as real numbers {self.first.real:.6g} against {self.second.real:.6g}"
        return f"they part at {pair.label}{where}: {here} against {there}; {stored}"


def side_by_side(first: Explanation, second: Explanation) -> SideBySide:
    """Put the steps of two explanations next to each other, by part from the end, and by label within a part."""
    pairs: list[Pair] = []
    parts = list(zip(reversed(first.parts), reversed(second.parts), strict=False))
    for a, b in reversed(parts):
        theirs = {step.label: step for step in b.steps}
        ours = {step.label for step in a.steps}
        for step in a.steps:
            pairs.append(_pair(step, theirs.get(step.label)))
        pairs += [Pair(step.label, None, step, False) for step in b.steps if step.label not in ours]
    return SideBySide(first, second, tuple(pairs))


def at(value: Value, place: tuple[int, ...]) -> Value:
    """Return one number of nested values."""
    for i in place:
        assert isinstance(value, tuple)
        value = value[i]
    return value


def _pair(step: Step, other: Step | None) -> Pair:
    if other is None:
        return Pair(step.label, step, None, False)
    place = _first_difference(step.value, other.value)
    return Pair(step.label, step, other, place is not None, place or ())


def _first_difference(a: Value, b: Value) -> tuple[int, ...] | None:
    """Return the position of the first difference: () for numbers and shapes, None if the values are equal."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            place = _first_difference(x, y)
            if place is not None:
                return (i, *place)
        return None
    return None if a == b else ()
