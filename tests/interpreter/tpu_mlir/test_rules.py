"""Layers of 8 bits on every quantized value against docs/rules/tpu_mlir.md, docs/rules/tpu_mlir_operators.md, in
rational numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.support.draw import affine
from tests.support.types import FLOAT32, INT8, UINT8
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.tpu_mlir.multiplier import find_multiplier

Type = tuple[DType, Affine]
S8, U8, HALF = (INT8, affine(INT8, 0.5)), (UINT8, affine(UINT8, 0.5)), Fraction(1, 2)
SHIFTED = (INT8, affine(INT8, 0.5, 17))
NUMBERS = (0.0, 0.25, -0.25, 0.75, 3.0, -3.0, 40.0, -40.0, 1000.0)


def up(x: int, s: int) -> int:
    return math.floor(Fraction(x) / Fraction(2) ** s + HALF)


def away(real: Fraction | float) -> int:
    return int(math.copysign(math.floor(abs(Fraction(real)) + HALF), real))


def saturated(code: int, kind: Type) -> int:
    return min(max(code, kind[0].minimum), kind[0].maximum)


def scale(kind: Type) -> float:
    return float(kind[1].scale[0])


def zero(kind: Type) -> int:
    return int(kind[1].zero_point[0])


def searched(real: float, least: int = -32) -> tuple[int, int]:
    """8-bit m and s, from s = 0 on where a shift to the left has no form (test_numbers.py has the search)."""
    found = find_multiplier(real, 8, least)
    return int(found.multiplier[0]), int(found.shift[0])


def every(kind: Type) -> list[int]:
    return list(range(kind[0].minimum, kind[0].maximum + 1))


def graph_of(operator: str, kinds: Sequence[Type | float], y: Type, **options: Any) -> Graph:
    b, inputs = GraphBuilder(operator), []
    for i, kind in enumerate(kinds):
        if isinstance(kind, float):
            inputs.append(b.constant(f"c{i}", np.array(kind, np.float32)))
        else:
            inputs.append(b.input(f"x{i}", (256,), *kind))
    return b.build([b.add(operator, inputs, (256,), *y, **options)])


def computed(graph: Graph, *codes: Sequence[int]) -> list[int]:
    inputs = [np.array([row], graph.tensors[t].dtype.storage) for t, row in zip(graph.inputs, codes, strict=True)]
    found: Array = Engine(lower(graph, "tpu_mlir")).run(inputs)[graph.outputs[0]]
    return [int(code) for code in found[0]]


def kind(base: Type, factor: float, zero_point: int | None = None) -> Type:
    at = zero(base) if zero_point is None else zero_point
    return base[0], affine(base[0], scale(base) * factor, at)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("x", [S8, U8])
@pytest.mark.parametrize("operator", ["add", "sub"])
@pytest.mark.parametrize("fused", ["none", "relu"])
def test_one_number_is_added(operator: str, x: Type, number: float, fused: str) -> None:
    for y in (kind(x, 1.0), kind(x, 0.37), kind(x, 2.9), kind(x, 0.011)):
        m, s = searched(scale(x) / scale(y), 0)
        steps = away((number if operator == "add" else -number) / scale(y)) << s
        floor = y[0].minimum if fused == "none" else zero(y)
        wanted = [saturated(max(up(q * m + steps, s), floor), y) for q in every(x)]
        graph = graph_of(operator, (x, number), y, fused_activation_function=fused)
        assert computed(graph, every(x)) == wanted


@pytest.mark.parametrize("x", [S8, U8, SHIFTED])
@pytest.mark.parametrize("factor", [0.25, -0.25, 1.5, -1.5, 30.0])
def test_one_number_multiplies(x: Type, factor: float) -> None:
    """The tool gives results the range times the number; other ranges follow the same rule."""
    for stretch, z, first in itertools.product((1.0, 0.013, 2.3), (0, -9), (False, True)):
        y = kind((INT8, x[1]), abs(factor) * stretch, z)
        m, s = searched(abs(factor) * scale(x) / scale(y), 0)
        wanted = [saturated(up((q - zero(x)) * m * (1 if factor > 0 else -1), s) + z, y) for q in every(x)]
        operands = (factor, x) if first else (x, factor)
        assert computed(graph_of("mul", operands, y), every(x)) == wanted
        if abs(factor) == 0.25:  # the inverse is exact
            assert computed(graph_of("div", (x, 1.0 / factor), y), every(x)) == wanted


@pytest.mark.parametrize("x", [S8, U8, SHIFTED])
def test_the_sign_is_turned(x: Type) -> None:
    y = (INT8, affine(INT8, scale(x), -5))
    assert computed(graph_of("neg", (x,), y), every(x)) == [saturated(zero(x) - q - 5, y) for q in every(x)]


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("number", [*NUMBERS, 1e12, -1e12])
@pytest.mark.parametrize("x", [S8, U8, SHIFTED])
def test_the_larger_and_the_smaller_of_one_number(x: Type, number: float, asymmetric: bool) -> None:
    """What does not fit int32 is -2^31, as the tool's conversion has it."""
    steps = away(number / scale(x))
    steps = steps if abs(steps) < 1 << 31 else -(1 << 31)
    for operator, choose in (("maximum", max), ("minimum", min)):
        taken = zero(x) if asymmetric else 0
        wanted = [saturated(choose(q - taken, steps), x) for q in every(x)]
        for operands in ((x, number), (number, x)):
            assert computed(graph_of(operator, operands, x, asymmetric=asymmetric), every(x)) == wanted


