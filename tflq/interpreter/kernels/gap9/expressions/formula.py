"""Integer formulas: operations on 32-bit values in written order, with shifts merged.

Source: docs/rules/gap9/expressions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product as pairs

import numpy as np

from tflq.errors import UnsupportedError
from tflq.interpreter.numerics import q15
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN

Bounds = tuple[int, int]
INT16, INT32 = (-(1 << 15), (1 << 15) - 1), (INT32_MIN, INT32_MAX)


def unwrapped_bounds(operation: str, numbers: Sequence[int], operands: Sequence[Bounds]) -> Bounds:
    """Return the least and greatest exact result of one operation.

    Functions rise with their argument except for the errors of their polynomials, for which there is a margin.
    """
    return _RULES[operation](numbers, *operands)


def _input(numbers: Sequence[int]) -> Bounds:
    return numbers[1], numbers[2]


def _constant(numbers: Sequence[int]) -> Bounds:
    return numbers[0], numbers[0]


def _norm(numbers: Sequence[int], x: Bounds) -> Bounds:
    """Bounds of a negative shift include NNTool's result, 0 or -1, and the correct one, a shift to the left."""
    n = numbers[0]
    if n < 0:
        return min(-1, x[0] << -n), max(0, x[1] << -n)
    low, high = ((end + ((1 << n) >> 1)) >> n for end in x)
    return low, high


def _shift_left(numbers: Sequence[int], x: Bounds) -> Bounds:
    return x[0] << numbers[0], x[1] << numbers[0]


def _ends(operate: Callable[[int, int], int]) -> Callable[..., Bounds]:
    def bounds(_numbers: Sequence[int], a: Bounds, b: Bounds) -> Bounds:
        results = [operate(p, q) for p, q in pairs(a, b)]
        return min(results), max(results)

    return bounds


def _abs(_numbers: Sequence[int], x: Bounds) -> Bounds:
    return max(x[0], -x[1], 0), max(-x[0], x[1])


def _abs_of_type(numbers: Sequence[int], x: Bounds) -> Bounds:
    return -(1 << (numbers[0] - 1)), max(-x[0], x[1])


def _div(_numbers: Sequence[int], a: Bounds, b: Bounds) -> Bounds:
    if b[0] <= 0 <= b[1]:
        largest = max(abs(a[0]), abs(a[1]))
        return -largest, largest
    return _ends(int.__floordiv__)((), a, b)


def _clip(numbers: Sequence[int], x: Bounds) -> Bounds:
    low, high = numbers
    return min(max(x[0], low), high), min(max(x[1], low), high)


def _square(_numbers: Sequence[int], x: Bounds) -> Bounds:
    """The product counts: it is the value that wraps."""
    largest = max(abs(x[0]), abs(x[1])) ** 2
    return 0, largest if largest > INT32_MAX else (largest + (1 << 14)) >> 15


def _rising(rule: Callable[[int], object]) -> Callable[..., Bounds]:
    def bounds(_numbers: Sequence[int], x: Bounds) -> Bounds:
        return 0, _with_margin(rule(x[1]))

    return bounds


def _pow(numbers: Sequence[int], x: Bounds) -> Bounds:
    """Negative numbers have the result of the least logarithm, which does not exceed that of 1."""
    return 0, _with_margin(q15.pow_q15(max(x[1], 1), *numbers))


def _rsqrt(_numbers: Sequence[int], x: Bounds) -> Bounds:
    """0 gives what 1 does."""
    return 0, _with_margin(q15.rsqrt_q16(max(x[0], 1)))


