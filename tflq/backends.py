"""Default backend of layers: numpy, or compiled C (docs/guides/c99.md).

Results are bit-identical. The setting is an environment variable, so that child processes use the same backend.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

from tflq.errors import OptionError
from tflq.limits import environment

Backend = Literal["numpy", "c"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
VARIABLE = "TFLQ_BACKEND"


def require_backend(name: str) -> Backend:
    """Return a backend.

    Raises:
        OptionError: The name is unknown.
    """
    for known in BACKENDS:
        if known == name:
            return known
    raise OptionError(f"backend '{name}'; allowed are {', '.join(BACKENDS)}")


def backend_in_force() -> Backend:
    """Return the backend in the environment (default: numpy).

    Raises:
        OptionError: The environment names an unknown backend.
    """
    return require_backend(os.environ.get(VARIABLE) or "numpy")


@contextmanager
def backend(name: str) -> Iterator[None]:
    """Select the backend of engines that are created in a block, in this process and its child processes.

    Raises:
        OptionError: The name is unknown.
    """
    with environment({VARIABLE: require_backend(name)}):
        yield
