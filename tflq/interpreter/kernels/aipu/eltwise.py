"""Eltwise, Add, Sub, Mul: two inputs on a common scale, then M / 2^N (docs/aipu.md, 5).

ADD, SUB, MAX, MIN: y = clamp(RNE((k0 * (a + zp_a) op k1 * (b + zp_b)) * M * 2^-N) - zp_y), k0 : k1 = s_b : s_a in 15
bits; equal scales and zero points give k0 = k1 = 1. MUL: r = s_y / (s_a * s_b). A fused RELU acts before M.

Source: Compass Optimizer, ops/eltwise.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.multiplier import LARGEST, WIDEST, Multiplier, find_multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_bits, multiplier_of, stated_multiplier
from tflq.interpreter.kernels.aipu.written import ADDITIVE, LINEAR, Value, Written, rescale_keys
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.samples import align

METHODS = ("ADD", "SUB", "MUL", "MAX", "MIN")
FUSED = ("NONE", "RELU", "RELU6")


@dataclass(frozen=True, eq=False)
class EltwiseParams:
    """The integers of one pair.

    Attributes:
        method: ADD, SUB, MUL, MAX or MIN.
        is_rectified: whether negative results become 0 first.
        factors: k0 and k1.
        input_offsets: zp_a and zp_b.
        rescale: M and N.
        offset: zp_y.
        minimum: smallest code.
        maximum: largest code.
        dtype: of the output.
        written: for the IR.
    """

    method: str
    is_rectified: bool
    factors: tuple[int, int]
    input_offsets: tuple[int, int]
    rescale: Multiplier
    offset: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    written: Written


def method_of(node: Node) -> str:
    """Return the method: a key of Eltwise, the name of Add, Sub and Mul."""
    return node.attributes.text("method") if node.operator == "eltwise" else node.operator.upper()


def lower(node: Node, operands: Operands) -> EltwiseParams:
    """Decide k0, k1, M and N.

    Raises:
        UnsupportedError: another method or fused activation.
    """
    method, fused = method_of(node), node.attributes.text("with_activation", "NONE")
    if method not in METHODS or fused not in FUSED:
        raise UnsupportedError(
            f"method={method}, with_activation={fused}; allowed are {', '.join(METHODS)} with {', '.join(FUSED)}"
        )
    a, b, output = operands.input(0), operands.input(1), operands.output()
    bits = multiplier_bits(node, output)
    factors, found = (1, 1), find_multiplier(1.0, bits)
    keys: dict[str, Value]
    if method == "MUL":
        found = multiplier_of(node, scale_of(output) / (scale_of(a) * scale_of(b)), bits)
        keys = rescale_keys(LINEAR, found, type_of_multiplier(bits))
    else:
        factors, found = _stated(node) or common_scale(method, a, b, output, bits=bits)
        keys = rescale_keys(ADDITIVE, found, "uint16")
        keys.update(scale_value=(found.first_m, *factors), scale_type=("uint16",) * 3)
    low, high = code_limits(output)
    return EltwiseParams(
        method,
        fused != "NONE",
        factors,
        (offset_of(a), offset_of(b)),
        found,
        offset_of(output),
        low,
        high,
        output.dtype.storage,
        Written(keys=keys),
    )


def run(params: EltwiseParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run the pair: codes [S, ...] and [S, ...] -> codes [S, ...]."""
    left, right = (x.astype(np.int64) + zp for x, zp in zip(align(a, b), params.input_offsets, strict=True))
    total = _combine(params.method, left * params.factors[0], right * params.factors[1])
    if params.is_rectified:
        total = np.maximum(total, 0)
    codes = np.clip(params.rescale.apply(total) - params.offset, params.minimum, params.maximum)
    return (codes.astype(params.dtype),)


def _combine(method: str, a: Integers, b: Integers) -> Integers:
    if method == "ADD":
        return a + b
    if method == "SUB":
        return a - b
    if method == "MUL":
        return a * b
    larger: Integers = np.maximum(a, b) if method == "MAX" else np.minimum(a, b)
    return larger


def _stated(node: Node) -> tuple[tuple[int, int], Multiplier] | None:
    """Return (k0, k1) and M, N of a quantised IR: scale_value=[M,k0,k1]."""
    found = stated_multiplier(node)
    if found is None or found.m.size != 3:
        return None
    return (int(found.m[1]), int(found.m[2])), Multiplier(found.m[:1], found.n[:1])


def common_scale(
    method: str, a: Tensor, b: Tensor, output: Tensor, limit: int = LARGEST, bits: int = 0
) -> tuple[tuple[int, int], Multiplier]:
    """Return (k0, k1), at most `limit`, and M, N of s_y / (s_a * s_b) / 2^S, M of `bits`, 0 for the output's width."""
    s_a, s_b, bits = scale_of(a), scale_of(b), bits or bits_of(output)
    if s_a == s_b and offset_of(a) == offset_of(b):
        # The tool forgets s_y for all but ADD here.
        return (1, 1), find_multiplier(scale_of(output) / s_a if method == "ADD" else 1.0, bits)
    of_a, of_b = find_multiplier(s_a, WIDEST + 1), find_multiplier(s_b, WIDEST + 1)
    shift = max(of_a.first_n, of_b.first_n)
    k0, k1 = (float(f.first_m) * 2.0 ** (shift - f.first_n) for f in (of_b, of_a))
    ratio = float(scale_of(output) / (s_a * s_b)) / 2.0**shift
    largest = max(k0, k1)
    if largest > limit:
        ratio *= largest / limit
        k0, k1 = (float(np.clip(np.rint(k * limit / largest), 0, limit)) for k in (k0, k1))
    found = find_multiplier(ratio, bits)
    if found.first_n < 0:
        widened = np.clip(found.m << -found.n, 1, limit)
        found = Multiplier(widened, np.zeros(1, np.int64))
    return (int(k0), int(k1)), found
