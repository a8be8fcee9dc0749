"""The MLPerf Tiny tasks: what a file of their data sets holds, what a model makes of it, what must be reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tflq.errors import InputError, OptionError
from tflq.graph import Array, DType, Graph, Tensor
from tflq.sampling.encoding import quantize_real

Metric = Literal["top-1", "auc", "wake words"]


@dataclass(frozen=True)
class Quality:
    """What MLPerf Tiny's closed division asks for (mlcommons/tiny, benchmark/MLPerfTiny_Rules.adoc).

    Attributes:
        metric: "top-1" accuracy in percent; "auc", the area under the ROC curve, 0..1; "wake words", of a stream.
        at_least: the smallest value that meets it; of wake words the most false positives, and false negatives.
    """

    metric: Metric
    at_least: float

    def __str__(self) -> str:
        if self.metric == "wake words":
            return f"{self.at_least:g} false of each kind"
        return f"{self.at_least:g} %" if self.metric == "top-1" else f"AUC {self.at_least:g}"


@dataclass(frozen=True)
class Task:
    """One task of MLPerf Tiny (mlcommons/tiny, benchmark/; EEMBC EnergyRunner's data sets).

    Attributes:
        name: as EnergyRunner calls it, and as a device under test answers `profile`.
        short: as the folders of published results call it.
        title: what is asked.
        shape: of one sample, without batch axis.
        stored: types that the numbers in a file may have; float32 numbers are real ones.
        offset: added to a stored integer to get the reference model's int8 code.
        scale: real number = scale * (code - zero_point), the quantization of the reference model's input.
        zero_point: see there.
        quality: what must be reached; None where samples alone do not tell, or nobody asks.
        is_anomaly: whether a sample is scored by how far the model's output is from it.
    """

    name: str
    short: str
    title: str
    shape: tuple[int, ...]
    stored: tuple[str, ...]
    offset: int
    scale: float
    zero_point: int
    quality: Quality | None
    is_anomaly: bool = False

    @property
    def size(self) -> int:
        """Number of elements of one sample."""
        return int(np.prod(self.shape))

    def stored_dtype(self, size_bytes: int) -> np.dtype[np.generic]:
        """Return the type of the numbers in a file of that size; the first allowed type where none fits."""
        kinds = [np.dtype(kind) for kind in self.stored]
        return next((kind for kind in kinds if kind.itemsize * self.size == size_bytes), kinds[0])

    def check(self, graph: Graph) -> Tensor:
        """Check that a model takes this task's samples, as int8 or real numbers in float32; return its input.

        Raises:
            InputError: several inputs or outputs, or an input of another type or number of elements; for anomalies, an
                output of another number of elements.
        """
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            raise InputError(
                f"{self.name} needs a model with one input and one output; this one has {len(graph.inputs)} and "
                f"{len(graph.outputs)}"
            )
        tensor, output = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
        if tensor.dtype not in (DType.INT8, DType.FLOAT32) or tensor.size != self.size:
            raise InputError(
                f"{self.name} needs a model with an input of int8 or float32 [1, {', '.join(map(str, self.shape))}]; "
                f"input '{tensor.name}' is {tensor.dtype.value} {list(tensor.shape)}"
            )
        if self.is_anomaly and output.size != self.size:
            raise InputError(
                f"{self.name} needs a model whose output has the {self.size} elements of its input; output "
                f"'{output.name}' has {output.size}"
            )
        return tensor

    def encode(self, stored: Array, tensor: Tensor) -> Array:
        """Return samples in the encoding of a model's input: dtype[S, *model's shape] of stored numbers [S, *shape].

        Integers: q = stored + offset; a model in floating point gets the real numbers that q stands for. Real
        numbers: as they are, or q = clip(round(x / scale) + zero_point) with the model's own scale, as the
        reference devices do (mlcommons/tiny, benchmark/util/quantization_helpers.h).

        Raises:
            InputError: NaN among real numbers.
        """
        shaped = stored.reshape(len(stored), *tensor.shape)
        if stored.dtype.kind == "f":
            return quantize_real(shaped, tensor, self.name)[0]
        quantized = shaped.astype(np.int16) + np.int16(self.offset)
        if tensor.dtype is DType.FLOAT32:
            return np.asarray((quantized - self.zero_point) * np.float64(np.float32(self.scale)), np.float32)
        return np.asarray(quantized, np.int8)


TASKS = {
    task.name: task
    for task in (
        Task("kws01", "kws", "keyword spotting", (49, 10, 1), ("int8",), 0, 0.5847029, 83, Quality("top-1", 90.0)),
        Task("vww01", "vww", "visual wake words", (96, 96, 3), ("uint8",), -128, 1 / 255, -128, Quality("top-1", 80.0)),
        Task("ic01", "ic", "image classification", (32, 32, 3), ("uint8",), -128, 1.0, -128, Quality("top-1", 85.0)),
        Task(
            "ic02",
            "ic2",
            "larger image classification",
            (32, 32, 3),
            ("uint8",),
            -128,
            1.0,
            -128,
            Quality("top-1", 91.0),
        ),
        Task("ad01", "ad", "anomaly detection", (640,), ("float32",), 0, 1.0, 0, Quality("auc", 0.85), True),
        Task("sww01", "sww", "streaming wake word", (30, 1, 40), ("int8", "float32"), 0, 0.0037010426, -128, None),
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
