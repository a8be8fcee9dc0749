"""GAP9's expressions a second time, as docs/rules/gap9/expressions.md puts them: what is written out, then merged,
then computed.

Nothing of the kernel is used but the functions of numerics/q15.py, which NNTool's vectors hold to its integers. The
dumps of NNTool hold this page of rules to the tool (tests/interpreter/gap9/test_expression_rules.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, floor, frexp, log2, pi, sqrt, trunc
from typing import Any

import numpy as np

from tflq.graph import Affine
from tflq.interpreter.kernels.gap9.expressions.tree import Tree
from tflq.interpreter.numerics import q15

Term = tuple[Any, ...]
"""("input", position, Z), ("constant", v), ("shared", position), ("shift", whether it rounds, bits right, term), or
(operation, numbers, terms)."""
FRACTION_BITS = {(8, True): 7, (8, False): 8, (16, True): 15, (16, False): 16}
LEAST, LARGEST = -(2**31), 2**31 - 1
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
SWAPPED = {"maximum": "minimum", "minimum": "maximum"}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": q15.exp_q15,
    "sqrt": q15.sqrt_q15,
    "rsqrt": q15.rsqrt_q16,
    "sin": q15.sin_q15,
    "cos": q15.cos_q15,
    "tanh": q15.tanh_q15,
    "logistic": q15.sigmoid_q15,
}


class Refused(Exception):
    """What the tool fails on."""


@dataclass(frozen=True)
class Real:
    """A real number v s 2^-Q: the term of v, s and Q, the bounds, what it was rescaled from, and whose type it has."""

    term: Term
    s: float
    q: int
    bounds: tuple[float, float] | None = None
    base: Real | None = None
    own_bits: int = 0
    literal: float | None = None

    @property
    def unit(self) -> float:
        return self.s / 2.0**self.q


def shift(term: Term, right: int, rounds: bool | None = None) -> Term:
    """Shift to the right with rounding, or to the left; shifts in a row are one, rounding if one of them rounds."""
    is_rounding = right >= 0 if rounds is None else rounds
    if term[0] == "constant":
        moved = term[1] << -right if right < 0 else floor((term[1] + ((1 << right) >> 1)) / 2**right)
        return ("constant", (moved - LEAST) % 2**32 + LEAST)
    if term[0] == "shift":
        is_rounding, right, term = is_rounding or term[1], right + term[2], term[3]
    if (right if is_rounding else -right) > 31:
        raise Refused("a shift by more than 31")
    return ("shift", is_rounding, right, term)


def rescaled(x: Real, s: float, q: int) -> Real:
    base = x.base or x
    f, e = frexp(base.unit / (s / 2.0**q))
    m, n = (1, 1 - e) if f == 0.5 else (floor(f * 256 + 0.5), 8 - e)
    term = base.term
    if f != 0.5:
        constant = term[0] == "constant"
        term = ("constant", term[1] * m) if constant else ("mul", (), (term, ("constant", m)))
    return Real(shift(term, n) if n else term, s, q, x.bounds, base)


def at(x: Real, q: int) -> Real:
    return x if x.q == q else Real(shift(x.term, x.q - q), x.s, q, x.bounds)


def number(c: float) -> Real:
    return Real(("constant", int(c != 0)), c or 1.0, 0 if c else 15, (c, c), literal=c)


class Rules:
    """The operators; `flaws` are what the kernel says, of which only the one of RELU6 decides anything here."""

    def __init__(self, as_nntool: bool, flaws: Sequence[str]) -> None:
        self.as_nntool, self.has_bound = as_nntool, not as_nntool and any("RELU6" in flaw for flaw in flaws)

    def of(self, operator: str, operands: list[Real], ends: tuple[float, float] | None) -> Real:
        if operator in PAIRS:
            return self.pair(operator, *operands, ends)
        if operator in ("relu", "relu6"):
            found = self.pair("maximum", number(0.0), operands[0], ends)
            return self.pair("minimum", number(6.0), found, ends) if self.has_bound and operator == "relu6" else found
        if operator in ("sin", "cos"):
            argument = rescaled(operands[0], 2 * pi, 15).term
            return Real((operator, (), (self.cut(argument, -(2**15), 2**15 - 1),)), 1.0, 12)
        if operator in ("tanh", "logistic"):
            return self.curve(operator, operands[0])
        rule: Callable[..., Real] = getattr(self, operator)
        return rule(*operands, ends) if operator in ("exp", "rsqrt") else rule(*operands)

    def cut(self, term: Term, low: int, high: int) -> Term:
        return ("clip", (low, high), (term,)) if self.as_nntool else term

    def pair(self, operator: str, a: Real, b: Real, ends: tuple[float, float] | None) -> Real:
        known = None if a.bounds is None or b.bounds is None else [
            float(PAIRS[operator](x, y)) for x, y in product(a.bounds, b.bounds)]  # fmt: skip
        target = a
        if a.unit != b.unit:
            if a.literal is not None:
                a, target = rescaled(a, b.s, b.q), b
            elif b.literal is not None:
                b = rescaled(b, a.s, a.q)
            elif (a.unit < 0) != (b.unit < 0):
                raise Refused("units of two signs")
            else:
                large, small = (a, b) if a.unit > b.unit else (b, a)
                is_first = large is a
                if ceil(log2(large.unit / small.unit)) < 15 - large.q:
                    large = at(large, 15)
                small = rescaled(small, large.s, large.q)
                target, (a, b) = large, (large, small) if is_first else (small, large)
        done = SWAPPED.get(operator, operator) if target.unit < 0 and not self.as_nntool else operator
        found = Real((done, (), (a.term, b.term)), target.s, target.q, target.bounds)
        if ends is None:
            if known is None:
                raise Refused("bounds")
            ends = min(known), max(known)
        codes = [round(2.0**found.q * end / found.s) for end in ends]
        if min(codes) >= -(2**15) and max(codes) < 2**15:
            return found
        if found.s >= 1:
            return at(found, found.q - trunc(log2(found.s) + 1))
        low, high = map(abs, ends)
        largest = low if low / 2**15 > high / (2**15 - 1) else ends[1] * 128 / 127
        return replace(rescaled(found, largest, 15), bounds=ends)

    def mul(self, a: Real, b: Real) -> Real:
        if 0.0 in (a.literal, b.literal):
            raise Refused("a factor 0")
        s = a.s * b.s
        return at(Real(("mul", (), (a.term, b.term)), s, a.q + b.q, (-s, s)), min(a.q + b.q, 15))

    def div(self, a: Real, b: Real) -> Real:
        if b.literal is not None:
            if not b.literal:
                raise Refused("a divisor 0")
            return self.mul(a, number(1 / b.literal))
        q, s = max(min(a.q, 15), min(b.q, 15)), a.s / b.s
        over = shift(a.term, a.q - 2 * q) if a.q != 2 * q else a.term
        return Real(("div", (), (over, at(b, q).term)), s, q, (-s, s))

    def sqrt(self, x: Real) -> Real:
        return Real(("sqrt", (), (at(x, 15).term,)), self.root(x), 15)

    def root(self, x: Real) -> float:
        if x.s < 0:
            raise Refused("a negative scale")
        return sqrt(x.s)

    def rsqrt(self, x: Real, ends: tuple[float, float]) -> Real:
        s = 1 / self.root(replace(x, s=x.s * 2.0 ** (16 - x.q)))
        more = max(ceil(log2(ends[1] / s)), 0)
        return Real(("half up", (more + 1,), (("rsqrt", (), (x.term,)),)), s * 2.0**more, 15)

    def pow(self, x: Real, p: Real) -> Real:
        if p.literal is None:
            raise Refused("a variable exponent")
        exponent, base = round(p.literal, 4), at(x, 15)
        if exponent == 1:
            return base
        if exponent == 2:
            return Real(("square", (), (base.term,)), x.s**2, 15)
        if not 0 < exponent < 1:
            raise Refused("the exponent")
        self.root(x)
        times = floor(exponent * 2**15 + 0.5)
        least = -(1 << (31 - times.bit_length())) if self.as_nntool else LEAST
        return Real(("pow", (times, least), (base.term,)), x.s**exponent, 15)

    def exp(self, x: Real, ends: tuple[float, float]) -> Real:
        found = Real(("exp", (), (rescaled(x, 1.0, 15).term,)), 1.0, 15)
        return rescaled(found, max(map(abs, ends)), 15)

    def abs(self, x: Real) -> Real:
        if x.unit < 0 and not self.as_nntool:
            x = replace(x, s=-x.s, base=None)
        own = x.own_bits if self.as_nntool else 0
        return Real(("abs", (own,), (x.term,)), x.s, x.q, x.bounds, own_bits=own)

    def curve(self, operator: str, x: Real) -> Real:
        if x.bounds is None:
            raise Refused("bounds")
        return Real((operator, (), (rescaled(x, 1.0, 12).term,)), 1.0, 15, (-1.0 if operator == "tanh" else 0.0, 1.0))


def compute(
    tree: Tree, types: Sequence[Affine], outputs: Sequence[Affine], feeds: Sequence[Any], numerics: str,
    flaws: Sequence[str] = (),
) -> list[Any]:  # fmt: skip
    """Return the codes of each output, int64, of codes of one rank.

    Raises:
        Refused: what the tool fails on.
    """
    as_nntool = numerics == "nntool"
    rules, reals = Rules(as_nntool, flaws), []
    machine = Machine([np.asarray(x, np.int64) for x in feeds], as_nntool)
    read = [o for symbol in tree.symbols for o in symbol.operands] + list(tree.outputs)
    for place, symbol in enumerate(tree.symbols):
        if symbol.operator == "input":
            kind = types[int(symbol.number)]
            q, zero_point = FRACTION_BITS[kind.bits, kind.signed], int(kind.zero_point[0])
            term = ("input", int(symbol.number), zero_point)
            own = kind.bits if kind.signed and not zero_point else 0
            found = Real(term, float(kind.scale[0]) * 2.0**q, q, symbol.range, own_bits=own)
        elif symbol.operator == "constant":
            found = number(symbol.number)
        else:
            found = rules.of(symbol.operator, [reals[o] for o in symbol.operands], symbol.range)
            if read.count(place) > 1:
                # Computed once: what reads it merges nothing with it.
                found = replace(found, term=("shared", machine.share(found.term)), base=None)
        reals.append(found)
    results = []
    for place, kind in zip(tree.outputs, outputs, strict=True):
        q = FRACTION_BITS[kind.bits, kind.signed]
        codes = machine.value(rescaled(reals[place], float(kind.scale[0]) * 2.0**q, q).term)
        codes = codes + int(kind.zero_point[0])
        if kind.signed:
            results.append(np.clip(codes, -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1))
        else:
            size = 1 << kind.bits
            results.append(np.clip(codes, 0, size) % size if as_nntool else np.clip(codes, 0, size - 1))
    return results


class Machine:
    """Computes terms in 32 bits that wrap, as NNTool, or that saturate; then a product is exact up to its shift."""

    def __init__(self, feeds: list[Any], wraps: bool) -> None:
        self.feeds, self.wraps = feeds, wraps
        self.shared: list[Any] = []

    def share(self, term: Term) -> int:
        self.shared.append(self.value(term))
        return len(self.shared) - 1

    def kept(self, x: Any) -> Any:
        return (x - LEAST) % 2**32 + LEAST if self.wraps else np.clip(x, LEAST, LARGEST)

    def value(self, term: Term) -> Any:
        if term[0] == "input":
            return self.feeds[term[1]] - term[2]
        if term[0] == "constant":
            return np.int64(term[1])
        if term[0] == "shared":
            return self.shared[term[1]]
        if term[0] == "shift":
            return self.kept(self.moved(*term[1:]))
        return self.kept(self.exact(term))

    def moved(self, is_rounding: bool, right: int, inner: Term) -> Any:
        is_exact = not self.wraps and is_rounding and inner[0] == "mul"
        x = self.exact(inner) if is_exact else self.value(inner)
        if right >= 0:
            half = (1 << right) >> 1
            return (self.kept(x + half) if self.wraps else x + half) >> right
        if is_rounding and self.wraps:
            return np.where(x < 0, -1, 0)
        return x << -right

    def exact(self, term: Term) -> Any:
        operation, numbers, terms = term
        values = [self.value(inner) for inner in terms]
        x = values[0]
        if operation in PAIRS:
            return PAIRS[operation](*values)
        if operation == "mul":
            return x * values[1]
        if operation == "div":
            return np.where(values[1] == 0, 0, x // np.where(values[1] == 0, 1, values[1]))
        if operation == "abs":
            return np.where((x == -(1 << numbers[0] >> 1)) & (numbers[0] > 0), x, np.abs(x))
        if operation == "clip":
            return np.clip(x, *numbers)
        if operation == "square":
            return (self.kept(self.kept(x * x) + 2**14) if self.wraps else x * x + 2**14) >> 15
        if operation == "half up":
            return (x + (1 << (numbers[0] - 1))) >> numbers[0]
        return q15.pow_q15(x, *numbers) if operation == "pow" else FUNCTIONS[operation](x)
