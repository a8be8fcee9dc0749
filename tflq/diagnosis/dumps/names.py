"""Which array is which tensor: rules on names, tried in order; the one that places most arrays wins."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from tflq.diagnosis.dumps.wanted import FROM_ONE, NUMBERINGS, OPERATORS, TENSORS, Stored, Wanted
from tflq.errors import InputError

Fits = Callable[[Stored, Wanted], bool]
_CUT = 200
"""Names of at least this length may have been cut."""
_COMPASS = re.compile(r"^(?P<head>.*)__(?P<slot>i\d+|o\d+|w|b|lut|scale|shift)(?:_(?P<tensor>.*))?$")
"""<model>_<LayerType>__<layer>__<slot>_<tensor>"""
_NUMBERS = (
    re.compile(r"^()0*(\d+)$"),
    re.compile(r"(?:^|[^A-Za-z])(layer|operator|node|op|tensor)[_-]?0*(\d+)(?!\d)", re.IGNORECASE),
    re.compile(r"^()0*(\d+)[_.-]"),
    re.compile(r"()[_.-]0*(\d+)$"),
)


@dataclass(frozen=True)
class Placed:
    """One array and its tensor; `why` is the rule that matched them."""

    stored: Stored
    wanted: Wanted
    why: str


@dataclass(frozen=True)
class _Rule:
    """A rule: its words, and the names that an array and a tensor have under it."""

    why: str
    of_stored: Callable[[str], Sequence[str]]
    of_wanted: Callable[[Wanted], Sequence[str]]
    meets: Callable[[str, str], bool] = lambda a, b: a == b


def place(stored: Sequence[Stored], wanted: Sequence[Wanted], fits: Fits, numbers: str | None) -> list[Placed]:
    """Find the tensors of arrays.

    Args:
        stored: the arrays.
        wanted: the tensors, in order of execution.
        fits: Predicate: the shapes allow the array to contain the tensor.
        numbers: Meaning of numbers in names, one of `NUMBERINGS`; None to choose the one that fits.

    Returns:
        Placed arrays in order of execution; no array and no tensor twice.

    Raises:
        InputError: numbers that may count operators or tensors.
    """
    tried = [] if numbers else [_placed(rule, stored, wanted, fits) for rule in _RULES]
    best = max(tried, key=len, default=[])
    by_number = _numbered(stored, wanted, fits, numbers) if len(best) < len(stored) else []
    if len(by_number) > len(best):
        best = by_number
    elif best:
        for rule in _RULES:
            taken, held = {id(p.stored) for p in best}, {p.wanted.name for p in best}
            left = [s for s in stored if id(s) not in taken]
            best = best + _placed(rule, left, [w for w in wanted if w.name not in held], fits)
    first = {(id(p.stored), p.wanted.name): p for q in reversed(tried) for p in q}
    best = [first.get((id(p.stored), p.wanted.name), p) for p in best]
    order = {w.name: i for i, w in enumerate(wanted)}
    return sorted(best, key=lambda p: order[p.wanted.name])


def nearest(stored: Stored, wanted: Sequence[Wanted], fits: Fits, count: int = 3) -> list[str]:
    """Return the names of the likeliest tensors of an array: by shape first, then by how names begin."""
    plain = _plain(stored.name)

    def distance(w: Wanted) -> tuple[bool, int]:
        return not fits(stored, w), -max((_common(plain, _plain(n)) for n in w.names), default=0)

    return [w.name for w in sorted(wanted, key=distance)[:count]]


def _common(a: str, b: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _placed(rule: _Rule, stored: Sequence[Stored], wanted: Sequence[Wanted], fits: Fits) -> list[Placed]:
    keys = [[k for n in (s.name, s.alias) if n for k in rule.of_stored(n)] for s in stored]
    theirs = [rule.of_wanted(w) for w in wanted]
    pairs = []
    for s, own in zip(stored, keys, strict=True):
        candidates = []
        for w, names in zip(wanted, theirs, strict=True):
            length = max((len(b) for a in own for b in names if b and rule.meets(a, b)), default=0)
            if length and fits(s, w):
                candidates.append((length, w))
        longest = max((length for length, _ in candidates), default=0)
        best = [w for length, w in candidates if length == longest]
        if len(best) == 1:
            pairs.append((len(s.name), s, best[0]))
    result: dict[str, Placed] = {}
    for _, s, w in sorted(pairs, key=lambda pair: pair[0]):
        result.setdefault(w.name, Placed(s, w, rule.why))
    return list(result.values())


def _numbered(stored: Sequence[Stored], wanted: Sequence[Wanted], fits: Fits, numbers: str | None) -> list[Placed]:
    """Place arrays by the numbers in their names."""
    numbers_found = _numbers_of(stored)
    words = {word for word, _ in numbers_found.values()}
    given = {n for _, n in numbers_found.values()}
    operators = sorted({w.operator for w in wanted if w.operator is not None})
    ways: dict[str, list[Placed]] = {}
    for way in NUMBERINGS if numbers is None else (numbers,):
        places = _by_number(way, numbers_found, stored, wanted, fits)
        if places and (numbers is not None or len(places) == len(numbers_found)):
            ways[way] = places
    if len(ways) > 1:
        if words == {"tensor"} and TENSORS in ways:
            return ways[TENSORS]
        if words and words <= {"layer", "operator", "node", "op"}:
            ways.pop(TENSORS, None)
        whole = {OPERATORS: set(operators), FROM_ONE: {n + 1 for n in operators}}
        for way, numbers_of_all in whole.items():
            if way in ways and given == numbers_of_all:
                return ways[way]
        if 0 in given or OPERATORS in ways:  # counting from 1 is the rarer
            ways.pop(FROM_ONE, None)
    if len(ways) > 1:
        raise InputError(
            f"the numbers {', '.join(map(str, sorted(given)[:6]))} in names of arrays may count operators or tensors; "
            f"specify --numbers {' or --numbers '.join(ways)}"
        )
    return next(iter(ways.values()), [])


def _by_number(
    way: str, found: dict[int, tuple[str, int]], stored: Sequence[Stored], wanted: Sequence[Wanted], fits: Fits
) -> list[Placed]:
    result: dict[str, Placed] = {}
    for i, (_, number) in found.items():
        for w in wanted:
            own = w.index if way == TENSORS else w.operator
            if own is not None and own == number - (way == FROM_ONE) and fits(stored[i], w):
                result.setdefault(w.name, Placed(stored[i], w, f"number {number}, counting {_WORDS[way]}"))
    kept = {id(p.stored): p for p in reversed(result.values())}
    found_results = any(p.wanted.operator is not None for p in kept.values())
    return list(kept.values()) if found_results else []


_WORDS = {OPERATORS: "operators", FROM_ONE: "operators from 1", TENSORS: "tensors"}


def _numbers_of(stored: Sequence[Stored]) -> dict[int, tuple[str, int]]:
    """Return the word and number in the names of arrays by position: by the first pattern that most of them have."""
    tables = []
    for pattern in _NUMBERS:
        hits = {i: m for i, s in enumerate(stored) if (m := pattern.search(s.name)) is not None}
        counted = Counter(m.group(2) for m in hits.values())
        own = {i: (m.group(1).lower(), int(m.group(2))) for i, m in hits.items() if counted[m.group(2)] == 1}
        tables.append(own)
    return max(tables, key=len)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name)


def _bare(name: str) -> Sequence[str]:
    """Return a name without the prefix of NNTool's archive."""
    return (name.removeprefix("tensor/"),)


