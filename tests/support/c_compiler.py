"""A C compiler, with the flags under which programs of tflq give no message."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-pedantic", "-Werror"]


def compiler() -> str:
    """Return the C compiler; the test is skipped where there is none."""
    return found(os.environ.get("CC", "cc"))


def found(program: str) -> str:
    """Return where a program is; the test is skipped where it is not installed."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"no {program} here")
    return path


def build(
    folder: Path,
    *flags: str,
    output: str = "network",
    sources: tuple[str, ...] = ("network.c", "main.c"),
    with_compiler: str = "",
) -> Path:
    """Compile files of a folder; what the compiler says is the failure."""
    command = [found(with_compiler) if with_compiler else compiler(), *FLAGS, *flags, "-o", output, *sources]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[:4000]
    return folder / output


def has_32_bits(folder: Path) -> bool:
    """Whether the compiler links programs of 32 bits, whose library is a package of its own."""
    (folder / "empty.c").write_text("#include <stdio.h>\nint main(void) { return 0; }\n")
    command = [compiler(), "-m32", "-o", "empty", "empty.c"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def run(program: Path, samples: bytes, *emulator: str) -> bytes:
    done = subprocess.run([*emulator, str(program)], input=samples, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[:4000]
    return done.stdout