def _with_margin(value: object) -> int:
    number = int(np.asarray(value))
    return min(number + number // 64 + 16, INT32_MAX)


def _fixed_bounds(low: int, high: int) -> Callable[..., Bounds]:
    return lambda *_: (low, high)


_RULES: dict[str, Callable[..., Bounds]] = {
    "input": _input,
    "constant": _constant,
    "shared": lambda _n, x: x,
    "norm": _norm,
    "unsigned_norm": _norm,
    "shift_left": _shift_left,
    "mul": _ends(int.__mul__),
    "add": lambda _n, a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda _n, a, b: (a[0] - b[1], a[1] - b[0]),
    "max": _ends(max),
    "min": _ends(min),
    "abs": _abs,
    "abs_of_type": _abs_of_type,
    "div": _div,
    "clip": _clip,
    "square": _square,
    "exp": _rising(q15.exp_q15),
    "sqrt": _rising(q15.sqrt_q15),
    "pow": _pow,
    "rsqrt": _rsqrt,
    "sin": _fixed_bounds(-4096, 4096),
    "cos": _fixed_bounds(-4096, 4096),
    "logistic": _fixed_bounds(0, 1 << 15),
    "tanh": _fixed_bounds(-(1 << 15), 1 << 15),
}


LARGEST_SHIFT = 31


@dataclass(frozen=True, eq=False)
class Formula:
    """One integer operation.

    Attributes:
        operation: "input", "constant", "norm", "shift_left", "mul", "add", "sub", "max", "min", "abs", "abs_of_type",
            "div", "clip", "shared" around a value that is read several times, or a function of numerics/q15.py.
        operands: Operand formulas; a shared value is the same object.
        numbers: Position, least and greatest value of an input; the constant; the shift; bounds; the exponent.
    """

    operation: str
    operands: tuple[Formula, ...] = ()
    numbers: tuple[int, ...] = ()

    @property
    def constant(self) -> int | None:
        """The value of a constant formula, else None."""
        return self.numbers[0] if self.operation == "constant" else None

    @cached_property
    def exact_bounds(self) -> Bounds:
        """The least and greatest result, were there no end to registers."""
        return unwrapped_bounds(self.operation, self.numbers, [o.bounds for o in self.operands])

    @property
    def bounds(self) -> Bounds:
        """The least and greatest result; a result that exceeds 32 bits has the full int32 range."""
        return INT32 if self.overflows else self.exact_bounds

    @property
    def overflows(self) -> bool:
        """Whether the result can leave 32 bits, or the sum on the way to it that a rounding shift makes."""
        low, high = self.exact_bounds
        if self.operation == "norm" and self.numbers[0] > 0:
            high = max(high, self.operands[0].bounds[1] + (1 << (self.numbers[0] - 1)))
        return low < INT32[0] or high > INT32[1]


def constant(value: int) -> Formula:
    """Return a constant, wrapped to int32."""
    wrapped = np.array(value & 0xFFFFFFFF, np.uint32).astype(np.int32)
    return Formula("constant", (), (int(wrapped),))


def shift_formula(formula: Formula, right: int) -> Formula:
    """Return a formula shifted: with rounding to the right, or to the left if `right` is negative.

    Shifts in a row become one: norm a, norm b = norm(a + b); << a, << b = <<(a + b); << a, norm b = norm(b - a);
    norm a, << b = norm(a - b), even if that is negative (docs/rules/gap9/expressions.md). A shift by 0 is none.
    Constants are folded.
    """
    if right == 0:
        return formula
    value = formula.constant
    if value is not None:
        up, down = max(-right, 0), max(right, 0)
        return constant(((value << up) + ((1 << down) >> 1)) >> down)
    operation, amount, inner = "norm" if right > 0 else "shift_left", right, formula
    if formula.operation in ("norm", "shift_left"):
        (inner,), (before,) = formula.operands, formula.numbers
        if formula.operation == "norm":
            operation, amount = "norm", right + before
        else:
            amount = right - before
    if operation == "shift_left":
        amount = -amount
    if amount > LARGEST_SHIFT:
        raise UnsupportedError(
            f"a shift by {amount}; 32 bits end at {LARGEST_SHIFT}: the scales here are too far apart"
        )
    return Formula(operation, (inner,), (amount,))


def product(first: Formula, second: Formula) -> Formula:
    """Return first * second; constants are folded."""
    if first.constant is not None and second.constant is not None:
        return constant(first.constant * second.constant)
    return Formula("mul", (first, second))
