"""A C compiler, with the flags under which programs of tflq give no message."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-pedantic", "-Werror"]


def compiler() -> str:
    found = shutil.which(os.environ.get("CC", "cc"))
    if found is None:
        pytest.skip("no C compiler")
    return found


def build(
    folder: Path, *flags: str, output: str = "network", sources: tuple[str, ...] = ("network.c", "main.c")
) -> Path:
    """Compile files of a folder; what the compiler says is the failure."""
    command = [compiler(), *FLAGS, *flags, "-o", output, *sources]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[:4000]
    return folder / output


def run(program: Path, samples: bytes) -> bytes:
    done = subprocess.run([str(program)], input=samples, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[:4000]
    return done.stdout
