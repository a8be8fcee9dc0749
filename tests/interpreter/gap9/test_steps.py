"""Operations of expressions: every result beside Python's integers, and within the bounds that are stated for it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np
import pytest

from tflq.interpreter.kernels.gap9.expressions.formula import unwrapped_bounds
from tflq.interpreter.kernels.gap9.expressions.steps import SATURATES, WRAPS, Step, run_steps
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN

INTERVALS = [*combinations_with_replacement(range(-3, 4), 2), (-40, 30), (-1000, -7), (9, 500)]
PAIRS: dict[str, Callable[[int, int], int]] = {
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "max": max,
    "min": min,
    "div": lambda a, b: a // b if b else 0,
}
SINGLE: list[tuple[str, tuple[int, ...], Callable[[int], int]]] = [
    ("abs", (), abs),
    ("abs_of_type", (4,), lambda x: x if x == -8 else abs(x)),
    ("clip", (-2, 5), lambda x: min(max(x, -2), 5)),
    ("clip", (0, 100), lambda x: min(max(x, 0), 100)),
    ("square", (), lambda x: (x * x + 2**14) >> 15),
    *(("norm", (n,), lambda x, n=n: (x + ((1 << n) >> 1)) >> n) for n in (0, 1, 4)),
    *(("unsigned_norm", (n,), lambda x, n=n: (x + ((1 << n) >> 1)) >> n) for n in (0, 3)),
    ("norm", (-1,), lambda x: -1 if x < 0 else 0),
    *(("shift_left", (n,), lambda x, n=n: x << n) for n in (0, 1, 5)),
]  # fmt: skip
LOOSE = ("div", "abs_of_type", "square")
"""Bounds that hold more than the results."""


def run(operation: str, numbers: tuple[int, ...], *operands: np.ndarray, overflow: str = "") -> list[int]:
    inputs = [Step("input", (), (i, 0, 0)) for i in range(len(operands))]
    step = Step(operation, tuple(range(len(operands))), numbers, overflow)
    return [int(v) for v in run_steps([*inputs, step], list(operands))[-1]]


def between(interval: tuple[int, int]) -> list[int]:
    """All integers of a small interval, 14 of a large one."""
    low, high = interval
    return sorted({low, high, *range(low, high + 1, max(1, (high - low) // 12))})


@pytest.mark.parametrize("operation", PAIRS)
def test_pairs(operation: str) -> None:
    for first in INTERVALS:
        for second in INTERVALS:
            a, b = (v.reshape(-1) for v in np.meshgrid(between(first), between(second)))
            found = run(operation, (), a, b)
            assert found == [PAIRS[operation](int(p), int(q)) for p, q in zip(a, b, strict=True)]
            low, high = unwrapped_bounds(operation, (), (first, second))
            assert low <= min(found)
            assert max(found) <= high
            if operation not in LOOSE or not second[0] <= 0 <= second[1]:
                assert (low, high) == (min(found), max(found))


@pytest.mark.parametrize(("operation", "numbers", "rule"), SINGLE)
def test_single_operands(operation: str, numbers: tuple[int, ...], rule: Callable[[int], int]) -> None:
    for interval in INTERVALS if operation != "abs_of_type" else [(-8, 7), (-8, -8), (-3, 2), (1, 7)]:
        found = run(operation, numbers, np.array(between(interval)))
        assert found == [rule(x) for x in between(interval)]
        low, high = unwrapped_bounds(operation, numbers, (interval,))
        assert low <= min(found)
        assert max(found) <= high
        if operation not in LOOSE and numbers != (-1,):
            assert (low, high) == (min(found), max(found))


def test_the_square_counts_its_product_beyond_int32() -> None:
    for x, largest in ((46340, (46340**2 + 2**14) >> 15), (46341, 46341**2)):
        for interval in ((0, x), (-x, 5)):
            assert unwrapped_bounds("square", (), (interval,)) == (0, largest)


@pytest.mark.parametrize("operation", ["exp", "sqrt", "rsqrt", "sin", "cos", "logistic", "tanh"])
def test_functions_stay_within_their_bounds(operation: str) -> None:
    """And these are near the largest result: 1 / 64 and 16 of margin, or the ends of the function."""
    negative = operation in ("exp", "sin", "cos", "logistic", "tanh")
    ends = {"sin": (-4096, 4096), "cos": (-4096, 4096), "logistic": (0, 2**15), "tanh": (-(2**15), 2**15)}
    for low, high in ((-90000, -70000), (-90000, 0), (-5000, 3000)) if negative else ((0, 1), (0, 40000), (90, 300)):
        found = run(operation, (), np.linspace(low, high, 4001).astype(np.int64))
        least, largest = unwrapped_bounds(operation, (), ((low, high),))
        assert least <= min(found)
        assert max(found) <= largest
        if operation in ends:
            assert (least, largest) == ends[operation]
        elif operation in ("exp", "sqrt"):
            assert (least, largest) == (0, found[-1] + found[-1] // 64 + 16)


@pytest.mark.parametrize("numbers", [(16384,), (3000,), (32767,), (1,), (16384, -100000), (3000, -50000)])
def test_powers_stay_within_their_bounds(numbers: tuple[int, ...]) -> None:
    """Negative numbers have the least logarithm: near 1 for a small exponent."""
    for low, high in ((0, 0), (0, 1), (-5, 0), (-9, -2), (-70000, 1), (1, 5), (-5, 40000), (0, 200000)):
        found = run("pow", numbers, np.array(between((low, high))))
        (largest,) = run("pow", numbers, np.array([max(high, 1)]))
        assert unwrapped_bounds("pow", numbers, ((low, high),)) == (0, largest + largest // 64 + 16)
        assert min(found) >= 0
        assert max(found) <= largest + largest // 64 + 16


def test_roots_of_small_numbers_are_large() -> None:
    for low, high in ((1, 1), (1, 90), (7, 7000), (0, 5), (-4, 9)):
        found = run("rsqrt", (), np.array(between((low, high))))
        (largest,) = run("rsqrt", (), np.array([max(low, 0)]))
        margin = min(largest + largest // 64 + 16, INT32_MAX)
        assert unwrapped_bounds("rsqrt", (), ((low, high),)) == (0, margin)
        assert max(found) <= margin


def test_bounds_of_a_type_and_of_a_shift_by_less_than_nothing() -> None:
    assert unwrapped_bounds("abs_of_type", (4,), ((-8, 3),)) == (-8, 8)
    assert unwrapped_bounds("abs_of_type", (8,), ((-3, 100),)) == (-128, 100)
    assert unwrapped_bounds("norm", (-1,), ((-9, 9),)) == (-18, 18)
    assert unwrapped_bounds("norm", (-3,), ((5, 9),)) == (-1, 72)
    assert unwrapped_bounds("norm", (-3,), ((-9, -5),)) == (-72, 0)


def test_leaves() -> None:
    assert unwrapped_bounds("input", (0, -7, 9), ()) == (-7, 9)
    assert unwrapped_bounds("constant", (5,), ()) == (5, 5)
    assert unwrapped_bounds("shared", (), ((-2, 3),)) == (-2, 3)


@pytest.mark.parametrize(
    ("operation", "numbers", "values"),
    [
        ("add", (), (INT32_MAX, 1)),
        ("sub", (), (INT32_MIN, 1)),
        ("mul", (), (1 << 20, 1 << 13)),
        ("mul", (), (-(1 << 20), 1 << 12)),
        ("shift_left", (4,), (INT32_MAX,)),
        ("shift_left", (4,), (INT32_MIN,)),
    ],
)
def test_what_leaves_32_bits_wraps_or_saturates(
    operation: str, numbers: tuple[int, ...], values: tuple[int, ...]
) -> None:
    operands = [np.array([v], np.int64) for v in values]
    (exact,) = run(operation, numbers, *operands)
    assert run(operation, numbers, *operands, overflow=WRAPS) == [(exact + 2**31) % 2**32 - 2**31]
    assert run(operation, numbers, *operands, overflow=SATURATES) == [min(max(exact, INT32_MIN), INT32_MAX)]


def test_a_rounding_shift_wraps_in_front_and_saturates_behind() -> None:
    x = np.array([INT32_MAX, INT32_MAX - 8, INT32_MIN, 40], np.int64)
    assert run("norm", (4,), x, overflow=WRAPS) == [-(2**27), 2**27 - 1, -(2**27), 3]
    wide = np.array([1 << 40, -(1 << 40), 40], np.int64)
    assert run("norm", (4,), wide, overflow=SATURATES) == [INT32_MAX, INT32_MIN, 3]
    assert run("norm", (4,), wide) == [1 << 36, -(1 << 36), 3]


def test_squares_saturate_or_wrap() -> None:
    x = np.array([0, 181, -182, 46341, 1 << 24], np.int64)
    exact = [(int(v) ** 2 + 2**14) >> 15 for v in x]
    assert run("square", (), x) == [min(v, INT32_MAX) for v in exact]
    assert run("square", (), x[:3], overflow=WRAPS) == exact[:3]
