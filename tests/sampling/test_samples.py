"""Samples that lie in files: the same numbers, and memory that does not grow with their number."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tests.support.tracked import ROOT
from tflq.converters.tflite import read_model
from tflq.errors import InputError
from tflq.graph import Model
from tflq.parallel.executions import Execution, as_is
from tflq.sampling import FileSamples, GivenSamples, Samples, given_inputs
from tflq.sampling.files import read_exact, require_samples

INT8 = np.dtype(np.int8)
SHAPE = (1, 8, 8, 1)


@pytest.fixture
def digits() -> Model:
    return read_model(ROOT / "tflq" / "data" / "digits.tflite")


def random_codes(count: int) -> np.ndarray:
    return np.random.default_rng(2).integers(-128, 128, (count, *SHAPE), np.int8)


def peak_bytes(execution: Execution, samples: Samples) -> int:
    tracemalloc.start()
    for _ in execution.iterate(samples):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_a_mapped_file_is_copied_as_it_is_taken(tmp_path: Path, digits: Model) -> None:
    codes = random_codes(70)
    np.save(tmp_path / "x.npy", codes)
    given = given_inputs(digits.main, [str(tmp_path / "x.npy")])
    assert isinstance(given.arrays[0], np.memmap)
    for start, stop in ((0, 10), (5, 70), (0, 10)):
        (part,) = given.take(start, stop)
        assert not isinstance(part, np.memmap)
        assert part.flags.owndata
        assert np.array_equal(part, codes[start:stop])


def test_files_are_read_as_they_are_taken(tmp_path: Path) -> None:
    codes = random_codes(9)
    paths = tuple(tmp_path / f"{i}.bin" for i in range(9))
    for path, sample in zip(paths, codes, strict=True):
        path.write_bytes(sample.tobytes())
    require_samples(paths, SHAPE, INT8)
    seen: list[int] = []

    def read(some: tuple[Path, ...]) -> np.ndarray:
        seen.append(len(some))
        return read_exact(some, SHAPE, INT8)

    samples = FileSamples(paths, read)
    assert (samples.count, seen) == (9, [])
    assert np.array_equal(np.concatenate([samples.take(0, 4)[0], samples.take(4, 9)[0]]), codes)
    assert seen == [4, 5]


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "0.bin: the file is empty"), (b"123", "0.bin: has 3 bytes; a sample has 64 ")]
)
def test_another_size_is_refused_before_anything_is_read(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "0.bin"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        require_samples((path,), SHAPE, INT8)


def test_memory_does_not_grow_with_the_samples(tmp_path: Path, digits: Model) -> None:
    execution = as_is(digits)
    few, many = random_codes(512), random_codes(5120)
    np.save(tmp_path / "few.npy", few)
    np.save(tmp_path / "many.npy", many)
    mapped = [given_inputs(digits.main, [str(tmp_path / f"{name}.npy")]) for name in ("few", "many")]
    peak_bytes(execution, GivenSamples([few]))  # what is prepared once
    assert peak_bytes(execution, mapped[1]) < 1.1 * peak_bytes(execution, mapped[0])
