"""Quantized values to integers, to floating-point values, and back: Cast, Dequantize, Quantize.

Source: docs/rules/aipu/values.md, docs/rules/aipu/operators.md.

Cast: integers stay; floating-point values become y = clamp(RNE((x + zp_x) * M * 2^-N)) at scale 1, r = 1 / s_x in 15
bits. Beyond 16 bits the product is cut toward zero instead: the Optimizer omits the rounding there, and storing
truncates.

Quantized values to floating-point values, before a layer that runs in floating point: x = (q + zp) / s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Affine, Array, Node, Operands
from tflq.interpreter.kernels.aipu.imported import multiplier_of
from tflq.interpreter.kernels.aipu.multiplier import WIDEST, Multiplier, OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.scales import affine_of, bits_of, encode, is_plain, offset_of, scale_of
from tflq.interpreter.registry import Kernel

_ROUNDED_BITS = 16


@dataclass(frozen=True, eq=False)
class CastParams:
    """The params of one conversion.

    Attributes:
        input_offset: zp_x.
        rescale: M and N; None if quantized values are copied.
        codes: the output's quantized values.
        truncates: whether the product is cut toward zero.
    """

    input_offset: int
    rescale: Multiplier | None
    codes: OutputCodes
    truncates: bool = False


def lower_cast(node: Node, operands: Operands) -> CastParams:
    """Decide M and N of 1 / s_x; none for an input of plain integers."""
    x, output = operands.input(0), operands.output()
    if is_plain(x):
        return CastParams(0, None, codes_of(output))
    multiplier = multiplier_of(node, np.float32(1) / scale_of(x), WIDEST + 1)
    return CastParams(offset_of(x), multiplier, codes_of(output), bits_of(output) > _ROUNDED_BITS)


def run_cast(params: CastParams, x: Array) -> tuple[Array, ...]:
    """Run Cast: quantized [S, ...] -> integers [S, ...]."""
    if params.rescale is None:
        return (x.astype(params.codes.dtype),)
    total = x.astype(np.int64) + params.input_offset
    if not params.truncates:
        return (params.codes.requantize(total, params.rescale),)
    product = total.astype(np.float64) * params.rescale.first_m * np.exp2(-float(params.rescale.first_n))
    return (params.codes.store(np.trunc(product)),)


@dataclass(frozen=True, eq=False)
class DequantizeParams:
    """zp and s of the quantized values, and the type of the numbers.

    Float32, or integers and truth values of scale 1.
    """

    offset: int
    scale: np.float32
    dtype: np.dtype[np.generic]


def lower_dequantize(_node: Node, operands: Operands) -> DequantizeParams:
    """Take zp and s of the input."""
    x = operands.input(0)
    return DequantizeParams(offset_of(x), scale_of(x), operands.output().dtype.storage)


def run_dequantize(params: DequantizeParams, x: Array) -> tuple[Array, ...]:
    """Run it: quantized [S, ...] -> numbers [S, ...], the division in float32."""
    real = (x.astype(np.int64) + params.offset).astype(np.float32) / params.scale
    return (real.astype(params.dtype),)


@dataclass(frozen=True, eq=False)
class QuantizeParams:
    """The type of the quantized values."""

    affine: Affine
    dtype: np.dtype[np.generic]


def lower_quantize(_node: Node, operands: Operands) -> QuantizeParams:
    """Take the type of the output; one without quantization (indices) has s = 1."""
    y = operands.output()
    plain = affine_of(np.float32(1), 0, y.dtype.bits, y.dtype.is_signed)
    return QuantizeParams(y.affine if isinstance(y.quantization, Affine) else plain, y.dtype.storage)


def run_quantize(params: QuantizeParams, x: Array) -> tuple[Array, ...]:
    """Run it: numbers [S, ...] -> quantized [S, ...]."""
    return (encode(x, params.affine).astype(params.dtype),)


KERNELS = {
    "cast": Kernel(lower_cast, run_cast,
        "RNE((x + zp_x) * M * 2^-N) at scale 1; integers as they are",
        "Compass Optimizer, ops/cast.py; docs/rules/aipu/operators.md"),
    "dequantize": Kernel(lower_dequantize, run_dequantize,
        "(q + zp) / s", "Compass Optimizer, utils/quant_tool_utils.py, linear_dequantize; "
            "docs/rules/aipu/values.md#quantized-values"),
    "quantize": Kernel(lower_quantize, run_quantize, "clamp(RNE(f32(s * x) - zp))",
        "docs/rules/aipu/values.md#quantized-values"),
}  # fmt: skip
