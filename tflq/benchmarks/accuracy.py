"""Accuracy over a labeled data set: top-1, for each class, and the area under the ROC curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.labels import Label, read_labels
from tflq.benchmarks.significance import wilson_percent
from tflq.benchmarks.tasks import Quality, Task
from tflq.errors import InputError
from tflq.graph import Array, Graph
from tflq.parallel.executions import Execution, real_values
from tflq.sampling import FileSamples, Samples, legal_values
from tflq.sampling.encoding import fit
from tflq.sampling.files import read_exact, require_files, require_samples


def area_under_roc(scores: Array, positive: NDArray[np.bool_]) -> float | None:
    """Return the share of pairs (one positive, one negative) with a higher score of the positive; ties count one half.

    With n positives, m negatives and average ranks among equal scores:
    AUC = (sum of the positives' ranks - n (n + 1) / 2) / (n m), the Mann-Whitney statistic, which is the area under
    the curve of true against false positive rate (Fawcett, "An introduction to ROC analysis", 2006, section 7).

    Args:
        scores: dtype[S], high for positive.
        positive: bool[S].

    Returns:
        Area under the curve; None unless both kinds occur.
    """
    count = int(np.count_nonzero(positive))
    if count in (0, len(positive)):
        return None
    _, place, ties = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(ties) - (ties - 1) / 2.0
    above = float(ranks[place.reshape(-1)[positive]].sum()) - count * (count + 1) / 2
    return above / (count * (len(positive) - count))


def one_against_rest(outputs: Array, labels: NDArray[np.int64]) -> float | None:
    """Return the mean over classes of the area for that class against the rest, as MLCommons' runner computes it.

    The scores of a sample are its outputs divided by their sum if none is negative (benchmark/runner/main.py,
    normalize_probabilities), else the outputs. With two classes it is the area for class 1.

    Args:
        outputs: real[S, classes].
        labels: True classes, int64[S].

    Returns:
        Mean over the classes that have samples; None for fewer than two classes with samples.
    """
    scores = np.asarray(outputs, np.float64)
    if (scores >= 0).all():
        sums = scores.sum(axis=1, keepdims=True)
        scores = np.divide(scores, sums, out=scores.copy(), where=sums > 0)
    if scores.shape[1] == 2:
        return area_under_roc(scores[:, 1], labels == 1)
    areas = [area_under_roc(scores[:, c], labels == c) for c in range(scores.shape[1])]
    known = [area for area in areas if area is not None]
    return float(np.mean(known)) if known else None


@dataclass(frozen=True)
class LabeledSamples:
    """Samples with their classes.

    Attributes:
        samples: Samples in the encoding of the model.
        labels: True classes, int64[S].
        classes: Number of classes.
        files: Files of the samples, for samples of a folder; they are read when they run.
    """

    samples: Samples
    labels: NDArray[np.int64]
    classes: int
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ClassAccuracy:
    """Number of correctly classified samples of one class: `right` of `total`."""

    right: int
    total: int


@dataclass(frozen=True)
class Accuracy:
    """Number of correctly classified samples of a data set.

    Attributes:
        name: Name of the execution.
        right: Number of samples with a correct prediction.
        total: Number of samples.
        classes: Same numbers for each class, in the order of the class numbers.
        auc: Mean area under the ROC curve, one class against the rest; None if fewer than two classes occur.
    """

    name: str
    right: int
    total: int
    classes: tuple[ClassAccuracy, ...] = ()
    auc: float | None = None

    @property
    def percent(self) -> float:
        """100 * right / total."""
        return 100.0 * self.right / self.total

    @property
    def interval_percent(self) -> tuple[float, float]:
        """Wilson's 95 % interval of `percent`."""
        return wilson_percent(self.right, self.total)

    def meets(self, quality: Quality) -> bool:
        """Whether the benchmark's quality is reached."""
        value = self.percent if quality.metric == "top-1" else self.auc
        return value is not None and value >= quality.at_least


def load(task: Task, folder: Path, graph: Graph, count: int | None = None) -> LabeledSamples:
    """Read a classification task's data set for a model: the first `count` lines of its labels (default: all).

    Raises:
        InputError: The model does not fit the task; a task without classes; a label file with another format; files
            that are missing or have another size.
    """
    if task.is_anomaly:
        raise InputError(f"{task.name} has no classes: `tflq bench {task.name}` measures the area under its ROC curve")
    tensor = task.check(graph)
    labels = _labels(folder, graph, count)
    files = tuple(folder / label.file for label in labels)
    require_files(files)
    kind = task.stored_dtype(files[0].stat().st_size)
    require_samples(files, task.shape, kind)
    return _make_labeled(lambda some: task.encode(read_exact(some, task.shape, kind), tensor), labels, files)


def load_folder(folder: Path, graph: Graph, count: int | None = None) -> LabeledSamples:
    """Read any folder with y_labels.csv and files that contain samples in the memory format of the model's input.

    Raises:
        InputError: As for `load`; an input of strings.
    """
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise InputError(
            f"{folder}: contains samples of one input for one output; the model has {len(graph.inputs)} and "
            f"{len(graph.outputs)}"
        )
    tensor = graph.tensors[graph.inputs[0]]
    if tensor.dtype.storage.kind == "O":
        raise InputError(
            f"{folder}: input '{tensor.name}' has type {tensor.dtype.value}, which raw bytes cannot represent"
        )
    labels = _labels(folder, graph, count)
    files = tuple(folder / label.file for label in labels)
    kind, legal = tensor.dtype.storage, legal_values(graph, graph.inputs[0])
    require_samples(files, tensor.shape, kind)

    def read(some: Sequence[Path]) -> Array:
        return fit(read_exact(some, tensor.shape, kind), tensor, legal, str(folder))

    return _make_labeled(read, labels, files)


def measure(execution: Execution, data: LabeledSamples, progress: Callable[[int], object] = lambda _: None) -> Accuracy:
    """Run all samples and count the correct predictions.

    Args:
        execution: Model in some arithmetic, with one output of `classes` elements.
        data: Samples in the encoding of the model that `execution` was made from.
        progress: Called with the number of samples just finished.
    """
    return summarize(execution.name, answers(execution, data.samples, progress), data)


def answers(
    execution: Execution, samples: Samples, progress: Callable[[int], object] = lambda _: None
) -> NDArray[np.float64]:
    """Run all samples and return the dequantized outputs: float64[S, classes]. Arguments as for `measure`."""
    reals = []
    for chunk in execution.iterate(samples):
        reals.append(real_outputs(execution, chunk[execution.graph.outputs[0]]))
        progress(len(reals[-1]))
    return np.concatenate(reals)


def summarize(name: str, outputs: Array, data: LabeledSamples) -> Accuracy:
    """Compare outputs, real[S, classes], with the labels."""
    right = predictions(outputs) == data.labels
    totals = np.bincount(data.labels, minlength=data.classes)
    rights = np.bincount(data.labels[right], minlength=data.classes)
    classes = tuple(ClassAccuracy(int(n), int(of)) for n, of in zip(rights, totals, strict=True))
    return Accuracy(name, int(right.sum()), len(right), classes, one_against_rest(outputs, data.labels))


def predictions(outputs: Array) -> NDArray[np.int64]:
    """Return the position of the highest value, the lowest one on ties: int64[S] of dtype[S, ...]."""
    return np.asarray(outputs.reshape(len(outputs), -1).argmax(axis=1), np.int64)


def real_outputs(execution: Execution, outputs: Array) -> NDArray[np.float64]:
    """Return the dequantized first output, exactly scale * (q - zero_point): float64[S, elements]."""
    graph = execution.graph
    return real_values(outputs, graph.tensors[graph.outputs[0]]).reshape(len(outputs), -1)


def _labels(folder: Path, graph: Graph, count: int | None) -> tuple[Label, ...]:
    labels = read_labels(folder)
    if labels[0].window_bytes:
        raise InputError(
            f"{folder}: its labels define windows, which only task ad01 supports; other tasks have one sample per file"
        )
    output = graph.tensors[graph.outputs[0]]
    if output.size != labels[0].classes:
        raise InputError(f"{folder}: has {labels[0].classes} classes, the model's output has {output.size} elements")
    return labels[:count]


def _make_labeled(
    read: Callable[[Sequence[Path]], Array], labels: tuple[Label, ...], files: tuple[Path, ...]
) -> LabeledSamples:
    classes = np.array([label.true_class for label in labels], np.int64)
    return LabeledSamples(FileSamples(files, read), classes, labels[0].classes, files)
