"""Kernels from files of the user: a Python file that registers kernels when it runs, or that names them in `KERNELS`.

`KERNELS` is a mapping arithmetic -> operator -> Kernel (or a function without arguments that registers them), as an
entry point of group `tflq.kernels` has it. A file carries its text, so that processes on other machines can load it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tflq.errors import TflqError
from tflq.interpreter.registry import register_found
from tflq.user_code import run_user_file


@dataclass(frozen=True)
class KernelFile:
    """A file with kernels.

    Attributes:
        path: Path of the file; it is used in messages.
        text: the Python code.
    """

    path: str
    text: str

    @property
    def module(self) -> str:
        """The name of its module, the same in every process."""
        return f"tflq_kernels_{sha256(self.text.encode()).hexdigest()[:16]}"


_loaded: dict[str, KernelFile] = {}


def loaded_kernel_files() -> tuple[KernelFile, ...]:
    """Return the files that this process has loaded, in order: the files that a worker has to load before it starts."""
    return tuple(_loaded.values())


def read_kernel_file(path: str | Path) -> KernelFile:
    """Read a file with kernels.

    Raises:
        TflqError: it cannot be read.
    """
    try:
        return KernelFile(str(path), Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise TflqError(f"{path}: {error}") from error


def load_kernel_file(file: KernelFile) -> None:
    """Run a file and register its kernels; the same text is loaded once in a process.

    Raises:
        TflqError: it fails, or registers an existing kernel.
    """
    if file.module in _loaded:
        return
    try:
        module = run_user_file(file.module, file.path, file.text)
        if hasattr(module, "KERNELS"):
            register_found(module.KERNELS)
    except Exception as error:
        sys.modules.pop(file.module, None)
        raise TflqError(f"{file.path}: {type(error).__name__}: {error}") from error
    _loaded[file.module] = file


def load_kernels(*paths: str | os.PathLike[str]) -> None:
    """Run Python files that register kernels; models that need them run from then on, in workers of a search, too.

    Args:
        *paths: Paths of files that you trust.

    Raises:
        TflqError: a file that cannot be read, or an error in it.
    """
    for path in paths:
        load_kernel_file(read_kernel_file(os.fspath(path)))
