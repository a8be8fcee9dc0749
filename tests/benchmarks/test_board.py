"""Host and virtual device talk to each other over a pseudo-terminal, end to end; other boards are refused in a line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from tests.support.anomalies import write_anomalies
from tests.support.data import data_path
from tests.support.ports import board_port, device_port
from tflq.benchmarks.board import as_numbers, compare, remember, run_samples, samples_of, time_board
from tflq.benchmarks.device import Device, Inference
from tflq.benchmarks.host import Host, Identity
from tflq.benchmarks.scoring import DataSet, first_samples, load_data, run_data, score
from tflq.benchmarks.serial_port import create_link, open_port
from tflq.benchmarks.tasks import find_task
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.errors import DeviceError, MissingExtraError, OutputError
from tflq.graph import Model
from tflq.parallel.executions import Execution, as_is, for_target

pytest.importorskip("serial")
CLIPS = 40
TIMEOUT_S = 20.0


@pytest.fixture(scope="module")
def keywords() -> Model:
    return read_model(data_path("models", "kws_ref_model.tflite"))


@pytest.fixture(scope="module")
def data(keywords: Model) -> DataSet:
    return load_data(find_task("kws01"), data_path("datasets", "kws01"), keywords.main, CLIPS)


def on_sq8(model: Model) -> Execution:
    target = find_target("gap9-sq8")
    return for_target(model.main, target, parse_settings(target.settings))


def introduced(port: str, log: list[str] | None = None) -> Host:
    """A host that has asked the device who it is, and so is past what it prints when it starts."""
    host = Host(open_port(port, 115200), port, TIMEOUT_S, remember([] if log is None else log))
    host.identify()
    return host


@pytest.mark.parametrize("run", [as_is, on_sq8])
def test_every_sample_is_the_interpreters(keywords: Model, data: DataSet, run: Callable[[Model], Execution]) -> None:
    execution = run(keywords)
    values = run_data(execution, data)
    with device_port(Device(Inference(find_task("kws01"), execution), "virtual")) as port:
        host = Host(open_port(port, 115200), port, TIMEOUT_S)
        assert host.identify() == Identity("virtual", "kws01", "simulation: measured on this computer")
        texts = run_samples(host, samples_of(data))
    assert compare(samples_of(data), texts, values).differences == ()
    ours, theirs = score("x", values, data), score("x", as_numbers(texts, 12), data)
    assert (ours.right, ours.total) == (theirs.right, theirs.total)


def test_another_arithmetic_is_found_out(keywords: Model, data: DataSet) -> None:
    log: list[str] = []
    with device_port(Device(Inference(find_task("kws01"), on_sq8(keywords)), "virtual")) as port:
        texts = run_samples(introduced(port, log), samples_of(data))
    found = compare(samples_of(data), texts, run_data(as_is(keywords), data))
    assert len(found.differences) > 0
    assert found.equal == CLIPS - len(found.differences)
    sample = found.differences[0]
    assert sample.sample in {path.name for path in data.files}
    assert sample.device != sample.interpreter
    assert log.count("> infer 1 0%") == CLIPS
    assert not any(line.startswith("> db") for line in log)


def test_performance_of_a_device(keywords: Model, data: DataSet) -> None:
    chosen = first_samples(data, 5)
    execution = as_is(keywords)
    with device_port(Device(Inference(find_task("kws01"), execution), "virtual", given_us=2000)) as port:
        found, texts = time_board(introduced(port), "virtual", samples_of(chosen), 0.02)
    assert found.throughput == pytest.approx(500)
    assert {(window.inferences, window.seconds) for window in found.windows} == {(11, 0.022)}
    assert compare(samples_of(chosen), texts, run_data(execution, chosen)).equal == 5


def test_windows_of_anomalies(tmp_path: Path) -> None:
    model = read_model(data_path("models", "ad01_int8.tflite"))
    data = load_data(find_task("ad01"), write_anomalies(tmp_path, 2), model.main)
    execution = as_is(model)
    with device_port(Device(Inference(find_task("ad01"), execution), "virtual")) as port:
        texts = run_samples(introduced(port), samples_of(data))
    found = compare(samples_of(data), texts, run_data(execution, data))
    assert (found.samples, found.equal) == (24, 24)
    assert as_numbers(texts, 1).shape == (24, 1)


NAME = b"m-name-dut-[x]\r\nm-ready\r\n"
PROFILE = b"m-profile-[p]\r\nm-model-[kws01]\r\nm-ready\r\n"


def scripted(answers: dict[bytes, bytes]) -> Callable[[bytes], bytes]:
    """A board that knows the first word of each command, and is silent otherwise."""

    def answer(data: bytes) -> bytes:
        words = [command.split(b" ")[0] for command in data.split(b"%")[:-1]]
        return b"".join(answers.get(word, b"") for word in words)

    return answer


def converse(answer: Callable[[bytes], bytes]) -> None:
    with board_port(answer) as port:
        host = Host(open_port(port, 115200), port, 0.4)
        assert host.identify() == Identity("x", "kws01")
        host.load(bytes(4))
        host.infer(1, 0)


LOADED = {b"name": NAME, b"profile": PROFILE, b"db": b"m-load-done\r\nm-ready\r\n"}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({}, "no reply to 'name%' within 0.4 s; check the port, the speed"),
        ({b"name": b"\xff\xfe?x\r\n"}, r"the reply to 'name%' is '\\xff\\xfe\?x', expected m-name-dut-\[...\] within"),
        ({b"name": b"no line end"}, "the reply to 'name%' is 'no line end', expected"),
        ({b"name": b"z" * 200}, rf"the reply to 'name%' is '{'z' * 80}\.\.\.', expected"),
        ({b"name": b"m-ready\r\n"}, "no reply to 'name%'"),
        ({b"name": NAME}, "no reply to 'profile%' within 0.4 s"),
        (
            {b"name": NAME, b"profile": b"m-ready\r\n"},
            r"the reply to 'profile%' is only m-ready, expected m-mod",
        ),
        ({**LOADED, b"db": b"e-[full]\r\nm-ready\r\n"}, r"the device replies 'e-\[full\]' to 'db load 4%'"),
        ({**LOADED, b"db": b"m-ready\r\n"}, "the reply to 'db%' is only m-ready, expected m-load-done"),
        (LOADED, "no reply to 'infer 1 0%' within 0.4 s"),
        ({**LOADED, b"infer": b"m-results-[x]\r\nm-ready\r\n"}, r"the reply to 'infer%' is 'm-results-\[x\]', exp"),
        ({**LOADED, b"infer": b"m-results-[0.5]\r\nm-ready\r\n"}, "expected two lines m-lap-us-N and one m-results"),
    ],
)
def test_other_boards(answers: dict[bytes, bytes], message: str) -> None:
    with pytest.raises(DeviceError, match=f"^/dev/.*: .*{message}"):
        converse(scripted(answers))


def test_a_board_that_never_ends() -> None:
    endless = count()
    with pytest.raises(DeviceError, match="the reply to 'name%' is 'noise"):
        converse(lambda data: b"noise %d\r\n" % next(endless) * 5)


def test_lines_of_a_board_that_is_starting_are_passed_over() -> None:
    booting = b"m-timestamp-mode-performance\r\nm-init-done\r\nm-ready\r\n"
    infer = b"m-lap-us-1\r\nm-lap-us-2\r\nm-results-[0.5,]\r\nm-ready\r\n"
    converse(scripted({**LOADED, b"name": b"garbage" + booting + NAME, b"infer": infer}))


def test_a_clock_that_stands_still(data: DataSet) -> None:
    infer = b"m-lap-us-7\r\nm-lap-us-7\r\nm-results-[0.5]\r\nm-ready\r\n"
    with board_port(scripted({**LOADED, b"infer": infer})) as port:
        host = Host(open_port(port, 115200), port, 0.4)
        with pytest.raises(DeviceError, match="the device's clock does not advance: m-lap-us-7 before and after"):
            time_board(host, "x", samples_of(first_samples(data, 5)), 0.1)


def test_another_number_of_results() -> None:
    with pytest.raises(DeviceError, match="the device returns 1 results for sample 1; the model has 2"):
        as_numbers([("0.5", "0.5"), ("1.0",)], 2)
    assert as_numbers([("0.5", "0.25")], 2).tolist() == np.array([[0.5, 0.25]]).tolist()


def test_no_such_port(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"none: cannot be opened: .*; name the serial port of a board"):
        open_port(str(tmp_path / "none"), 115200)


def test_without_pyserial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(MissingExtraError, match=r"a serial port needs pyserial; install tflq\[mlperf\]"):
        open_port("x", 115200)


def test_a_link_goes_with_the_device(tmp_path: Path) -> None:
    link = tmp_path / "dut"
    link.symlink_to("gone")
    with create_link("/dev/null", link):
        assert link.readlink() == Path("/dev/null")
    assert not link.is_symlink()
    link.write_text("mine")
    with pytest.raises(OutputError, match="already exists and is not a link"), create_link("/dev/null", link):
        pass
    assert link.read_text() == "mine"
