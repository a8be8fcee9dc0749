"""Pairs on a common scale: Eltwise, Add, Sub, Mul, SquaredDifference, Logical (docs/rules/aipu/operators.md).

Eltwise, Add, Sub, Mul: two inputs on a common scale, then M / 2^N.
ADD, SUB, MAX, MIN: y = clamp(RNE((k0 * (a + zp_a) op k1 * (b + zp_b)) * M * 2^-N) - zp_y), k0 : k1 = s_b : s_a in 15
bits; equal scales and zero points imply k0 = k1 = 1. MUL: r = s_y / (s_a * s_b). A fused activation acts as on
sums of linear layers: RELU takes them through float32.
Source: Compass Optimizer, ops/eltwise.py.

SquaredDifference: both inputs on the smaller scale with 15 bits, then the square. x_i = RNE((q_i + zp_i) * M_i *
2^-N_i), r_i = s / s_i * 2^L, s the smaller scale, L as many bits as both leave free below 15; y =
clamp(RNE(clamp32((x_0 - x_1)^2) * M * 2^-N) - zp_y), r = s_y / s^2 / 4^L; all M in 15 bits. If an input needs b > 15
bits, s is divided by 2 (b - 15).

Logical: comparisons of (x + zp) on an integer ratio of scales; AND, OR, XOR, NOT of quantized values.
Source: Compass Optimizer, ops/logical.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.activation import Fused, lower_fused
from tflq.interpreter.kernels.aipu.imported import imported_multiplier, imported_numbers, multiplier_bits, multiplier_of
from tflq.interpreter.kernels.aipu.multiplier import (
    LARGEST,
    WIDEST,
    Multiplier,
    OutputCodes,
    codes_of,
    find_multiplier,
)
from tflq.interpreter.kernels.aipu.scales import is_plain, offset_of, scale_of, signed_width
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

METHODS = ("ADD", "SUB", "MUL", "MAX", "MIN")


@dataclass(frozen=True, eq=False)
class EltwiseParams:
    """The params of one pair.

    Attributes:
        method: ADD, SUB, MUL, MAX or MIN.
        fused: the activation on the sum, before zp_y.
        factors: k0 and k1.
        input_offsets: zp_a and zp_b.
        rescale: M and N.
        codes: Quantized values of the output.
    """

    method: str
    fused: Fused
    factors: tuple[int, int]
    input_offsets: tuple[int, int]
    rescale: Multiplier
    codes: OutputCodes


def method_of(node: Node) -> str:
    """Return the method: a key of Eltwise, the name of Add, Sub and Mul."""
    return node.attributes.text("method") if node.operator == "eltwise" else node.operator.upper()


def lower_eltwise(node: Node, operands: Operands) -> EltwiseParams:
    """Decide k0, k1, M and N.

    Raises:
        UnsupportedError: another method or fused activation.
    """
    method, fused = method_of(node), lower_fused(node, operands)
    if method not in METHODS:
        raise UnsupportedError(f"method={method}; allowed are {', '.join(METHODS)}")
    a, b, output = operands.input(0), operands.input(1), operands.output()
    bits = multiplier_bits(node, output)
    factors, multiplier = (1, 1), find_multiplier(1.0, bits)
    if method == "MUL":
        multiplier = multiplier_of(node, scale_of(output) / (scale_of(a) * scale_of(b)), bits)
    else:
        factors, multiplier = imported_pair(node) or common_scale(method, a, b, output, bits)
    return EltwiseParams(
        method,
        fused,
        factors,
        (offset_of(a), offset_of(b)),
        multiplier,
        codes_of(output),
    )


def run_eltwise(params: EltwiseParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run the pair: quantized [S, ...] and [S, ...] -> quantized [S, ...]."""
    left, right = (x.astype(np.int64) + zp for x, zp in zip(align(a, b), params.input_offsets, strict=True))
    total = _combine(params.method, left * params.factors[0], right * params.factors[1])
    return (params.codes.store(params.fused.apply(total, params.rescale)),)