def _parts(wanted: Wanted) -> Sequence[str]:
    return [p for n in wanted.names for p in (n.split(";")[0], n.split(";")[-1])]


def _plain_parts(wanted: Wanted) -> Sequence[str]:
    return [_plain(n) for n in (*wanted.names, *_parts(wanted))]


def _plain_stored(name: str) -> Sequence[str]:
    """Return an array's name in plain letters; of Compass' names the layer and the tensor, for outputs only."""
    match = _COMPASS.match(name)
    if match is None:
        return [_plain(name.removeprefix("tensor/"))]
    if not match.group("slot").startswith("o"):
        return []
    layers = match.group("head").split("__")
    return [_plain(n) for n in (match.group("tensor"), layers[-1], "__".join(layers[1:])) if n]


def _begins(own: str, tensor: str) -> bool:
    """Whether a name begins with the tensor's, up to a boundary; a long one may be cut."""
    if own.startswith(tensor):
        return len(own) == len(tensor) or own[len(tensor)] == "_" or tensor.endswith("_")
    return len(own) >= _CUT and tensor.startswith(own)


def _tokens_meet(own: str, tensor: str) -> bool:
    """Whether the tensor's words occur in a name in order, the first and the last at its ends."""
    mine, theirs = own.split("_"), tensor.split("_")
    rest: Iterator[str] = iter(mine)
    return len(theirs) > 1 and (mine[0], mine[-1]) == (theirs[0], theirs[-1]) and all(t in rest for t in theirs)


_RULES = (
    _Rule("the same name", lambda n: (n,), lambda w: w.names),
    _Rule("the same name after 'tensor/'", _bare, lambda w: w.names),
    _Rule("the first or last part of the name", _bare, _parts),
    _Rule("the same letters and digits", _plain_stored, _plain_parts),
    _Rule("the longest name that it begins with", _plain_stored, _plain_parts, _begins),
    _Rule("the same words in order", _plain_stored, _plain_parts, _tokens_meet),
)
