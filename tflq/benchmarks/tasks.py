"""The MLPerf Tiny tasks: format of their samples, scoring, and quality goals."""

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
    """Quality goal of MLPerf Tiny's closed division (mlcommons/tiny, benchmark/MLPerfTiny_Rules.adoc).

    Attributes:
        metric: "top-1", accuracy in percent; "auc", area under the ROC curve, 0..1; "wake words", errors on a stream.
        at_least: Smallest value that meets the goal; for wake words the largest number of false positives, and of false
            negatives.
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
        name: Name in EnergyRunner, and in a device's reply to `profile`.
        short: Name in the folders of published results.
        title: Description of the task.
        shape: Shape of one sample, without batch axis.
        stored: Types that the numbers in a file may have; float32 numbers are not quantized.
        offset: Difference between the reference model's int8 code and a stored integer.
        scale: Scale of the reference model's input: value = scale * (code - zero_point).
        zero_point: Zero point of the reference model's input.
        quality: Quality goal; None if single samples do not determine it, or the benchmark has none.
        is_anomaly: True if the score of a sample is the distance between the model's output and the sample.
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
        """Return the type of the numbers in a file of that size; the first allowed type if none fits."""
        kinds = [np.dtype(kind) for kind in self.stored]
        return next((kind for kind in kinds if kind.itemsize * self.size == size_bytes), kinds[0])

    def check(self, graph: Graph) -> Tensor:
        """Check that a model accepts this task's samples, as int8 or float32; return its input.

        Raises:
            InputError: Several inputs or outputs, or an input with another type or number of elements; for anomalies,
                an output with another number of elements.
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
                f"{self.name} needs a model with the {self.size} elements of its input in its output; output "
                f"'{output.name}' has {output.size}"
            )
        return tensor

    def encode(self, stored: Array, tensor: Tensor) -> Array:
        """Return samples in the encoding of a model's input: dtype[S, *model's shape] of stored numbers [S, *shape].

        Integers: q = stored + offset; a float model gets scale * (q - zero_point). Floating-point values: unchanged, or
        q = clip(round(x / scale) + zero_point) with the model's own scale, as the reference devices do (mlcommons/tiny,
        benchmark/util/quantization_helpers.h).

        Raises:
            InputError: A floating-point value is NaN.
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
        OptionError: The name is unknown.
    """
    if name not in TASKS:
        raise OptionError(f"no task is called '{name}'; there are {', '.join(TASKS)}")
    return TASKS[name]
