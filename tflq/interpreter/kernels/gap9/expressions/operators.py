"""Integer operations of each operator of an expression (docs/rules/gap9/expressions.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product as pairs
from math import ceil, floor, frexp, log2, pi, sqrt, trunc

import numpy as np

from tflq.errors import UnsupportedError
from tflq.interpreter.kernels.gap9.expressions.formula import INT16, Formula, constant, product, shift_formula
from tflq.interpreter.kernels.gap9.expressions.tree import Symbol
from tflq.interpreter.numerics.fixed_point import INT32_MIN
from tflq.interpreter.numerics.q15 import least_logarithm, log_q15

MULTIPLIER_BITS = 8


@dataclass(frozen=True, eq=False)
class Value:
    """A value.

    Attributes:
        formula: Integers of the value.
        scale: s, float64; negative after a negative constant factor.
        q: Q.
        bounds: real bounds as NNTool passes them on; None if it knows none.
        source: Value before the last rescaling; None after any other operation.
        own_bits: Bits of an input in its own signed type; 0 once it is in 32 bits.
        literal: the real value of a constant of one element.
    """

    formula: Formula
    scale: float
    q: int
    bounds: tuple[float, float] | None = None
    source: Value | None = None
    own_bits: int = 0
    literal: float | None = None

    @property
    def unit(self) -> float:
        """The real value of one step, s * 2^-Q."""
        return self.scale * 2.0**-self.q

    def with_formula(self, formula: Formula, **changes: object) -> Value:
        """Return another formula in the same unit, with `changes`."""
        return replace(self, formula=formula, source=None, own_bits=0, literal=None, **changes)  # type: ignore[arg-type]

    def with_q(self, q: int) -> Value:
        """Return the same scale with Q fractional bits: a shift."""
        return self if q == self.q else self.with_formula(shift_formula(self.formula, self.q - q), q=q)

    @staticmethod
    def of_constant(real: float) -> Value:
        """Return a constant: v = 1 with the number itself as scale, so that products with it are exact; 0 as 0."""
        if real == 0:
            return Value(constant(0), 1.0, 15, (0.0, 0.0), literal=0.0)
        return Value(constant(1), real, 0, (real, real), literal=real)


def rescale(value: Value, scale: float, q: int) -> Value:
    """Return a value in another unit: v * M, then norm N or << -N.

    ratio = unit / (scale * 2^-q); f, e = frexp(ratio); |f| = 0.5: M = f / |f|, N = 1 - e, no product if M = 1 (for M =
    -1, M = -128 and N = 8 - e); else M = floor(f * 2^8 + 0.5), N = 8 - e. A value that was just rescaled is rescaled
    once, from its source.
    """
    source = value.source or value
    ratio = source.unit / (scale * 2.0**-q)
    fraction, exponent = frexp(ratio)
    if fraction == 0.5:
        multiplied, right = source.formula, 1 - exponent
    else:
        m = constant(floor(fraction * 2.0**MULTIPLIER_BITS + 0.5))
        multiplied, right = product(source.formula, m), MULTIPLIER_BITS - exponent
    return Value(shift_formula(multiplied, right), scale, q, value.bounds, source)


_ONE = 1 << 15
_LARGEST_CURVE, _CURVE_LIMIT = 16.0, 65536
_REAL: dict[str, Callable[[float, float], float]] = {
    "add": float.__add__,
    "sub": float.__sub__,
    "maximum": max,
    "minimum": min,
}
_INTEGER = {"add": "add", "sub": "sub", "maximum": "max", "minimum": "min"}
_OPPOSITE = {"maximum": "minimum", "minimum": "maximum"}


@dataclass
class Lowering:
    """Converter from operators to integers; notes each place in which NNTool's are not the correct ones.

    Attributes:
        as_nntool: whether flaws are reproduced.
        flaws: Deviations of NNTool, each once.
    """

    as_nntool: bool
    flaws: list[str] = field(default_factory=list)

    def note(self, flaw: str) -> None:
        """Keep a flaw."""
        if flaw not in self.flaws:
            self.flaws.append(flaw)

    def lower_symbol(self, symbol: Symbol, operands: list[Value]) -> Value:
        """Return the result of an operator.

        Raises:
            UnsupportedError: an operator on which NNTool fails.
        """
        if symbol.operator in _REAL:
            return self._pair(symbol, *operands)
        return _RULES[symbol.operator](self, symbol, *operands)

    def _pair(self, symbol: Symbol, a: Value, b: Value) -> Value:
        """Add, subtract, compare: both in one unit; if the result outgrows it, another one."""
        operator = symbol.operator
        a, b, target = _in_one_unit(symbol, a, b)
        if operator in _OPPOSITE and target.unit < 0:
            self.note(f"{operator} of values with a negative factor: NNTool takes the {_OPPOSITE[operator]} (22.3)")
            operator = operator if self.as_nntool else _OPPOSITE[operator]
        result = target.with_formula(Formula(_INTEGER[operator], (a.formula, b.formula)))
        return _within(result, symbol.range or _combine_ranges(symbol, a, b))

    def relu(self, symbol: Symbol, x: Value) -> Value:
        """Return max(0, x)."""
        return self._pair(replace(symbol, operator="maximum"), Value.of_constant(0.0), x)

    def relu6(self, symbol: Symbol, x: Value) -> Value:
        """Return max(0, x): NNTool drops the upper bound, here a minimum with 6 follows."""
        result = self.relu(symbol, x)
        (six,) = rescale(Value.of_constant(6.0), result.scale, result.q).formula.numbers
        low, high = result.formula.bounds
        if (high <= six) if result.unit > 0 else (low >= six):
            return result
        self.note("RELU6 has no upper bound in NNTool (22.4)")
        if self.as_nntool:
            return result
        return self._pair(replace(symbol, operator="minimum"), Value.of_constant(6.0), result)

    def mul(self, _symbol: Symbol, a: Value, b: Value) -> Value:
        """v_a v_b with s_a s_b; not more than 15 fractional bits."""
        if 0.0 in (a.literal, b.literal):
            raise UnsupportedError("MUL by a constant 0: NNTool loses the operand's scale; fold it before")
        scale = a.scale * b.scale
        result = Value(product(a.formula, b.formula), scale, a.q + b.q, (-scale, scale))
        return result.with_q(15) if result.q > 15 else result

    def div(self, symbol: Symbol, a: Value, b: Value) -> Value:
        """floor((v_a << q) / v_b) with both at Q = q; by a constant the product with 1 / c."""
        if b.literal is not None:
            if b.literal == 0:
                raise UnsupportedError("DIV by a constant 0")
            return self.mul(symbol, a, Value.of_constant(1 / b.literal))
        q, scale = max(min(a.q, 15), min(b.q, 15)), a.scale / b.scale
        return Value(
            Formula("div", (shift_formula(a.formula, a.q - 2 * q), b.with_q(q).formula)), scale, q, (-scale, scale)
        )

    def sqrt(self, symbol: Symbol, x: Value) -> Value:
        """Square root in Q15."""
        _positive(symbol, x)
        return Value(Formula("sqrt", (x.with_q(15).formula,)), sqrt(x.scale), 15)

    def rsqrt(self, symbol: Symbol, x: Value) -> Value:
        """1 / sqrt(v) in Q16, shifted so that the largest result has 15 bits."""
        _positive(symbol, x)
        low, _ = x.formula.bounds
        if low <= 0:
            self.note("RSQRT of 0 stops NNTool's own execution (22.10)")
        scale = 1 / sqrt(x.scale * 2.0 ** (16 - x.q))
        more = log2(_range_of(symbol)[1] / scale)
        count = ceil(more) if more > 0 else 0
        root = Formula("rsqrt", (x.formula,))
        return Value(Formula("unsigned_norm", (root,), (count + 1,)), scale * 2.0**count, 15)

    def pow(self, symbol: Symbol, x: Value, exponent: Value) -> Value:
        """x^p for p = 1, 2 and between 0 and 1, in Q15."""
        p = exponent.literal if exponent.literal is None else float(np.round(exponent.literal, 4))
        base = x.with_q(15)
        if p == 1:
            return base
        if p == 2:
            return Value(Formula("square", (base.formula,)), x.scale**2, 15)
        if p is None or not 0 < p < 1:
            description = "computed at run time" if p is None else f"{p:g}"
            raise UnsupportedError(
                f"POW with an exponent {description}; NNTool takes constants 1, 2 and those between 0 and 1"
            )
        _positive(symbol, x)
        number = int(np.floor(p * _ONE + 0.5))
        if log_q15(max(base.formula.bounds[0], 1)) < least_logarithm(number):
            self.note(f"POW to {p:g} of small numbers: NNTool cuts the logarithm (22.9)")
        least = least_logarithm(number) if self.as_nntool else INT32_MIN
        return Value(Formula("pow", (base.formula,), (number, least)), x.scale**p, 15)

    def exp(self, symbol: Symbol, x: Value) -> Value:
        """Exp in Q15, then in the scale of its range."""
        real = Value(Formula("exp", (rescale(x, 1.0, 15).formula,)), 1.0, 15)
        return rescale(real, max(map(abs, _range_of(symbol))), 15)

    def abs(self, _symbol: Symbol, x: Value) -> Value:
        """|v|; NNTool's of int8 wraps at -128, and keeps a negative unit."""
        if x.unit < 0:
            self.note("ABS of a value with a negative factor: NNTool's result is negative (22.3)")
            x = x if self.as_nntool else replace(x, scale=-x.scale, source=None)
        if x.own_bits and x.formula.bounds[0] == -(1 << (x.own_bits - 1)):
            self.note("ABS of the smallest quantized value is negative in NNTool (22.5)")
            if self.as_nntool:
                return replace(x.with_formula(Formula("abs_of_type", (x.formula,), (x.own_bits,))), own_bits=x.own_bits)
        return x.with_formula(Formula("abs", (x.formula,)))

    def curve(self, symbol: Symbol, x: Value) -> Value:
        """Sigmoid or tanh of Q12, by their table."""
        if x.bounds is None:
            raise UnsupportedError(
                f"{symbol.operator.upper()} directly on EXP, SQRT, RSQRT, POW, SIN or COS: NNTool knows no bounds of it"
            )
        argument = rescale(x, 1.0, 12).formula
        if max(map(abs, x.bounds)) > _LARGEST_CURVE:
            argument = Formula("clip", (argument,), (-_CURVE_LIMIT, _CURVE_LIMIT))
        low = -1.0 if symbol.operator == "tanh" else 0.0
        return Value(Formula(symbol.operator, (argument,)), 1.0, 15, (low, 1.0))

    def wave(self, symbol: Symbol, x: Value) -> Value:
        """Sine or cosine of a turn of 2^15; NNTool clips the argument at two turns to each side, it is periodic."""
        argument = rescale(x, 2 * pi, 15).formula
        low, high = argument.bounds
        is_cut = low < INT16[0] or high > INT16[1]
        if is_cut:
            self.note(f"{symbol.operator.upper()} beyond +-2 pi is cut in NNTool (22.8)")
        if self.as_nntool or not is_cut:
            argument = Formula("clip", (argument,), INT16)
        return Value(Formula(symbol.operator, (argument,)), 1.0, 12)


