"""Damaged files: one FormatError that says where, what and what is allowed; never a crash, a hang or much memory."""

from __future__ import annotations

import re
import struct
import time
import tracemalloc

import flatbuffers
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.schemas.sample import sample_model
from tflq.errors import FormatError
from tflq.limits import Limits, apply_limits
from tflq.schemas.flatbuffer import encode
from tflq.schemas.tflite import (
    Buffer,
    BuiltinOperator,
    BuiltinOptions,
    MatrixSetDiagOptions,
    Model,
    Operator,
    OperatorCode,
    SubGraph,
    Tensor,
    decode_model,
    encode_model,
)
from tflq.schemas.tflite.codec import describe_trailing

SAMPLE = encode_model(sample_model())
OUTSIDE = encode_model(sample_model(), external_buffers_above=32)


def attempt(data: bytes) -> Model | None:
    """Read damaged data; return the model if it is one, None if it is refused in one line."""
    try:
        return decode_model(data, "damaged.tflite")
    except FormatError as error:
        message = str(error)
    assert re.fullmatch(r"damaged\.tflite: .*found .*allowed .*", message)
    return None


def refused(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        decode_model(data, "bad.tflite")


def patched(data: bytes, position: int, content: bytes) -> bytes:
    return data[:position] + content + data[position + len(content) :]


def test_empty_short_and_foreign_files():
    refused(b"", "bad.tflite: found an empty file; allowed is a TFLite model")
    refused(b"TFL3", "bad.tflite: Model: found 4 bytes; allowed is at least the 8 bytes")
    refused(b"\x89PNG\r\n\x1a\n" + bytes(100), r"found the file identifier b'\\r\\n\\x1a\\n'; allowed is b'TFL3'")
    refused(patched(SAMPLE, 4, b"TFL2"), "found the file identifier b'TFL2'; allowed is b'TFL3'; give a file")
    refused(b"\x08\0\0\0TFL3", "Model: found an offset to byte 8")


@pytest.mark.parametrize("version", [0, 1, 2, 4])
def test_other_versions_of_the_schema(version):
    refused(encode(Model(version=version), b"TFL3"), rf"Model\.version: found {version}; allowed is 3; convert")


@pytest.mark.parametrize("data", [SAMPLE, OUTSIDE], ids=["inside", "outside"])
def test_truncated_at_every_byte(data):
    slack = 0 if data is SAMPLE else 30
    for cut in range(len(data) - slack):
        assert attempt(data[:cut]) is None, cut


def test_longer_than_its_contents():
    assert attempt(SAMPLE + bytes(4096)) == sample_model()
    for behind, words in (
        (b"x", "1 bytes behind the model that nothing refers to"),
        (b"PK\x05\x06" + bytes(18), "22 bytes behind the model: an empty ZIP archive"),
        (b"PK\x03\x04 no archive", "15 bytes behind the model that nothing refers to"),
        (SAMPLE, f"{len(SAMPLE)} bytes behind the model that nothing refers to"),
        (b"y" + bytes(5000), "5001 bytes behind the model that nothing refers to"),
    ):
        read = decode_model(SAMPLE + behind, "longer")
        assert read.trailing_bytes.tobytes() == behind
        assert describe_trailing(behind) == words
        assert decode_model(encode_model(read), "again") == read
        del read.trailing_bytes
        assert read == sample_model()
    assert decode_model(SAMPLE + bytes(5000), "longer").trailing_bytes.size == 5000 - 4096


@pytest.mark.parametrize("value", [0x00, 0x01, 0x7F, 0x80, 0xFF])
@pytest.mark.parametrize("data", [SAMPLE, OUTSIDE], ids=["inside", "outside"])
def test_every_byte_replaced(data, value):
    for position in range(len(data)):
        model = attempt(patched(data, position, bytes([value])))
        if model is not None and position % 7 == 0:
            assert decode_model(encode_model(model), "again") == model


@pytest.mark.parametrize("value", [0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0x00010000, 4])
def test_every_word_replaced(value):
    for position in range(0, len(SAMPLE) - 4, 4):
        attempt(patched(SAMPLE, position, struct.pack("<I", value)))


MUTATIONS = st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.binary(min_size=1, max_size=8)), max_size=12)


@settings(max_examples=400, deadline=2000)
@given(MUTATIONS)
def test_random_changes(mutations):
    data = SAMPLE
    for position, content in mutations:
        data = patched(data, position, content)
    model = attempt(data[: len(SAMPLE)])
    if model is not None:
        try:
            written = encode_model(model)
        except FormatError:
            return
        assert decode_model(written, "again") == model


@settings(max_examples=200, deadline=2000)
@given(st.binary(max_size=400))
@example(b"\x08\0\0\0" + bytes(4))
def test_random_bytes_behind_an_identifier(content):
    attempt(content[:4].ljust(4, b"\0") + b"TFL3" + content[4:])


