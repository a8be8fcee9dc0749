"""EMBEDDING_LOOKUP, EMBEDDING_LOOKUP_SPARSE and HASHTABLE_LOOKUP against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_gather import operand
from tests.support.draw import affine, shapes
from tests.support.nodes import check, check_refused, few, fixed, sampled, values
from tests.support.single_op import check_against_oracle
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Blockwise, DType, GraphBuilder
from tflq.interpreter import lower

MOVED = [
    DType.FLOAT32, DType.FLOAT16, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.BOOL,
    DType.INT4, DType.INT2,
]  # fmt: skip
TABLES = [DType.UINT8, DType.INT8, DType.INT4, DType.INT2]
INDICES = sampled(np.array([[3, 0], [1, 1]], np.int32))


@pytest.mark.parametrize("dtype", MOVED, ids=lambda t: t.value)
def test_moved(oracle, dtype):
    check(oracle, "embedding_lookup", [INDICES, fixed(values(0, (4, 2, 4), dtype), dtype=dtype)], [dtype])


@pytest.mark.parametrize("output", [DType.FLOAT32, DType.FLOAT16], ids=lambda t: t.value)
@pytest.mark.parametrize("dtype", TABLES, ids=lambda t: t.value)
@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("columns", [8, 5, 3])
def test_dequantized(oracle, dtype, output, per_row, columns):
    scales = np.random.default_rng(1).uniform(0.01, 2, 4 if per_row else 1).astype(np.float32)
    q = Affine(scales, np.zeros(scales.size, np.int64), 0 if per_row else None, dtype.bits, dtype.is_signed)
    table = fixed(values(0, (4, columns), dtype), q, dtype)
    check(oracle, "embedding_lookup", [INDICES, table], [output])


def test_sampled_tables(oracle):
    table = sampled(values(0, (2, 4, 3), DType.INT8), affine(DType.INT8, 0.25))
    check(oracle, "embedding_lookup", [INDICES, table], [DType.FLOAT32])


def test_lookup_refused(oracle):
    table = fixed(values(0, (4, 3), DType.INT8), affine(DType.INT8, 0.25))
    for index in (4, -1):
        check_refused(oracle, "embedding_lookup", [fixed([index]), table], [DType.FLOAT32], "the table has 0..3")
    shifted = fixed(values(0, (4, 3), DType.INT8), affine(DType.INT8, 0.25, 3))
    check_refused(oracle, "embedding_lookup", [INDICES, shifted], [DType.FLOAT32], "zero point 3")
    check_refused(oracle, "embedding_lookup", [INDICES, fixed([1, 2, 3])], [DType.INT32], "two or more")


def in_blocks(dtype, output, size=4, rows=4):
    """A graph with a table of 4 rows of 8 in blocks of `size`."""
    b = GraphBuilder("blocks")
    indices = b.input("indices", (2,), DType.INT32)
    scales = b.constant("scales", np.random.default_rng(0).uniform(0.1, 1, (rows, 8 // size)).astype(np.float16))
    table = b.constant("table", values(0, (4, 8), dtype), Blockwise(scales, -1, size), dtype)
    return b.build([b.add("embedding_lookup", [indices, table], (2, 8), output, version=4)])


@pytest.mark.parametrize("output", [DType.FLOAT32, DType.FLOAT16], ids=lambda t: t.value)
@pytest.mark.parametrize("dtype", [DType.INT4, DType.INT2], ids=lambda t: t.value)
@pytest.mark.parametrize("size", [4, 8])
def test_blocks(oracle, dtype, output, size):
    check_against_oracle(oracle, in_blocks(dtype, output, size), [INDICES.value])


def test_blocks_refused():
    with pytest.raises(GraphError, match="needs a constant of 8 scales"):
        lower(in_blocks(DType.INT4, DType.FLOAT32, rows=3))
    with pytest.raises(GraphError, match="blocks of 3"):
        lower(in_blocks(DType.INT4, DType.FLOAT32, size=3))
    with pytest.raises(UnsupportedError, match="takes int4, int2"):
        lower(in_blocks(DType.INT8, DType.FLOAT32))


def test_lookup_without_scales_is_refused(oracle):
    with pytest.raises(UnsupportedError, match="no scales"):
        check(oracle, "embedding_lookup", [INDICES, fixed(values(0, (4, 3), DType.INT8))], [DType.FLOAT32])


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("which", [(True, False), (False, True), (True, True)])
@few
@given(data=st.data(), buckets=shapes(2, 3), count=st.integers(1, 6), seed=st.integers(0, 99))
def test_sparse(oracle, combiner, which, data, buckets, count, seed):
    rows = values(seed, (2, count), DType.INT32) % 5
    places = values(seed + 1, (2, count, len(buckets) + 1), DType.INT32) % np.array([*buckets, 9], np.int32)
    if data.draw(st.booleans()):  # in order, as TensorFlow gives them
        places = np.array([sorted(p.tolist()) for p in places], np.int32)
    operands = [
        operand(rows, which[0]),
        operand(places, which[0]),
        fixed([*buckets, 9]),
        operand(values(seed, (2, count), DType.FLOAT32), which[1]),
        fixed(values(seed, (5, 2, 3), DType.FLOAT32)),
    ]
    check(oracle, "embedding_lookup_sparse", operands, [DType.FLOAT32], combiner=combiner)


def test_sparse_refused(oracle):
    weights, table = sampled(values(0, (1, 1), DType.FLOAT32)), fixed(values(0, (4, 3), DType.FLOAT32))
    operands = [fixed([4]), fixed([[0, 0]]), fixed([2, 2]), weights, table]
    check_refused(oracle, "embedding_lookup_sparse", operands, [DType.FLOAT32], "the table has 0..3")
    operands = [fixed([1, 2]), fixed([[0, 0]]), fixed([2, 2]), weights, table]
    check_refused(oracle, "embedding_lookup_sparse", operands, [DType.FLOAT32], "do not fit")


@pytest.mark.parametrize("dtype", MOVED[:-2], ids=lambda t: t.value)
def test_hashtable(oracle, dtype):
    wanted = sampled(np.array([[3, 0, -5], [1, 1, 9]], np.int32))
    operands = [wanted, fixed([-5, 0, 1, 7]), fixed(values(0, (4, 2), dtype))]
    check(oracle, "hashtable_lookup", operands, [dtype, DType.UINT8])


def test_hashtable_of_strings(oracle):
    wanted = sampled(np.array([[3, 0, -5], [1, 1, 9]], np.int32))
    operands = [wanted, fixed([-5, 0, 1, 7]), fixed(np.array([b"a", b"", b"word", b"x\0y"], object))]
    check(oracle, "hashtable_lookup", operands, [DType.STRING, DType.UINT8])


@pytest.mark.parametrize("which", [(True, False, False), (False, True, False), (True, True, True)])
@few
@given(count=st.integers(1, 9), seed=st.integers(0, 99))
def test_unsorted_and_equal_keys(oracle, which, count, seed):
    wanted, keys = values(seed, (2, 5), DType.INT32) % 6, values(seed + 1, (2, count), DType.INT32) % 6
    arrays = (wanted, keys, values(seed, (2, count, 2), DType.INT8))
    operands = [operand(array, w) for array, w in zip(arrays, which, strict=True)]
    check(oracle, "hashtable_lookup", operands, [DType.INT8, DType.UINT8])


def test_hashtable_refused(oracle):
    wanted, table = sampled(np.array([[3]], np.int32)), fixed(values(0, (4, 2), DType.INT8))
    check_refused(oracle, "hashtable_lookup", [wanted, fixed([1, 2]), table], [DType.INT8, DType.UINT8], "do not fit")
    keys = fixed(np.array([1, 2, 3, 4], np.int64))
    check_refused(oracle, "hashtable_lookup", [wanted, keys, table], [DType.INT8, DType.UINT8], "takes int32")


def test_an_empty_table_is_refused(oracle):
    wanted, table = sampled(np.array([[3]], np.int32)), fixed(values(0, (0, 2), DType.INT8))
    operands = [wanted, fixed(np.zeros(0, np.int32)), table]
    with pytest.raises(GraphError, match="empty"):
        check(oracle, "hashtable_lookup", operands, [DType.INT8, DType.UINT8])
