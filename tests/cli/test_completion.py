"""Completion: what each shell gets for commands, targets, tasks, keys of settings, layers and files."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.support.command import tflq
from tests.support.tracked import ROOT
from tflq.benchmarks.tasks import TASKS
from tflq.cli.app import COMMANDS
from tflq.cli.completion import SHELLS
from tflq.converters.targets import target_names

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


def completed(line: str) -> list[tuple[str, str]]:
    """Return what bash gets behind a line: kinds and values."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "_TFLQ_COMPLETE": "bash_complete"}
    done = tflq(environment=words)
    assert (done.status, done.err) == (0, "")
    return [(kind, value) for kind, _, value in (item.partition(",") for item in done.out.split())]


def values(line: str) -> list[str]:
    return [value for _, value in completed(line)]


def test_commands() -> None:
    assert values("tflq ") == list(COMMANDS)
    assert values("tflq ins") == ["inspect"]
    assert values("tflq models ") == ["fetch", "list"]
    assert values("tflq data build ") == list(TASKS)
    assert "--show-completion" in values("tflq --")


def test_targets_and_tasks() -> None:
    assert values("tflq convert m.tflite --target ") == list(target_names())
    assert values("tflq bench --target gap9") == ["gap9-ne16", "gap9-sq8"]
    assert values("tflq targets op") == ["openvino"]
    assert values("tflq bench ") == list(TASKS)
    assert values("tflq search m.tflite --data kw") == ["kws01="]


def test_keys_of_the_target_on_the_line() -> None:
    assert values("tflq convert m.tflite --target gap9-ne16 --set weight_b") == ["weight_bits="]
    assert values("tflq convert m.tflite --set weight") == []
    assert values("tflq convert m.tflite --target none --set weight") == []


def test_layers_of_the_model_on_the_line() -> None:
    found = values(f"tflq convert {DIGITS} --target gap9-ne16 --layer ")
    assert found[:3] == ["conv_2d", "CONV_2D_0_0", "depthwise_conv_2d"]
    assert values("tflq convert missing.tflite --target gap9-ne16 --layer ") == []


def test_files() -> None:
    for line in (
        "inspect di",
        "compare di",
        "compare a.tflite di",
        "run m.tflite -i di",
        "run m.tflite --calibrate di",
    ):
        assert completed(f"tflq {line}") == [("file", "di")]


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_its_script(shell: str) -> None:
    done = tflq("--show-completion", shell)
    assert (done.status, done.err) == (0, "")
    assert f"_TFLQ_COMPLETE={shell}_complete" in done.out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.out, encoding="utf-8", check=True)


def test_other_shells_are_refused() -> None:
    assert "no completion for csh; available: bash, zsh, fish" in tflq("--show-completion", "csh").refused()