_RULES: dict[str, Callable[..., Value]] = {
    "relu": Lowering.relu,
    "relu6": Lowering.relu6,
    "mul": Lowering.mul,
    "div": Lowering.div,
    "sqrt": Lowering.sqrt,
    "rsqrt": Lowering.rsqrt,
    "pow": Lowering.pow,
    "exp": Lowering.exp,
    "abs": Lowering.abs,
    "logistic": Lowering.curve,
    "tanh": Lowering.curve,
    "sin": Lowering.wave,
    "cos": Lowering.wave,
}


def _in_one_unit(symbol: Symbol, a: Value, b: Value) -> tuple[Value, Value, Value]:
    """Return both operands in one unit, and the operand that determines the unit.

    A constant takes the other's unit. Else the operand of the larger unit is shifted to 15 fractional bits if the ratio
    of the units leaves room for it, and the other one is rescaled to it.

    Raises:
        UnsupportedError: units of different sign, on which NNTool fails.
    """
    if a.unit == b.unit:
        return a, b, a
    if a.literal is not None:
        return rescale(a, b.scale, b.q), b, b
    if b.literal is not None:
        return a, rescale(b, a.scale, a.q), a
    if a.unit * b.unit < 0:
        raise UnsupportedError(
            f"{symbol.operator.upper()} of two values of which one has a negative constant factor: NNTool fails on it; "
            "multiply by the positive one, and subtract"
        )
    first = a.unit > b.unit
    large, small = (a, b) if first else (b, a)
    if ceil(log2(large.unit / small.unit)) < 15 - large.q:
        large = large.with_q(15)
    small = rescale(small, large.scale, large.q)
    return (large, small, large) if first else (small, large, large)


