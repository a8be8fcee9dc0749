"""RESIZE_BILINEAR of quantized integers; scale and zero point are not looked at.

int8 and int16: positions are integers of 1/1024. scale = (1024 * in + out / 2) / out, or the same of in - 1 and out - 1
with align_corners; position = i * scale (+ scale / 2 - 512 with half_pixel_centers); low = max(position / 1024, 0),
high = min((position + 1023) / 1024, in - 1), each division toward zero. The sum of the four corners, weighted by
products of 1024ths, is divided by 2^20, rounded half away from zero: |accumulator| < 2^37 for int16.
uint8: the float32 blend of tflq.interpreter.numerics.bilinear, plus 0.5, truncated.
uint8 in LiteRT's optimized kernel: the same with each weight rounded to float32 before the product, in the order
(ly, lx), (ly, hx), (hy, lx), (hy, hx). Eightfold enlargement of 8 * n channels with half_pixel_centers is another
kernel there, in 8.8 fixed point, which is not modelled.
XNNPACK, 8 bits: the positions of that float32 blend; weights of 11 bits, w = half_to_even(part * 2^11); upper = (x[ly,
lx] << 11) + (x[ly, hx] - x[ly, lx]) * w_x, lower alike from row hy; y = ((upper << 11) + (lower - upper) * w_y + 2^21)
>> 22.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.float import resize_bilinear as plain
from tflq.interpreter.numerics.bilinear import Positions, ResizeBilinear, blend_float, lower_float, options
from tflq.interpreter.operands.movable import require_movable, resized_shape
from tflq.interpreter.registry import Kernel

ONE = 1 << 10
HALF = 1 << 19


@dataclass(frozen=True, eq=False)
class FixedPointBlend(ResizeBilinear):
    """Positions along height and width with parts in 2^-11, as XNNPACK has them."""


@dataclass(frozen=True, eq=False)
class WeightedBlend(ResizeBilinear):
    """Positions of a blend with one rounded weight per corner, as LiteRT's optimized kernel has them."""


def lower(node: Node, operands: Operands, fixed_point: bool = False, rounds_weights: bool = False) -> ResizeBilinear:
    """Decide positions.

    Args:
        node: RESIZE_BILINEAR.
        operands: Tensors of the node.
        fixed_point: XNNPACK's blend of 8 bits, in 11-bit weights.
        rounds_weights: Blend of LiteRT's optimized kernel, for uint8.

    Raises:
        GraphError: another rank than 4, a size below 1 or computed at run time.
        UnsupportedError: a type that TFLite does not resize, or both options at once.
    """
    dtype = operands.input(0).dtype
    if dtype is DType.FLOAT32:
        return plain.lower(node, operands)
    require_movable(node, operands.input(0), operands.output(), (DType.UINT8, DType.INT8, DType.INT16))
    if fixed_point and dtype is not DType.INT16:
        real = lower_float(node, operands)
        return FixedPointBlend(*(_round_to_11_bits(positions) for positions in (real.rows, real.columns)))
    if dtype is DType.UINT8:
        real = lower_float(node, operands)
        return WeightedBlend(real.rows, real.columns) if rounds_weights else real
    align, centers = options(node)
    shape, sizes = operands.input(0).shape, resized_shape(operands)
    return ResizeBilinear(*(_positions(shape[1 + i], sizes[i], align, centers) for i in range(2)))


def run(params: ResizeBilinear, x: Array, *_size: Array) -> tuple[Array, ...]:
    """Run RESIZE_BILINEAR: T[S, N, H, W, C] -> T[S, N, rows, columns, C]."""
    if x.dtype.kind == "f":
        return plain.run(params, x)
    if isinstance(params, FixedPointBlend):
        return (_blend_in_fixed_point(params, x),)
    if isinstance(params, WeightedBlend):
        return (_blend_with_weights(params, x),)
    if x.dtype == np.uint8:
        return ((blend_float(params, x) + np.float32(0.5)).astype(np.uint8),)
    wide = x.astype(np.int32 if x.dtype == np.int8 else np.int64)  # int8: |accumulator| < 2^29
    down, right = params.rows.part[:, None, None], params.columns.part[:, None]
    rows = np.take(wide, params.rows.low, 2) * (ONE - down) + np.take(wide, params.rows.high, 2) * down
    total = np.take(rows, params.columns.low, 3) * (ONE - right) + np.take(rows, params.columns.high, 3) * right
    magnitude = (np.abs(total) + HALF) >> 20
    return ((np.sign(total) * magnitude).astype(x.dtype),)


def _round_to_11_bits(positions: Positions) -> Positions:
    return replace(positions, part=np.rint(positions.part * np.float32(1 << 11)).astype(np.int32))


def _blend_with_weights(params: WeightedBlend, x: Array) -> Array:
    rows, columns, one = params.rows, params.columns, np.float32(1)
    down, right = rows.part.astype(np.float32)[:, None, None], columns.part.astype(np.float32)[:, None]
    total = np.zeros((), np.float32)
    for row, along in ((rows.low, one - down), (rows.high, down)):
        for column, across in ((columns.low, one - right), (columns.high, right)):
            corner = np.take(np.take(x, row, 2), column, 3).astype(np.float32)
            total = total + corner * (along * across)
    return np.asarray((total + np.float32(0.5)).astype(np.uint8))


def _blend_in_fixed_point(params: FixedPointBlend, x: Array) -> Array:
    rows, columns, wide = params.rows, params.columns, x.astype(np.int32)
    left, right = np.take(wide, columns.low, 3), np.take(wide, columns.high, 3)
    across = (left << 11) + (right - left) * columns.part[:, None]
    upper, lower_row = np.take(across, rows.low, 2), np.take(across, rows.high, 2)
    down = (upper << 11) + (lower_row - upper) * rows.part[:, None, None]
    return np.asarray((down + (1 << 21)) >> 22, x.dtype)


def _positions(size: int, wanted: int, align: bool, centers: bool) -> Positions:
    first, second = (size - 1, wanted - 1) if align and wanted > 1 else (size, wanted)
    scale = (ONE * first + second // 2) // second
    position = np.arange(wanted) * scale + (scale // 2 - ONE // 2 if centers else 0)
    low = np.maximum(_toward_zero(position), 0)
    high = np.minimum(_toward_zero(position + ONE - 1), size - 1)
    return Positions(np.minimum(low, size - 1), high, (position - ONE * low).astype(np.int32))


def _toward_zero(position: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.sign(position) * (np.abs(position) // ONE))


KERNELS = {
    "resize_bilinear": Kernel(lower, run,
        "RESIZE_BILINEAR of quantized integers; scale and zero point are not looked at",
        "TFLite kernels/resize_bilinear.cc and internal/reference/resize_bilinear.h (ResizeBilinearInteger)"),
}  # fmt: skip