class Raw:
    """Writes tables by hand, so that they can be wrong in ways that our encoder cannot."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1024)
        self.builder.ForceDefaults(True)

    def table(self, slots: int, **offsets: int) -> int:
        """Write a table whose field `s<slot>` holds an offset."""
        self.builder.StartObject(slots)
        for name, offset in offsets.items():
            self.builder.PrependUOffsetTRelativeSlot(int(name[1:]), offset, 0)
        return self.builder.EndObject()

    def vector(self, offsets: list[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return self.builder.EndVector()

    def model(self, **offsets: int) -> bytes:
        self.builder.StartObject(10)
        self.builder.PrependUint32Slot(0, 3, 0)
        for name, offset in offsets.items():
            self.builder.PrependUOffsetTRelativeSlot(int(name[1:]), offset, 0)
        self.builder.Finish(self.builder.EndObject(), file_identifier=b"TFL3")
        return bytes(self.builder.Output())


def cheaply(data: bytes) -> None:
    """Check that a file is refused within a second and with little memory."""
    tracemalloc.start()
    start = time.process_time()
    refused(data, "the same bytes referred to over and over; allowed is no more elements than a file of this size")
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 5  # tracemalloc slows it by about four
    assert peak < 100_000_000


def test_tables_shared_a_million_times():
    raw = Raw()
    operators = raw.vector([raw.table(1)] * 2000)
    data = raw.model(s2=raw.vector([raw.table(4, s3=operators)] * 2000))
    assert len(data) < 20_000
    cheaply(data)


def test_text_shared_a_thousand_times():
    raw = Raw()
    name = raw.builder.CreateString("x" * 100_000)
    cheaply(raw.model(s6=raw.vector([raw.table(2, s0=name)] * 10_000)))


def shared_numbers() -> bytes:
    """A thousand operators whose inputs are one list of 100 000 numbers."""
    raw = Raw()
    numbers = raw.builder.CreateNumpyVector(np.zeros(100_000, np.int32))
    operators = raw.vector([raw.table(4, s1=numbers)] * 1000)
    return raw.model(s2=raw.vector([raw.table(4, s3=operators)]))


def test_numbers_shared_a_thousand_times():
    cheaply(shared_numbers())


def test_the_limit_of_sharing_can_be_raised():
    data = shared_numbers()
    refused(data, r"raise the limit with limits expansion=N, TFLQ_MAX_EXPANSION=N or Limits\(max_expansion=N\)")
    with apply_limits(Limits(max_expansion=1100)):
        assert len(decode_model(data, "shared").subgraphs[0].operators) == 1000


def test_shared_tables_within_reason_are_read():
    raw = Raw()
    data = raw.model(s4=raw.vector([raw.table(3)] * 1000))
    assert decode_model(data, "shared") == Model(version=3, buffers=[Buffer() for _ in range(1000)])


def test_the_path_of_the_damage_is_named():
    model = Model(version=3, subgraphs=[SubGraph(tensors=[Tensor(), Tensor(shape=[7, 8, 9])])])
    data = encode_model(model)
    count = data.index(struct.pack("<4i", 3, 7, 8, 9))
    refused(
        patched(data, count, b"\xff\xff\xff\x7f"),
        r"^bad.tflite: Model\.subgraphs\[0\]\.tensors\[1\]\.shape: found 2147483647 elements of 4 bytes at byte \d+; "
        r"allowed is at most \d+; the file is damaged: get it again$",
    )


def test_text_without_its_end_or_of_another_encoding():
    data = encode_model(Model(version=3, description="wxyz"))
    start = data.index(b"wxyz")
    refused(patched(data, start + 4, b"!"), rf"Model\.description: found a string without its zero at byte {start + 4}")
    refused(patched(data, start + 1, b"\xff"), rf"Model\.description: found the byte 0xff at {start + 1} in a string")


def test_an_operator_newer_than_the_schema():
    data = encode_model(Model(version=3, operator_codes=[OperatorCode(builtin_code=BuiltinOperator.STABLEHLO_CBRT)]))
    place = data.index(struct.pack("<i", 208))
    refused(
        patched(data, place, struct.pack("<i", 210)),
        r"operator_codes\[0\]\.builtin_code: found BuiltinOperator 210; allowed is 0 to 209; .*update tflq",
    )


def test_a_union_of_unknown_type_or_without_type():
    operator = Operator(builtin_options=MatrixSetDiagOptions())
    data = encode_model(Model(version=3, subgraphs=[SubGraph(operators=[operator])]))
    code = BuiltinOptions.code(MatrixSetDiagOptions())
    (place,) = [i for i, byte in enumerate(data) if byte == code]
    refused(patched(data, place, b"\xc8"), r"builtin_options_type: found BuiltinOptions 200; allowed is 0 to 126")
    refused(patched(data, place, b"\0"), r"operators\[0\]\.builtin_options: found a value whose type is NONE")


def test_truth_values_other_than_0_and_1():
    data = encode_model(
        Model(version=3, subgraphs=[SubGraph(operators=[Operator(mutating_variable_inputs=[True] * 9)])])
    )
    refused(
        patched(data, data.index(b"\1" * 9), b"\5"), r"mutating_variable_inputs: found the truth value 5 in a vector"
    )


def test_offsets_never_lead_outside():
    for position in range(8, len(SAMPLE) - 4, 4):
        for offset in (1, 2, len(SAMPLE) - position, len(SAMPLE) - position - 2):
            attempt(patched(SAMPLE, position, struct.pack("<I", offset)))


def test_a_vector_that_is_not_aligned_is_copied():
    """TFLite's own verifier lets 8-byte numbers lie at multiples of 4, and some writers produce them."""
    raw = Raw()
    builder = raw.builder
    builder.Prep(8, 28)
    for value in (2, 0, 1, 0):
        builder.PrependInt32(value)
    builder.PrependUint32(2)
    vector = builder.Offset()
    quantization = raw.table(7, s3=vector)
    data = raw.model(s2=raw.vector([raw.table(6, s0=raw.vector([raw.table(11, s4=quantization)]))]))
    zero_point = decode_model(data, "loose").subgraphs[0].tensors[0].quantization.zero_point
    assert zero_point.dtype == np.int64
    assert zero_point.flags.aligned
    assert len(zero_point) == 2
