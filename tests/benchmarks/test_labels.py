"""y_labels.csv is read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.data import data_path
from tflq.benchmarks.labels import Label, read_labels
from tflq.errors import InputError


def write(folder: Path, text: str | bytes) -> Path:
    (folder / "y_labels.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_lines(tmp_path: Path) -> None:
    labels = read_labels(write(tmp_path, "\ufeffa.bin,12,7\r\n\r\n b.bin , 12, 0\n"))
    assert labels == (Label("a.bin", 12, 7), Label("b.bin", 12, 0))


def test_the_keyword_clips() -> None:
    labels = read_labels(data_path("datasets", "kws01"))
    assert len(labels) == 1000
    assert labels[0] == Label("tst_000000_Stop_7.bin", 12, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"y_labels\.csv: the file is empty"),
        ("\n\n", "names no file"),
        ("a.bin,12\n", r"line 1: is 'a\.bin,12'; allowed is file,classes,class"),
        ("a.bin,12,1\nfile,classes,class\n", "line 2: is 'file,classes,class'"),
        ("a.bin,12,-1\n", "line 1: is"),
        ("a.bin,12,12\n", r"line 1: class 12 of 12; classes are 0\.\.11"),
        (",12,1\n", "line 1: is"),
        ("a.bin,12,1\nb.bin,10,1\n", "its lines state 10, 12 classes"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
    ],
)
def test_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_labels(write(tmp_path, text))


def test_no_folder_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        read_labels(tmp_path / "none")
    with pytest.raises(InputError, match=r"does not contain y_labels\.csv"):
        read_labels(tmp_path)
