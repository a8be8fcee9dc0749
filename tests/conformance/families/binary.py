"""Functions of two tensors whose shapes broadcast, and the few of more."""

from __future__ import annotations

import numpy as np

from tests.conformance import draws as d
from tests.conformance.case import Case, node_case
from tests.conformance.cells import Cell
from tests.conformance.draws import Draw
from tests.support.draw import broadcast_shapes
from tests.support.nodes import Operand, Result, sampled
from tflq.graph import Affine, Array, Attribute, DType

_FUSED = ("add", "sub", "mul", "div")
_COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
_RAW = ("maximum", "minimum", "neg")
_LONGER = ("squared_difference",)


def broadcast(draw: Draw, cell: Cell) -> Case:
    sizes = draw(broadcast_shapes(_ranks(cell), 4))
    x, y, out = _quantizations(draw, cell)
    operands = [d.data(draw, cell, sizes[0], x), d.data(draw, cell, sizes[1], y)]
    operands = _legal(draw, cell, operands)
    constant = d.whole(draw, 0, 3)
    operands = [d.either(draw, operand) if i == constant else operand for i, operand in enumerate(operands)]
    kind = Result(DType.BOOL) if cell.operator in _COMPARISONS else d.result(cell, out)
    return node_case(cell.operator, operands, [kind], **_attributes(draw, cell, x))


def _ranks(cell: Cell) -> int:
    return 4 if cell.operator in ("pow", "floor_div", "floor_mod", "squared_difference", "right_shift") else 6


def _quantizations(draw: Draw, cell: Cell) -> tuple[Affine | None, Affine | None, Affine | None]:
    if not cell.is_quantized:
        return None, None, None
    if cell.operator in _RAW:
        same = d.quantization(draw, cell.kind)
        return same, same, same
    low, high = (-16, -4) if cell.dtype is DType.INT16 else (-8, 1)
    if cell.operator in _COMPARISONS:
        low, high = -12, -1  # at 1 and above TFLite shifts by a negative count
    x, y = (d.quantization(draw, cell.kind, low, high) for _ in range(2))
    if cell.operator == "squared_difference":
        return x, y, d.affine(cell.dtype, d.whole(draw, 1, 3000) / 100, d.whole(draw, -128, 127))
    return x, y, d.quantization(draw, cell.kind, low, high)


def _legal(draw: Draw, cell: Cell, operands: list[Operand]) -> list[Operand]:
    first, second = (operand.value for operand in operands)
    if cell.operator in ("div", "floor_div", "floor_mod") and cell.dtype.is_integer:
        q = operands[1].quantization
        zero = 0 if q is None else int(q.zero_point[0])
        if q is None:
            first, second = first // 4, second >> d.whole(draw, 0, cell.dtype.bits - 3)
        second = np.where(second == zero, second - 1 if zero == cell.dtype.maximum else second + 1, second)
    if cell.operator == "pow":
        if cell.dtype.is_integer:
            first, second = first % 13 - 6, second % 9
        else:
            first, second = np.abs(first) % 9, second % 7
    if cell.operator == "stablehlo_shift_left":
        second = second & 7
    pair = (first.astype(cell.dtype.storage), second.astype(cell.dtype.storage))
    return [sampled(v, o.quantization, o.dtype) for v, o in zip(pair, operands, strict=True)]


def _attributes(draw: Draw, cell: Cell, x: Affine | None) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {}
    if cell.operator in _FUSED and cell.dtype is not DType.COMPLEX64:
        attributes["fused_activation_function"] = str(d.pick(draw, d.FUSED))
    if cell.operator in ("add", "sub") and cell.dtype is DType.INT16 and x is not None:
        attributes["pot_scale_int16"] = False
    return attributes


def power_of_two(draw: Draw, cell: Cell) -> Case:
    """ADD and SUB of int16 whose scales are powers of two."""
    if d.flag(draw):
        return broadcast(draw, cell)
    scales = [2.0**-10, 2.0 ** -(10 + d.whole(draw, 0, 15))]
    if d.flag(draw):
        scales.reverse()
    size = d.shape_of(draw)
    operands = [d.data(draw, cell, size, d.affine(cell.dtype, scale)) for scale in scales]
    options: dict[str, Attribute] = {"pot_scale_int16": True, "fused_activation_function": str(d.pick(draw, d.FUSED))}
    return node_case(cell.operator, operands, [d.result(cell, d.affine(cell.dtype, 2.0**-10))], **options)


def equal_shapes(draw: Draw, cell: Cell) -> Case:
    """ATAN2 and the STABLEHLO operators, which do not broadcast."""
    shape = d.shape_of(draw)
    operands = _legal(draw, cell, [d.data(draw, cell, shape), d.data(draw, cell, shape)])
    return node_case(cell.operator, operands, [cell.dtype])


def prelu(draw: Draw, cell: Cell) -> Case:
    sizes = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (1, 1, 4)), ((2, 3, 4), (4,)), ((5, 2, 3, 4), (2, 1, 1)), ((3,), ())]
    full, part = sizes[d.whole(draw, 0, len(sizes) - 1)]
    wide = cell.dtype is DType.INT16
    x, out = (d.quantization(draw, cell.kind, *((-16, -4) if wide else (-12, 3))) for _ in range(2))
    kind = DType.INT8 if wide else cell.dtype
    alpha = sampled(d.numbers(draw, kind, part), d.quantization(draw, kind) if cell.is_quantized else None)
    return node_case("prelu", [d.data(draw, cell, full, x), d.either(draw, alpha)], [d.result(cell, out)])


def add_n(draw: Draw, cell: Cell) -> Case:
    shape = d.shape_of(draw)
    return node_case("add_n", [d.data(draw, cell, shape) for _ in range(d.whole(draw, 2, 5))], [cell.dtype])


def select(draw: Draw, cell: Cell) -> Case:
    shape = d.shape_of(draw)
    q = d.quantization(draw, cell.kind)
    condition: Array
    if cell.operator == "select":
        condition = d.numbers(draw, DType.BOOL, [(), shape[:1], shape][d.whole(draw, 0, 2)])
        sizes = (shape, shape)
    else:
        condition = d.numbers(draw, DType.BOOL, [(), shape[-1:], shape][d.whole(draw, 0, 2)])
        sizes = (shape, shape[d.whole(draw, 0, len(shape)) :])
    operands = [sampled(condition), d.data(draw, cell, sizes[0], q), d.either(draw, d.data(draw, cell, sizes[1], q))]
    return node_case(cell.operator, operands, [d.result(cell, q)])
