"""The virtual device answers as the reference API does; the lines are those of published logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.anomalies import write_anomalies
from tests.support.data import data_path
from tflq.benchmarks.device import Device, Inference
from tflq.benchmarks.tasks import find_task
from tflq.converters.tflite import read_model
from tflq.errors import InputError
from tflq.parallel.executions import as_is

MEASURED = "m-time-[simulation: measured on this computer]"


class Clock:
    """A clock that only `sleep` and each look at it move."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds


@pytest.fixture(scope="module")
def keywords() -> Inference:
    return Inference(find_task("kws01"), as_is(read_model(data_path("models", "kws_ref_model.tflite"))))


@pytest.fixture
def ask(keywords: Inference) -> Callable[[str], list[str]]:
    device = Device(keywords, "tflq", clock=Clock())
    return lambda text: list(device.receive(text.encode()))


def clip() -> bytes:
    return data_path("datasets", "kws01", "tst_000000_Stop_7.bin").read_bytes()


def load(data: bytes) -> str:
    return f"db load {len(data)}%" + "".join(f"db {data[n : n + 31].hex()}%" for n in range(0, len(data), 31))


def test_boot(keywords: Inference) -> None:
    assert list(Device(keywords, "tflq").boot()) == ["m-timestamp-mode-performance", "m-init-done", "m-ready"]


def test_identity(ask: Callable[[str], list[str]]) -> None:
    assert ask("name%") == ["m-name-dut-[tflq]", "m-ready"]
    assert ask("profile%") == [
        "m-profile-[ULPMark for tinyML Firmware V0.0.1]",
        "m-model-[kws01]",
        MEASURED,
        "m-ready",
    ]
    first, ready = ask("timestamp%")
    assert (first.startswith("m-lap-us-"), ready) == (True, "m-ready")
    assert ask("help%")[-1] == "m-ready"


def test_an_inference_gives_the_published_results(ask: Callable[[str], list[str]]) -> None:
    """STMicroelectronics' log of MLPerf Tiny v1.2 has this line for the same clip and model."""
    replies = ask(load(clip()))
    assert replies[:2] == ["m-[Expecting 490 bytes]", "m-ready"]
    assert replies[2:-2] == ["m-ready"] * 15
    assert replies[-2:] == ["m-load-done", "m-ready"]
    lines = ask("infer 3 1%")
    assert lines[:4] == ["m-warmup-start-1", "m-warmup-done", MEASURED, "m-infer-start-3"]
    laps = [int(line.removeprefix("m-lap-us-")) for line in lines[4:6]]
    assert laps[1] > laps[0]
    results = "m-results-[0.000,0.000,0.000,0.000,0.000,0.000,0.000,0.996,0.000,0.000,0.000,0.000]"
    assert lines[6:] == ["m-infer-done", results, "m-ready"]
    assert ask("results%") == [results, "m-ready"]


def test_commands_may_come_in_pieces(ask: Callable[[str], list[str]]) -> None:
    assert ask("na") == []
    assert ask("me%pro") == ["m-name-dut-[tflq]", "m-ready"]
    assert ask("file\r\n%")[1] == "m-model-[kws01]"
    assert ask("name%name%") == ["m-name-dut-[tflq]", "m-ready"] * 2


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("nonsense 1", "e-[Unknown command: nonsense]"),
        ("", "e-[Unknown command: ]"),
        ("x" * 200, f"e-[Unknown command: {'x' * 80}]"),
        ("\xff", "e-[Unknown command: \ufffd\ufffd]"),
        ("db", "e-[Command 'db' requires a subcommand]"),
        ("db load", "e-[Command 'db load' requires the # of bytes]"),
        ("db load 0", "e-[Command 'db load' must be >0 bytes]"),
        ("db load -1", "e-[Command 'db load' must be >0 bytes]"),
        ("db load 27649", "e-[Supplied buffer size 27649 exceeds maximum of 27648]"),
        ("db 00", "e-[The buffer is full: send db load N first]"),
        ("infer", "e-[Input db has 0 bytes, expected 490]"),
        ("infer 0", "e-[Inference iterations must be >0]"),
        ("infer x", "e-[Inference iterations must be >0]"),
        ("infer 1 -1", "e-[Inference warmup must be >=0]"),
        ("results", "e-[No inference has run]"),
    ],
)
def test_errors(ask: Callable[[str], list[str]], command: str, answer: str) -> None:
    assert ask(f"{command}%") == [answer, "m-ready"]


def test_the_buffer(ask: Callable[[str], list[str]]) -> None:
    ask("db load 10%")
    assert ask("db 000%") == ["e-[Insufficent number of hex digits]", "m-ready"]
    assert ask("db 00zz%") == ["e-[Invalid hex digit 'zz']", "m-ready"]
    assert ask("db 0102%db AbcD%") == ["m-ready", "m-ready"]
    assert ask("db print%") == ["m-buffer-00-01-02-ab-cd-00-00-00", "m-buffer-00-00", "m-ready"]
    assert ask("db 0607080910ff%") == ["m-load-done", "m-ready"]
    assert ask("infer 1 0%") == ["e-[Input db has 10 bytes, expected 490]", "m-ready"]


def test_a_time_that_is_given(keywords: Inference) -> None:
    clock = Clock()
    device = Device(keywords, "tflq", 30_000, clock, clock.sleep)
    list(device.receive(load(clip()).encode()))
    lines = list(device.receive(b"infer 70 10%"))
    assert lines[2] == "m-time-[simulation: given, 30000 us an inference, not measured]"
    start, stop = (int(line.removeprefix("m-lap-us-")) for line in lines if line.startswith("m-lap-us-"))
    assert stop - start == 70 * 30_000
    assert clock.slept == pytest.approx(80 * 0.03, abs=0.01)


def test_anomalies_answer_their_error(tmp_path: Path) -> None:
    """The reference device prints the mean squared error of the window, one number."""
    folder = write_anomalies(tmp_path, 1)
    model = read_model(data_path("models", "ad01_fp32.tflite"))
    window = np.fromfile(folder / "0.bin", "<f4")[:640]
    device = Device(Inference(find_task("ad01"), as_is(model)), "tflq")
    list(device.receive(load(window.tobytes()).encode()))
    (outputs,) = as_is(model).engine.run([window.reshape(1, 1, 640)]).values()
    error = ((outputs.ravel().astype(np.float64) - window) ** 2).mean()
    assert list(device.receive(b"infer%"))[-2] == f"m-results-[{error:.3f}]"


def test_a_model_of_another_task() -> None:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    with pytest.raises(InputError, match=r"ic01 needs a model with an input of int8 or float32 \[1, 32, 32, 3\]"):
        Inference(find_task("ic01"), as_is(model)).check()
