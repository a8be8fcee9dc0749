"""SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND, SPACE_TO_DEPTH and DEPTH_TO_SPACE against TFLite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_slice import TYPES
from tests.support.draw import affine, kernel_settings
from tests.support.nodes import Result, check, check_refused, fixed, sampled, values
from tests.support.types import QUANTIZED
from tflq.graph import DType

DEPTH_TYPES = [DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT32, DType.INT64]


def quantization(dtype):
    return affine(dtype, 0.5, 5 if dtype.bits == 8 else 0) if dtype in QUANTIZED else None


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_every_type_to_batch(oracle, dtype):
    q = quantization(dtype)
    operands = [sampled(values(0, (3, 2, 4, 5, 3), dtype), q), fixed([2, 3]), fixed([[1, 1], [0, 1]])]
    check(oracle, "space_to_batch_nd", operands, [Result(dtype, q)])


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_every_type_to_space(oracle, dtype):
    q = quantization(dtype)
    operands = [sampled(values(0, (3, 12, 2, 4, 3), dtype), q), fixed([2, 3]), fixed([[1, 0], [2, 2]])]
    check(oracle, "batch_to_space_nd", operands, [Result(dtype, q)])


@kernel_settings
@given(data=st.data(), spatial=st.integers(1, 2), seed=st.integers(0, 99))
def test_paddings(oracle, data, spatial, seed):
    sizes, blocks, amounts = [], [], []
    for _ in range(spatial):
        block, cells = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
        before = data.draw(st.integers(0, block * cells - 1))
        after = data.draw(st.integers(0, block * cells - 1 - before))
        sizes.append(block * cells - before - after)
        blocks.append(block)
        amounts.append([before, after])
    q = quantization(DType.INT8)
    operands = [sampled(values(seed, (2, 2, *sizes, 2), DType.INT8), q), fixed(blocks), fixed(amounts)]
    check(oracle, "space_to_batch_nd", operands, [Result(DType.INT8, q)])


def test_negative_paddings_crop(oracle):
    operands = [sampled(values(0, (2, 1, 5, 2), DType.FLOAT32)), fixed([2]), fixed([[-2, 1]])]
    check(oracle, "space_to_batch_nd", operands, [DType.FLOAT32])


@kernel_settings
@given(data=st.data(), spatial=st.integers(1, 2), seed=st.integers(0, 99))
def test_crops(oracle, data, spatial, seed):
    sizes = [data.draw(st.integers(1, 3)) for _ in range(spatial)]
    blocks = [data.draw(st.integers(1, 3)) for _ in range(spatial)]
    amounts, batches = [], 2
    for size, block in zip(sizes, blocks, strict=True):
        before = data.draw(st.integers(0, size * block - 1))
        amounts.append([before, data.draw(st.integers(0, size * block - 1 - before))])
        batches *= block
    q = quantization(DType.UINT8)
    operands = [sampled(values(seed, (2, batches, *sizes, 2), DType.UINT8), q), fixed(blocks), fixed(amounts)]
    check(oracle, "batch_to_space_nd", operands, [Result(DType.UINT8, q)])


@pytest.mark.parametrize("operator", ["space_to_batch_nd", "batch_to_space_nd"])
def test_refused(oracle, operator):
    x, none = sampled(values(0, (1, 3, 5, 2), DType.INT32)), fixed([[0, 0]])
    check_refused(oracle, operator, [x, fixed([2]), none], [DType.INT32], "blocks")
    check_refused(oracle, operator, [x, fixed([1, 1]), none], [DType.INT32], "do not fit")
    check_refused(oracle, operator, [x, fixed([0]), none], [DType.INT32], "1 or more")
    flat = sampled(values(0, (1, 3, 5), DType.INT32))
    check_refused(oracle, operator, [flat, fixed([1]), none], [DType.INT32], "3 or 4 axes")
    operand = sampled(values(0, (1, 3, 5, 2), DType.INT8), affine(DType.INT8, 1))
    result = Result(DType.INT8, affine(DType.INT8, 2))
    check_refused(oracle, operator, [operand, fixed([1]), none], [result], "scale")


def test_negative_crops_are_refused(oracle):
    x = sampled(values(0, (1, 2, 5, 2), DType.INT32))
    check_refused(oracle, "batch_to_space_nd", [x, fixed([2]), fixed([[-1, 0]])], [DType.INT32], "crops -1")


@pytest.mark.parametrize("dtype", DEPTH_TYPES, ids=lambda t: t.value)
@pytest.mark.parametrize("block", [1, 2, 3])
def test_depth(oracle, dtype, block):
    x = sampled(values(0, (2, 2, 2 * block, 3 * block, 2), dtype))
    check(oracle, "space_to_depth", [x], [dtype], block_size=block)
    x = sampled(values(0, (2, 2, 2, 3, 2 * block * block), dtype))
    check(oracle, "depth_to_space", [x], [dtype], block_size=block)


@pytest.mark.parametrize("operator", ["space_to_depth", "depth_to_space"])
def test_depth_refused(oracle, operator):
    x = sampled(values(0, (1, 1, 3, 4, 2), DType.INT8))
    for block in (0, 2):
        check_refused(oracle, operator, [x], [DType.INT8], "divide", block_size=block)
    wide = sampled(values(0, (1, 1, 2, 2, 4), DType.INT16))
    check_refused(oracle, operator, [wide], [DType.INT16], "takes", block_size=2)
