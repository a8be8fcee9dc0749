"""Linear layers without weights: MatMul of two computed matrices, BiasAdd (docs/rules/aipu/operators.md).

MatMul: z = (x + zp_x) @ (y + zp_y), r = s_z / (s_x * s_y).

BiasAdd as the Optimizer computes it: y = clamp(RNE((q + b) * M * 2^-N) - zp_y), b at scale s_x * s_w. It replaces a
BatchNorm of weight 1, quantized with the activation's mode and 8 bits, but multiplies the data by 1 instead of by that
weight's quantized value, so that the biases dominate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import exact_dtype
from tflq.interpreter.kernels.aipu.float_sums import float_products, sums_of
from tflq.interpreter.kernels.aipu.imported import multiplier_bits, multiplier_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.scales import (
    constant_codes,
    magnitude_of,
    offset_of,
    required_constant,
    scale_of,
)
from tflq.interpreter.registry import Kernel

FUSED_MULTIPLIER = "fused_multiplier"
"""Requested option: the number m that a product is multiplied by, r = s_z * m / (s_x * s_y)."""


@dataclass(frozen=True, eq=False)
class MatMulParams:
    """The params of one product.

    Attributes:
        transposed: whether each input's last two axes change places.
        input_offsets: zp_x and zp_y.
        accumulator: a type in which every sum is exact.
        rescale: M and N.
        codes: Quantized values of the output.
        library: Library that computes the float32 sums; "" if they are exact.
        rank: Rank of the second operand.
    """

    transposed: tuple[bool, bool]
    input_offsets: tuple[int, int]
    accumulator: np.dtype[np.generic]
    rescale: Multiplier
    codes: OutputCodes
    library: str = ""
    rank: int = 2


def lower_mat_mul(node: Node, operands: Operands) -> MatMulParams:
    """Decide M and N."""
    a, b, output = operands.input(0), operands.input(1), operands.output()
    transposed = (node.attributes.boolean("trans_a"), node.attributes.boolean("trans_b"))
    bits = multiplier_bits(node, output)
    number = np.float32(node.attributes.real(FUSED_MULTIPLIER, 1.0))
    ratio = np.float32(scale_of(output) * number) / np.float32(scale_of(a) * scale_of(b))
    multiplier = multiplier_of(node, ratio, bits)
    depth = a.shape[-2 if transposed[0] else -1]
    offsets = (offset_of(a), offset_of(b))
    largest = [magnitude_of(t) + abs(zp) for t, zp in zip((a, b), offsets, strict=True)]
    return MatMulParams(
        transposed,
        offsets,
        exact_dtype(depth * largest[0] * largest[1]),
        multiplier,
        codes_of(output),
        sums_of(node),
        len(b.shape),
    )


def run_mat_mul(params: MatMulParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run MatMul: quantized [S, ..., I, K] and [S, ..., K, J] -> quantized [S, ..., I, J]."""
    sides = []
    for x, zp, is_transposed in zip((a, b), params.input_offsets, params.transposed, strict=True):
        real = x.astype(params.accumulator) + params.accumulator.type(zp)
        sides.append(np.swapaxes(real, -1, -2) if is_transposed else real)
    if params.library:
        total = float_products(sides[0], sides[1], params.rank, params.library)
    else:
        total = np.matmul(sides[0], sides[1])
    return (params.codes.requantize(total.astype(np.int64), params.rescale),)


BIASES = "biases"


@dataclass(frozen=True, eq=False)
class BiasAddParams:
    """The params of one BiasAdd: biases, shaped for their axis, M and N, how quantized values are stored."""

    biases: Integers
    rescale: Multiplier
    codes: OutputCodes


def lower_bias_add(node: Node, operands: Operands) -> BiasAddParams:
    """Decide M and N of s_y / s_b. Input [...]; biases int32[C] on the axis, the last unless the node names one.

    Raises:
        UnsupportedError: biases that do not fit the axis.
    """
    x, output, constant = operands.input(0), operands.output(), required_constant(operands, BIASES)
    biases = constant_codes(operands, BIASES)
    axis = node.attributes.integer("axis", -1) % len(x.shape)
    if biases.shape != (x.shape[axis],):
        raise UnsupportedError(f"biases {biases.shape} on an axis of {x.shape[axis]}; allowed is one for each place")
    multiplier = multiplier_of(node, scale_of(output) / scale_of(constant), multiplier_bits(node, output))
    shaped = biases.reshape(-1, *(1,) * (len(x.shape) - 1 - axis))
    return BiasAddParams(shaped, multiplier, codes_of(output))


def run_bias_add(params: BiasAddParams, x: Array, _biases: Array) -> tuple[Array, ...]:
    """Run BiasAdd: quantized [S, ...] -> quantized [S, ...]."""
    return (params.codes.requantize(x.astype(np.int64) + params.biases, params.rescale),)


KERNELS = {
    "bias_add": Kernel(lower_bias_add, run_bias_add,
        "RNE((q + b) * M * 2^-N) - zp_y", "Compass Optimizer, ops/bias_add.py; docs/rules/aipu/operators.md"),
    "mat_mul": Kernel(lower_mat_mul, run_mat_mul,
        "RNE(((x + zp_x) @ (y + zp_y)) * M * 2^-N) - zp_z", "Compass Optimizer, ops/matmul.py; "
            "docs/rules/aipu/operators.md"),
}  # fmt: skip
