"""Patterns of layers: what a rewrite looks for, as an expression of what it is called on.

    SILU = op("mul", X, op("activation", X, method="SIGMOID"))

A pattern is matched from the layer that writes its value backwards. The same name stands for the same value; inputs of
operators that do not mind their order match in either one. Layers inside a pattern are read by it alone, unless they
are `shared`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from tflq.converters.aipu.passes.layers import Layers
from tflq.graph import Array, Node
from tflq.graph.attributes import Attribute

_RESOLUTION = 1e-6
_COMMUTE = ("add", "mul", "maximum", "minimum")


@dataclass(frozen=True)
class Value:
    """Any value, by name."""

    name: str


@dataclass(frozen=True)
class Number:
    """A constant.

    Attributes:
        name: of what is found.
        near: what it must be, within 1e-6; None for anything.
        single: whether it must be one number.
    """

    name: str
    near: tuple[float, ...] = ()
    single: bool = True


@dataclass(frozen=True)
class Op:
    """A layer of an operator, with what it reads and some of its keys."""

    operator: str
    inputs: tuple[Pattern, ...]
    keys: Mapping[str, Attribute] = field(default_factory=dict)
    name: str = ""
    shared: bool = False


Pattern = Value | Number | Op


def op(operator: str, *inputs: Pattern, name: str = "", shared: bool = False, **keys: Attribute) -> Op:
    """Return the pattern of a layer."""
    return Op(operator, inputs, keys, name, shared)


@dataclass
class Match:
    """What was found: values, constants and layers by the names of the pattern."""

    values: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, Array] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)

    def number(self, name: str) -> float:
        """Return a constant of one number."""
        return float(np.asarray(self.numbers[name]).item())

    def copy(self) -> Match:
        """Return the same, to go on with."""
        return Match(dict(self.values), dict(self.numbers), dict(self.nodes))


def near(value: Array | float, *wanted: float) -> bool:
    """Whether all numbers of a constant are one of these, within 1e-6."""
    return any(bool(np.all(np.abs(np.asarray(value, np.float32) - np.float32(w)) < _RESOLUTION)) for w in wanted)


def match(layers: Layers, node: Node, pattern: Op) -> Match | None:
    """Return what a pattern finds that ends in a layer; None where it does not fit."""
    return next(_layer(layers, node, pattern, Match()), None)


def _layer(layers: Layers, node: Node, pattern: Op, found: Match) -> Iterator[Match]:
    if node.operator != pattern.operator or len(layers.operands(node)) < len(pattern.inputs):
        return
    if any(node.attributes.get(key) != value for key, value in pattern.keys.items()):
        return
    operands = layers.operands(node)[: max(len(pattern.inputs), 1)]
    orders = permutations(operands) if node.operator in _COMMUTE and len(operands) == 2 else [tuple(operands)]
    for order in orders:
        start = found.copy()
        if pattern.name:
            start.nodes[pattern.name] = node
        yield from _inputs(layers, order, pattern.inputs, start)


def _inputs(layers: Layers, values: tuple[int, ...], patterns: tuple[Pattern, ...], found: Match) -> Iterator[Match]:
    if not patterns:
        yield found
        return
    for one in _value(layers, values[0], patterns[0], found):
        yield from _inputs(layers, values[1:], patterns[1:], one)


def _value(layers: Layers, t: int, pattern: Pattern, found: Match) -> Iterator[Match]:
    if isinstance(pattern, Value):
        if found.values.get(pattern.name, t) == t:
            result = found.copy()
            result.values[pattern.name] = t
            yield result
    elif isinstance(pattern, Number):
        data = layers.constant(t)
        fits = data is not None and (data.size == 1 or not pattern.single)
        if data is not None and fits and (not pattern.near or near(data, *pattern.near)):
            result = found.copy()
            result.numbers[pattern.name], result.values[pattern.name] = data, t
            yield result
    else:
        writer = layers.writer(t)
        if writer is not None and (pattern.shared or layers.uses(t) == 1):
            yield from _layer(layers, writer, pattern, found)