def quotient(c: float) -> Callable[[float], float]:
    return lambda x: c / x if x else 0.0


def power(c: float) -> Callable[[float], float]:
    return lambda x: 0.0 if (x == 0 and c < 0) or (x < 0 and c % 1) else float(np.power(np.float64(x), c))


@pytest.mark.parametrize("z", [0, -40])
@pytest.mark.parametrize("x", [S8, U8, SHIFTED])
@pytest.mark.parametrize(
    ("operator", "operands", "function"),
    [
        *(("div", (c, "x"), quotient(c)) for c in (1.0, -2.5, 0.0)),
        *(("pow", ("x", c), power(c)) for c in (3.0, 0.5, -0.5, -1.0, 0.0)),
    ],
)
def test_tables_of_real_functions(
    operator: str, operands: tuple[Any, Any], function: Callable[[float], float], x: Type, z: int
) -> None:
    """What is no number is 0."""
    y = (INT8, affine(INT8, 0.03, z))
    s_x, s_y = np.float64(scale(x)), np.float64(scale(y))
    wanted = [saturated(away(float(function(float((q - zero(x)) * s_x)) / s_y)) + z, y) for q in every(x)]
    graph = graph_of(operator, [x if operand == "x" else operand for operand in operands], y)
    assert computed(graph, every(x)) == wanted


def pairs(a: Type, b: Type) -> tuple[list[int], list[int]]:
    """256 pairs: ends and zero points beside each other, the rest drawn."""
    rng = np.random.default_rng(5)
    ends = [(p, q) for p in (a[0].minimum, zero(a), a[0].maximum) for q in (b[0].minimum, zero(b), b[0].maximum)]
    drawn = [tuple(int(rng.integers(t.minimum, t.maximum + 1)) for t in (a[0], b[0])) for _ in range(256 - len(ends))]
    first, second = zip(*ends, *drawn, strict=True)
    return list(first), list(second)


TWO = [(S8, kind(S8, 3.1), kind(S8, 2.2)), (U8, S8, kind(S8, 0.6)), (U8, U8, kind(U8, 1.9)),
       (SHIFTED, kind(SHIFTED, 0.4, -100), kind(SHIFTED, 1.7, 3))]  # fmt: skip


