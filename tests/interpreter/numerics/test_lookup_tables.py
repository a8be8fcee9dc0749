"""Tables are indexed by the raw bits of a quantized value."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.graph import DType
from tflq.interpreter.numerics.lookup_tables import all_codes, look_up, look_up_513, lut513, make_table


def test_codes_stand_in_the_order_of_their_bits():
    assert all_codes(DType.INT8)[[0, 127, 128, 255]].tolist() == [0, 127, -128, -1]
    assert all_codes(DType.UINT8)[[0, 255]].tolist() == [0, 255]
    assert all_codes(DType.INT16)[[32767, 32768, 65535]].tolist() == [32767, -32768, -1]


@pytest.mark.parametrize("source", [DType.INT8, DType.UINT8, DType.INT16])
@pytest.mark.parametrize("target", [DType.INT8, DType.UINT8, DType.INT16, DType.INT32])
def test_look_up(source, target):
    table = make_table(lambda code: code // 3 & 0x7F, source, target)
    x = np.arange(source.minimum, source.maximum + 1).astype(source.storage).reshape(2, -1, 4)
    for view in (x, x[:, ::2], x[..., 1:3], x.transpose(2, 1, 0)):
        found = look_up(table, view)
        assert found.dtype == target.storage
        assert np.array_equal(found, view.astype(np.int64) // 3 & 0x7F)


def test_an_empty_array():
    table = make_table(lambda code: code, DType.INT8, DType.INT8)
    assert look_up(table, np.zeros((2, 0), np.int8)).shape == (2, 0)


def test_a_straight_line_is_itself():
    table = lut513(lambda x: x, 1.0, 0, 1.0)
    codes = np.arange(-32768, 32768, dtype=np.int64)
    assert np.abs(look_up_513(table, codes) - codes).max() <= 1
