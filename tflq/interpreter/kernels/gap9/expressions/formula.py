"""Integer formulas: operations on 32-bit values as they are written out, with shifts merged (docs/gap9.md, 22)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tflq.errors import UnsupportedError
from tflq.interpreter.kernels.gap9.expressions.bounds import INT32, Bounds, unwrapped_bounds

LARGEST_SHIFT = 31


@dataclass(frozen=True, eq=False)
class Formula:
    """One integer operation.

    Attributes:
        operation: "input", "constant", "norm", "shift_left", "mul", "add", "sub", "max", "min", "abs", "abs_of_type",
            "div", "clip", "shared" around what is read several times, or a function of numerics/q15.py.
        operands: what it works on; the same object where a value is shared.
        numbers: of an input its position, least and greatest value; the constant; the shift; bounds; the exponent.
    """

    operation: str
    operands: tuple[Formula, ...] = ()
    numbers: tuple[int, ...] = ()

    @property
    def constant(self) -> int | None:
        """Its value, where it is a constant."""
        return self.numbers[0] if self.operation == "constant" else None

    @cached_property
    def unwrapped(self) -> Bounds:
        """The least and greatest result, were there no end to registers."""
        return unwrapped_bounds(self.operation, self.numbers, [o.bounds for o in self.operands])

    @property
    def bounds(self) -> Bounds:
        """The least and greatest result; what leaves 32 bits counts as all of them."""
        return INT32 if self.overflows else self.unwrapped

    @property
    def overflows(self) -> bool:
        """Whether the result can leave 32 bits, or the sum on the way to it that a rounding shift makes."""
        low, high = self.unwrapped
        if self.operation == "norm" and self.numbers[0] > 0:
            high = max(high, self.operands[0].bounds[1] + (1 << (self.numbers[0] - 1)))
        return low < INT32[0] or high > INT32[1]


def constant(value: int) -> Formula:
    """Return a constant, as int32 holds it."""
    wrapped = (value + (1 << 31)) % (1 << 32) - (1 << 31)
    return Formula("constant", (), (wrapped,))


def shifted(formula: Formula, right: int) -> Formula:
    """Return a formula shifted: with rounding to the right, or to the left where `right` is negative.

    Shifts in a row become one: norm a, norm b = norm(a + b); << a, << b = <<(a + b); << a, norm b = norm(b - a);
    norm a, << b = norm(a - b), also where that is negative (docs/gap9.md, 22). Constants are folded.
    """
    value = formula.constant
    if value is not None:
        return constant(value << -right if right < 0 else (value + ((1 << right) >> 1)) >> right)
    if formula.operation in ("norm", "shift_left"):
        before = formula.numbers[0]
        if formula.operation == "shift_left" and right < 0:
            return _checked(Formula("shift_left", formula.operands, (before - right,)))
        amount = right - before if formula.operation == "shift_left" else right + before
        return _checked(Formula("norm", formula.operands, (amount,)))
    if right < 0:
        return _checked(Formula("shift_left", (formula,), (-right,)))
    return _checked(Formula("norm", (formula,), (right,)))


def _checked(formula: Formula) -> Formula:
    if formula.numbers[0] > LARGEST_SHIFT:
        raise UnsupportedError(
            f"a shift by {formula.numbers[0]}; 32 bits end at {LARGEST_SHIFT}: the scales here are too far apart"
        )
    return formula


def product(first: Formula, second: Formula) -> Formula:
    """Return first * second; constants are folded."""
    if first.constant is not None and second.constant is not None:
        return constant(first.constant * second.constant)
    return Formula("mul", (first, second))
