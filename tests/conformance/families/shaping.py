"""Operators that move whole tensors: new shapes, slices, padding, blocks, repetition, joining and splitting."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.conformance import draws as d
from tests.conformance.case import Case, node_case
from tests.conformance.cells import Cell
from tests.conformance.draws import Draw
from tests.support.nodes import Operand, sampled
from tflq.graph import Affine, Attribute, DType


def reshape(draw: Draw, cell: Cell) -> Case:
    shape, q = d.shape_of(draw), d.quantization(draw, cell.kind)
    wanted = list(draw(st.permutations([*shape, 1])))
    if d.flag(draw):
        wanted[d.whole(draw, 0, len(wanted) - 1)] = -1
    return _moved(cell, d.data(draw, cell, shape, q), [d.int32(wanted)], q)


def _moved(cell: Cell, x: Operand, rest: list[Operand], q: Affine | None, **attributes: Attribute) -> Case:
    return node_case(cell.operator, [x, *rest], [d.result(cell, q)], **attributes)


def squeeze(draw: Draw, cell: Cell) -> Case:
    shape = [int(n) for n in draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=1, max_size=6))]
    ones = [i for i, n in enumerate(shape) if n == 1]
    named = draw(st.lists(st.sampled_from(ones), unique=True)) if ones else []
    q = d.quantization(draw, cell.kind)
    return _moved(cell, d.data(draw, cell, shape, q), [], q, squeeze_dims=tuple(named))


def expand_dims(draw: Draw, cell: Cell) -> Case:
    shape, q = d.shape_of(draw), d.quantization(draw, cell.kind)
    axis = d.whole(draw, -len(shape) - 1, len(shape))
    return _moved(cell, d.data(draw, cell, shape, q), [d.ints(draw, [axis])], q)


def transpose(draw: Draw, cell: Cell) -> Case:
    shape, q = d.shape_of(draw, 6, 4), d.quantization(draw, cell.kind)
    order = [axis - len(shape) * d.flag(draw) for axis in draw(st.permutations(range(len(shape))))]
    return _moved(cell, d.data(draw, cell, shape, q), [d.int32(order)], q)


def part(draw: Draw, cell: Cell) -> Case:
    """SLICE."""
    shape, q = d.shape_of(draw, 5), d.quantization(draw, cell.kind)
    begin = [d.whole(draw, 0, n) for n in shape]
    size = [-1 if d.flag(draw) else d.whole(draw, 0, n - b) for n, b in zip(shape, begin, strict=True)]
    kind = np.int64 if d.flag(draw) else np.int32
    rest = [Operand(np.array(numbers_, kind), True) for numbers_ in (begin, size)]
    return _moved(cell, d.data(draw, cell, shape, q), rest, q)


def strided(draw: Draw, cell: Cell) -> Case:
    """STRIDED_SLICE; axes that are shrunk have an index within them."""
    shape, q = d.shape_of(draw), d.quantization(draw, cell.kind)
    count = d.whole(draw, 0, len(shape))
    strides = [int(d.pick(draw, [1, 1, 2, 3, -1, -2])) for _ in range(count)]
    shrink = d.whole(draw, 0, (1 << count) - 1)
    begin, end = [], []
    for i in range(count):
        is_shrunk = bool(shrink >> i & 1)
        begin.append(d.whole(draw, 0, shape[i] - 1) if is_shrunk else d.whole(draw, -6, 6))
        end.append(d.whole(draw, -6, 6))
        strides[i] = 1 if is_shrunk else strides[i]
    masks = {"begin_mask": d.whole(draw, 0, (1 << count) - 1) & ~shrink, "end_mask": d.whole(draw, 0, (1 << count) - 1)}
    rest = [d.int32(v) for v in (begin, end, strides)]
    return _moved(cell, d.data(draw, cell, shape, q), rest, q, shrink_axis_mask=shrink, **masks)


def pad(draw: Draw, cell: Cell) -> Case:
    """PAD, PADV2 and MIRROR_PAD."""
    shape, q = d.shape_of(draw), d.quantization(draw, cell.kind)
    mode = str(d.pick(draw, ["reflect", "symmetric"]))
    mirrored = cell.operator == "mirror_pad"
    limit = [n - (mode == "reflect") if mirrored else 3 for n in shape]
    amounts = d.ints(draw, [[d.whole(draw, 0, n) for _ in range(2)] for n in limit])
    rest = [amounts]
    if cell.operator == "padv2":
        rest.append(d.either(draw, sampled(d.numbers(draw, cell.dtype, ()), q, cell.dtype)))
    return _moved(cell, d.data(draw, cell, shape, q), rest, q, **({"mode": mode} if mirrored else {}))


def blocks(draw: Draw, cell: Cell) -> Case:
    """SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""
    size, q = d.whole(draw, 1, 3), d.quantization(draw, cell.kind)
    batch, rows, columns, depth = (d.whole(draw, 1, 3) for _ in range(4))
    if cell.operator.endswith("_nd"):
        return _batch_blocks(draw, cell, q)
    packed = cell.operator == "depth_to_space"
    shape = (batch, rows, columns, depth * size**2) if packed else (batch, rows * size, columns * size, depth)
    return _moved(cell, d.data(draw, cell, shape, q), [], q, block_size=size)