def _combine(method: str, a: Integers, b: Integers) -> Integers:
    if method == "ADD":
        return a + b
    if method == "SUB":
        return a - b
    if method == "MUL":
        return a * b
    larger: Integers = np.maximum(a, b) if method == "MAX" else np.minimum(a, b)
    return larger


def imported_pair(node: Node) -> tuple[tuple[int, int], Multiplier] | None:
    """Return the imported (k0, k1), and M and N; None if the layer is still to be quantized."""
    factors, multiplier = imported_numbers(node, "factors"), imported_multiplier(node)
    return None if factors is None or multiplier is None else ((int(factors[0]), int(factors[1])), multiplier)


def forgets_scale(method: str, a: Tensor, b: Tensor) -> bool:
    """Whether the Optimizer ignores s_y: for all methods except ADD, if both inputs have one type."""
    return method != "ADD" and _of_one_type(a, b)


def _of_one_type(a: Tensor, b: Tensor) -> bool:
    return scale_of(a) == scale_of(b) and offset_of(a) == offset_of(b)


def common_scale(
    method: str, a: Tensor, b: Tensor, output: Tensor, bits: int, limit: int = LARGEST
) -> tuple[tuple[int, int], Multiplier]:
    """Return (k0, k1), at most `limit`, and M, N of s_y / (s_a * s_b) / 2^S, M of `bits`.

    All in float32: if k are shrunk, the ratio is multiplied by the rounded quotient of the largest and the limit.
    """
    s_a, s_b = scale_of(a), scale_of(b)
    if _of_one_type(a, b):
        return (1, 1), find_multiplier(1.0 if forgets_scale(method, a, b) else scale_of(output) / s_a, bits)
    of_a, of_b = find_multiplier(s_a, WIDEST + 1), find_multiplier(s_b, WIDEST + 1)
    shift = max(of_a.first_n, of_b.first_n)
    k0, k1 = (np.float32(f.first_m) * np.float32(2.0 ** (shift - f.first_n)) for f in (of_b, of_a))
    ratio = np.float32(scale_of(output) / (s_a * s_b)) / np.float32(2.0**shift)
    excess = max(k0, k1) / np.float32(limit)
    if excess > 1:
        ratio = ratio * excess
        k0, k1 = (np.clip(np.rint(k / excess), 0, limit) for k in (k0, k1))
    multiplier = find_multiplier(ratio, bits)
    if multiplier.first_n < 0:
        widened = np.clip(multiplier.m << -multiplier.n, 1, limit)
        multiplier = Multiplier(widened, np.zeros(1, np.int64))
    return (int(k0), int(k1)), multiplier


@dataclass(frozen=True, eq=False)
class SquaredDifferenceParams:
    """The params of one layer: zp of the inputs; M and N of the output and of both inputs."""

    input_offsets: tuple[int, int]
    rescales: tuple[Multiplier, ...]
    codes: OutputCodes


def lower_squared_difference(node: Node, operands: Operands) -> SquaredDifferenceParams:
    """Decide three M and N; integers at scale 1 keep 1 and 0."""
    inputs, output = (operands.input(0), operands.input(1)), operands.output()
    given = imported_multiplier(node, "rescales")
    each = given.split() if given else tuple(find_multiplier(r, WIDEST + 1) for r in _ratios(inputs, output))
    offsets = (offset_of(inputs[0]), offset_of(inputs[1]))
    return SquaredDifferenceParams(offsets, each, codes_of(output))


