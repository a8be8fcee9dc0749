"""The operations of an expression in order, and how they run: the integers that `explain` shows one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array
from tflq.interpreter.kernels.gap9.expressions.formula import Formula
from tflq.interpreter.numerics import q15
from tflq.interpreter.numerics.fixed_point import norm, saturate, wrap_int32

WRAPS, SATURATES = "wraps", "saturates"


@dataclass(frozen=True)
class Step:
    """One operation.

    Attributes:
        operation: Operation, as in `Formula`.
        operands: positions of the operands.
        numbers: Numbers, as in `Formula`.
        overflow: "wraps" or "saturates" if 32 bits may not be enough, else "".
    """

    operation: str
    operands: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    overflow: str = ""


def steps_of(results: Sequence[Formula], as_nntool: bool) -> tuple[tuple[Step, ...], tuple[int, ...]]:
    """Return the operations of formulas, each once, operands first, and the positions of the results.

    Args:
        results: the shared values in order of execution, then the outputs.
        as_nntool: products and sums keep their low 32 bits, and a rounding shift by a negative amount is 0 or -1; else
            they saturate, a product after its rounding shift, and the shift is to the left.
    """
    steps: list[Step] = []
    places: dict[Formula, int] = {}

    def place(formula: Formula, shifted: bool = False) -> int:
        if formula.operation == "shared":
            return place(formula.operands[0])
        if formula not in places:
            is_norm = formula.operation == "norm"
            operands = tuple(place(o, is_norm) for o in formula.operands)
            operation, numbers = formula.operation, formula.numbers
            if is_norm and numbers[0] < 0 and not as_nntool:
                operation, numbers = "shift_left", (-numbers[0],)
            overflow = _overflow(formula, as_nntool, operation, shifted)
            steps.append(Step(operation, operands, numbers, overflow))
            places[formula] = len(steps) - 1
        return places[formula]

    positions = tuple(place(formula) for formula in results)
    return tuple(steps), positions


def _overflow(formula: Formula, as_nntool: bool, operation: str, shifted: bool) -> str:
    """A product before its rounding shift is exact in 64 bits; the shift saturates."""
    if as_nntool:
        return WRAPS * formula.overflows
    behind_product = operation in ("norm", "shift_left") and any(o.overflows for o in formula.operands)
    kept = operation == "mul" and shifted
    return SATURATES * ((formula.overflows and not kept) or behind_product or operation != formula.operation)


def run_steps(steps: Sequence[Step], inputs: Sequence[Array]) -> list[Integers]:
    """Return the result of every step, int64.

    Args:
        steps: Operations returned by `steps_of`.
        inputs: quantized values, of one rank.
    """
    results: list[Integers] = []
    for step in steps:
        if step.operation == "input":
            results.append(np.asarray(inputs[step.numbers[0]], np.int64))
            continue
        result = _RULES[step.operation](step, *(results[o] for o in step.operands))
        if step.overflow and step.operation not in ("norm", "square"):
            result = wrap_int32(result) if step.overflow == WRAPS else saturate(result, 32)
        results.append(result)
    return results


def _norm(step: Step, x: Integers) -> Integers:
    """The sum with half a step wraps before the shift, or the result saturates after it."""
    n = step.numbers[0]
    if n < 0:
        return np.asarray(np.where(x < 0, -1, 0), np.int64)
    if step.overflow == WRAPS:
        return np.asarray(wrap_int32(x + ((1 << n) >> 1)) >> n, np.int64)
    shifted: Integers = norm(x, n)
    return np.asarray(saturate(shifted, 32) if step.overflow else shifted)


def _square(step: Step, x: Integers) -> Integers:
    if step.overflow == WRAPS:
        return q15.square_q15(x)
    return saturate(norm(x * x, 15), 32)


def _quotient(_step: Step, a: Integers, b: Integers) -> Integers:
    return np.asarray(np.where(b == 0, 0, a // np.where(b == 0, 1, b)), np.int64)


def _abs_of_type(step: Step, x: Integers) -> Integers:
    least = -(1 << (step.numbers[0] - 1))
    return np.asarray(np.where(x == least, least, np.abs(x)), np.int64)


_Rule = Callable[..., Integers]
_RULES: dict[str, _Rule] = {
    "constant": lambda step: np.int64(step.numbers[0]),
    "norm": _norm,
    "unsigned_norm": _norm,
    "shift_left": lambda step, x: x << step.numbers[0],
    "mul": lambda _, a, b: a * b,
    "add": lambda _, a, b: a + b,
    "sub": lambda _, a, b: a - b,
    "max": lambda _, a, b: np.maximum(a, b),
    "min": lambda _, a, b: np.minimum(a, b),
    "abs": lambda _, x: np.abs(x),
    "abs_of_type": _abs_of_type,
    "div": _quotient,
    "clip": lambda step, x: np.clip(x, *step.numbers),
    "exp": lambda _, x: q15.exp_q15(x),
    "sqrt": lambda _, x: q15.sqrt_q15(x),
    "rsqrt": lambda _, x: q15.rsqrt_q16(x),
    "pow": lambda step, x: q15.pow_q15(x, *step.numbers),
    "square": _square,
    "sin": lambda _, x: q15.sin_q15(x),
    "cos": lambda _, x: q15.cos_q15(x),
    "logistic": lambda _, x: q15.sigmoid_q15(x),
    "tanh": lambda _, x: q15.tanh_q15(x),
}
