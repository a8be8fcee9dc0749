"""What `cut` and `dequantize` return: a model that was made of another, and the .tflite that it was written to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tflq.api.result import Result
from tflq.converters.tflite import write_model
from tflq.graph import Model


@dataclass(frozen=True)
class WrittenModel(Result):
    """A model made of another.

    Attributes:
        model: the new one.
        whole: the one that it was made of.
        output: the .tflite that it was written to, or None.
    """

    model: Model
    whole: Model
    output: Path | None

    @property
    def size_bytes(self) -> int | None:
        """Size of the file."""
        return None if self.output is None else self.output.stat().st_size


def written(model: Model, output: str | Path | None) -> Path | None:
    """Write a model if it is to be written.

    Raises:
        OutputError: it cannot be.
    """
    if output is None:
        return None
    write_model(model, output)
    return Path(output)
