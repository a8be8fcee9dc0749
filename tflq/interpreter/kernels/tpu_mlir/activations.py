"""Functions of one activation: by tables, slopes, or a sum (docs/rules/tpu_mlir_operators.md).

A function of one byte is a table: sat(rha(f((q - Zx) * Sx) / Sy) + Zy), f in float64. RELU that stays alone is
symmetric: max(q, 0) in the input's scale. Slopes are int8 where the mode is symmetric, float16 where it is not:
LEAKY_RELU, symmetric: q >= 0: q; else up(q * m, s), 8-bit m about alpha. float16: x < 0: f16(f32(x) * f32(alpha)).
PRELU, symmetric: one shift for int8 slopes; r is the first with max|alpha| * 2^(r+1) >= 127, slope =
trunc(alpha * 2^r); q < 0: up(q * slope, r). float16: x < 0: f16(x * f16(alpha)).
SOFTMAX: E[k] = f32(exp(-k * Sx)), k = max(q) - q; p = E / sum(E) in float32; y = sat(rha(p / f32(1/255))).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier, saturate, shift_half_up
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.numerics.lookup_tables import Table, look_up, make_table
from tflq.interpreter.operands.checks import EIGHT_BITS, require_alpha_fits, require_same_type, require_type
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

MULTIPLIER_BITS = 8
_LARGEST_SLOPE = 127
_LARGEST_SHIFT = 31
Function = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class TableParams:
    """A function of one byte.

    Attributes:
        table: 256 quantized values of the output, indexed by the byte of the input.
    """

    table: Table


def table_of(rule: Callable[[Integers], Array], operands: Operands, position: int = 0) -> TableParams:
    """Return sat(rule(q)) for every quantized value q of an input, stored as the output; read-only.

    Raises:
        UnsupportedError: a type of more than 8 bits.
    """
    source, output = operands.input(position), operands.output()
    for tensor in (source, output):
        require_type(tensor, EIGHT_BITS)
    return TableParams(make_table(lambda codes: saturate(rule(codes), output.dtype), source.dtype, output.dtype))


def lower_curve(node: Node, operands: Operands, function: Function, position: int = 0) -> TableParams:  # noqa: ARG001
    """Return the table of a real function; raises as `table_of`."""
    x, y = operands.input(position).affine, operands.output().affine

    def rule(codes: Integers) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            real = function((codes - x.zero_point[0]) * np.float64(x.scale[0]))
            return np.asarray(round_half_away(real / np.float64(y.scale[0])) + y.zero_point[0])

    return table_of(rule, operands, position)


def run_curve(params: TableParams, x: Array) -> tuple[Array, ...]:
    """Look the quantized values up: 8 bits [S, *shape] -> 8 bits [S, *shape]."""
    return (np.asarray(look_up(params.table, x)),)


def lower_relu(node: Node, operands: Operands) -> TableParams:  # noqa: ARG001
    """Return the table of RELU; raises as `table_of`."""
    return table_of(lambda codes: np.maximum(codes, 0), operands)


def lower_abs(node: Node, operands: Operands) -> TableParams:  # noqa: ARG001
    """Return the table of ABS, which takes no zero point off: a flaw of TPU-MLIR; raises as `table_of`."""
    return table_of(np.abs, operands)


def by_c_library(function: Callable[[float], float]) -> Function:
    """Return a function of `math` over arrays: the C library's, whose last place decides ties.

    tanh(19.0016) is the number below 1 there and 1 in numpy, and 127.5 steps are a tie.
    """

    def one(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            return math.inf

    return lambda x: np.array([one(value) for value in x.reshape(-1).tolist()], np.float64).reshape(x.shape)


_EXP = by_c_library(math.exp)
_LOG = by_c_library(lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else 0.0)


def _gelu(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.5 * x * (1.0 + by_c_library(lambda value: math.erf(value / math.sqrt(2.0)))(x))


_FUNCTIONS: dict[str, tuple[Function, str]] = {
    "ceil": (np.ceil, "the next integer above"),
    "cos": (by_c_library(math.cos), "cos(x)"),
    "elu": (by_c_library(lambda x: math.expm1(x) if x < 0 else x), "x where x >= 0, else exp(x) - 1"),
    "exp": (_EXP, "exp(x)"),
    "floor": (np.floor, "the next integer below"),
    "gelu": (_gelu, "x / 2 * (1 + erf(x / sqrt(2)))"),
    "hard_swish": (lambda x: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0), "x * clip(x / 6 + 1 / 2, 0, 1)"),
    "log": (_LOG, "log(x), 0 where x is negative"),
    "logistic": (lambda x: 1.0 / (1.0 + _EXP(-x)), "1 / (1 + exp(-x))"),
    "round": (np.rint, "the nearest integer, ties to even"),
    "sign": (np.sign, "-1, 0 or 1"),
    "silu": (lambda x: x / (1.0 + _EXP(-x)), "x / (1 + exp(-x))"),
    "sin": (by_c_library(math.sin), "sin(x)"),
    "softsign": (lambda x: x / (1.0 + np.abs(x)), "x / (1 + |x|)"),
    "sqrt": (lambda x: np.sqrt(np.maximum(x, 0.0)), "sqrt(x), 0 where x is negative"),
    "tanh": (by_c_library(math.tanh), "tanh(x)"),
}


@dataclass(frozen=True, eq=False)
class LeakyReluParams:
    """The params of one LEAKY_RELU.

    Attributes:
        alpha: float32.
        rescale: m and s about alpha; None in float16.
        table: None in float16.
    """

    alpha: np.float32
    rescale: Multiplier | None = None
    table: TableParams | None = None


def lower_leaky_relu(node: Node, operands: Operands) -> LeakyReluParams:
    """Decide the params of LEAKY_RELU.

    Raises:
        UnsupportedError: alpha is negative, or the types differ.
    """
    alpha = np.float32(node.attributes.real("alpha"))
    if not 0 <= alpha < np.inf:
        raise UnsupportedError(f"alpha is {alpha}; slopes from 0 are known: write a negative one as prelu or mul")
    require_same_type(operands.output(), operands.input(0))
    if operands.output().dtype is DType.FLOAT16:
        return LeakyReluParams(alpha)
    zero = int(operands.output().affine.zero_point[0])  # other than 0 with the manual's formulas only
    if alpha == 0:
        return LeakyReluParams(alpha, None, table_of(lambda q: np.maximum(q, zero), operands))
    multiplier = find_multiplier(float(alpha), MULTIPLIER_BITS)
    m, s = multiplier.multiplier[0], multiplier.shift[0]
    table = table_of(lambda q: np.maximum(q, zero) + shift_half_up(np.minimum(q - zero, 0) * m, s), operands)
    return LeakyReluParams(alpha, multiplier, table)


def run_leaky_relu(params: LeakyReluParams, x: Array) -> tuple[Array, ...]:
    """Run LEAKY_RELU: int8 or float16 [S, *shape] -> the same type and shape."""
    if params.table is not None:
        return run_curve(params.table, x)
    real = np.asarray(x, np.float16)
    return (np.where(real < 0, (real.astype(np.float32) * params.alpha).astype(np.float16), real),)


@dataclass(frozen=True, eq=False)
class PReluParams:
    """The params of one PRELU.

    Attributes:
        slope: int64 or float16, the shape of alpha.
        shift: r; 0 in float16.
        dtype: of input and output.
        zero_point: Zero point of input and output; other than 0 with the manual's formulas only.
    """

    slope: Array
    shift: int
    dtype: DType
    zero_point: int = 0


def lower_prelu(node: Node, operands: Operands) -> PReluParams:  # noqa: ARG001
    """Decide slopes and shift.

    Raises:
        UnsupportedError: an infinite slope, all slopes 0, other types, or an unsigned input.
        GraphError: alpha does not broadcast to the input, or is computed at run time.
    """
    source, alpha = operands.input(0), np.asarray(operands.constant(1), np.float64)
    require_alpha_fits(operands)
    require_same_type(operands.output(), source)
    if not np.all(np.isfinite(alpha)):
        raise UnsupportedError("a slope is not finite; train or export the model anew")
    if source.dtype is DType.FLOAT16:
        return PReluParams(alpha.astype(np.float16), 0, source.dtype)
    if source.dtype is not DType.INT8:
        raise UnsupportedError(f"input '{source.name}' is {source.dtype.value}, never negative: remove the prelu")
    largest = float(np.abs(alpha).max(initial=0.0))
    shift = next((r for r in range(_LARGEST_SHIFT + 1) if largest * 2.0 ** (r + 1) >= _LARGEST_SLOPE), None)
    if shift is None or np.trunc(largest * 2.0**shift) > _LARGEST_SLOPE:
        raise UnsupportedError(f"the largest slope is {largest:.6g}; 2^-25 to below 128 fit 8 bits and a shift")
    slope: Integers = np.trunc(alpha * 2.0**shift).astype(np.int64)
    return PReluParams(slope, shift, source.dtype, int(source.affine.zero_point[0]))


def run_prelu(params: PReluParams, x: Array, _alpha: Array) -> tuple[Array, ...]:
    """Run PRELU: int8 or float16 [S, *shape] -> the same type and shape."""
    aligned, slope = align(x, params.slope[None])
    if params.dtype is DType.FLOAT16:
        real = np.asarray(aligned, np.float16)
        with np.errstate(over="ignore"):
            return (np.where(real < 0, real * np.asarray(slope, np.float16), real),)
    steps = aligned.astype(np.int64) - params.zero_point
    scaled = shift_half_up(np.minimum(steps, 0) * slope, params.shift)
    return (saturate(np.maximum(steps, 0) + scaled + params.zero_point, params.dtype),)


@dataclass(frozen=True, eq=False)
class SoftmaxParams:
    """The params of one SOFTMAX.

    Attributes:
        table: E, float32[256].
        scale: of the output, float32.
        dtype: of the output.
    """

    table: NDArray[np.float32]
    scale: np.float32
    dtype: DType


def _lower_softmax(node: Node, operands: Operands) -> SoftmaxParams:
    """Make the table.

    Raises:
        UnsupportedError: other types, or beta other than 1.
    """
    source, output = operands.input(0), operands.output()
    require_type(source, EIGHT_BITS)
    require_type(output, EIGHT_BITS)
    beta = node.attributes.real("beta", 1.0)
    if beta != 1.0:
        raise UnsupportedError(f"beta is {beta}; ONNX has a softmax with 1 only: multiply in front of it")
    table = np.exp(-np.arange(256) * np.float64(source.affine.scale[0])).astype(np.float32)
    table.setflags(write=False)
    return SoftmaxParams(table, np.float32(output.affine.scale[0]), output.dtype)


def _run_softmax(params: SoftmaxParams, x: Array) -> tuple[Array, ...]:
    """Run SOFTMAX along the last axis: quantized [S, *shape, C] -> uint8 [S, *shape, C]."""
    codes = x.astype(np.int16)
    powers = params.table[codes.max(axis=-1, keepdims=True) - codes]
    total = np.add.accumulate(powers, axis=-1, dtype=np.float32)[..., -1:]  # one by one, as TPU-MLIR adds
    return (saturate(round_half_away(powers / total / params.scale), params.dtype),)


_FIVE, _SEVEN = (
    "docs/rules/tpu_mlir_operators.md#elementwise-operators",
    "docs/rules/tpu_mlir_operators.md#tables-and-softmax",
)
_SOFTMAX = "a float32 table of exponentials, float32 sums, uint8 with S = 1/255"
KERNELS = {
    **{
        operator: Kernel(partial(lower_curve, function=function), run_curve, formula, _SEVEN)
        for operator, (function, formula) in _FUNCTIONS.items()
    },
    **dict.fromkeys(("relu", "relu6", "relu_0_to_1"), Kernel(lower_relu, run_curve, "max(q, 0)", _FIVE)),
    "abs": Kernel(lower_abs, run_curve, "|q| of the raw quantized value", _FIVE),
    "leaky_relu": Kernel(lower_leaky_relu, run_leaky_relu, "q >= 0: q; else up(q * m, s)", _FIVE),
    "prelu": Kernel(lower_prelu, run_prelu, "q >= 0: q; else up(q * slope, r)", _FIVE),
    "softmax": Kernel(_lower_softmax, _run_softmax, _SOFTMAX, _SEVEN),
}