def run_squared_difference(params: SquaredDifferenceParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run SquaredDifference: quantized [S, ...] and [S, ...] -> quantized [S, ...]."""
    of_output, *of_inputs = params.rescales
    left, right = (
        np.clip(m.apply(x.astype(np.int64) + zp), INT32_MIN, INT32_MAX).astype(np.int64)
        for x, zp, m in zip(align(a, b), params.input_offsets, of_inputs, strict=True)
    )
    squares = np.clip(np.square(left - right), INT32_MIN, INT32_MAX)
    return (params.codes.requantize(squares, of_output),)


def _ratios(inputs: tuple[Tensor, Tensor], output: Tensor) -> tuple[np.float32, ...]:
    """Return the ratios of the output and of both inputs, in float32."""
    if all(is_plain(t) for t in inputs):
        return (np.float32(1),) * 3
    widths = [signed_width(t) for t in inputs]
    free = min(max(0, WIDEST - b) for b in widths)
    scales = [scale_of(t) for t in inputs]
    smaller = np.float32(min(scales) / np.float32(max(2 * (max(widths) - WIDEST), 1)))
    of_inputs = (np.float32(np.float32(smaller / s) * np.float32(1 << free)) for s in scales)
    of_output = np.float32(np.float32(scale_of(output) / np.float32(smaller * smaller)) / np.float32(1 << 2 * free))
    return (of_output, *of_inputs)


BASE = 8192
COMPARE = {
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
}
COMBINE = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}


@dataclass(frozen=True, eq=False)
class LogicalParams:
    """The params of one comparison or combination.

    Attributes:
        method: Method as named in the IR.
        offsets: zp of each input.
        factors: k of each input; 1 if quantized values are compared unchanged.
    """

    method: str
    offsets: tuple[int, ...]
    factors: tuple[int, ...]


def lower_logical(node: Node, operands: Operands) -> LogicalParams:
    """Decide k_a and k_b: int(m / s * f), m the larger scale (of exactly one plain operand: its own), f up to 8192.

    Raises:
        UnsupportedError: another method.
    """
    method = node.attributes.text("method")
    if method in COMBINE or method == "NOT":
        return LogicalParams(method, (), ())
    if method not in COMPARE:
        raise UnsupportedError(f"method={method}; allowed is {', '.join((*COMPARE, *COMBINE, 'NOT'))}")
    a, b = operands.input(0), operands.input(1)
    given = imported_numbers(node, "factors")
    factors = _logical_factors(a, b) if given is None else (int(given[0]), int(given[1]))
    return LogicalParams(method, (offset_of(a), offset_of(b)), factors)


def run_logical(params: LogicalParams, *inputs: Array) -> tuple[Array, ...]:
    """Run Logical: quantized [S, ...] -> uint8 0 or 1."""
    if params.method == "NOT":
        return (np.equal(inputs[0], 0).astype(np.uint8),)
    a, b = align(*inputs)
    if params.method in COMBINE:
        return (COMBINE[params.method](a != 0, b != 0).astype(np.uint8),)
    left, right = (
        (x.astype(np.int64) + zp) * k for x, zp, k in zip((a, b), params.offsets, params.factors, strict=True)
    )
    return (COMPARE[params.method](left, right).astype(np.uint8),)


def _logical_factors(a: Tensor, b: Tensor) -> tuple[int, int]:
    s_a, s_b = scale_of(a), scale_of(b)
    plain = (is_plain(a), is_plain(b))
    if all(plain):
        return 1, 1
    larger = max(s_a, s_b) if not any(plain) else (s_a if plain[0] else s_b)
    other = min(s_a, s_b) if not any(plain) else (s_b if plain[0] else s_a)
    ratio = np.float32(larger / other)
    factor = np.float32(BASE) if BASE * ratio <= LARGEST else np.float32(LARGEST) * (np.float32(1) / ratio)
    k_a, k_b = (max(1, int(np.float32(np.float32(larger / s) * factor))) for s in (s_a, s_b))
    return k_a, k_b


KERNELS = {
    **dict.fromkeys(
        ("add", "eltwise", "mul", "sub"),
        Kernel(
            lower_eltwise,
            run_eltwise,
            "(k0 * (a + zp_a) op k1 * (b + zp_b)) * M * 2^-N - zp_y",
            "Compass Optimizer, ops/eltwise.py; docs/rules/aipu/operators.md",
        ),
    ),
    "logical": Kernel(lower_logical, run_logical,
        "(a + zp_a) * k_a compared with (b + zp_b) * k_b; AND, OR, XOR, NOT of values",
        "Compass Optimizer, ops/logical.py; docs/rules/aipu/operators.md"),
    "squared_difference": Kernel(lower_squared_difference, run_squared_difference,
        "RNE(clamp32((x_0 - x_1)^2) * M * 2^-N) - zp_y",
        "Compass Optimizer, ops/squared_difference.py; docs/rules/aipu/operators.md"),
}  # fmt: skip
