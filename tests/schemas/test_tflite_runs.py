"""TFLite runs the written file, with constants inside or outside the flatbuffer, with the bits of the original."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.data import data_files, data_path
from tflq.errors import OracleError
from tflq.oracle import Oracle, OracleTensor
from tflq.schemas.tflite import decode_model, encode_model

FILES = [path for folder in ("models", "corpus", "golden") for path in data_files(folder)]


def one_sample(tensor: OracleTensor, random: np.random.Generator) -> np.ndarray:
    """Draw small numbers: integers wider than a byte may be indices, so they are 0."""
    shape = (1, *(max(size, 1) for size in tensor.shape))
    if np.dtype(tensor.dtype).kind == "f":
        return random.standard_normal(shape).astype(tensor.dtype)
    return random.integers(0, 2 if np.dtype(tensor.dtype).itemsize == 1 else 1, shape).astype(tensor.dtype)


def outcome(oracle: Oracle, content: bytes) -> dict[int, tuple[str, bytes]] | str:
    """Return type and bits of every tensor, or the error that TFLite answers with."""
    random = np.random.default_rng(1)
    try:
        model = oracle.describe(content)
        run = oracle.run(content, [one_sample(model.tensors[index], random) for index in model.inputs])
    except OracleError as error:
        return type(error).__name__
    arrays = {index: array for index, array in run.tensors.items() if array.dtype != object}
    return {index: (str(array.dtype), array.tobytes()) for index, array in arrays.items()}


@pytest.mark.parametrize("path", FILES or [None], ids=[path.name for path in FILES] or ["no data"])
def test_the_written_file_runs_with_the_same_bits(path, oracle):
    path = path or data_path("models")  # skips with the reason
    original = path.read_bytes()
    expected = outcome(oracle, original)
    model = decode_model(original, path.name)
    assert outcome(oracle, encode_model(model)) == expected
    assert outcome(oracle, encode_model(model, external_buffers_above=0)) == expected
    assert isinstance(expected, str) or expected
