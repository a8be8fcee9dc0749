"""Operators whose operands name places: gathering, scattering, looking up, sorting out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from tests.conformance import draws as d
from tests.conformance.case import Case, graph_case, node_case
from tests.conformance.cells import Cell
from tests.conformance.draws import Draw
from tests.converters.tflite.test_sparsity import layouts, sparsify
from tests.support.nodes import Result, fixed, sampled
from tflq.converters.tflite.extras import TensorExtra
from tflq.graph import Affine, DType, GraphBuilder


def gather(draw: Draw, cell: Cell) -> Case:
    shape, extra, q = d.shape_of(draw, 4, 4), d.shape_of(draw, 2, 3), d.quantization(draw, cell.kind)
    axis = d.whole(draw, 0, len(shape) - 1)
    batches = d.whole(draw, 0, axis)
    if cell.dtype is DType.STRING:
        shape, axis, batches, extra = shape[:1], 0, 0, extra[:1]
    indices = d.rng_of(draw).integers(0, shape[axis], (d.SAMPLES, *shape[:batches], *extra))
    operands = [d.data(draw, cell, shape, q), d.index_operand(draw, indices)]
    return node_case("gather", operands, [d.result(cell, q)], axis=axis, batch_dims=batches)


def gather_nd(draw: Draw, cell: Cell) -> Case:
    shape, outer, q = d.shape_of(draw, 4, 4), d.shape_of(draw, 2, 3), d.quantization(draw, cell.kind)
    axes = d.whole(draw, 1, len(shape))
    indices = d.rng_of(draw).integers(0, shape[:axes], (d.SAMPLES, *outer, axes))
    return node_case("gather_nd", [d.data(draw, cell, shape, q), d.index_operand(draw, indices)], [d.result(cell, q)])


def scatter_nd(draw: Draw, cell: Cell) -> Case:
    shape, outer, q = d.shape_of(draw, 4, 3), d.shape_of(draw, 2, 4), d.quantization(draw, cell.kind)
    axes = d.whole(draw, 1, len(shape))
    indices = d.rng_of(draw).integers(0, shape[:axes], (d.SAMPLES, *outer, axes)).astype(np.int32)
    updates = d.data(draw, cell, (*outer, *shape[axes:]), q)
    return node_case("scatter_nd", [d.either(draw, sampled(indices)), updates, d.int32(shape)], [d.result(cell, q)])


def sparse_to_dense(draw: Draw, cell: Cell) -> Case:
    shape, count, q = d.shape_of(draw, 4, 4), d.whole(draw, 1, 5), d.quantization(draw, cell.kind)
    indices = d.rng_of(draw).integers(0, shape, (d.SAMPLES, count, len(shape)))
    given = d.data(draw, cell, () if d.flag(draw) else (count,), q)
    default = fixed(d.numbers(draw, cell.dtype, ())[0], q)
    operands = [d.index_operand(draw, indices), d.ints(draw, shape), given, default]
    return node_case("sparse_to_dense", operands, [d.result(cell, q)])


def one_hot(draw: Draw, cell: Cell) -> Case:
    shape, depth, q = d.shape_of(draw, 3, 4), d.whole(draw, 1, 5), d.quantization(draw, cell.kind)
    indices = d.rng_of(draw).integers(-1, depth + 1, (d.SAMPLES, *shape))
    on, off = d.data(draw, cell, (), q), d.either(draw, d.data(draw, cell, (), q))
    operands = [d.index_operand(draw, indices), d.int32(depth), on, off]
    return node_case("one_hot", operands, [d.result(cell, q)], axis=d.whole(draw, -1, len(shape)))


def embedding_lookup(draw: Draw, cell: Cell) -> Case:
    rows, columns = d.whole(draw, 1, 6), [d.whole(draw, 1, 4) for _ in range(d.whole(draw, 1, 2))]
    indices = d.rng_of(draw).integers(0, rows, (d.SAMPLES, d.whole(draw, 1, 5))).astype(np.int32)
    if not cell.is_quantized:
        table = d.data(draw, cell, (rows, *columns))
        return node_case("embedding_lookup", [sampled(indices), table], [cell.dtype])
    per_row = d.flag(draw)
    scales = d.rng_of(draw).uniform(0.01, 2, rows if per_row else 1).astype(np.float32)
    q = Affine(scales, np.zeros(scales.size, np.int64), 0 if per_row and rows > 1 else None, cell.dtype.bits,
               cell.dtype.is_signed)  # fmt: skip
    table = fixed(d.numbers(draw, cell.dtype, (rows, columns[0]))[0], q, cell.dtype)
    target = DType(str(d.pick(draw, ["float32", "float16"])))
    return node_case("embedding_lookup", [sampled(indices), table], [target])


def embedding_lookup_sparse(draw: Draw, cell: Cell) -> Case:
    rng, count, buckets = d.rng_of(draw), d.whole(draw, 1, 6), d.shape_of(draw, 2, 3)
    places = rng.integers(0, [*buckets, 9], (d.SAMPLES, count, len(buckets) + 1)).astype(np.int32)
    places = np.array([sorted(p.tolist()) for p in places], np.int32)
    operands = [
        sampled(rng.integers(0, 5, (d.SAMPLES, count)).astype(np.int32)),
        d.either(draw, sampled(places)),
        d.int32([*buckets, 9]),
        d.data(draw, cell, (count,)),
        fixed(d.numbers(draw, cell.dtype, (5, 2, 3))[0]),
    ]
    combiner = str(d.pick(draw, ["sum", "mean", "sqrtn"]))
    return node_case("embedding_lookup_sparse", operands, [cell.dtype], combiner=combiner)


def hashtable_lookup(draw: Draw, cell: Cell) -> Case:
    rng, count = d.rng_of(draw), d.whole(draw, 1, 6)
    keys = np.sort(rng.choice(20, count, replace=False)).astype(np.int32)
    wanted = sampled(rng.integers(-1, 20, (d.SAMPLES, d.whole(draw, 1, 6))).astype(np.int32))
    rows = () if cell.dtype is DType.STRING else (d.whole(draw, 1, 3),)
    table = fixed(d.numbers(draw, cell.dtype, (count, *rows))[0])
    return node_case("hashtable_lookup", [wanted, fixed(keys), table], [cell.dtype, DType.UINT8])


def segments(draw: Draw, cell: Cell) -> Case:
    """UNSORTED_SEGMENT_* and SEGMENT_SUM."""
    shape, rng = d.shape_of(draw, 3, 4), d.rng_of(draw)
    x = d.data(draw, cell, shape)
    if cell.operator == "segment_sum":
        ids = np.cumsum(np.concatenate([[0], rng.integers(0, 2, shape[0] - 1)])).astype(np.int32)
        return node_case("segment_sum", [x, fixed(ids)], [cell.dtype])
    count = d.whole(draw, 1, 5)
    ids = rng.integers(-1, count, (d.SAMPLES, *shape[: d.whole(draw, 0, len(shape))])).astype(np.int32)
    return node_case(cell.operator, [x, d.either(draw, sampled(ids)), d.int32(count)], [cell.dtype])


def topk(draw: Draw, cell: Cell) -> Case:
    shape, q = d.shape_of(draw, 3, 9), d.quantization(draw, cell.kind)
    x = d.data(draw, cell, shape, q, bound=d.pick(draw, [None, 2]))
    kind = DType(str(d.pick(draw, ["int32", "int16"])))
    k = fixed(np.array(d.whole(draw, 0, shape[-1]), kind.storage))
    return node_case("topk_v2", [x, k], [d.result(cell, q), kind])


def reverse_sequence(draw: Draw, cell: Cell) -> Case:
    shape, q = (*d.shape_of(draw, 3, 4), 3), d.quantization(draw, cell.kind)
    sequence, batch = draw(st.permutations(range(len(shape))))[:2]
    lengths = d.rng_of(draw).integers(1, shape[sequence] + 1, (d.SAMPLES, shape[batch]))
    operands = [d.data(draw, cell, shape, q), d.index_operand(draw, lengths)]
    return node_case("reverse_sequence", operands, [d.result(cell, q)], seq_dim=sequence, batch_dim=batch)


def diagonal(draw: Draw, cell: Cell) -> Case:
    """MATRIX_DIAG and MATRIX_SET_DIAG."""
    shape, q = d.shape_of(draw, 3, 4), d.quantization(draw, cell.kind)
    if cell.operator == "matrix_diag":
        return node_case("matrix_diag", [d.data(draw, cell, shape, q)], [d.result(cell, q)])
    full = (*shape, d.whole(draw, 1, 4))
    operands = [d.data(draw, cell, full, q), d.either(draw, d.data(draw, cell, (*full[:-2], min(full[-2:])), q))]
    return node_case("matrix_set_diag", operands, [d.result(cell, q)])


def update(draw: Draw, cell: Cell) -> Case:
    """DYNAMIC_UPDATE_SLICE."""
    shape, q = d.shape_of(draw, 4, 4), d.quantization(draw, cell.kind)
    box = [d.whole(draw, 1, n) for n in shape]
    start = d.rng_of(draw).integers(-2, 6, (d.SAMPLES, len(shape)))
    operands = [d.data(draw, cell, shape, q), d.either(draw, d.data(draw, cell, box, q)), d.index_operand(draw, start)]
    return node_case("dynamic_update_slice", operands, [d.result(cell, q)])


def dilate(draw: Draw, cell: Cell) -> Case:
    shape, q = d.shape_of(draw, 4, 4), d.quantization(draw, cell.kind)
    steps = d.int32([d.whole(draw, 1, 3) for _ in shape])
    value = d.either(draw, d.data(draw, cell, (), q))
    return node_case("dilate", [d.data(draw, cell, shape, q), steps, value], [d.result(cell, q)])


def range_of(draw: Draw, cell: Cell) -> Case:
    start, delta = d.whole(draw, -20, 20), d.whole(draw, 1, 5) * int(d.pick(draw, [1, -1]))
    limit = start + delta * d.whole(draw, 0, 9)
    numbers_ = [np.array(n, cell.dtype.storage) / (2 if cell.dtype.is_floating else 1) for n in (start, limit, delta)]
    operands = [fixed(n.astype(cell.dtype.storage)) for n in numbers_]
    return node_case("range", operands, [cell.dtype])


def broadcast_args(draw: Draw, cell: Cell) -> Case:
    shape = d.shape_of(draw, 5, 3)
    other = [1 if d.flag(draw) else n for n in shape][d.whole(draw, 0, len(shape)) :]
    operands = [
        sampled(np.array([s] * d.SAMPLES, cell.dtype.storage).reshape(d.SAMPLES, len(s))) for s in (shape, other)
    ]
    return node_case("broadcast_args", [operands[0], d.either(draw, operands[1])], [cell.dtype])


def where(draw: Draw, cell: Cell) -> Case:
    shape = d.shape_of(draw)
    zero = d.rng_of(draw).integers(0, 3, (d.SAMPLES, *shape)) == 0
    x = np.where(zero, np.zeros((), cell.dtype.storage), d.numbers(draw, cell.dtype, shape))
    return node_case("where", [sampled(x.astype(cell.dtype.storage))], [DType.INT64])


def unique(draw: Draw, cell: Cell) -> Case:
    x = d.rng_of(draw).integers(0, 5, (d.SAMPLES, d.whole(draw, 1, 12))) - 2 * (cell.dtype.value[0] != "u")
    kind = DType(str(d.pick(draw, ["int32", "int64"])))
    q = d.quantization(draw, cell.kind)
    operand = sampled(x.astype(cell.dtype.storage), q)
    return node_case("unique", [operand], [Result(cell.dtype, q), kind], idx_out_type=kind.value)


def densify(draw: Draw, cell: Cell) -> Case:
    """DENSIFY of a constant that the file stores sparse."""
    shape, layout = draw(layouts())
    rng, q = d.rng_of(draw), d.quantization(draw, cell.kind)
    dense = (rng.integers(-9, 9, shape) * (rng.random(shape) < 0.4)).astype(cell.dtype.storage)
    dense.reshape(-1)[0] = 5
    parameters, stored = sparsify(dense, layout)
    b = GraphBuilder("densify")
    constant = b.constant("sparse", dense, q)
    graph = b.build([b.add("densify", [constant], shape, cell.dtype, q)])
    extra = TensorExtra(sparsity=parameters, sparse_values=stored.tobytes())
    graph.tensors[constant] = replace(graph.tensors[constant], extra=extra)
    return graph_case(graph, [])
