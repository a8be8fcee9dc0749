"""Which tensors of two sides are the same: by name, else by the name of the node that writes them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from tflq.analysis.compare.sides import Column
from tflq.errors import InputError

_NEAREST = 3


@dataclass(frozen=True)
class Match:
    """Two columns for the same tensor."""

    first: Column
    second: Column


@dataclass(frozen=True)
class Matching:
    """What was found.

    Attributes:
        matches: in the order of the first side.
        first_only: names that only the first side has (what a target inserted).
        second_only: names that only the second has.
    """

    matches: tuple[Match, ...]
    first_only: tuple[str, ...]
    second_only: tuple[str, ...]


def match(first: Sequence[Column], second: Sequence[Column]) -> Matching:
    """Match by tensor name, then what is left by node name; shapes must agree but for axes of size 1.

    Where a graph has names of its own for the tensors of its model, the model's count.

    A target's graph has nodes of its own (a ReLU behind its convolution). The convolution then carries the name of the
    node and the ReLU that of the tensor, so that names first, nodes second, finds what means the same. What stands in
    front of such a ReLU has no counterpart in a graph whose layer holds its activation.
    """
    by_name = {**{c.source: c for c in second if c.source}, **{c.name: c for c in second}}
    found: dict[str, Column] = {}
    for c in first:
        named = by_name.get(c.name) or by_name.get(c.source)
        if named is not None and _fits(c, named):
            found[c.name] = named
    taken = {c.name for c in found.values()}
    by_node: dict[str, Column] = {}
    inner = _before_activations(first) ^ _before_activations(second)
    for c in second:
        if c.node and c.name not in taken and c.node not in inner:
            by_node.setdefault(_base(c.node), c)
    for c in first:
        other = by_node.get(_base(c.node)) if c.name not in found and c.node and c.node not in inner else None
        if other is not None and other.name not in taken and _fits(c, other):
            found[c.name] = other
            taken.add(other.name)
    return Matching(
        tuple(Match(c, found[c.name]) for c in first if c.name in found),
        tuple(c.name for c in first if c.name not in found),
        tuple(c.name for c in second if c.name not in taken),
    )


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the names that look most like one, for messages."""
    return ", ".join(f"'{near}'" for near in difflib.get_close_matches(name, known, _NEAREST, 0.0))


def require_known(names: Sequence[str], known: Sequence[str], where: str) -> None:
    """Refuse names that are not known.

    Raises:
        InputError: all of them, each with the nearest ones.
    """
    unknown = [name for name in names if name not in known]
    if unknown:
        each = "; ".join(f"'{name}' (nearest: {nearest(name, known)})" for name in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise InputError(f"{where}: no tensor is called {each}{more}")


def _before_activations(columns: Sequence[Column]) -> set[str]:
    """Return the nodes whose activation is a node of its own."""
    return {c.node.removesuffix("_activation") for c in columns if c.node.endswith("_activation")}


def _base(node: str) -> str:
    """Return the operator of the file that a node of a target's graph stems from."""
    return node.removesuffix("_activation").removesuffix("_reshape")


def _fits(a: Column, b: Column) -> bool:
    if a.tensor is None or b.tensor is None:
        return True
    return [n for n in a.tensor.shape if n != 1] == [n for n in b.tensor.shape if n != 1]
