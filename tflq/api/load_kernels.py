"""`tflq.load_kernels`: kernels of custom operators, from files of the user's own (docs/extending.md)."""

from __future__ import annotations

import os

from tflq.interpreter.kernel_files import load_kernel_file, read_kernel_file


def load_kernels(*paths: str | os.PathLike[str]) -> None:
    """Run Python files that register kernels; models that need them run from then on, in workers of a search, too.

    Args:
        *paths: of files that you trust.

    Raises:
        TflqError: a file that cannot be read, or what is wrong in it.
    """
    for path in paths:
        load_kernel_file(read_kernel_file(os.fspath(path)))
