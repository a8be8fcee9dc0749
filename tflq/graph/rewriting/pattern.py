"""Declarative patterns of nodes, and rewrites of the places that match.

    X = Value("x")
    SILU = op("mul", X, op("logistic", X))
    rewrite(editor, SILU, lambda editor, match: replace_root(match, "silu", "x"))

A pattern is matched backwards from the node that writes its result, the root. One name denotes one tensor. Operands
of a commutative operator match in either order. A node inside a pattern has no reader
outside the pattern's path, unless it is `shared`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from tflq.arrays import Array
from tflq.graph.attributes import Attribute, Attributes
from tflq.graph.graph import ABSENT, Node, Tensor
from tflq.graph.operators import Trait, has_trait, with_traits
from tflq.graph.rewriting.editor import GraphEditor

_RESOLUTION = 1e-6
ANY = "any"
"""Fused activation of a pattern that matches every activation."""


@dataclass(frozen=True)
class Value:
    """A tensor.

    Attributes:
        name: Key in `Match.values`.
        where: Condition on the tensor.
    """

    name: str
    where: Callable[[Tensor], bool] | None = None


@dataclass(frozen=True)
class Constant:
    """A constant tensor.

    Attributes:
        name: Key in `Match.constants`, and in `Match.values` for the tensor.
        near: Allowed values, within 1e-6; empty for all.
        single: True if the constant has exactly one element.
    """

    name: str
    near: tuple[float, ...] = ()
    single: bool = True


@dataclass(frozen=True)
class Op:
    """A node with its operands.

    Attributes:
        operators: Allowed operators.
        inputs: Patterns of the first operands; further operands are ignored.
        attributes: Required values of attributes.
        name: Key in `Match.nodes`; empty for none.
        shared: True if the result may have other readers.
        activation: Required fused activation; `ANY` for all.
        where: Condition on the node.
        optional: True if the node may be missing; its first operand then matches the tensor itself.
    """

    operators: frozenset[str]
    inputs: tuple[Pattern, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    name: str = ""
    shared: bool = False
    activation: str = "none"
    where: Callable[[Node], bool] | None = None
    optional: bool = False


@dataclass(frozen=True)
class OneOf:
    """Alternatives; the first one that matches counts."""

    patterns: tuple[Pattern, ...]


Pattern = Value | Constant | Op | OneOf


def op(
    operator: str | Trait | Collection[str],
    *inputs: Pattern,
    name: str = "",
    shared: bool = False,
    activation: str = "none",
    where: Callable[[Node], bool] | None = None,
    optional: bool = False,
    **attributes: Attribute,
) -> Op:
    """Return the pattern of a node.

    Args:
        operator: Name, names, or a trait of the operator table.
        inputs: Patterns of the first operands.
        name: Key of the node in `Match.nodes`.
        shared: True if the result may have readers outside the pattern.
        activation: Required fused activation; `ANY` for all.
        where: Further condition on the node.
        optional: True if the node may be missing.
        attributes: Required values of attributes.
    """
    if isinstance(operator, Trait):
        operators = with_traits(operator)
    else:
        operators = frozenset((operator,) if isinstance(operator, str) else operator)
    return Op(operators, inputs, attributes, name, shared, activation, where, optional)


def one_of(*patterns: Pattern) -> OneOf:
    """Return the pattern that matches if one of several matches, tried in order."""
    return OneOf(patterns)


@dataclass
class Match:
    """A place that matches a pattern.

    Attributes:
        root: The node that writes the result.
        values: Tensor by name of the pattern.
        constants: Value of a constant by name.
        nodes: Node by name.
        inner: Nodes of the pattern other than the root.
    """

    root: Node
    values: dict[str, int] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    inner: tuple[Node, ...] = ()

    def number(self, name: str) -> float:
        """Return the value of a constant with one element."""
        return float(np.asarray(self.constants[name]).item())

    def is_closed(self, editor: GraphEditor) -> bool:
        """Return True if the results of its inner nodes have no readers outside the match."""
        names = {self.root.name, *(node.name for node in self.inner)}
        inside = {t for node in self.inner for t in node.outputs}
        return not any(editor.is_output(t) or any(r.name not in names for r in editor.readers(t)) for t in inside)

    def copy(self) -> Match:
        """Return a copy that a further step of the search can extend."""
        return Match(self.root, dict(self.values), dict(self.constants), dict(self.nodes), self.inner)


def fused_activation(node: Node) -> str:
    """Return the name of the activation that a node ends in; "none" without."""
    return node.attributes.text("fused_activation_function", "none")


def is_near(value: Array | float, *allowed: float) -> bool:
    """Return True if all elements equal one of the allowed values within 1e-6."""
    single = np.asarray(value, np.float32)
    return any(bool(np.all(np.abs(single - np.float32(number)) < _RESOLUTION)) for number in allowed)


def match(editor: GraphEditor, node: Node, pattern: Op) -> Match | None:
    """Return the first match of a pattern with `node` as its root; None if there is none."""
    return next(_match_node(editor, node, pattern, Match(node), is_root=True), None)


def find_matches(editor: GraphEditor, pattern: Op) -> Iterator[Match]:
    """Yield a match for each node that is a root, in order; the caller may change the graph between matches."""
    for node in editor.nodes:
        current = editor.current(node)
        if current is not None and (result := match(editor, current, pattern)) is not None:
            yield result


def rewrite(editor: GraphEditor, pattern: Op, build: Callable[[GraphEditor, Match], Node | None]) -> None:
    """Replace the root of each match by the node that `build` returns, and remove inner nodes without readers.

    Args:
        editor: Graph to change.
        pattern: Pattern of the places.
        build: Returns the new root, or None to leave the place unchanged; may add tensors and nodes.
    """
    for place in find_matches(editor, pattern):
        node = build(editor, place)
        if node is not None:
            editor.replace(place.root, node)
            editor.remove_unread(place.inner)


def replace_root(match: Match, operator: str, *inputs: str, **attributes: Attribute) -> Node:
    """Return a node of another operator in the place of the root; it reads tensors of the pattern by name.

    It keeps name, results and arithmetic of the root. Version, options and params belong to the old operator.
    """
    root, operands = match.root, tuple(match.values[name] for name in inputs)
    return Node(operator, operands, root.outputs, Attributes(attributes), root.name, arithmetic=root.arithmetic)


def _match_node(
    editor: GraphEditor, node: Node, pattern: Op, state: Match, *, is_root: bool = False
) -> Iterator[Match]:
    operands = editor.operands(node)
    if node.operator not in pattern.operators or len(operands) < len(pattern.inputs):
        return
    if pattern.activation not in (ANY, fused_activation(node)):
        return
    if any(node.attributes.get(key) != value for key, value in pattern.attributes.items()):
        return
    if pattern.where is not None and not pattern.where(node):
        return
    start = state.copy()
    if pattern.name:
        start.nodes[pattern.name] = node
    if not is_root:
        start.inner = (*start.inner, node)
    first = tuple(operands[: len(pattern.inputs)])
    swaps = len(operands) == len(first) == 2 and has_trait(node, Trait.COMMUTATIVE)
    for order in permutations(first) if swaps else (first,):
        yield from _match_operands(editor, order, pattern.inputs, start)


def _match_operands(
    editor: GraphEditor, tensors: tuple[int, ...], patterns: tuple[Pattern, ...], state: Match
) -> Iterator[Match]:
    if not patterns:
        yield state
        return
    for result in _match_tensor(editor, tensors[0], patterns[0], state):
        yield from _match_operands(editor, tensors[1:], patterns[1:], result)


def _match_tensor(editor: GraphEditor, t: int, pattern: Pattern, state: Match) -> Iterator[Match]:
    if isinstance(pattern, OneOf):
        for alternative in pattern.patterns:
            yield from _match_tensor(editor, t, alternative, state)
    elif isinstance(pattern, Op):
        writer = editor.writer(t)
        if writer is not None and (pattern.shared or editor.uses(t) == 1):
            yield from _match_node(editor, writer, pattern, state)
        if pattern.optional:
            yield from _match_tensor(editor, t, pattern.inputs[0], state)
    elif _fits(editor, t, pattern) and state.values.get(pattern.name, t) == t:
        result = state.copy()
        result.values[pattern.name] = t
        data = editor.constant(t)
        if isinstance(pattern, Constant) and data is not None:
            result.constants[pattern.name] = data
        yield result


def _fits(editor: GraphEditor, t: int, pattern: Value | Constant) -> bool:
    if t == ABSENT:
        return False
    if isinstance(pattern, Value):
        return pattern.where is None or pattern.where(editor.tensors[t])
    data = editor.constant(t)
    if data is None or (pattern.single and data.size != 1):
        return False
    return not pattern.near or (data.dtype.kind in "biuf" and is_near(data, *pattern.near))
