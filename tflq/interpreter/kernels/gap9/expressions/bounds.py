"""How large the integers of an operation can get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from tflq.interpreter.numerics import q15
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN

Bounds = tuple[int, int]
INT16, INT32 = (-(1 << 15), (1 << 15) - 1), (INT32_MIN, INT32_MAX)


def unwrapped_bounds(operation: str, numbers: Sequence[int], operands: Sequence[Bounds]) -> Bounds:
    """Return the least and greatest result of one operation that nothing cuts.

    Functions rise with their argument but for the errors of their polynomials, for which there is a margin.
    """
    return _RULES[operation](numbers, *operands)


def _input(numbers: Sequence[int]) -> Bounds:
    return numbers[1], numbers[2]


def _constant(numbers: Sequence[int]) -> Bounds:
    return numbers[0], numbers[0]


def _norm(numbers: Sequence[int], x: Bounds) -> Bounds:
    n = numbers[0]
    if n < 0:
        return -1, 0
    low, high = ((end + ((1 << n) >> 1)) >> n for end in x)
    return low, high


def _shift_left(numbers: Sequence[int], x: Bounds) -> Bounds:
    return x[0] << numbers[0], x[1] << numbers[0]


def _ends(operate: Callable[[int, int], int]) -> Callable[..., Bounds]:
    def bounds(_numbers: Sequence[int], a: Bounds, b: Bounds) -> Bounds:
        found = [operate(p, q) for p, q in product(a, b)]
        return min(found), max(found)

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
    """The product counts: it is what wraps."""
    largest = max(abs(x[0]), abs(x[1])) ** 2
    return 0, largest if largest > INT32_MAX else (largest + (1 << 14)) >> 15


def _rising(rule: Callable[[int], object]) -> Callable[..., Bounds]:
    def bounds(_numbers: Sequence[int], x: Bounds) -> Bounds:
        return 0, _with_margin(rule(x[1]))

    return bounds


def _pow(numbers: Sequence[int], x: Bounds) -> Bounds:
    """Negative numbers give what the least logarithm does, which is not more than that of 1 does."""
    return 0, _with_margin(q15.pow_q15(max(x[1], 1), *numbers))


def _rsqrt(_numbers: Sequence[int], x: Bounds) -> Bounds:
    return 0, _with_margin(q15.rsqrt_q16(max(x[0], 0)))


def _with_margin(value: object) -> int:
    found = int(np.asarray(value))
    return min(found + found // 64 + 16, INT32_MAX)


def _fixed(low: int, high: int) -> Callable[..., Bounds]:
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
    "sin": _fixed(-4096, 4096),
    "cos": _fixed(-4096, 4096),
    "logistic": _fixed(0, 1 << 15),
    "tanh": _fixed(-(1 << 15), 1 << 15),
}
