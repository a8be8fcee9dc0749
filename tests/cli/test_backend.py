"""`--backend c`: the same results, and a clear line where there is no compiler."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support import c_compiler
from tests.support.command import tflq as command
from tests.support.command import tflq_process
from tests.support.tracked import ROOT
from tflq.errors import OptionError

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


@pytest.mark.parametrize("target", [(), ("-t", "gap9-sq8")])
def test_run_writes_the_same_tensors(target: tuple[str, ...], tmp_path: Path) -> None:
    c_compiler.compiler()
    for backend in ("numpy", "c"):
        options = ("--all-tensors", "-n", "9", "--backend", backend, "-o", tmp_path / f"{backend}.npz")
        done = command("run", DIGITS, *target, *options, cwd=tmp_path)
        assert (done.status, done.err) == (0, "")
    plain, compiled = (np.load(tmp_path / f"{backend}.npz") for backend in ("numpy", "c"))
    assert plain.files == compiled.files
    assert all(np.array_equal(plain[name], compiled[name]) for name in plain.files)
    assert "TFLQ_BACKEND" not in os.environ


def test_without_a_compiler_a_line_says_so(tmp_path: Path) -> None:
    done = tflq_process("run", DIGITS, "--backend", "c", cwd=tmp_path, environment={"CC": "no-such-compiler"})
    assert done.status == 0
    assert "CC=no-such-compiler is not found; install one, or name it in CC; numpy runs instead" in done.err
    assert len(done.err.splitlines()) == 1


def test_a_backend_that_does_not_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="backend 'rust'; allowed are numpy, c"), tflq.backend("rust"):
        pass
    done = command("run", DIGITS, cwd=tmp_path, environment={"TFLQ_BACKEND": "rust"})
    assert (done.status, done.err) == (2, "tflq: backend 'rust'; allowed are numpy, c\n")
