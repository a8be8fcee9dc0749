"""`tflq bench`: accuracy as published, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import Outcome, tflq
from tests.support.data import data_path


def bench(folder: Path, *arguments: object) -> Outcome:
    model = data_path("models", "kws_ref_model.tflite")
    return tflq("bench", "kws01", "--model", model, "--data", folder, *arguments)


def test_the_keyword_clips_as_they_are() -> None:
    done = bench(data_path("datasets", "kws01"), "--json")
    (row,) = done.json["rows"]
    assert (done.status, row["right"], row["samples"]) == (0, 901, 1000)


def test_at_least_is_a_check() -> None:
    folder = data_path("datasets", "kws01")
    assert bench(folder, "--at-least", "90.1").status == 0
    failed = bench(folder, "--at-least", "90.2")
    assert (failed.status, failed.err) == (1, "")


def clips(folder: Path, lines: str, *names: str, size: int = 490) -> Path:
    (folder / "y_labels.csv").write_text(lines)
    for name in names:
        (folder / name).write_bytes(bytes(size))
    return folder


def test_missing_files_are_listed(tmp_path: Path) -> None:
    lines = "".join(f"{i}.bin,12,0\n" for i in range(9))
    line = bench(clips(tmp_path, lines, "0.bin", "2.bin")).refused()
    assert "7 of 9 files are missing: 1.bin, 3.bin, 4.bin, 5.bin, 6.bin, 7.bin, 8.bin" in line


@pytest.mark.parametrize(
    ("lines", "size", "words"),
    [
        ("a.bin,12,0\n", 489, "a.bin: has 489 bytes, a sample has 490 (int8 49x10x1)"),
        ("a.bin,12,0\n", 0, "a.bin: the file is empty"),
        ("a.bin,10,0\n", 490, "has 10 classes, the model's output has 12 elements"),
        ("a.bin,12,12\n", 490, "class 12 of 12"),
        ("a.bin\n", 490, "allowed is file,classes,class"),
    ],
)
def test_refused(tmp_path: Path, lines: str, size: int, words: str) -> None:
    assert words in bench(clips(tmp_path, lines, "a.bin", size=size)).refused()


def test_no_folder(tmp_path: Path) -> None:
    assert "no such folder" in bench(tmp_path / "none").refused()
    assert "y_labels.csv: cannot be read" in bench(tmp_path).refused()
