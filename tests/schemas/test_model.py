"""Whole models that we build: round trips, what another reader finds in them, alignments, and constants outside."""

from __future__ import annotations

import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schemas import foreign
from tests.schemas.sample import custom_quantization, sample_model
from tests.schemas.strategies import tables
from tflq.errors import FormatError
from tflq.schemas.flatbuffer import encoder
from tflq.schemas.tflite import Buffer, Model, Operator, SubGraph, Tensor, decode_model, encode_model


def place(array: np.ndarray, data: bytes) -> int:
    """Return where in the file a view begins."""
    return array.__array_interface__["data"][0] - np.frombuffer(data, np.uint8).__array_interface__["data"][0]


def test_the_sample_survives():
    model = sample_model()
    data = encode_model(model)
    assert data[4:8] == b"TFL3"
    assert decode_model(data, "sample") == model
    assert encode_model(decode_model(data, "sample")) == data


def test_somebody_else_reads_the_sample():
    model = sample_model()
    assert foreign.mismatch(model, foreign.tree(encode_model(model))) is None


@settings(max_examples=60, deadline=None)
@given(tables(Model, 5))
def test_random_models_survive_and_somebody_else_reads_the_same_values(model):
    model.version = 3
    for buffer in model.buffers or []:
        del buffer.offset
    for subgraph in model.subgraphs or []:
        for operator in subgraph.operators or []:
            del operator.large_custom_options_offset
    data = encode_model(model)
    assert decode_model(data, "random") == model
    assert foreign.mismatch(model, foreign.tree(data)) is None


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_read(kind):
    data = encode_model(sample_model())
    assert decode_model(kind(data), "sample") == sample_model()


