"""The steps of one computed element, and what an explaining function is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tflq.graph import Array, Node, Operands

Value = int | float | str | tuple["Value", ...]
_Kept = TypeVar("_Kept", bound=Value)
Index = tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        label: what it is; the same label in two computations is the same step.
        formula: how the value follows from earlier ones, with the numbers in it; empty for what is given.
        value: a number, a word, or nested tuples of numbers.
    """

    label: str
    formula: str
    value: Value


@dataclass(frozen=True)
class Element:
    """One output element of a node, and what the node read.

    Attributes:
        node: lowered.
        operands: its tensors.
        inputs: the arrays of one sample, dtype[*shape]; None for an absent operand.
        index: position within the output, in the model's own axes.
        output: which output of the node.
    """

    node: Node
    operands: Operands
    inputs: tuple[Array | None, ...]
    index: Index
    output: int = 0

    def input(self, position: int) -> Array:
        """Return an input that must be there."""
        found = self.inputs[position]
        assert found is not None
        return found

    def read(self, position: int) -> int:
        """Return the code that an elementwise operator reads of an input."""
        return int(self.input(position)[self.place(position)])

    def place(self, position: int) -> Index:
        """Return where an elementwise operator reads an input; axes of size 1 are shared."""
        return broadcast_index(self.index, self.input(position).shape)

    def optional(self, position: int) -> Array | None:
        """Return an input, or None where it is absent."""
        return self.inputs[position] if position < len(self.inputs) else None


@dataclass(frozen=True)
class Computed:
    """What an explaining function found.

    Attributes:
        steps: in order; the last value is the stored one.
        origin: (input, index) of the one element that the result follows from, for operators of one input element.
    """

    steps: tuple[Step, ...]
    origin: tuple[int, Index] | None = None


Explain = Callable[[Element], Computed]


class Trace:
    """Collects steps."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def add(self, label: str, formula: str, value: _Kept) -> _Kept:
        """Add a step and return its value."""
        self._steps.append(Step(label, formula, value))
        return value

    def done(self, origin: tuple[int, Index] | None = None) -> Computed:
        """Return what was collected."""
        return Computed(tuple(self._steps), origin)

    def clamp(self, value: int, minimum: int, maximum: int, label: str = "stored value") -> int:
        """Add the clamp that gives the stored value."""
        return self.add(label, f"clamp({value}, {minimum}, {maximum})", min(max(value, minimum), maximum))


def broadcast_index(index: Index, shape: tuple[int, ...]) -> Index:
    """Return the place in an operand of this shape that an output element reads, axes of size 1 being shared."""
    own = index[len(index) - len(shape) :] if shape else ()
    return tuple(0 if size == 1 else i for i, size in zip(own, shape, strict=True))


def nested(array: Array) -> Value:
    """Return an array as nested tuples of Python numbers."""
    return _tuples(np.asarray(array).tolist())


def _tuples(value: object) -> Value:
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    assert isinstance(value, (int, float, str))
    return value
