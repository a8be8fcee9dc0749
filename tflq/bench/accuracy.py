"""Top-1 accuracy over a labelled data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.executions import Execution
from tflq.analysis.inputs import GivenSamples, Samples
from tflq.analysis.inputs.files import read_exact
from tflq.bench.labels import read_labels
from tflq.bench.tasks import Task
from tflq.errors import InputError
from tflq.graph import Array, Graph


@dataclass(frozen=True)
class LabelledSamples:
    """Samples with their classes.

    Attributes:
        samples: in the model's encoding.
        labels: int64[S].
        classes: number of classes.
    """

    samples: Samples
    labels: NDArray[np.int64]
    classes: int


@dataclass(frozen=True)
class Accuracy:
    """How many samples of a data set were classified right.

    Attributes:
        name: of the execution.
        right: number of samples whose prediction is their class.
        total: number of samples.
    """

    name: str
    right: int
    total: int

    @property
    def percent(self) -> float:
        """100 * right / total."""
        return 100.0 * self.right / self.total


def load(task: Task, folder: Path, graph: Graph) -> LabelledSamples:
    """Read a task's data set for a model.

    Raises:
        InputError: the model does not fit the task; a label file of another form; files missing or of another size.
    """
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise InputError(
            f"{task.name} needs a model with one input and one output; this one has {len(graph.inputs)} and "
            f"{len(graph.outputs)}"
        )
    tensor, output = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    task.check_input(tensor)
    labels = read_labels(folder)
    if output.size != labels[0].classes:
        raise InputError(f"{folder}: has {labels[0].classes} classes, the model's output has {output.size} elements")
    stored = read_exact([folder / label.file for label in labels], task.shape, task.stored_dtype)
    classes = np.array([label.true_class for label in labels], np.int64)
    return LabelledSamples(GivenSamples([task.encode(stored, tensor)]), classes, labels[0].classes)


def measure(
    execution: Execution, data: LabelledSamples, progress: Callable[[int], object] = lambda _: None
) -> Accuracy:
    """Run all samples and count the right predictions.

    Args:
        execution: the model, in some arithmetic, with one output of `classes` elements.
        data: samples in the encoding of the model that `execution` was made from.
        progress: called with the number of samples just finished.
    """
    right = start = 0
    for chunk in execution.iterate(data.samples):
        found = predictions(chunk[execution.graph.outputs[0]])
        right += int(np.count_nonzero(found == data.labels[start : start + len(found)]))
        start += len(found)
        progress(len(found))
    return Accuracy(execution.name, right, start)


def predictions(outputs: Array) -> NDArray[np.int64]:
    """Return the position of the highest value, the lowest one on ties: int64[S] of dtype[S, ...]."""
    return np.asarray(outputs.reshape(len(outputs), -1).argmax(axis=1), np.int64)
