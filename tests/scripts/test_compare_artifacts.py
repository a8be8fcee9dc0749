"""scripts/compare_artifacts: equal checkouts, a changed checkout, and its cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from artifacts.checkouts import Checkout
from artifacts.comparison import DIED, list_differences
from artifacts.worker import Result

from tests.support.tracked import ROOT

pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")

MODEL = ROOT / "tflq" / "data" / "digits.tflite"


def compare(base: Path | str, *arguments: str) -> tuple[int, list[str]]:
    command = [sys.executable, ROOT / "scripts" / "compare_artifacts", base, "--models", MODEL, "--target", "onnx"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, [line for line in done.stdout.splitlines() if ": onnx" in line or "differ" in line]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT / "tflq", copy / "tflq", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def change(checkout: Path, file: str, before: str, after: str) -> None:
    path = checkout / "tflq" / file
    text = path.read_text("utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), "utf-8")


def test_a_checkout_equals_itself(checkout: Path) -> None:
    assert compare(checkout) == (0, ["3 conversions of 1 files x 1 targets: 0 differ"])


def test_names_of_files_are_compared(checkout: Path) -> None:
    change(checkout, "converters/targets.py", '.stem) or "model"', '.stem) and "model"')
    status, lines = compare(checkout)
    assert (status, lines[-1]) == (1, "3 conversions of 1 files x 1 targets: 3 differ")
    assert lines[:2] == [f"{MODEL}: onnx: digits.onnx: is new", f"{MODEL}: onnx: model.onnx: is missing"]


def test_bytes_of_files_are_compared(checkout: Path) -> None:
    change(checkout, "converters/onnx/model.py", 'producer_name="tflq"', 'producer_name="tflQ"')
    status, lines = compare(checkout)
    assert (status, lines[0]) == (1, f"{MODEL}: onnx: digits.onnx: bytes differ")


def test_refusals_are_compared(checkout: Path) -> None:
    change(checkout, "converters/targets.py", "return _unsound_scales(graph) or", 'return ("no",) or')
    status, lines = compare(checkout)
    assert (status, lines[0]) == (1, f"{MODEL}: onnx: refused: UnsupportedError: target onnx: no -> no")


def test_a_process_that_dies_is_a_difference(checkout: Path) -> None:
    change(checkout, "converters/targets.py", "return _unsound_scales(graph) or", "import os; os._exit(3)\n    return")
    status, lines = compare(checkout)
    assert (status, lines[0]) == (1, f"{MODEL}: onnx: refused: the worker process died -> no")


def test_the_death_of_a_process_is_not_cached(checkout: Path, tmp_path: Path) -> None:
    side, conversion = Checkout("copy", checkout, tmp_path), ("onnx", ())
    assert "files" in side.results([MODEL], [conversion], 1, lambda: None)[MODEL][conversion]
    (file,) = tmp_path.glob("*.json")
    file.unlink()
    change(checkout, "converters/targets.py", "return _unsound_scales(graph) or", "import os; os._exit(3)\n    return")
    assert side.results([MODEL], [conversion], 1, lambda: None)[MODEL][conversion]["refused"] == DIED
    assert not [*tmp_path.glob("*.json")]


def test_two_processes_that_die_are_not_equal() -> None:
    died = Result(refused=DIED, seconds=0.0)
    assert [*list_differences(died, died)] == [f"refused: {DIED} -> {DIED}"]
    refused = Result(refused="UnsupportedError: no", seconds=0.0)
    assert not [*list_differences(refused, refused)]


def test_a_base_that_does_not_exist_is_incorrect_use(tmp_path: Path) -> None:
    assert compare("no-such-revision") == (2, [])
    assert compare(tmp_path) == (2, [])


def test_tensors_are_compared_and_a_revision_is_cached(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert compare("HEAD", "--cache", str(cache), "--base-only")[0] == 0
    (file,) = cache.glob("*/*.json")
    text = file.read_text("utf-8")
    position = text.index('"tensors": {') + len('"tensors": {')
    start = text.index('": "', position) + 4
    file.write_text(text[:start] + "0" * 16 + text[start + 16 :], "utf-8")
    status, lines = compare("HEAD", "--cache", str(cache))
    assert status == 1
    assert "tensors differ; the first, " in lines[0]
