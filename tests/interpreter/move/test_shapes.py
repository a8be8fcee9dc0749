"""SHAPE, RANK, FILL, RANGE, BROADCAST_TO and BROADCAST_ARGS against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_gather import operand
from tests.interpreter.move.test_slice import TYPES
from tests.support.draw import affine, broadcast_shapes, kernel_settings, shapes
from tests.support.nodes import Result, check, check_refused, few, fixed, long, sampled, values
from tflq.graph import DType

NUMBERS = [DType.INT32, DType.INT64, DType.FLOAT32]


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64])
@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 4)])
def test_shape(oracle, dtype, shape):
    x = sampled(values(0, (2, *shape), DType.INT8))
    check(oracle, "shape", [x], [dtype], out_type=dtype.value)


@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 4)])
def test_rank(oracle, shape):
    check(oracle, "rank", [sampled(values(0, (2, *shape), DType.FLOAT32))], [DType.INT32])


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
@pytest.mark.parametrize("shape", [[], [3], [2, 0, 4], [2, 3]])
def test_fill(oracle, dtype, shape):
    check(oracle, "fill", [fixed(shape), sampled(values(0, (2,), dtype))], [dtype])


def test_fill_strings(oracle):
    check(oracle, "fill", [long([2, 3]), sampled(np.array([b"word", b"\0"], object))], [DType.STRING])


def test_fill_quantized(oracle):
    q = affine(DType.INT8, 0.5, 3)
    check(oracle, "fill", [fixed([2]), fixed(np.int8(5), q)], [Result(DType.INT8, q)])


def test_fill_refused(oracle):
    value = sampled(values(0, (1,), DType.INT8))
    check_refused(oracle, "fill", [fixed([2, -1]), value], [DType.INT8], "0 or more")
    check_refused(oracle, "fill", [fixed([2]), sampled(values(0, (1, 1), DType.INT8))], [DType.INT8], "scalar")
    check_refused(oracle, "fill", [fixed([2]), value], [Result(DType.INT8, affine(DType.INT8, 2))], "scale")


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda t: t.value)
@pytest.mark.parametrize(("start", "limit", "delta"), [(0, 10, 3), (5, -7, -2), (3, 3, 1), (-4, 5, 9)])
def test_range(oracle, dtype, start, limit, delta):
    operands = [fixed(np.array(number, dtype.storage)) for number in (start, limit, delta)]
    check(oracle, "range", operands, [dtype])


@kernel_settings
@given(start=st.floats(-50, 50, width=32), length=st.floats(0, 99, width=32), delta=st.floats(0.125, 9, width=32))
def test_range_of_floats(oracle, start, length, delta):
    operands = [fixed(np.float32(number)) for number in (start, start + length, delta)]
    check(oracle, "range", operands, [DType.FLOAT32])


@pytest.mark.parametrize(("start", "limit", "delta"), [(0, 10, 0), (0, 10, -1), (10, 0, 1)])
def test_range_refused(oracle, start, limit, delta):
    operands = [fixed(np.array(number, np.int32)) for number in (start, limit, delta)]
    check_refused(oracle, "range", operands, [DType.INT32], "delta")


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_broadcast_to(oracle, dtype):
    check(oracle, "broadcast_to", [sampled(values(0, (2, 3, 1), dtype)), long([2, 3, 4])], [dtype])


@kernel_settings
@given(data=st.data(), shape=shapes(6, 3), seed=st.integers(0, 99))
def test_broadcast_to_shapes(oracle, data, shape, seed):
    source = [data.draw(st.sampled_from([1, n])) for n in shape][data.draw(st.integers(0, len(shape))) :]
    check(oracle, "broadcast_to", [sampled(values(seed, (2, *source), DType.INT8)), fixed(list(shape))], [DType.INT8])


def test_broadcast_to_refused(oracle):
    x = sampled(values(0, (1, 2, 3), DType.INT8))
    for shape in ([2, 4], [3], [2, 1]):
        check_refused(oracle, "broadcast_to", [x, fixed(shape)], [DType.INT8], "does not broadcast")
    strings = sampled(values(0, (1, 2), DType.STRING))
    check_refused(oracle, "broadcast_to", [strings, fixed([2, 2])], [DType.STRING], "takes")


@pytest.mark.parametrize("which", [(True, False), (False, True), (True, True), (False, False)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@few
@given(pair=broadcast_shapes())
def test_broadcast_args(oracle, dtype, which, pair):
    operands = [operand(np.array([s] * 2, dtype).reshape(2, len(s)), w) for s, w in zip(pair, which, strict=True)]
    check(oracle, "broadcast_args", operands, [DType.of(dtype)])


def test_broadcast_args_refused(oracle):
    operands = [sampled(np.array([[2, 3]], np.int32)), fixed([4])]
    check_refused(oracle, "broadcast_args", operands, [DType.INT32], "do not broadcast")
