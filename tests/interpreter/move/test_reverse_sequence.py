"""REVERSE_SEQUENCE against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_gather import operand
from tests.support.draw import shapes
from tests.support.nodes import check, check_refused, few, fixed, sampled, values
from tflq.errors import InputError
from tflq.graph import DType

TYPES = [DType.FLOAT32, DType.UINT8, DType.INT16, DType.INT32, DType.INT64]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
@pytest.mark.parametrize("lengths", [np.int32, np.int64])
def test_every_type(oracle, dtype, lengths):
    operands = [sampled(values(0, (3, 4, 6, 2), dtype)), fixed(np.array([1, 6, 0, -2], lengths))]
    check(oracle, "reverse_sequence", operands, [dtype], seq_dim=1, batch_dim=0)


@pytest.mark.parametrize("which", [(True, False), (False, True), (True, True)])
@few
@given(data=st.data(), shape=shapes(3, 4), seed=st.integers(0, 99))
def test_axes(oracle, which, data, shape, seed):
    shape = (*shape, 3)
    sequence, batch = data.draw(st.permutations(range(len(shape))))[:2]
    lengths = values(seed, (3, shape[batch]), DType.INT32) % (shape[sequence] + 1)
    operands = [operand(values(seed, (3, *shape), DType.UINT8), which[0]), operand(lengths, which[1])]
    check(oracle, "reverse_sequence", operands, [DType.UINT8], seq_dim=sequence, batch_dim=batch)


@pytest.mark.parametrize(
    ("lengths", "sequence", "batch", "message"),
    [([5, 1], 1, 0, "length 5"), ([1, 1], 0, 0, "two of the axes"), ([1], 1, 0, "shape"), ([1, 1], 2, 0, "axes")],
)
def test_refused(oracle, lengths, sequence, batch, message):
    operands = [sampled(values(0, (1, 2, 4), DType.UINT8)), fixed(lengths)]
    check_refused(oracle, "reverse_sequence", operands, [DType.UINT8], message, seq_dim=sequence, batch_dim=batch)


def test_a_second_length_that_is_too_long_is_refused(oracle):
    operands = [sampled(values(0, (1, 2, 4), DType.UINT8)), fixed([1, 5])]
    with pytest.raises(InputError, match="length 5"):
        check(oracle, "reverse_sequence", operands, [DType.UINT8], seq_dim=1, batch_dim=0)
