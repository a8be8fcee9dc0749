"""A value inside an expression: an int32 formula v with a scale s and Q fractional bits, real = v * s * 2^-Q."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, frexp

from tflq.interpreter.kernels.gap9.expressions.formula import Formula, constant, product, shifted

MULTIPLIER_BITS = 8


@dataclass(frozen=True, eq=False)
class Value:
    """A value.

    Attributes:
        formula: its integers.
        scale: s, float64; negative behind a negative constant factor.
        q: Q.
        bounds: real bounds as NNTool passes them on; None where it knows none.
        source: what it was rescaled from, while nothing else has been done to it.
        own_bits: of an input in its own signed type; 0 once it is in 32 bits.
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
        """The real number of one step, s * 2^-Q."""
        return self.scale * 2.0**-self.q

    def made(self, formula: Formula, **changes: object) -> Value:
        """Return another formula in the same unit, changed as said."""
        return replace(self, formula=formula, source=None, own_bits=0, literal=None, **changes)  # type: ignore[arg-type]

    def at(self, q: int) -> Value:
        """Return the same scale with Q fractional bits: a shift."""
        return self if q == self.q else self.made(shifted(self.formula, self.q - q), q=q)

    @staticmethod
    def of_constant(real: float) -> Value:
        """Return a constant: v = 1 with the number itself as scale, so that products with it are exact; 0 as 0."""
        if real == 0:
            return Value(constant(0), 1.0, 15, (0.0, 0.0), literal=0.0)
        return Value(constant(1), real, 0, (real, real), literal=real)


def rescaled(value: Value, scale: float, q: int) -> Value:
    """Return a value in another unit: v * M, then norm N or << -N.

    ratio = unit / (scale * 2^-q); f, e = frexp(ratio); |f| = 0.5: M = f / |f|, N = 1 - e, no product where M = 1 (where
    M would be -1, M = -128 and N = 8 - e); else M = floor(f * 2^8 + 0.5), N = 8 - e. A value that was just rescaled is
    rescaled once, from where it was.
    """
    source = value.source or value
    ratio = source.unit / (scale * 2.0**-q)
    fraction, exponent = frexp(ratio)
    if fraction == 0.5:
        multiplied, right = source.formula, 1 - exponent
    else:
        m = constant(floor(fraction * 2.0**MULTIPLIER_BITS + 0.5))
        multiplied, right = product(source.formula, m), MULTIPLIER_BITS - exponent
    formula = multiplied if right == 0 else shifted(multiplied, right)
    return Value(formula, scale, q, value.bounds, source)
