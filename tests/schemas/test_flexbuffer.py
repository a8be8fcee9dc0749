"""Flexbuffers: equal to the runtime's reader and writer where these work, damage refused."""

from __future__ import annotations

import array
import re
import time

import pytest
from flatbuffers import flexbuffers
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.errors import FormatError
from tflq.limits import Limits, apply_limits
from tflq.schemas.flatbuffer.table import same
from tflq.schemas.tflite.flexbuffer import decode_flexbuffer, encode_flexbuffer

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8)
)
KEYS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=5) | st.dictionaries(KEYS, v, max_size=5), max_leaves=20)
SAMPLE = {
    "a": [1, -2, 3.5, None, True, "text", b"blob"],
    "nested": {"x": 1 << 40, "y": [[], {}], "z": 1e300},
    "w": "ü" * 300,
}


@given(VALUES)
def test_any_value_survives(value):
    assert decode_flexbuffer(encode_flexbuffer(value), "options") == value


@settings(max_examples=300)
@given(st.recursive(LEAVES, lambda v: st.lists(v, max_size=5), max_leaves=20))
def test_the_runtime_reads_what_we_write(value):
    assert flexbuffers.Loads(encode_flexbuffer(value)) == value


def test_every_type_that_the_runtime_writes_is_read():
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.IndirectInt("ii", -5)
        builder.IndirectUInt("iu", 5)
        builder.IndirectFloat("if", 2.5)
        builder.TypedVectorFromElements("ti", [1, -300, 3])
        builder.TypedVectorFromElements("tf", array.array("f", [1.5, 2.5]))
        builder.TypedVectorFromElements("td", array.array("d", [1e300]))
        builder.TypedVectorFromElements("tb", [True, False, True])
        builder.TypedVectorFromElements("tk", ["k1", "k2"], flexbuffers.Type.KEY)
        builder.FixedTypedVectorFromElements("f2", [1, 2])
        builder.FixedTypedVectorFromElements("f3", [1.0, 2.0, 3.0])
        builder.FixedTypedVectorFromElements("f4", [1, 2, 3, 70000])
        builder.Null("n")
        builder.String("s", "é")
        builder.Blob("b", b"\0\xff")
        builder.UInt("u", (1 << 64) - 1)
    data = bytes(builder.Finish())
    assert decode_flexbuffer(data, "options") == flexbuffers.Loads(data)
    assert decode_flexbuffer(data, "options")["f4"] == [1, 2, 3, 70000]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.0, 3.5e38, 5e-324])
def test_unusual_floats_survive(value):
    assert same(decode_flexbuffer(encode_flexbuffer([value]), "options"), [value])


def attempt(data: bytes) -> None:
    try:
        value = decode_flexbuffer(data, "options")
    except FormatError as error:
        message = str(error)
    else:
        assert decode_flexbuffer(encode_flexbuffer(value), "again") == value or "nan" in repr(value)
        return
    assert re.fullmatch(r"options: flexbuffer.*: found .*; allowed is .*", message, re.DOTALL)


def test_every_byte_replaced_and_every_truncation():
    data = encode_flexbuffer(SAMPLE)
    for position in range(len(data)):
        attempt(data[:position])
        for value in (0, 1, 0x7F, 0x80, 0xFF, data[position] ^ 4, data[position] + 4 & 0xFF):
            attempt(data[:position] + bytes([value]) + data[position + 1 :])


@settings(max_examples=300, deadline=2000)
@given(st.binary(max_size=60))
def test_random_bytes(data):
    attempt(data)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0"])
def test_too_short(data):
    with pytest.raises(FormatError, match=r"options: flexbuffer: found . bytes; allowed is at least 3"):
        decode_flexbuffer(data, "options")


def test_shared_vectors_cannot_blow_up():
    """Each of 40 vectors refers to the one before ten times: 10^40 values in under a kilobyte."""
    data = bytearray([1, 5])
    vector = 1
    data += bytes([4])  # the type of the innermost element: an integer in one byte
    for _ in range(40):
        start = len(data) + 1
        data.append(10)
        data += bytes(start + i - vector for i in range(10))
        data += bytes([10 << 2] * 10)
        vector = start
    data += bytes([len(data) - vector, 10 << 2, 1])
    start_time = time.process_time()
    with pytest.raises(FormatError, match="referred to over and over"):
        decode_flexbuffer(bytes(data), "options")
    assert time.process_time() - start_time < 3


def test_a_vector_within_itself_is_refused():
    data = bytes([1, 0, 10 << 2, 2, 10 << 2, 1])
    with pytest.raises(FormatError, match=r"64 vectors within each other|over and over"):
        decode_flexbuffer(data, "options")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": {1: 2}}, r"options\.a: found the key 1"),
        ({"a\0b": 2}, "without a zero character"),
        ([1 << 64], r"options\[0\]: found 18446744073709551616; allowed are integers of 64 bits"),
        ([-(1 << 63) - 1], "64 bits"),
        ((1, 2), "found tuple; allowed are None, bool"),
    ],
)
def test_values_that_a_flexbuffer_does_not_hold(value, message):
    with pytest.raises(FormatError, match=message):
        encode_flexbuffer(value)


def test_nesting_is_limited():
    value = []
    for _ in range(63):
        value = [value]
    assert decode_flexbuffer(encode_flexbuffer(value), "options") == value
    for _ in range(3):
        value = [value]
    with apply_limits(Limits(max_depth=67)):
        assert decode_flexbuffer(encode_flexbuffer(value), "options") == value
        written = encode_flexbuffer(value)
    with pytest.raises(FormatError, match=r"more than 64 vectors within each other.*; raise the limit"):
        decode_flexbuffer(written, "options")
    with pytest.raises(FormatError, match="nested deeper than 64"):
        encode_flexbuffer(value)
