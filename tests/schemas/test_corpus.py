"""Every model we have: read, written, read again is equal; another reader finds the original in the written file."""

from __future__ import annotations

import pytest

from tests.schemas import foreign
from tests.support.data import data_files, data_path
from tflq.schemas.tflite import decode_model, encode_model

FILES = [path for folder in ("models", "corpus", "golden") for path in data_files(folder)]


@pytest.fixture(params=FILES or [None], ids=[path.name for path in FILES] or ["no data"])
def original(request):
    path = request.param or data_path("models")  # skips with the reason
    return path.read_bytes()


def test_read_written_read_again_is_equal(original):
    model = decode_model(original, "original")
    written = encode_model(model)
    again = decode_model(written, "written")
    assert again == model
    assert encode_model(again) == written
    assert decode_model(encode_model(model, external_buffers_above=64), "outside") == model


def test_somebody_else_reads_the_written_file_as_the_original(original):
    theirs = foreign.tree(original)
    model = decode_model(original, "original")
    assert foreign.mismatch(model, theirs) is None
    assert foreign.difference(foreign.tree(encode_model(model)), theirs) is None


def test_what_somebody_else_writes_is_read_with_the_same_values(original):
    theirs = foreign.tree(original)
    assert foreign.mismatch(decode_model(foreign.packed(theirs), "theirs"), theirs) is None
