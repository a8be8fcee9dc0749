"""Operators whose operands name places: gathering, scattering, looking up, sorting out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from tests.conformance.case import Case, graph_case, node_case
from tests.conformance.cells import Cell
from tests.conformance.draws import (
    SAMPLES,
    Draw,
    data,
    either,
    flag,
    index_operand,
    int32,
    ints,
    numbers,
    pick,
    quantisation,
    result,
    rng_of,
    shape_of,
    whole,
)  # fmt: skip
from tests.converters.tflite.test_sparsity import layouts, sparsify
from tests.support.nodes import Result, fixed, sampled
from tflq.converters.tflite.extras import TensorExtra
from tflq.graph import Affine, DType, GraphBuilder


def gather(draw: Draw, cell: Cell) -> Case:
    shape, extra, q = shape_of(draw, 4, 4), shape_of(draw, 2, 3), quantisation(draw, cell.kind)
    axis = whole(draw, 0, len(shape) - 1)
    batches = whole(draw, 0, axis)
    if cell.dtype is DType.STRING:
        shape, axis, batches, extra = shape[:1], 0, 0, extra[:1]
    indices = rng_of(draw).integers(0, shape[axis], (SAMPLES, *shape[:batches], *extra))
    operands = [data(draw, cell, shape, q), index_operand(draw, indices)]
    return node_case("gather", operands, [result(cell, q)], axis=axis, batch_dims=batches)


def gather_nd(draw: Draw, cell: Cell) -> Case:
    shape, outer, q = shape_of(draw, 4, 4), shape_of(draw, 2, 3), quantisation(draw, cell.kind)
    axes = whole(draw, 1, len(shape))
    indices = rng_of(draw).integers(0, shape[:axes], (SAMPLES, *outer, axes))
    return node_case("gather_nd", [data(draw, cell, shape, q), index_operand(draw, indices)], [result(cell, q)])


def scatter_nd(draw: Draw, cell: Cell) -> Case:
    shape, outer, q = shape_of(draw, 4, 3), shape_of(draw, 2, 4), quantisation(draw, cell.kind)
    axes = whole(draw, 1, len(shape))
    indices = rng_of(draw).integers(0, shape[:axes], (SAMPLES, *outer, axes)).astype(np.int32)
    updates = data(draw, cell, (*outer, *shape[axes:]), q)
    return node_case("scatter_nd", [either(draw, sampled(indices)), updates, int32(shape)], [result(cell, q)])


def sparse_to_dense(draw: Draw, cell: Cell) -> Case:
    shape, count, q = shape_of(draw, 4, 4), whole(draw, 1, 5), quantisation(draw, cell.kind)
    indices = rng_of(draw).integers(0, shape, (SAMPLES, count, len(shape)))
    given = data(draw, cell, () if flag(draw) else (count,), q)
    default = fixed(numbers(draw, cell.dtype, ())[0], q)
    operands = [index_operand(draw, indices), ints(draw, shape), given, default]
    return node_case("sparse_to_dense", operands, [result(cell, q)])


def one_hot(draw: Draw, cell: Cell) -> Case:
    shape, depth, q = shape_of(draw, 3, 4), whole(draw, 1, 5), quantisation(draw, cell.kind)
    indices = rng_of(draw).integers(-1, depth + 1, (SAMPLES, *shape))
    on, off = data(draw, cell, (), q), either(draw, data(draw, cell, (), q))
    operands = [index_operand(draw, indices), int32(depth), on, off]
    return node_case("one_hot", operands, [result(cell, q)], axis=whole(draw, -1, len(shape)))


def embedding_lookup(draw: Draw, cell: Cell) -> Case:
    rows, columns = whole(draw, 1, 6), [whole(draw, 1, 4) for _ in range(whole(draw, 1, 2))]
    indices = rng_of(draw).integers(0, rows, (SAMPLES, whole(draw, 1, 5))).astype(np.int32)
    if not cell.is_quantised:
        table = data(draw, cell, (rows, *columns))
        return node_case("embedding_lookup", [sampled(indices), table], [cell.dtype])
    per_row = flag(draw)
    scales = rng_of(draw).uniform(0.01, 2, rows if per_row else 1).astype(np.float32)
    q = Affine(scales, np.zeros(scales.size, np.int64), 0 if per_row and rows > 1 else None, cell.dtype.bits,
               cell.dtype.is_signed)  # fmt: skip
    table = fixed(numbers(draw, cell.dtype, (rows, columns[0]))[0], q, cell.dtype)
    target = DType(str(pick(draw, ["float32", "float16"])))
    return node_case("embedding_lookup", [sampled(indices), table], [target])


def embedding_lookup_sparse(draw: Draw, cell: Cell) -> Case:
    rng, count, buckets = rng_of(draw), whole(draw, 1, 6), shape_of(draw, 2, 3)
    places = rng.integers(0, [*buckets, 9], (SAMPLES, count, len(buckets) + 1)).astype(np.int32)
    places = np.array([sorted(p.tolist()) for p in places], np.int32)
    operands = [
        sampled(rng.integers(0, 5, (SAMPLES, count)).astype(np.int32)),
        either(draw, sampled(places)),
        int32([*buckets, 9]),
        data(draw, cell, (count,)),
        fixed(numbers(draw, cell.dtype, (5, 2, 3))[0]),
    ]
    combiner = str(pick(draw, ["sum", "mean", "sqrtn"]))
    return node_case("embedding_lookup_sparse", operands, [cell.dtype], combiner=combiner)


def hashtable_lookup(draw: Draw, cell: Cell) -> Case:
    rng, count = rng_of(draw), whole(draw, 1, 6)
    keys = np.sort(rng.choice(20, count, replace=False)).astype(np.int32)
    wanted = sampled(rng.integers(-1, 20, (SAMPLES, whole(draw, 1, 6))).astype(np.int32))
    rows = () if cell.dtype is DType.STRING else (whole(draw, 1, 3),)
    table = fixed(numbers(draw, cell.dtype, (count, *rows))[0])
    return node_case("hashtable_lookup", [wanted, fixed(keys), table], [cell.dtype, DType.UINT8])


def segments(draw: Draw, cell: Cell) -> Case:
    """UNSORTED_SEGMENT_* and SEGMENT_SUM."""
    shape, rng = shape_of(draw, 3, 4), rng_of(draw)
    x = data(draw, cell, shape)
    if cell.operator == "segment_sum":
        ids = np.cumsum(np.concatenate([[0], rng.integers(0, 2, shape[0] - 1)])).astype(np.int32)
        return node_case("segment_sum", [x, fixed(ids)], [cell.dtype])
    count = whole(draw, 1, 5)
    ids = rng.integers(-1, count, (SAMPLES, *shape[: whole(draw, 0, len(shape))])).astype(np.int32)
    return node_case(cell.operator, [x, either(draw, sampled(ids)), int32(count)], [cell.dtype])


def topk(draw: Draw, cell: Cell) -> Case:
    shape, q = shape_of(draw, 3, 9), quantisation(draw, cell.kind)
    x = data(draw, cell, shape, q, bound=pick(draw, [None, 2]))
    kind = DType(str(pick(draw, ["int32", "int16"])))
    k = fixed(np.array(whole(draw, 0, shape[-1]), kind.storage))
    return node_case("topk_v2", [x, k], [result(cell, q), kind])


def reverse_sequence(draw: Draw, cell: Cell) -> Case:
    shape, q = (*shape_of(draw, 3, 4), 3), quantisation(draw, cell.kind)
    sequence, batch = draw(st.permutations(range(len(shape))))[:2]
    lengths = rng_of(draw).integers(1, shape[sequence] + 1, (SAMPLES, shape[batch]))
    operands = [data(draw, cell, shape, q), index_operand(draw, lengths)]
    return node_case("reverse_sequence", operands, [result(cell, q)], seq_dim=sequence, batch_dim=batch)


def diagonal(draw: Draw, cell: Cell) -> Case:
    """MATRIX_DIAG and MATRIX_SET_DIAG."""
    shape, q = shape_of(draw, 3, 4), quantisation(draw, cell.kind)
    if cell.operator == "matrix_diag":
        return node_case("matrix_diag", [data(draw, cell, shape, q)], [result(cell, q)])
    full = (*shape, whole(draw, 1, 4))
    operands = [data(draw, cell, full, q), either(draw, data(draw, cell, (*full[:-2], min(full[-2:])), q))]
    return node_case("matrix_set_diag", operands, [result(cell, q)])


def update(draw: Draw, cell: Cell) -> Case:
    """DYNAMIC_UPDATE_SLICE."""
    shape, q = shape_of(draw, 4, 4), quantisation(draw, cell.kind)
    box = [whole(draw, 1, n) for n in shape]
    start = rng_of(draw).integers(-2, 6, (SAMPLES, len(shape)))
    operands = [data(draw, cell, shape, q), either(draw, data(draw, cell, box, q)), index_operand(draw, start)]
    return node_case("dynamic_update_slice", operands, [result(cell, q)])


def dilate(draw: Draw, cell: Cell) -> Case:
    shape, q = shape_of(draw, 4, 4), quantisation(draw, cell.kind)
    steps = int32([whole(draw, 1, 3) for _ in shape])
    value = either(draw, data(draw, cell, (), q))
    return node_case("dilate", [data(draw, cell, shape, q), steps, value], [result(cell, q)])


def range_of(draw: Draw, cell: Cell) -> Case:
    start, delta = whole(draw, -20, 20), whole(draw, 1, 5) * int(pick(draw, [1, -1]))
    limit = start + delta * whole(draw, 0, 9)
    numbers_ = [np.array(n, cell.dtype.storage) / (2 if cell.dtype.is_floating else 1) for n in (start, limit, delta)]
    operands = [fixed(n.astype(cell.dtype.storage)) for n in numbers_]
    return node_case("range", operands, [cell.dtype])


def broadcast_args(draw: Draw, cell: Cell) -> Case:
    shape = shape_of(draw, 5, 3)
    other = [1 if flag(draw) else n for n in shape][whole(draw, 0, len(shape)) :]
    operands = [sampled(np.array([s] * SAMPLES, cell.dtype.storage).reshape(SAMPLES, len(s))) for s in (shape, other)]
    return node_case("broadcast_args", [operands[0], either(draw, operands[1])], [cell.dtype])


def where(draw: Draw, cell: Cell) -> Case:
    shape = shape_of(draw)
    zero = rng_of(draw).integers(0, 3, (SAMPLES, *shape)) == 0
    x = np.where(zero, np.zeros((), cell.dtype.storage), numbers(draw, cell.dtype, shape))
    return node_case("where", [sampled(x.astype(cell.dtype.storage))], [DType.INT64])


def unique(draw: Draw, cell: Cell) -> Case:
    x = rng_of(draw).integers(0, 5, (SAMPLES, whole(draw, 1, 12))) - 2 * (cell.dtype.value[0] != "u")
    kind = DType(str(pick(draw, ["int32", "int64"])))
    q = quantisation(draw, cell.kind)
    operand = sampled(x.astype(cell.dtype.storage), q)
    return node_case("unique", [operand], [Result(cell.dtype, q), kind], idx_out_type=kind.value)


def densify(draw: Draw, cell: Cell) -> Case:
    """DENSIFY of a constant that the file stores sparse."""
    shape, layout = draw(layouts())
    rng, q = rng_of(draw), quantisation(draw, cell.kind)
    dense = (rng.integers(-9, 9, shape) * (rng.random(shape) < 0.4)).astype(cell.dtype.storage)
    dense.reshape(-1)[0] = 5
    parameters, stored = sparsify(dense, layout)
    b = GraphBuilder("densify")
    constant = b.constant("sparse", dense, q)
    graph = b.build([b.add("densify", [constant], shape, cell.dtype, q)])
    extra = TensorExtra(sparsity=parameters, sparse_values=stored.tobytes())
    graph.tensors[constant] = replace(graph.tensors[constant], extra=extra)
    return graph_case(graph, [])
