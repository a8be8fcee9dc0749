"""One model, run as it is and in floating point, and the archive that `run` writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.tracked import ROOT
from tflq.converters.tflite import read_model
from tflq.diagnosis.similarity import largest_output_change
from tflq.emit.archives import write_npz
from tflq.errors import OutputError, UnsupportedError
from tflq.graph import Affine, DType, Model, Tensor
from tflq.oracle import Oracle
from tflq.parallel.executions import as_is, in_float, real_values
from tflq.sampling import RandomSamples


@pytest.fixture
def digits() -> Model:
    return read_model(ROOT / "tflq" / "data" / "digits.tflite")


def test_as_is_is_what_tflite_computes(digits: Model, oracle: Oracle) -> None:
    samples = RandomSamples(digits.main, 5)
    (found,) = as_is(digits).iterate(samples)
    expected = oracle.run(
        (ROOT / "tflq" / "data" / "digits.tflite").read_bytes(), samples.take(0, 5), tensors="outputs"
    )
    assert found[digits.main.outputs[0]].tobytes() == expected.outputs[0].tobytes()


def test_the_float_view_says_almost_the_same(digits: Model) -> None:
    images = np.load(ROOT / "tflq" / "data" / "digits_test.npz")
    shaped = images["images"].reshape(-1, *digits.main.tensors[digits.main.inputs[0]].shape)
    execution = in_float(digits)
    (encoded,) = execution.encode([shaped])
    assert encoded.dtype == np.float32
    right = execution.engine.run([encoded])[digits.main.outputs[0]].reshape(360, 10).argmax(1) == images["labels"]
    assert right.mean() > 0.95


def test_output_change_is_zero_against_itself(digits: Model) -> None:
    samples = RandomSamples(digits.main, 4)
    assert largest_output_change(as_is(digits), as_is(digits), samples) == 0
    assert 0 < largest_output_change(in_float(digits), as_is(digits), samples) < 1


def test_chunks_do_not_matter(digits: Model) -> None:
    from dataclasses import replace

    samples = RandomSamples(digits.main, 7)
    (whole,) = as_is(digits).iterate(samples)
    parts = list(replace(as_is(digits), samples_at_a_time=3).iterate(samples))
    t = digits.main.outputs[0]
    assert [len(part[t]) for part in parts] == [3, 3, 1]
    assert np.concatenate([part[t] for part in parts]).tobytes() == whole[t].tobytes()


def test_real_values() -> None:
    per_axis = Affine(np.array([0.5, 2.0], np.float32), np.array([0, 1]), axis=1)
    tensor = Tensor("t", (1, 2), DType.INT8, per_axis)
    assert real_values(np.array([[[2, 2]], [[4, 4]]], np.int8), tensor).tolist() == [[[1.0, 2.0]], [[2.0, 6.0]]]
    assert real_values(np.array([[3]], np.int32), Tensor("t", (1,), DType.INT32)).tolist() == [[3.0]]
    assert real_values(np.array([[0x3F80]], np.uint16), Tensor("t", (1,), DType.BFLOAT16)).tolist() == [[1.0]]


def test_archives_are_read_by_numpy_and_do_not_change(tmp_path: Path) -> None:
    arrays = {"a/b;c:0": np.arange(6, dtype=np.int8).reshape(2, 3)[:, ::-1], "file": np.float32([[np.nan]])}
    write_npz(tmp_path / "x.npz", arrays)
    with np.load(tmp_path / "x.npz", allow_pickle=False) as found:
        assert {name: found[name].tobytes() for name in found.files} == {n: a.tobytes() for n, a in arrays.items()}
    first = (tmp_path / "x.npz").read_bytes()
    write_npz(tmp_path / "x.npz", arrays)
    assert (tmp_path / "x.npz").read_bytes() == first


def test_archives_refuse_strings_and_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="tensor 's' holds strings or shapes"):
        write_npz(tmp_path / "x.npz", {"s": np.array([b"a"], object)})
    with pytest.raises(OutputError, match="cannot be written"):
        write_npz(tmp_path / "none" / "x.npz", {})
    assert list(tmp_path.iterdir()) == []
