"""Every model we have: read and written it is equal, no larger, and TFLite computes the same bits from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.data import data_files, data_path
from tflq.arrays import is_same
from tflq.converters.tflite import model_from_bytes, model_to_bytes, read_model, write_model
from tflq.diagnosis.difference import compare
from tflq.errors import OracleError
from tflq.graph import Array, Model
from tflq.oracle import Oracle, OracleRun
from tflq.sampling import RandomSamples

FILES = [path for folder in ("models", "corpus", "golden") for path in data_files(folder)]
LARGEST_GROWTH_BYTES = 300
"""The writer states defaults that other writers leave out."""

pytestmark = pytest.mark.parametrize("path", FILES or [None], ids=[path.name for path in FILES] or ["no data"])


def found(path: Path | None) -> Path:
    return path or data_path("models")  # skips with the reason


def test_read_written_read_again_is_equal(path: Path | None, tmp_path: Path) -> None:
    path = found(path)
    model = read_model(path)
    write_model(model, tmp_path / "written.tflite")
    again = read_model(tmp_path / "written.tflite")
    assert is_same(model, again)
    assert model_to_bytes(again) == (tmp_path / "written.tflite").read_bytes()
    assert (tmp_path / "written.tflite").stat().st_size <= path.stat().st_size + LARGEST_GROWTH_BYTES
    assert is_same(model, model_from_bytes(model_to_bytes(model, external_buffers_above=64), "outside"))


def test_tflite_runs_the_written_file_with_the_same_bits(path: Path | None, oracle: Oracle) -> None:
    path = found(path)
    original, model = path.read_bytes(), read_model(path)
    for signature, inputs in ways_in(model):
        assert_same_outcome(
            outcome(oracle, original, inputs, signature), outcome(oracle, model_to_bytes(model), inputs, signature)
        )


def ways_in(model: Model) -> list[tuple[str | None, dict[str, Array] | list[Array]]]:
    """Return the main graph and each signature of another one, with one sample of legal inputs."""
    ways: list[tuple[str | None, dict[str, Array] | list[Array]]] = [
        (None, RandomSamples(model.main, 1, seed=5).take(0, 1))
    ]
    for signature in model.signatures:
        graph = model.graphs[signature.graph]
        drawn = dict(zip(graph.inputs, RandomSamples(graph, 1, seed=6).take(0, 1), strict=True))
        ways.append((signature.key, {name: drawn[t] for name, t in signature.inputs.items()}))
    return ways


def outcome(
    oracle: Oracle, content: bytes, inputs: dict[str, Array] | list[Array], signature: str | None
) -> OracleRun | str:
    try:
        return oracle.run(content, inputs, signature=signature, state="independent")
    except OracleError as error:
        return f"{type(error).__name__}: {error}"


def assert_same_outcome(original: OracleRun | str, written: OracleRun | str) -> None:
    if isinstance(original, str) or isinstance(written, str):
        assert original == written
        return
    assert original.tensors.keys() == written.tensors.keys()
    assert original.details == written.details
    assert original.unavailable == written.unavailable
    for t, array in original.tensors.items():
        assert compare(written.tensors[t], array).is_equal, original.details[t].name
    assert original.tensors or not original.model.tensors
