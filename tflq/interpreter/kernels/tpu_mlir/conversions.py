"""QUANTIZE and DEQUANTIZE: into integers, from one integer type to another, out of integers.

Source: docs/rules/tpu_mlir.md, docs/rules/tpu_mlir_operators.md.

Into integers:
float32: sat(rha(f32(x * f32(1 / S))) + Z), a product as ties show.
float16: sat(rha(f16(x * f16(1 / S))) + Z): the product is itself a float16. Values that TPU-MLIR's simulator calls
float16 but does not round are not rounded before the product either. 8 bits: 8-bit m, s >= 0 about Sx / Sy; up(q * m,
s) if both zero points are 0, else away((q - Zx) * m, s) + Zy.
Out of integers, and between the two widths of reals:
8 bits -> float32: f32(q - Z) * f32(S). 8 bits -> float16: f16((q - Z) * f16(S)). Reals: one rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Affine, Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.activations import TableParams, run_curve, table_of
from tflq.interpreter.kernels.tpu_mlir.multiplier import (
    Multiplier,
    find_multiplier,
    saturate,
    shift_half_away,
    shift_half_up,
)
from tflq.interpreter.layers.reals import RealLine
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.operands.checks import EIGHT_BITS, require_type
from tflq.interpreter.registry import Kernel

MULTIPLIER_BITS = 8
_REALS = (DType.FLOAT32, DType.FLOAT16)


@dataclass(frozen=True, eq=False)
class QuantizeParams:
    """The params of one conversion.

    Attributes:
        affine: Quantization of the output.
        dtype: Storage type of the output.
        rescale: m and s between integers; None for reals.
        table: between integers; None for reals.
        half: whether float32 numbers are converted as if they were float16.
    """

    affine: Affine
    dtype: DType
    rescale: Multiplier | None = None
    table: TableParams | None = None
    half: bool = False

    @property
    def never_falls(self) -> bool:
        """Whether results never fall while reals rise: products, roundings, sums and clips of one scale do not."""
        return self.table is None

    @property
    def line(self) -> RealLine | None:
        """The rule without its ends; None if products are rounded to float16."""
        scale, zero_point = _inverse(self.affine, np.float32), int(self.affine.zero_point[0])
        return None if self.half else RealLine(scale.item(), 0.0, zero_point, is_away=True)


def lower_quantize(node: Node, operands: Operands) -> QuantizeParams:
    """Decide how QUANTIZE works.

    Raises:
        UnsupportedError: other types, or a ratio of scales without multiplier.
    """
    source, output = operands.input(0), operands.output()
    require_type(source, (*_REALS, *EIGHT_BITS))
    require_type(output, EIGHT_BITS)
    y = output.affine
    if source.dtype.is_floating:
        return QuantizeParams(y, output.dtype, half=node.attributes.boolean("half", False))
    x = source.affine
    multiplier = find_multiplier(float(x.scale[0]) / float(y.scale[0]), MULTIPLIER_BITS, 0)
    z_x, z_y = int(x.zero_point[0]), int(y.zero_point[0])
    shift = shift_half_up if z_x == 0 and z_y == 0 else shift_half_away

    def rule(codes: Integers) -> Array:
        return shift((codes - z_x) * multiplier.multiplier[0], multiplier.shift[0]) + z_y

    return QuantizeParams(y, output.dtype, multiplier, table_of(rule, operands))


def run_quantize(params: QuantizeParams, x: Array) -> tuple[Array, ...]:
    """Run QUANTIZE: float32, float16 or quantized [S, *shape] -> quantized [S, *shape]."""
    if params.table is not None:
        return run_curve(params.table, x)
    return (encode(x, params.affine, params.dtype, params.half),)


def encode(real: Array, affine: Affine, dtype: DType, half: bool = False) -> Array:
    """Return the quantized values of float32 or float16 numbers.

    Args:
        real: the numbers.
        affine: scale and zero point.
        dtype: Storage type of the quantized values.
        half: treat float32 numbers as float16, which they have not been rounded to.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        kind = np.float16 if half or real.dtype == np.float16 else np.float32
        steps = (real.astype(np.float32) * _inverse(affine, kind)).astype(kind).astype(np.float32)
        # 0 times an infinite inverse is no number, which TPU-MLIR converts to -2^31
        steps = np.where(np.isnan(steps), -np.inf, steps)
    return saturate(round_half_away(steps) + np.float32(affine.zero_point[0]), dtype)


def _inverse(affine: Affine, kind: type[np.floating]) -> np.float32:
    inverse: np.float32 = np.float32(kind(1.0 / np.float64(affine.scale[0])))
    return inverse


@dataclass(frozen=True, eq=False)
class DequantizeParams:
    """The params of one conversion.

    Attributes:
        affine: Quantization of integers; None for reals.
        dtype: Storage type of the output.
    """

    affine: Affine | None
    dtype: DType


def lower_dequantize(node: Node, operands: Operands) -> DequantizeParams:  # noqa: ARG001
    """Decide how DEQUANTIZE works.

    Raises:
        UnsupportedError: other types.
    """
    source, output = operands.input(0), operands.output()
    require_type(source, (*_REALS, *EIGHT_BITS))
    require_type(output, _REALS)
    return DequantizeParams(source.affine if source.dtype.is_integer else None, output.dtype)


def run_dequantize(params: DequantizeParams, x: Array) -> tuple[Array, ...]:
    """Run DEQUANTIZE: quantized values or reals [S, *shape] -> float32 or float16 [S, *shape]."""
    kind = params.dtype.storage
    with np.errstate(over="ignore"):
        if params.affine is None:
            return (x.astype(kind),)
        steps = (x.astype(np.int16) - np.int16(params.affine.zero_point[0])).astype(kind)
        return (np.multiply(steps, params.affine.scale[0].astype(kind), dtype=kind),)


KERNELS = {
    "quantize": Kernel(
        lower_quantize,
        run_quantize,
        "sat(rha(f32(x * f32(1 / S))) + Z)",
        "docs/rules/tpu_mlir.md, docs/rules/tpu_mlir_operators.md",
    ),
    "dequantize": Kernel(
        lower_dequantize, run_dequantize, "f32(q - Z) * f32(S)", "docs/rules/tpu_mlir.md#multipliers-and-conversions"
    ),
}
