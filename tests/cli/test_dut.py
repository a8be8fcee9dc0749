"""`tflq dut` beside `tflq bench --port`: two processes, one pseudo-terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.command import tflq
from tests.support.data import data_path
from tests.support.tracked import ROOT

pytest.importorskip("serial")


@contextmanager
def running(*options: object) -> Iterator[str]:
    """Start a device for kws01, yield its port, and end it, which is like an interruption."""
    model = data_path("models", "kws_ref_model.tflite")
    command = [sys.executable, "-m", "tflq", "dut", str(model), "--task", "kws01", *map(str, options)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err.strip()) == (130, "tflq: interrupted")


def bench(port: str, *options: object, count: int = 8) -> tuple[str, ...]:
    return (
        *("bench", "kws01", "--model", str(data_path("models", "kws_ref_model.tflite"))),
        *("--data", str(data_path("datasets", "kws01")), "--take", str(count), "--port", port, *map(str, options)),
    )


def test_the_board_is_what_the_interpreter_computes(tmp_path: Path) -> None:
    with running("--target", "gap9-ne16", "--set", "weight_bits=2", "--link", tmp_path / "dut") as port:
        assert port == str(tmp_path / "dut")
        same = tflq(*bench(port, "--target", "gap9-ne16", "--set", "weight_bits=2", "--results", tmp_path))
        other = tflq(*bench(port, "--json"))
    assert same.status == 0
    assert "OK: 8 of 8 results are equal, reference gap9-ne16" in same.out
    log = tmp_path / "results" / "tflq-gap9-ne16" / "kws" / "accuracy" / "log.txt"
    assert "m-time-[simulation: measured on this computer]" in log.read_text()
    assert "a simulation on a computer, no device" in log.read_text()
    assert other.status == 1
    comparison = other.json["comparison"]
    assert comparison["reference"] == "as is"
    assert len(comparison["differences"]) == 8 - comparison["equal"] > 0
    assert not (tmp_path / "dut").is_symlink()


def test_performance_with_a_time_that_is_given() -> None:
    with running("--time-us", 1000, "--name", "chip") as port:
        done = tflq(*bench(port, "--mode", "performance", "--seconds", "0.05", "--json"))
    report = done.json
    (row,) = report["rows"]
    assert (done.status, row["name"], row["inferences_per_second"]) == (0, "chip", pytest.approx(1000))
    assert report["source"] == "a virtual device, simulation: given, 1000 us an inference, not measured"
    assert report["comparison"]["equal"] == report["comparison"]["samples"] == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--task", "ic01"), "ic01 needs a model with an input of int8 or float32 [1, 32, 32, 3]"),
        (("--task", "kws"), "no task is called 'kws'"),
        (("--task", "kws01", "--set", "weight_bits=4"), "--set and --layer need a target; add --target"),
        (("--task", "kws01", "--target", "aipu", "--arithmetic", "float"), "--target has its own arithmetic"),
        (("--task", "kws01", "--time-us", "0"), "0 is not in the range x>=1"),
    ],
)
def test_refused(options: tuple[str, ...], words: str) -> None:
    assert words in tflq("dut", data_path("models", "kws_ref_model.tflite"), *options).refused()


def test_a_link_that_is_a_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "dut").write_text("mine")
    model = data_path("models", "kws_ref_model.tflite")
    assert (
        "already exists and is not a link"
        in tflq("dut", model, "--task", "kws01", "--link", tmp_path / "dut").refused()
    )
    assert (tmp_path / "dut").read_text() == "mine"