def test_a_mapped_file_is_read_without_copying(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(encode_model(sample_model()))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        model = decode_model(mapped, path.name)
        assert model == sample_model()
        assert np.shares_memory(model.buffers[1].data, np.frombuffer(mapped, np.uint8))
        del model


@pytest.mark.parametrize("count", range(40))
def test_constants_lie_at_multiples_of_16(count):
    model = Model(version=3, description="x" * count, buffers=[Buffer(data=bytes(i)) for i in range(count + 1)])
    model.subgraphs = [SubGraph(tensors=[Tensor(quantization=custom_quantization())])]
    data = encode_model(model)
    decoded = decode_model(data, "aligned")
    arrays = [buffer.data for buffer in decoded.buffers if buffer.data.size]
    arrays.append(decoded.subgraphs[0].tensors[0].quantization.details.custom)
    assert [place(array, data) % 16 for array in arrays] == [0] * len(arrays)


def test_sparse_indices_lie_at_multiples_of_4():
    data = encode_model(sample_model())
    sparse = decode_model(data, "sparse").subgraphs[0].tensors[2].sparsity.dim_metadata[0]
    assert place(sparse.array_segments.values, data) % 4 == 0
    assert place(sparse.array_indices.values, data) % 4 == 0


def test_two_megabytes_are_read_and_written_fast():
    import time

    tensors = [Tensor(name=f"t{i}", shape=[1, 2, 3, 4], buffer=i) for i in range(300)]
    operators = [Operator(inputs=[i, i + 1], outputs=[i + 2]) for i in range(298)]
    buffers = [Buffer(data=bytes(7000)) for _ in tensors]
    model = Model(version=3, subgraphs=[SubGraph(tensors=tensors, operators=operators)], buffers=buffers)
    best = [1e9, 1e9]
    for _ in range(5):
        start = time.perf_counter()
        data = encode_model(model)
        middle = time.perf_counter()
        decode_model(data, "large")
        best = [min(best[0], middle - start), min(best[1], time.perf_counter() - middle)]
    assert len(data) > 2_000_000
    assert max(best) < 0.3


def outside_model() -> Model:
    model = sample_model()
    shared = model.buffers[1].data
    model.buffers += [Buffer(data=shared), Buffer(data=np.arange(33, dtype=np.uint8))]
    return model


@pytest.mark.parametrize("above", [0, 32, 33, 49, 50, 99, 100, 1000])
def test_constants_outside_come_back_as_ordinary_data(above):
    model = outside_model()
    data = encode_model(model, external_buffers_above=above)
    assert decode_model(data, "outside") == model == outside_model()
    assert encode_model(decode_model(data, "outside"), external_buffers_above=above) == data
    assert encode_model(decode_model(data, "outside")) == encode_model(model)


def test_somebody_else_finds_constants_outside_at_aligned_offsets_and_each_once():
    model = outside_model()
    data = encode_model(model, external_buffers_above=32)
    theirs = foreign.tree(data).buffers
    assert [theirs[i].data is None for i in (1, 4, 5)] == [True, True, True]
    for i in (1, 4, 5):
        assert theirs[i].offset % 16 == 0
        content = np.frombuffer(data, np.uint8)[theirs[i].offset : theirs[i].offset + theirs[i].size]
        assert np.array_equal(content, model.buffers[i].data)
    assert theirs[1].offset == theirs[4].offset != theirs[5].offset
    assert (theirs[3].offset, theirs[3].size) == (1, 1)  # a placeholder: nothing is outside
    custom = foreign.tree(data).subgraphs[0].operators[2]
    assert custom.customOptions is None
    assert data[custom.largeCustomOptionsOffset :][: custom.largeCustomOptionsSize] == bytes(50)
    assert custom.largeCustomOptionsOffset % 16 == 0


def test_data_inside_wins_over_an_offset():
    model = Model(version=3, buffers=[Buffer(data=b"ab", offset=1 << 40, size=9)])
    assert decode_model(encode_model(model), "both") == model


@pytest.mark.parametrize(("offset", "size"), [(1 << 40, 0), (2, 1 << 40), ((1 << 64) - 1, (1 << 64) - 1), (100, 2000)])
def test_an_offset_outside_the_file_is_refused(offset, size):
    data = encode_model(Model(version=3, buffers=[Buffer(), Buffer(offset=offset, size=size)]))
    with pytest.raises(FormatError, match=r"far.tflite: Model\.buffers\[1\]\.offset: found bytes .* within the"):
        decode_model(data, "far.tflite")
    operator = Operator(large_custom_options_offset=offset, large_custom_options_size=size)
    data = encode_model(Model(version=3, subgraphs=[SubGraph(operators=[operator])]))
    with pytest.raises(FormatError, match=r"operators\[0\]\.large_custom_options_offset: found"):
        decode_model(data, "far.tflite")


def test_a_truncated_outside_is_refused():
    data = encode_model(outside_model(), external_buffers_above=32)
    for cut in range(len(data) - 31, 0, -1):  # the last 30 bytes are padding
        with pytest.raises(FormatError):
            decode_model(data[:cut], "cut")


def test_a_flatbuffer_of_two_gigabytes_is_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setattr(encoder, "MAX_SIZE", 20_000)
    model = Model(version=3, buffers=[Buffer(data=bytes(15_000)), Buffer(data=bytes(6_000))])
    with pytest.raises(FormatError, match=r"found 21000 bytes of vectors.*at most 20000.*external_buffers_above"):
        encode_model(model)
    assert decode_model(encode_model(model, external_buffers_above=10_000), "outside") == model


def test_a_huge_model_is_refused_without_copying_it():
    view = np.broadcast_to(np.zeros(1, np.uint8), (1 << 20,))
    shared = np.ascontiguousarray(view)
    model = Model(version=3, buffers=[Buffer(data=shared) for _ in range(2048)])
    with pytest.raises(FormatError, match="found 2147483648 bytes of vectors"):
        encode_model(model)
    assert len(encode_model(model, external_buffers_above=1000)) < (1 << 20) + 100_000


def test_negative_thresholds_and_other_versions_are_refused():
    with pytest.raises(FormatError, match="external_buffers_above: found -1; allowed are 0 and more"):
        encode_model(sample_model(), external_buffers_above=-1)
    with pytest.raises(FormatError, match=r"Model\.version: found 0; allowed is 3"):
        encode_model(Model())


def archive(files: dict[str, bytes]) -> bytes:
    import io
    import zipfile

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
    return stream.getvalue()


@given(st.integers(0, 40))
@settings(deadline=None, max_examples=20)
def test_trailing_bytes_behind_the_model_are_kept(padding):
    model = sample_model()
    files = archive({"labels.txt": b"a\nb"})
    decoded = decode_model(encode_model(model) + bytes(padding) + files, "with files")
    assert decoded.trailing_bytes.tobytes() == files
    assert decoded != model
    for above in (None, 32):
        again = decode_model(encode_model(decoded, external_buffers_above=above), "again")
        assert again == decoded
    decoded.trailing_bytes = None
    assert decoded == model
