"""Reductions over axes: sums, products, extremes, their places, running sums."""

from __future__ import annotations

import numpy as np

from tests.conformance import draws as d
from tests.conformance.case import Case, StandIn, node_case
from tests.conformance.cells import Cell, Kind
from tests.conformance.draws import Draw
from tests.support.nodes import Operand, Result, sampled
from tests.support.reductions import axes_of
from tflq.graph import DType

_SAME = ("reduce_max", "reduce_min")
_SCALES = {"reduce_prod": (-10, 1)}


def reduction(draw: Draw, cell: Cell) -> Case:
    shape = d.shape_of(draw, 5, 6)
    low, high = _SCALES.get(cell.operator, (-8, 3))
    source = d.quantization(draw, cell.kind, low, high)
    target = source if cell.operator in _SAME else d.quantization(draw, cell.kind, low, high)
    axes = d.int32(draw(axes_of(shape)))
    x = d.data(draw, cell, shape, source)
    return node_case(cell.operator, [x, axes], [d.result(cell, target)], keep_dims=d.flag(draw))


def sum_of_signed(draw: Draw, cell: Cell) -> Case:
    """SUM of int8 and int16, which TFLite's reference kernel reads as uint8.

    The judge is the same sum of uint8: with every quantized value and zero point of int8 moved by 128; with quantized
    values and results of int16 that uint8 holds too.
    """
    shape, keep = d.shape_of(draw, 4, 5), d.flag(draw)
    axes = d.int32(draw(axes_of(shape)))
    u8 = Kind(DType.UINT8, True)
    narrow = [d.quantization(draw, u8, -8, 3) for _ in range(2)]
    codes = d.numbers(draw, DType.UINT8, shape)
    assert narrow[0] is not None
    assert narrow[1] is not None
    by_eight = cell.dtype is DType.INT8
    if not by_eight:
        narrow = [d.affine(DType.UINT8, float(q.scale[0])) for q in narrow if q is not None]
    moved = [
        d.affine(cell.dtype, float(q.scale[0]), int(q.zero_point[0]) - 128 * by_eight) for q in narrow if q is not None
    ]
    x = (codes ^ np.uint8(128)).view(np.int8) if by_eight else codes.astype(np.int16)
    judge = _sum(codes, narrow[0], axes, Result(DType.UINT8, narrow[1]), keep)
    case = _sum(x, moved[0], axes, Result(cell.dtype, moved[1]), keep)

    def restore(outputs: list[np.ndarray]) -> list[np.ndarray]:
        return [(y ^ np.uint8(128)).view(np.int8) if by_eight else y.astype(np.int16) for y in outputs]

    def fits(outputs: list[np.ndarray]) -> list[np.ndarray]:
        return outputs if by_eight else [np.clip(y, 0, 255) for y in outputs]

    return Case(case.model, case.inputs, defined=fits, stand_in=StandIn(judge.model, judge.inputs, restore))


def _sum(x: np.ndarray, q: object, axes: Operand, target: Result, keep: bool) -> Case:
    return node_case("sum", [sampled(x, q), axes], [target], keep_dims=keep)


def arg_extreme(draw: Draw, cell: Cell) -> Case:
    shape = d.shape_of(draw, 4, 7)
    kind = DType(str(d.pick(draw, ["int32", "int64"])))
    x = d.data(draw, cell, shape, d.quantization(draw, cell.kind), bound=d.pick(draw, [None, 3]))
    return node_case(cell.operator, [x, d.ints(draw, d.axis_of(draw, shape))], [kind], output_type=kind.value)


def cumsum(draw: Draw, cell: Cell) -> Case:
    shape = d.shape_of(draw, 4, 7)
    options = {"exclusive": d.flag(draw), "reverse": d.flag(draw)}
    return node_case("cumsum", [d.data(draw, cell, shape), d.int32(d.axis_of(draw, shape))], [cell.dtype], **options)


def reduce_window(draw: Draw, cell: Cell) -> Case:
    """REDUCE_WINDOW: window, strides and dilations of the window are constants of int64."""
    shape = d.shape_of(draw, 3, 6)
    window = [d.whole(draw, 1, n) for n in shape]
    names = ["add", "mul", "minimum", "maximum"] if cell.dtype is not DType.BOOL else ["all", "any"]
    start = d.numbers(draw, cell.dtype, ())[0]
    constants = [window, *([d.whole(draw, 1, 2) for _ in shape] for _ in range(2))]
    operands = [d.data(draw, cell, shape), sampled(np.broadcast_to(start, (3,)).copy())]
    operands += [Operand(np.array(c, np.int64), True) for c in constants]
    return node_case("reduce_window", operands, [cell.dtype], reduce_function=str(d.pick(draw, names)))
