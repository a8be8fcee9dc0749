"""Operators that move elements: slices, parts, gathers, blocks, borders."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.converters.exchange.emitter import BOOL, FLOAT32, INT32, INT64, Emitter, Rule, Value, turned, written_shape
from tflq.converters.passes.patterns import TO_FIRST, order_first
from tflq.errors import UnsupportedError
from tflq.interpreter.kernels.move.blocks import lower_depth_to_space, lower_space_to_depth
from tflq.interpreter.kernels.move.slices import lower_strided_slice

_BEFORE_START = -(1 << 31)  # what Slice takes for "through element 0" where steps go backwards


def transpose(e: Emitter) -> None:
    """TRANSPOSE: Transpose, its axes in the layout that is there."""
    x, order = e.at(0), [int(a) % len(e.output().shape) for a in e.constant_at(1)]
    e.result(e.transposed(x, order_first(order) if x.is_first else order, x.is_first))


def concatenation(e: Emitter) -> None:
    """CONCATENATION: Concat; channels first where one operand stands so."""
    tensors, shape = e.node.inputs, e.output().shape
    first = any(e.stored(t).is_first for t in tensors)
    values = [e.in_layout(t, first) for t in tensors]
    axis = e.node.attributes.integer("axis", 0)
    along = values[0].axis(axis)
    e.result(e.add("Concat", values, written_shape(shape, first), first=first, axis=along))


def pad(e: Emitter) -> None:
    """PAD, PADV2: Pad with a constant."""
    x, amounts = e.at(0), e.constant_at(1).astype(int)
    order = TO_FIRST if x.is_first else range(x.rank)
    pads = e.whole("pads", [int(amounts[a][side]) for side in (0, 1) for a in order])
    value = e.optional(2)
    fill = []
    if value is not None:
        data = e.tensor(value).data
        fill = [e.reshaped(e.in_layout(value, False), ()) if data is None else e.weights(value, data.reshape(()), 0)]
    e.result(e.add("Pad", [x, pads, *fill], written_shape(e.output().shape, x.is_first), mode="constant"))


def strided_slice(e: Emitter) -> None:
    """STRIDED_SLICE: Slice, and a Reshape where axes come or go."""
    params = lower_strided_slice(e.node, e.operands)
    x = e.at(0)
    taken = (p for p in params.picks if p is not None)
    parts = enumerate(slice(p, p + 1) if isinstance(p, int) else slice(*p) for p in taken)
    value = sliced(e, x, {x.axis(a): part for a, part in parts})
    if any(p is None or isinstance(p, int) for p in params.picks):
        value = e.reshaped(turned(e, value, False), e.output().shape)
    e.result(value)


def slice_(e: Emitter) -> None:
    """SLICE: Slice; a size of -1 goes to the end."""
    x = e.at(0)
    begin, size = ([int(v) for v in e.constant_at(p).reshape(-1)] for p in (1, 2))
    parts = enumerate(zip(begin, size, strict=True))
    e.result(sliced(e, x, {x.axis(a): slice(b, b + s if s >= 0 else None) for a, (b, s) in parts}))


def sliced(e: Emitter, x: Value, parts: Mapping[int, slice]) -> Value:
    """Return part of a value; whole axes need no entry."""
    ranges = {a: range(x.shape[a])[part] for a, part in sorted(parts.items())}
    cut = {a: r for a, r in ranges.items() if r != range(x.shape[a])}
    if not cut:
        return x
    starts = [r.start for r in cut.values()]
    stops = [_BEFORE_START if r.stop < 0 else r.stop for r in cut.values()]
    shape = [len(cut[a]) if a in cut else size for a, size in enumerate(x.shape)]
    numbers = (("starts", starts), ("ends", stops), ("axes", list(cut)), ("steps", [r.step for r in cut.values()]))
    return e.add("Slice", [x, *(e.whole(name, values) for name, values in numbers)], shape)


def split(e: Emitter) -> None:
    """SPLIT, SPLIT_V: Split."""
    is_even = e.node.operator == "split"
    x, axis = e.at(1 if is_even else 0), int(e.constant_at(0 if is_even else 2).flat[0])
    parts(e, x, axis)


def parts(e: Emitter, x: Value, axis: int) -> None:
    """Write each output of the node: the next part of a value along an axis of the model."""
    shapes = [written_shape(e.output(i).shape, x.is_first) for i in range(len(e.node.outputs))]
    along = x.axis(axis)
    sizes = e.whole("split", [shape[along] for shape in shapes])
    values = e.add_multi("Split", [x, sizes], [(shape, x.dtype) for shape in shapes], x.is_first, axis=along)
    for t, value in zip(e.node.outputs, values, strict=True):
        e.set_tensor(t, value)


def unpack(e: Emitter) -> None:
    """UNPACK: a Gather of each index."""
    x = e.plain(0)
    axis = e.node.attributes.integer("axis", 0) % x.rank
    for number, t in enumerate(e.node.outputs):
        index = e.whole(f"index_{number}", number)
        e.set_tensor(t, e.add("Gather", [x, index], e.tensor(t).shape, first=False, axis=axis))


def pack(e: Emitter) -> None:
    """PACK: each operand gets the new axis, then Concat."""
    shape = e.output().shape
    axis = e.node.attributes.integer("axis", 0) % len(shape)
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    values = [e.reshaped(e.plain(p), one) for p in range(len(e.node.inputs))]
    e.result(e.add("Concat", values, shape, first=False, axis=axis))


def gather(e: Emitter) -> None:
    """GATHER: Gather; with batch axes GatherND, where the axis stands right behind them.

    Raises:
        UnsupportedError: batch axes in front of an axis further back.
    """
    x, indices = e.at(0), e.plain(1)
    batch = e.node.attributes.integer("batch_dims", 0)
    axis = e.node.attributes.integer("axis", 0) % x.rank
    batch += indices.rank * (batch < 0)
    if not batch and indices.rank == 1:  # each axis stays what it is
        e.result(e.add("Gather", [x, indices], written_shape(e.output().shape, x.is_first), axis=x.axis(axis)))
        return
    x = e.plain(0)
    if not batch:
        e.result(e.add("Gather", [x, indices], e.output().shape, first=False, axis=axis))
    elif axis == batch:
        index = e.cast(e.reshaped(indices, (*indices.shape, 1)), INT64)
        e.result(e.add("GatherND", [x, index], e.output().shape, first=False, batch_dims=batch))
    else:
        raise UnsupportedError(f"gather along axis {axis} behind {batch} batch axes; axis {batch} can be written")


def embedding_lookup(e: Emitter) -> None:
    """EMBEDDING_LOOKUP: Gather of rows."""
    e.result(e.add("Gather", [e.plain(1), e.plain(0)], e.output().shape, first=False, axis=0))


def gather_nd(e: Emitter) -> None:
    """GATHER_ND: GatherND."""
    e.result(e.add("GatherND", [e.plain(0), e.cast(e.plain(1), INT64)], e.output().shape, first=False, batch_dims=0))


def scatter_nd(e: Emitter) -> None:
    """SCATTER_ND: ScatterND into zeros; indices that may repeat are added up.

    Raises:
        UnsupportedError: they may repeat, and the format's version has no sum.
    """
    indices, updates, shape = e.tensor(e.node.inputs[0]), e.plain(1), e.output().shape
    zeros = e.number("zeros", np.zeros(shape, updates.dtype))
    data = indices.data
    repeats = data is None or len(np.unique(data.reshape(-1, data.shape[-1]), axis=0)) < data[..., 0].size
    if repeats and not e.has("ScatterND:add"):
        raise UnsupportedError("scatter_nd whose indices may repeat; ONNX adds them up from opset 16 on: set opset=16")
    reduction = "add" if repeats else "none"
    index = e.cast(e.plain(0), INT64)
    e.result(e.add("ScatterND", [zeros, index, updates], shape, updates.dtype, reduction=reduction))


def one_hot(e: Emitter) -> None:
    """ONE_HOT: where the index is the place along the new axis `on`, else `off`."""
    shape = e.output().shape
    axis = e.node.attributes.integer("axis", 0) % len(shape)
    on, off = (e.reshaped(e.plain(p), ()) for p in (2, 3))
    mask = is_place(e, e.plain(0), shape[axis], axis)
    kind = INT32 if on.dtype == BOOL else on.dtype  # onnxruntime's Where does not take truth values
    found = e.add("Where", [mask, e.cast(on, kind), e.cast(off, kind)], shape, kind, False)
    e.result(e.cast(found, on.dtype))


def is_place(e: Emitter, indices: Value, depth: int, axis: int) -> Value:
    """Return, along a new axis of a length, where indices name the place: no place for those outside."""
    rank = indices.rank + 1
    spread = e.reshaped(indices, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    places = np.arange(depth, dtype=indices.dtype).reshape([depth if a == axis else 1 for a in range(rank)])
    return e.pair("Equal", spread, e.number("places", places), dtype=BOOL)


def expand(value_at: int, shape_at: int) -> Rule:
    """Return the rule of FILL and BROADCAST_TO: Expand."""

    def rule(e: Emitter) -> None:
        shape = e.output().shape
        e.constant_at(shape_at)
        e.result(e.add("Expand", [e.plain(value_at), e.whole("shape", shape)], shape, first=False))

    return rule


def tile(e: Emitter) -> None:
    """TILE: Tile."""
    x, counts = e.at(0), e.constant_at(1).reshape(-1)
    repeats = [int(counts[a]) for a in (TO_FIRST if x.is_first else range(x.rank))]
    shape = written_shape(e.output().shape, x.is_first)
    e.result(e.add("Tile", [x, e.whole("repeats", repeats)], shape))


def reverse(e: Emitter) -> None:
    """REVERSE_V2: Slice with steps of -1."""
    x = e.at(0)
    axes = {x.axis(int(a)) for a in e.constant_at(1).reshape(-1)}
    e.result(sliced(e, x, dict.fromkeys(axes, slice(None, None, -1))))


def reverse_sequence(e: Emitter) -> None:
    """REVERSE_SEQUENCE: ReverseSequence, which wants its two axes in front."""
    x, options = e.plain(0), e.node.attributes
    batch, sequence = options.integer("batch_dim", 0), options.integer("seq_dim")
    order = [batch, sequence, *(a for a in range(x.rank) if a not in (batch, sequence))]
    moved = x if order == list(range(x.rank)) else e.transposed(x, order)
    lengths = e.cast(e.plain(1), INT64)
    value = e.add("ReverseSequence", [moved, lengths], moved.shape, batch_axis=0, time_axis=1)
    e.result(value if moved is x else e.transposed(value, np.argsort(order).tolist()))


def mirror_pad(e: Emitter) -> None:
    """MIRROR_PAD: a Gather along each padded axis."""
    x, amounts = e.at(0), e.constant_at(1)
    symmetric = e.node.attributes.text("mode", "reflect") == "symmetric"
    shape = e.tensor(e.node.inputs[0]).shape
    for a, (before, after) in enumerate(amounts.astype(int).tolist()):
        if before or after:
            indices = np.pad(np.arange(shape[a]), (before, after), "symmetric" if symmetric else "reflect")
            along = x.axis(a)
            size = (*x.shape[:along], len(indices), *x.shape[along + 1 :])
            x = e.add("Gather", [x, e.whole(f"indices_{a}", indices.tolist())], size, axis=along)
    e.result(x)


def depth_to_space(e: Emitter) -> None:
    """DEPTH_TO_SPACE: blocks stand in front of channels; other types as for SPACE_TO_DEPTH."""
    block, shape = lower_depth_to_space(e.node, e.operands).block, e.output().shape
    if e.at(0).dtype == FLOAT32:
        e.result(e.add("DepthToSpace", [e.first(0)], written_shape(shape, True), blocksize=block, mode="DCR"))
        return
    n, h, w, c = e.plain(0).shape
    parts = e.reshaped(e.plain(0), (n, h, w, block, block, c // (block * block)))
    e.result(e.reshaped(e.transposed(parts, (0, 1, 3, 2, 4, 5)), shape))


def space_to_depth(e: Emitter) -> None:
    """SPACE_TO_DEPTH; of other types than float32, which onnxruntime does not have, by moving the axes of blocks."""
    block, shape = lower_space_to_depth(e.node, e.operands).block, e.output().shape
    if e.at(0).dtype == FLOAT32:
        e.result(e.add("SpaceToDepth", [e.first(0)], written_shape(shape, True), blocksize=block))
        return
    n, h, w, c = e.plain(0).shape
    parts = e.reshaped(e.plain(0), (n, h // block, block, w // block, block, c))
    e.result(e.reshaped(e.transposed(parts, (0, 1, 3, 2, 4, 5)), shape))


def space_to_batch(e: Emitter) -> None:
    """SPACE_TO_BATCH_ND: pad, cut each spatial axis into blocks, and move those in front."""
    x = e.plain(0)
    blocks, pads = ([*map(int, e.constant_at(1).reshape(-1))], e.constant_at(2).reshape(-1, 2).astype(int))
    before, after = (np.zeros(x.rank, int) for _ in range(2))
    before[1 : len(blocks) + 1], after[1 : len(blocks) + 1] = pads[:, 0], pads[:, 1]
    if pads.any():
        size = tuple(int(s) for s in np.add(x.shape, before + after))
        amounts = e.whole("pads", [*map(int, before), *map(int, after)])
        x = e.add("Pad", [x, amounts], size, mode="constant")
    shape, rest = [x.shape[0]], x.shape[len(blocks) + 1 :]
    for length, block in zip(x.shape[1:], blocks, strict=False):
        shape += [length // block, block]
    inside = [2 * i + 2 for i in range(len(blocks))]
    outside = [0, *(i - 1 for i in inside)]
    back = range(len(shape), len(shape) + len(rest))
    moved = e.transposed(e.reshaped(x, (*shape, *rest)), (*inside, *outside, *back))
    e.result(e.reshaped(moved, e.output().shape))


def batch_to_space(e: Emitter) -> None:
    """BATCH_TO_SPACE_ND: blocks of the batch go between the spatial axes, then the crop."""
    x = e.plain(0)
    blocks, crops = ([*map(int, e.constant_at(1).reshape(-1))], e.constant_at(2).reshape(-1, 2).astype(int))
    batch, count = x.shape[0] // int(np.prod(blocks)), len(blocks)
    split_up = e.reshaped(x, (*blocks, batch, *x.shape[1:]))
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    moved = e.transposed(split_up, (*order, *range(2 * count + 1, split_up.rank)))
    sizes = [size * block for size, block in zip(x.shape[1:], blocks, strict=False)]
    whole = e.reshaped(moved, (batch, *sizes, *x.shape[count + 1 :]))
    cut = {i + 1: slice(int(low), sizes[i] - int(high)) for i, (low, high) in enumerate(crops)}
    e.result(sliced(e, whole, cut))