@pytest.mark.parametrize("fused", ["none", "relu"])
@pytest.mark.parametrize(("a", "b", "y"), TWO)
def test_sums_and_products_of_two(a: Type, b: Type, y: Type, fused: str) -> None:
    floor = y[0].minimum if fused == "none" else zero(y)
    first, second = pairs(a, b)
    (ma, sa), (mb, sb) = (searched(scale(t) / scale(y), 0) for t in (a, b))
    for operator, sign in (("add", 1), ("sub", -1)):
        graph = graph_of(operator, (a, b), y, fused_activation_function=fused)
        terms = [(up((p - zero(a)) * ma, sa), up((q - zero(b)) * mb, sb)) for p, q in zip(first, second, strict=True)]
        wanted = [saturated(max(p + sign * q + zero(y), floor), y) for p, q in terms]
        assert computed(graph, first, second) == wanted
    m, s = searched(scale(a) * scale(b) / scale(y))
    products = [(p - zero(a)) * (q - zero(b)) for p, q in zip(first, second, strict=True)]
    wanted = [saturated(max(up(product * m, s) + zero(y), floor), y) for product in products]
    assert computed(graph_of("mul", (a, b), y, fused_activation_function=fused), first, second) == wanted


@pytest.mark.parametrize(("a", "b"), [(S8, S8), (U8, U8), (SHIFTED, SHIFTED)])
def test_raw_values_of_two_are_compared(a: Type, b: Type) -> None:
    first, second = pairs(a, b)
    for operator, rule in COMPARED.items():
        wanted = [int(rule(p, q)) for p, q in zip(first, second, strict=True)]
        assert computed(graph_of(operator, (a, b), TRUTH), first, second) == wanted
    for operator, choose in (("maximum", max), ("minimum", min)):
        wanted = [choose(p, q) for p, q in zip(first, second, strict=True)]
        assert computed(graph_of(operator, (a, b), a), first, second) == wanted


COMPARED: dict[str, Callable[[int, int], bool]] = {
    "equal": lambda x, y: x == y, "greater": lambda x, y: x > y, "greater_equal": lambda x, y: x >= y,
    "less": lambda x, y: x < y, "less_equal": lambda x, y: x <= y,
}  # fmt: skip
TRUTH = (UINT8, affine(UINT8, 1.0))


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("x", [S8, U8, SHIFTED])
def test_a_number_is_compared_in_steps(x: Type, number: float) -> None:
    steps = away(number / scale(x)) + zero(x)
    for operator, rule in COMPARED.items():
        assert computed(graph_of(operator, (x, number), TRUTH), every(x)) == [int(rule(q, steps)) for q in every(x)]
        assert computed(graph_of(operator, (number, x), TRUTH), every(x)) == [int(rule(steps, q)) for q in every(x)]


def test_both_are_true() -> None:
    values = [[0, 0, 1, 1] * 64, [0, 1, 0, 1] * 64]
    assert computed(graph_of("logical_and", (TRUTH, TRUTH), TRUTH), *values) == [0, 0, 0, 1] * 64


@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.25, 127 / 256, 0.5, 0.99, 127 / 128, 1.0, 1.7])
def test_slopes_below_zero(alpha: float) -> None:
    if alpha:
        m, s = searched(float(np.float32(alpha)))
        wanted = [q if q >= 0 else saturated(up(q * m, s), S8) for q in every(S8)]
        assert computed(graph_of("leaky_relu", (S8,), S8, alpha=alpha), every(S8)) == wanted
        r = next(r for r in range(32) if float(np.float32(alpha)) * 2.0 ** (r + 1) >= 127)
        slope = math.trunc(float(np.float32(alpha)) * 2.0**r)
        wanted = [q if q >= 0 else saturated(up(q * slope, r), S8) for q in every(S8)]
        assert computed(graph_of("prelu", (S8, alpha), S8), every(S8)) == wanted
    else:
        assert computed(graph_of("leaky_relu", (S8,), S8, alpha=alpha), every(S8)) == [max(q, 0) for q in every(S8)]


