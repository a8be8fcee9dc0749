"""A limit on the memory that a model may ask for, checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tflq.errors import OptionError, UnsupportedError
from tflq.graph import Graph

MAX_BYTES = 1 << 30
"""Bytes of one tensor of one sample, where nothing else is said."""
_TOO_BIG = ("array is too big", "Maximum allowed dimension", "maximum supported dimension")
VARIABLE = "TFLQ_MAX_BYTES"
"""Environment variable that says something else."""


def byte_limit(given: int | None) -> int:
    """Return the limit: the one given, else that of the environment, else MAX_BYTES.

    Raises:
        OptionError: it is no positive number.
    """
    stated = os.environ.get(VARIABLE, "") if given is None else str(given)
    if not stated:
        return MAX_BYTES
    if not stated.isdecimal() or int(stated) < 1:
        raise OptionError(f"{VARIABLE if given is None else 'max_bytes'} is '{stated}'; a positive number is allowed")
    return int(stated)


def require_memory(graphs: Sequence[Graph], limit: int) -> None:
    """Check the size of each tensor that is not stored in the file.

    Raises:
        UnsupportedError: one is larger than the limit.
    """
    for graph in graphs:
        for i, tensor in enumerate(graph.tensors):
            size = tensor.size * max(1, tensor.dtype.storage.itemsize)
            if tensor.data is None and size > limit:
                raise UnsupportedError(
                    f"tensor {i} '{tensor.name}' of shape {tensor.shape} needs {size} bytes for each sample, {limit} "
                    f"are allowed; raise the limit with max_bytes or {VARIABLE}"
                )


@contextmanager
def enough_memory() -> Iterator[None]:
    """Say in one line that there is not enough memory, or that numpy has no such large arrays.

    Raises:
        UnsupportedError: there is not.
    """
    try:
        yield
    except MemoryError as error:
        raise UnsupportedError(f"the model needs more memory than there is: {error}") from error
    except ValueError as error:
        if not str(error).startswith(_TOO_BIG):
            raise
        raise UnsupportedError(f"the model needs an array beyond all limits: {error}") from error