def _batch_blocks(draw: Draw, cell: Cell, q: Affine | None) -> Case:
    batch, rows, columns, depth = (d.whole(draw, 1, 3) for _ in range(4))
    block = [d.whole(draw, 1, 3) for _ in range(2)]
    if cell.operator == "batch_to_space_nd":
        sides = [n * k for n, k in zip((rows, columns), block, strict=True)]
        crops = [[d.whole(draw, 0, (n - 1) // 2) for _ in range(2)] for n in sides]
        shape, amounts = (batch * block[0] * block[1], rows, columns, depth), crops
    else:
        before = [[d.whole(draw, 0, 2), 0] for _ in range(2)]
        for axis, n in enumerate((rows, columns)):
            before[axis][1] = -(n + before[axis][0]) % block[axis]
        shape, amounts = (batch, rows, columns, depth), before
    return _moved(cell, d.data(draw, cell, shape, q), [d.int32(block), d.int32(amounts)], q)


def repeat(draw: Draw, cell: Cell) -> Case:
    """TILE."""
    shape, q = d.shape_of(draw, 4, 3), d.quantization(draw, cell.kind)
    return _moved(cell, d.data(draw, cell, shape, q), [d.ints(draw, [d.whole(draw, 1, 3) for _ in shape])], q)


def broadcast_to(draw: Draw, cell: Cell) -> Case:
    shape, q = d.shape_of(draw, 6, 3), d.quantization(draw, cell.kind)
    source = [1 if d.flag(draw) else n for n in shape][d.whole(draw, 0, len(shape) - 1) :]
    x = d.data(draw, cell, source, q)
    return node_case("broadcast_to", [x, d.ints(draw, shape)], [d.result(cell, q)], version=2)


def fill(draw: Draw, cell: Cell) -> Case:
    q = d.quantization(draw, cell.kind)
    value = d.data(draw, cell, (), q)
    return node_case("fill", [d.ints(draw, d.shape_of(draw)), value], [d.result(cell, q)])


def reverse(draw: Draw, cell: Cell) -> Case:
    """REVERSE_V2 of neighboring axes."""
    shape, q = d.shape_of(draw, 5, 3), d.quantization(draw, cell.kind)
    first = d.whole(draw, 0, len(shape) - 1)
    axes = draw(st.permutations(range(first, d.whole(draw, first, len(shape) - 1) + 1)))
    return _moved(cell, d.data(draw, cell, shape, q), [d.int32([a - len(shape) * d.flag(draw) for a in axes])], q)


def concatenation(draw: Draw, cell: Cell) -> Case:
    shape = list(d.shape_of(draw, 4, 4))
    axis = d.axis_of(draw, shape)
    same = d.quantization(draw, cell.kind)
    rescaled = cell.is_quantized and cell.dtype is DType.UINT8
    operands = []
    for _ in range(d.whole(draw, 1, 4)):
        shape[axis] = d.whole(draw, 1, 4)
        part_ = d.data(draw, cell, shape, d.quantization(draw, cell.kind) if rescaled else same)
        operands.append(d.either(draw, part_) if operands else part_)
    return node_case("concatenation", operands, [d.result(cell, same)], axis=axis)


def pack(draw: Draw, cell: Cell) -> Case:
    shape, q, count = d.shape_of(draw, 3, 4), d.quantization(draw, cell.kind), d.whole(draw, 1, 4)
    axis = d.whole(draw, -len(shape) - 1, len(shape))
    return node_case("pack", [d.data(draw, cell, shape, q) for _ in range(count)], [d.result(cell, q)],
                     values_count=count, axis=axis)  # fmt: skip


def unpack(draw: Draw, cell: Cell) -> Case:
    shape, q = d.shape_of(draw, 4, 3), d.quantization(draw, cell.kind)
    axis = d.axis_of(draw, shape)
    return node_case("unpack", [d.data(draw, cell, shape, q)], [d.result(cell, q)] * shape[axis],
                     num=shape[axis], axis=axis)  # fmt: skip


def split(draw: Draw, cell: Cell) -> Case:
    """SPLIT and SPLIT_V."""
    shape, q, count = list(d.shape_of(draw, 4, 3)), d.quantization(draw, cell.kind), d.whole(draw, 1, 4)
    axis = d.axis_of(draw, shape)
    if cell.operator == "split":
        shape[axis] *= count
        operands = [d.int32(axis), d.data(draw, cell, shape, q)]
    else:
        sizes = [d.whole(draw, 0, 3) for _ in range(count)]
        shape[axis] = max(1, sum(sizes))
        sizes[-1] += shape[axis] - sum(sizes)
        operands = [d.data(draw, cell, shape, q), d.ints(draw, sizes), d.int32(axis)]
    return node_case(cell.operator, operands, [d.result(cell, q)] * count, num_splits=count)