@pytest.mark.parametrize("factor", [1.0, 0.3, 2.7, 0.01, 60.0])
@pytest.mark.parametrize(("x", "z"), [(S8, 0), (U8, 0), (S8, 12), (SHIFTED, 0), (SHIFTED, -30)])
def test_from_one_integer_type_to_another(x: Type, z: int, factor: float) -> None:
    """Ties are rounded up where both zero points are 0, else away from zero."""
    for dtype in (INT8, UINT8) if z == 0 else (INT8,):
        y = (dtype, affine(dtype, scale(x) * factor, z))
        m, s = searched(scale(x) / scale(y), 0)
        if zero(x) == z == 0:
            wanted = [saturated(up(q * m, s), y) for q in every(x)]
        else:
            wanted = [saturated(away(Fraction((q - zero(x)) * m, 1 << s)) + z, y) for q in every(x)]
        assert computed(graph_of("quantize", (x,), y), every(x)) == wanted


@pytest.mark.parametrize("y", [S8, U8, SHIFTED])
def test_reals_and_quantized_values(y: Type) -> None:
    """Only between reals and integers results never fall while operands rise: between integers a table is read."""
    b = GraphBuilder()
    x = b.input("x", (256,), FLOAT32)
    codes = b.add("quantize", [x], (256,), *y)
    other = b.add("quantize", [codes], (256,), INT8, affine(INT8, 0.7))
    back = b.add("dequantize", [codes], (256,), FLOAT32)
    graph = lower(b.build([codes, other, back]), "tpu_mlir")
    reals = np.linspace(-80, 150, 256).astype(np.float32)
    found = Engine(graph).run([reals[None]])
    inverse = np.float32(1 / np.float64(scale(y)))
    wanted = [saturated(away(float(real * inverse)) + zero(y), y) for real in reals]
    assert found[codes][0].tolist() == wanted
    assert found[back][0].tolist() == [(code - zero(y)) * scale(y) for code in wanted]
    assert [getattr(node.params, "never_falls", None) for node in graph.nodes[:2]] == [True, False]


def test_scales_that_have_no_multiplier() -> None:
    with pytest.raises(UnsupportedError, match="no multiplier of 8 bits"):
        lower(graph_of("add", (S8, kind(S8, 130.0)), S8), "tpu_mlir")


@pytest.mark.parametrize("operator", COMPARED)
def test_raw_values_of_other_types_are_not_compared(operator: str) -> None:
    for other in (kind(S8, 2.0), kind(S8, 1.0, 3)):
        with pytest.raises(UnsupportedError, match="'x0' and 'x1' have different scales"):
            lower(graph_of(operator, (S8, other), TRUTH), "tpu_mlir")


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "ceil": math.ceil, "floor": math.floor, "cos": math.cos, "sin": math.sin, "exp": math.exp, "tanh": math.tanh,
    "elu": lambda x: x if x >= 0 else math.expm1(x), "gelu": lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))),
    "hard_swish": lambda x: x * min(max(x + 3, 0), 6) / 6, "softsign": lambda x: x / (1 + abs(x)),
    "log": lambda x: math.log(x) if x > 0 else -1e9 if x == 0 else 0, "sqrt": lambda x: math.sqrt(max(x, 0)),
    "logistic": lambda x: 1 / (1 + math.exp(-x)), "silu": lambda x: x / (1 + math.exp(-x)), "round": round,
    "sign": lambda x: (x > 0) - (x < 0),
}  # fmt: skip


@pytest.mark.parametrize("x", [S8, U8, SHIFTED])
@pytest.mark.parametrize("operator", FUNCTIONS)
def test_functions_of_one_byte(operator: str, x: Type) -> None:
    """sat(rha(f((q - Zx) Sx) / Sy) + Zy); one step is left to the last bits of a function."""
    for y in ((INT8, affine(INT8, 0.043, -20)), (UINT8, affine(UINT8, 0.043))):
        found = computed(graph_of(operator, (x,), y, approximate=False), every(x))
        for q, made in zip(every(x), found, strict=True):
            steps = FUNCTIONS[operator]((q - zero(x)) * scale(x)) / scale(y)
            near = {saturated(away(steps * (1 + part)) + zero(y), y) for part in (-1e-13, 0.0, 1e-13)}
            assert made in near
