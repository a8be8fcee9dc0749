"""What runs layers unless an engine is told: numpy, or compiled C beside it (docs/guides/c99.md).

Results are the same to the bit. The environment says it, so that processes started by this one do as it does.
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
        OptionError: there is none of that name.
    """
    for found in BACKENDS:
        if found == name:
            return found
    raise OptionError(f"backend '{name}'; allowed are {', '.join(BACKENDS)}")


def backend_in_force() -> Backend:
    """Return what the environment names, or numpy.

    Raises:
        OptionError: it names none.
    """
    return require_backend(os.environ.get(VARIABLE) or "numpy")


@contextmanager
def backend(name: str) -> Iterator[None]:
    """Let engines made in a block, by this process and those that it starts, run layers with this backend.

    Raises:
        OptionError: there is none of that name.
    """
    with environment({VARIABLE: require_backend(name)}):
        yield
