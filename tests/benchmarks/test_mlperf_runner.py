"""scripts/mlperf_runner.py gives a runner of mlcommons' form the port of a virtual device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.data import data_path
from tests.support.ports import device_port
from tests.support.tracked import ROOT
from tflq.benchmarks.device import Device, Inference
from tflq.benchmarks.tasks import find_task
from tflq.converters.tflite import read_model
from tflq.parallel.executions import as_is

pytest.importorskip("serial")
SCRIPT = ROOT / "scripts" / "mlperf_runner.py"

# What the runner's device_manager.py does to find a device, and its first question.
RUNNER = """
import sys
import serial
import usb.core
from serial.tools import list_ports
from beside import GREETING

(found,) = [port for port in list_ports.comports(True) if (port.vid, port.pid) == (0x0483, 0x374B)]
assert list(usb.core.find(find_all=True)) == []
with serial.Serial(found.device, 115200, timeout=10) as port:
    port.write(b"name%")
    print(GREETING, port.readline().decode().strip(), *sys.argv[1:])
"""


def launch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start the launcher; pyusb, which mlcommons' runner brings, is an empty stand-in."""
    (folder / "usb").mkdir()
    (folder / "usb" / "__init__.py").write_text("")
    (folder / "usb" / "core.py").write_text("def find(**_):\n    raise RuntimeError('no backend')\n")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_the_runner_finds_the_virtual_device(tmp_path: Path) -> None:
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner" / "main.py").write_text(RUNNER)
    (tmp_path / "runner" / "beside.py").write_text("GREETING = 'found'\n")
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    with device_port(Device(Inference(find_task("kws01"), as_is(model)), "virtual")) as port:
        done = launch(tmp_path, "--port", port, "--runner", str(tmp_path / "runner"), "--", "-m", "a")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "found m-name-dut-[virtual] -m a\n"


def test_no_runner(tmp_path: Path) -> None:
    done = launch(tmp_path, "--port", "x", "--runner", str(tmp_path))
    assert done.returncode == 2
    assert "main.py: no such file; name the folder benchmark/runner of mlcommons/tiny" in done.stderr
