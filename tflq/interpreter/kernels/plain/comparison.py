"""EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS and LESS_EQUAL of numbers that are not quantized, and of strings.

One IEEE or integer comparison each; with NaN only NOT_EQUAL is true. Source: TFLite kernels/comparisons.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.bfloat16 import numbers
from tflq.interpreter.operands.checks import require_broadcast, require_same_type, require_type
from tflq.interpreter.registry import Kernel, Run
from tflq.interpreter.samples import align

Comparison = Callable[[Array, Array], Array]

COMPARISONS: dict[str, Comparison] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
}
_SIGNS = dict(zip(COMPARISONS, ("==", "!=", ">", ">=", "<", "<="), strict=True))
_COMMON = (DType.FLOAT32, DType.FLOAT16, DType.INT16, DType.INT32, DType.INT64)
_MORE = {
    "equal": (DType.BOOL, DType.STRING),
    "not_equal": (DType.BOOL, DType.STRING),
    "greater": (DType.BFLOAT16,),
    "less": (DType.BFLOAT16,),
}


@dataclass(frozen=True)
class PlainComparison:
    """Which comparison, and the type of both inputs."""

    operator: str
    dtype: DType


def lower_plain_comparison(operator: str, node: Node, operands: Operands) -> PlainComparison:  # noqa: ARG001
    """Check the operands.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take.
        GraphError: shapes that do not broadcast.
    """
    dtype = require_type(operands.input(0), (*_COMMON, *_MORE.get(operator, ())))
    check_comparison(operands)
    return PlainComparison(operator, dtype)


def comparisons(lower: Callable[[str, Node, Operands], object], run: Run) -> dict[str, Kernel]:
    """Return a row for each comparison.

    Args:
        lower: Function that lowers (operator, node, operands).
        run: T[S or 1, *shape] twice, shapes broadcast -> bool[S, *shape].
    """
    return {
        name: Kernel(
            partial(lower, name),
            run,
            f"x {sign} y, elementwise with broadcasting",
            "TFLite kernels/comparisons.cc",
        )
        for name, sign in _SIGNS.items()
    }


def check_comparison(operands: Operands) -> None:
    """Check that the inputs fit each other and the output is bool; raises as `lower_plain_comparison`."""
    first, second = operands.input(0), operands.input(1)
    require_same_type(first, second)
    require_broadcast(first, second)
    require_type(operands.output(), (DType.BOOL,))


def run_plain_comparison(params: PlainComparison, first: Array, second: Array) -> tuple[Array, ...]:
    """Compare: T[S or 1, *shape] twice, shapes broadcast -> bool[S, *shape]."""
    x, y = (numbers(params.dtype, array) for array in align(first, second))
    return (np.asarray(COMPARISONS[params.operator](x, y), np.bool_),)


KERNELS = comparisons(lower_plain_comparison, run_plain_comparison)
