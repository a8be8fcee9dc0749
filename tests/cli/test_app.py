"""The command line as a whole: help without loading anything, one line for an error, statuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import tflq, tflq_process
from tests.support.tracked import ROOT
from tflq import __version__
from tflq.cli import main
from tflq.cli.app import COMMANDS

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


def test_help_lists_every_command() -> None:
    done = tflq("--help")
    assert done.status == 0
    for name, text in COMMANDS.items():
        assert f"\n  {name} " in done.out
        assert text.split()[0] in done.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    done = tflq(name, "--help")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"Usage: tflq {name}")


def test_help_loads_neither_numpy_nor_rich() -> None:
    program = "import sys; from tflq.cli import main; main(['--help']); print({'numpy', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")


def test_version() -> None:
    assert tflq("--version").out == f"tflq {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("serach",), "no command is called 'serach'; did you mean search?"),
        (("frobnicate",), "no command is called 'frobnicate'; available: inspect, run, verify"),
        (("inspect",), "Missing argument 'MODEL'; see tflq inspect --help"),
        (("inspect", "a", "b"), "Got unexpected extra argument (b); see tflq inspect --help"),
        (("--frobnicate",), "o such option"),
        (("verify", DIGITS, "--samples", "0"), "0 is not in the range x>=1"),
        (("verify", DIGITS, "--oracle", "onnx"), "'onnx' is not one of 'auto', 'litert', 'tensorflow'"),
        (("run", DIGITS, "--arithmetic", "float", "--target", "gap9-ne16"), "--target has its own arithmetic"),
        (("run", DIGITS, "--set", "a=b"), "--set and --layer need a target; add --target"),
        (("run", DIGITS, "-o", "x.txt"), "--output x.txt: the name must end in .npz"),
    ],
)
def test_bad_use_is_one_line(arguments: tuple[object, ...], message: str) -> None:
    assert message in tflq(*arguments).refused()


@pytest.mark.parametrize("arguments", [(), ("models",)])
def test_no_command_shows_help_and_counts_as_bad_use(arguments: tuple[str, ...]) -> None:
    done = tflq(*arguments)
    assert (done.status, done.out) == (2, "")
    assert "Commands:" in done.err


def test_traceback_only_with_debug() -> None:
    assert "Traceback" not in tflq("inspect", "none.tflite").err
    for arguments in (("--debug", "inspect", "none.tflite"), ("inspect", "none.tflite", "--debug")):
        done = tflq(*arguments)
        assert done.status == 2
        assert "Traceback" in done.err
        assert done.err.splitlines()[-1].startswith("tflq: none.tflite: cannot be read")


def test_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import tflq.converters.tflite

    def interrupted(path: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tflq.converters.tflite, "read_model", interrupted)
    assert main(["inspect", str(DIGITS)]) == 130
    assert capsys.readouterr().err.strip() == "tflq: interrupted"


def test_a_fault_of_ours_is_called_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import tflq.converters.tflite

    def broken(path: str) -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(tflq.converters.tflite, "read_model", broken)
    assert main(["inspect", str(DIGITS)]) == 2
    expected = "tflq: internal error: ZeroDivisionError: by zero; please report it with the output of --debug\n"
    assert capsys.readouterr().err == expected


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no POSIX pipes")
def test_a_reader_that_goes_away_is_no_error() -> None:
    command = [sys.executable, "-m", "tflq", "inspect", str(DIGITS), "--tensors"]
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("columns", ["40", "300"])
def test_output_does_not_depend_on_the_width(columns: str) -> None:
    assert tflq("inspect", DIGITS, environment={"COLUMNS": columns}).out == tflq("inspect", DIGITS).out


def test_ascii_terminals_are_served() -> None:
    done = tflq_process("inspect", DIGITS, environment={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.status, done.err) == (0, "")


def test_module_files_match_commands() -> None:
    names = {path.stem for path in Path(ROOT, "tflq", "cli").glob("*.py")}
    assert set(COMMANDS) <= names