def _combine_ranges(symbol: Symbol, a: Value, b: Value) -> tuple[float, float]:
    """Return the range of a result from the bounds of its operands.

    Raises:
        UnsupportedError: they are not known.
    """
    if a.bounds is None or b.bounds is None:
        raise UnsupportedError(
            f"{symbol.operator.upper()} on a value whose bounds NNTool does not know (EXP, SQRT, RSQRT, POW, SIN, COS)"
        )
    ends = [_REAL[symbol.operator](float(p), float(q)) for p, q in pairs(a.bounds, b.bounds)]
    return min(ends), max(ends)


def _within(value: Value, range_: tuple[float, float]) -> Value:
    """Return a value with fewer fractional bits, or another scale, if its range needs more than 16 bits."""
    ends = [np.round(2.0**value.q * end / value.scale) for end in range_]
    if min(ends) >= INT16[0] and max(ends) <= INT16[1]:
        return value
    if value.scale >= 1:
        return value.with_q(value.q - trunc(log2(value.scale) + 1))
    low, high = range_
    largest = abs(low) if abs(low) / _ONE > abs(high) / (_ONE - 1) else high * 128 / 127
    return replace(rescale(value, largest, 15), bounds=range_)


def _positive(symbol: Symbol, x: Value) -> None:
    if x.scale < 0:
        raise UnsupportedError(
            f"{symbol.operator.upper()} of a value with a negative constant factor: NNTool fails on it"
        )


def _range_of(symbol: Symbol) -> tuple[float, float]:
    if symbol.range is None:
        raise UnsupportedError(f"{symbol.operator.upper()} '{symbol.name}' has no range")
    return symbol.range
