"""Outputs: what exists is not written over without --force, an input never."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.command import tflq
from tests.support.tracked import ROOT

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
CONVERT = ("convert", "m.tflite", "-t", "gap9-ne16", "-n", "2", "-o")
FILES = {
    "-o of dequantize": ("dequantize", "m.tflite", "-o", "out"),
    "-o of run": ("run", "m.tflite", "-o", "out.npz"),
    "--freeze": ("verify", "m.tflite", "-n", "2", "--freeze", "out"),
    "--write-template": (*CONVERT, "new", "--write-template", "out"),
    "--model-explorer": ("compare", "m.tflite", "-n", "2", "--model-explorer", "out"),
    "--report": ("compare", "m.tflite", "-n", "2", "--report", "out.html"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(DIGITS, tmp_path / "m.tflite")
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_exists_stays(folder: Path, name: str) -> None:
    arguments = FILES[name]
    (folder / arguments[-1]).write_text("mine")
    line = tflq(*arguments, cwd=folder).refused()
    assert f"{arguments[-1]}: exists; name another file, or overwrite it with --force" in line
    assert (folder / arguments[-1]).read_text() == "mine"
    assert sorted(p.name for p in folder.iterdir()) == sorted(["m.tflite", arguments[-1]])


def test_force_writes_over_it(folder: Path) -> None:
    (folder / "out.tflite").write_text("mine")
    assert tflq("dequantize", "m.tflite", "-o", "out.tflite", "--force", cwd=folder).status == 0
    assert (folder / "out.tflite").read_bytes()[4:8] == b"TFL3"


def test_a_folder_of_another_target_is_refused(folder: Path) -> None:
    assert tflq(*CONVERT, "out", cwd=folder).status == 0
    before = {p.name: p.read_bytes() for p in (folder / "out").iterdir()}
    other = ("convert", "m.tflite", "-t", "tflite", "-n", "2", "-o", "out")
    line = tflq(*other, cwd=folder).refused()
    assert "out: the folder is not empty (constants.c and " in line
    assert {p.name: p.read_bytes() for p in (folder / "out").iterdir()} == before
    assert tflq(*other, "--force", cwd=folder).status == 0


def test_an_empty_folder_is_written_into(folder: Path) -> None:
    (folder / "out").mkdir()
    assert tflq(*CONVERT, "out", cwd=folder).status == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("dequantize", "m.tflite", "-o", "m.tflite"),
        ("dequantize", "m.tflite", "-o", "../here/m.tflite"),
        ("dequantize", "m.tflite", "-o", "link.tflite"),
        ("compare", "m.tflite@gap9-ne16", "--model-explorer", "m.tflite"),
        ("run", "m.tflite", "-i", "serving_default_image:0=x.npz", "-o", "x.npz"),
        (*CONVERT, "."),
    ],
)
def test_an_input_is_never_written_over(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    shutil.copy(DIGITS, folder / "m.tflite")
    (folder / "x.npz").write_bytes(b"samples")
    (folder / "link.tflite").symlink_to(folder / "m.tflite")
    line = tflq(*arguments, "--force", cwd=folder).refused()
    assert " would be overwritten; name another output" in line
    assert (folder / "m.tflite").read_bytes() == DIGITS.read_bytes()
    assert (folder / "x.npz").read_bytes() == b"samples"
