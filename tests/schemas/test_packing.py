"""Narrow integers and tensors of strings: packed as TFLite packs them, damage refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from tflq.errors import FormatError
from tflq.schemas.tflite.packing import pack, pack_strings, unpack, unpack_strings


def test_the_first_element_lies_in_the_low_bits():
    assert pack(np.array([1, -2, 7], np.int8), 4).tolist() == [0xE1, 0x07]
    assert pack(np.array([15, 1], np.uint8), 4).tolist() == [0x1F]
    assert pack(np.array([1, -2, 0, -1, 1], np.int8), 2).tolist() == [0b11_00_10_01, 0b01]
    assert unpack(np.array([0xE1, 0x07], np.uint8), 3, 4, is_signed=True).tolist() == [1, -2, 7]
    assert unpack(np.array([0xE1], np.uint8), 2, 4, is_signed=False).tolist() == [1, 14]
    assert unpack(np.array([0b11001001], np.uint8), 4, 2, is_signed=True).tolist() == [1, -2, 0, -1]
    assert unpack(np.array([0b11001001], np.uint8), 3, 2, is_signed=False).tolist() == [1, 2, 0]


@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("signed", [True, False])
@given(data=st.data())
def test_unpacking_undoes_packing(bits, signed, data):
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    dtype = np.int8 if signed else np.uint8
    values = data.draw(stn.arrays(dtype, st.integers(0, 70), elements=st.integers(low, high)))
    packed = pack(values, bits)
    assert packed.size == -(-values.size * bits // 8)
    back = unpack(packed, values.size, bits, is_signed=signed)
    assert back.dtype == dtype
    assert np.array_equal(back, values)


def test_values_sizes_and_widths_that_do_not_fit():
    with pytest.raises(FormatError, match="values: found -9 to 0; allowed in 4 bits are -8 to 7"):
        pack(np.array([0, -9], np.int8), 4)
    with pytest.raises(FormatError, match="found 0 to 4; allowed in 2 bits are 0 to 3"):
        pack(np.array([0, 4], np.uint8), 2)
    with pytest.raises(FormatError, match="weights: found 2 bytes; 5 elements of 4 bits take 3"):
        unpack(np.zeros(2, np.uint8), 5, 4, is_signed=True, where="weights")
    with pytest.raises(FormatError, match="bits: found 3; allowed are 2 and 4"):
        pack(np.zeros(2, np.int8), 3)


@given(st.lists(st.binary(max_size=9), max_size=9))
def test_strings_survive(strings):
    packed = pack_strings(strings)
    assert unpack_strings(packed).tolist() == strings
    assert packed.size == 4 * (len(strings) + 2) + sum(map(len, strings))


def test_strings_are_packed_as_tflite_does():
    assert pack_strings([b"ab", "é"]).tobytes() == b"\2\0\0\0\x10\0\0\0\x12\0\0\0\x14\0\0\0ab\xc3\xa9"
    array = np.array([[b"a", b"bc"]], object)
    assert unpack_strings(pack_strings(array)).tolist() == [b"a", b"bc"]


@given(st.binary(max_size=60))
def test_random_bytes_are_strings_or_refused(data):
    try:
        strings = unpack_strings(np.frombuffer(data, np.uint8), "labels")
    except FormatError as error:
        message = str(error)
    else:
        assert pack_strings(strings).tobytes() == data
        return
    assert message.startswith("labels: found")


@pytest.mark.parametrize("position", range(20))
@pytest.mark.parametrize("value", [0, 1, 0x7F, 0x80, 0xFF])
def test_damaged_strings_are_refused(position, value):
    data = bytearray(pack_strings([b"ab", b"cd"]).tobytes())
    data[position] = value
    try:
        strings = unpack_strings(np.frombuffer(bytes(data), np.uint8))
    except FormatError:
        return
    assert pack_strings(strings).tobytes() == bytes(data)
