"""STABLEHLO_GATHER and STABLEHLO_PAD against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_gather import operand
from tests.interpreter.move.test_slice import TYPES
from tests.support.draw import kernel_settings, shapes
from tests.support.nodes import check, check_refused, few, fixed, sampled, values
from tflq.errors import GraphError
from tflq.graph import DType

WHICH = [(True, False), (False, True), (True, True)]
NUMBERS = {
    "offset_dims": (1, 2),
    "collapsed_slice_dims": (0,),
    "start_index_map": (0, 1),
    "index_vector_dim": 1,
    "slice_sizes": (1, 3, 2),
}


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_gather_every_type(oracle, dtype, index):
    operands = [sampled(values(0, (3, 4, 6, 2), dtype)), fixed(np.array([[0, 1], [9, -3]], index))]
    check(oracle, "stablehlo_gather", operands, [dtype], **NUMBERS)


@st.composite
def gathers(draw):
    """A shape, the shape of the indices, and dimension numbers that fit them."""
    shape = draw(shapes(3, 4))
    rank = len(shape)
    sizes = [draw(st.integers(1, n)) for n in shape]
    collapsed = sorted(draw(st.sets(st.sampled_from(range(rank)))))
    for axis in collapsed:
        sizes[axis] = 1
    mapped = draw(st.permutations(range(rank)))[: draw(st.integers(1, rank))]
    batch = draw(shapes(2, 3))
    vector = draw(st.integers(0, len(batch)))
    indices = (*batch[:vector], len(mapped), *batch[vector:])
    total = len(batch) + rank - len(collapsed)
    offsets = sorted(draw(st.permutations(range(total)))[: rank - len(collapsed)])
    numbers = {
        "offset_dims": tuple(offsets),
        "collapsed_slice_dims": tuple(collapsed),
        "start_index_map": tuple(mapped),
        "index_vector_dim": vector,
        "slice_sizes": tuple(sizes),
    }
    return shape, indices, numbers


@pytest.mark.parametrize("which", WHICH)
@few
@given(drawn=gathers(), seed=st.integers(0, 99))
def test_gather(oracle, which, drawn, seed):
    shape, indices, numbers = drawn
    arrays = (values(seed, (2, *shape), DType.INT8), values(seed, (2, *indices), DType.INT32) % 7 - 2)
    operands = [operand(array, w) for array, w in zip(arrays, which, strict=True)]
    check(oracle, "stablehlo_gather", operands, [DType.INT8], **numbers)


@pytest.mark.parametrize(
    "changes",
    [{"slice_sizes": (1, 3)}, {"slice_sizes": (1, 7, 2)}, {"start_index_map": (0, 3)}, {"index_vector_dim": 2}],
)
def test_gather_refused(oracle, changes):
    operands = [sampled(values(0, (1, 4, 6, 2), DType.INT8)), fixed([[0, 1], [2, 3]])]
    with pytest.raises(GraphError, match="fit"):
        check(oracle, "stablehlo_gather", operands, [DType.INT8], **{**NUMBERS, **changes})


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_pad_every_type(oracle, dtype):
    operands = [sampled(values(0, (3, 4, 2), dtype)), sampled(values(1, (3,), dtype))]
    amounts = {"edge_padding_low": (1, -1), "edge_padding_high": (-2, 2), "interior_padding": (1, 2)}
    check(oracle, "stablehlo_pad", operands, [dtype], **amounts)


@kernel_settings
@given(data=st.data(), shape=shapes(4, 4), seed=st.integers(0, 99))
def test_pad(oracle, data, shape, seed):
    low, high = ([data.draw(st.integers(-3, 3)) for _ in shape] for _ in range(2))
    interior = [data.draw(st.integers(0, 2)) for _ in shape]
    amounts = {"edge_padding_low": tuple(low), "edge_padding_high": tuple(high), "interior_padding": tuple(interior)}
    operands = [sampled(values(seed, (2, *shape), DType.INT8)), fixed(np.int8(-5))]
    check(oracle, "stablehlo_pad", operands, [DType.INT8], **amounts)


def test_pad_refused(oracle):
    operands = [sampled(values(0, (1, 4), DType.INT8)), fixed(np.int8(-5))]
    amounts = {"edge_padding_low": (1,), "edge_padding_high": (2,), "interior_padding": (-1,)}
    with pytest.raises(GraphError, match="interior padding is"):
        check(oracle, "stablehlo_pad", operands, [DType.INT8], **amounts)
    wide = [operands[0], fixed(np.int16(0))]
    check_refused(oracle, "stablehlo_pad", wide, [DType.INT8], "equal types", **{**amounts, "interior_padding": (0,)})
