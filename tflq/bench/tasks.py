"""The MLPerf Tiny tasks whose data are one file for one sample with one label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import InputError, OptionError
from tflq.graph import Array, DType, Tensor


@dataclass(frozen=True)
class Task:
    """One classification task of MLPerf Tiny (mlcommons/tiny, benchmark/; EEMBC EnergyRunner's data sets).

    Attributes:
        name: as EnergyRunner calls it.
        title: what is classified.
        shape: of one sample, without batch axis.
        stored: type of the numbers in a file.
        offset: added to a stored number to get the model's int8 code.
        target_percent: the accuracy that MLPerf Tiny asks for in the closed division.
    """

    name: str
    title: str
    shape: tuple[int, ...]
    stored: str
    offset: int
    target_percent: float

    @property
    def stored_dtype(self) -> np.dtype[np.generic]:
        """The numpy type of the numbers in a file."""
        return np.dtype(self.stored)

    def check_input(self, tensor: Tensor) -> None:
        """Check that a model's input takes this task's samples.

        Raises:
            InputError: another type or number of elements.
        """
        wanted = f"int8 [1, {', '.join(map(str, self.shape))}]"
        if tensor.dtype is not DType.INT8 or tensor.size != int(np.prod(self.shape)):
            raise InputError(
                f"{self.name} needs a model with an input of {wanted}; input '{tensor.name}' is "
                f"{tensor.dtype.value} {list(tensor.shape)}"
            )

    def encode(self, stored: Array, tensor: Tensor) -> Array:
        """Return int8[S, *model's shape] of stored numbers [S, *shape]: code = stored + offset."""
        codes = (stored.astype(np.int16) + self.offset).astype(np.int8)
        return codes.reshape(len(stored), *tensor.shape)


TASKS = {
    task.name: task
    for task in (
        Task("kws01", "keyword spotting", (49, 10, 1), "int8", 0, 90.0),
        Task("vww01", "visual wake words", (96, 96, 3), "uint8", -128, 80.0),
        Task("ic01", "image classification", (32, 32, 3), "uint8", -128, 85.0),
    )
}


def find_task(name: str) -> Task:
    """Return a task by name.

    Raises:
        OptionError: there is none of that name.
    """
    if name not in TASKS:
        raise OptionError(f"no task is called '{name}'; there are {', '.join(TASKS)}")
    return TASKS[name]
