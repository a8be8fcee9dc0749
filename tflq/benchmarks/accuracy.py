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
    """Return the share of pairs (one positive, one negative) whose positive scores higher; ties count one half.

    With n positives, m negatives and average ranks among equal scores:
    AUC = (sum of the positives' ranks - n (n + 1) / 2) / (n m), the Mann-Whitney statistic, which is the area under
    the curve of true against false positive rate (Fawcett, "An introduction to ROC analysis", 2006, section 7).

    Args:
        scores: dtype[S], high for positive.
        positive: bool[S].

    Returns:
        None where one of the two kinds does not occur.
    """
    count = int(np.count_nonzero(positive))
    if count in (0, len(positive)):
        return None
    _, place, ties = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(ties) - (ties - 1) / 2.0
    above = float(ranks[place.reshape(-1)[positive]].sum()) - count * (count + 1) / 2
    return above / (count * (len(positive) - count))


def one_against_rest(outputs: Array, labels: NDArray[np.int64]) -> float | None:
    """Return the mean over classes of the area for that class against all others, as mlcommons' runner does.

    A sample's scores are its outputs divided by their sum, where none is negative (benchmark/runner/main.py,
    normalize_probabilities); the outputs themselves where any is. Two classes: the area for class 1.

    Args:
        outputs: real[S, classes].
        labels: the true classes, int64[S].

    Returns:
        The mean over the classes that have samples; None where there are fewer than two of them.
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
        samples: in the model's encoding.
        labels: int64[S].
        classes: number of classes.
        files: the samples' files, where they come from a folder; they are read when they are run.
    """

    samples: Samples
    labels: NDArray[np.int64]
    classes: int
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ClassAccuracy:
    """How many samples of one class were classified right: `right` of `total`."""

    right: int
    total: int


@dataclass(frozen=True)
class Accuracy:
    """How many samples of a data set were classified right.

    Attributes:
        name: of the execution.
        right: number of samples whose prediction is their class.
        total: number of samples.
        classes: the same for each class, by its number.
        auc: mean area under the ROC curve, one class against the rest; None where fewer than two classes occur.
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
    """Read a classification task's data set for a model: the first `count` lines of its labels, or all.

    Raises:
        InputError: the model does not fit the task; a task without classes; a label file of another form; files
            missing or of another size.
    """
    if task.is_anomaly:
        raise InputError(f"{task.name} has no classes: `tflq bench {task.name}` measures the area under its ROC curve")
    tensor = task.check(graph)
    labels = _labels(folder, graph, count)
    files = tuple(folder / label.file for label in labels)
    require_files(files)
    kind = task.stored_dtype(files[0].stat().st_size)
    require_samples(files, task.shape, kind)
    return _labeled(lambda some: task.encode(read_exact(some, task.shape, kind), tensor), labels, files)


def load_folder(folder: Path, graph: Graph, count: int | None = None) -> LabeledSamples:
    """Read any folder with y_labels.csv whose files hold samples as the model's input lies in memory.

    Raises:
        InputError: as `load`; an input that holds strings.
    """
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise InputError(
            f"{folder}: its files are samples of one input for one output; the model has {len(graph.inputs)} and "
            f"{len(graph.outputs)}"
        )
    tensor = graph.tensors[graph.inputs[0]]
    if tensor.dtype.storage.kind == "O":
        raise InputError(f"{folder}: input '{tensor.name}' holds {tensor.dtype.value}, which raw bytes cannot give")
    labels = _labels(folder, graph, count)
    files = tuple(folder / label.file for label in labels)
    kind, legal = tensor.dtype.storage, legal_values(graph, graph.inputs[0])
    require_samples(files, tensor.shape, kind)

    def read(some: Sequence[Path]) -> Array:
        return fit(read_exact(some, tensor.shape, kind), tensor, legal, str(folder))

    return _labeled(read, labels, files)


def measure(execution: Execution, data: LabeledSamples, progress: Callable[[int], object] = lambda _: None) -> Accuracy:
    """Run all samples and count the right predictions.

    Args:
        execution: the model, in some arithmetic, with one output of `classes` elements.
        data: samples in the encoding of the model that `execution` was made from.
        progress: called with the number of samples just finished.
    """
    return summarize(execution.name, answers(execution, data.samples, progress), data)


def answers(
    execution: Execution, samples: Samples, progress: Callable[[int], object] = lambda _: None
) -> NDArray[np.float64]:
    """Run all samples and return the outputs as real numbers: float64[S, classes]. Arguments as for `measure`."""
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
    """Return the real numbers of the first output, scale * (q - zero_point) exactly: float64[S, elements]."""
    graph = execution.graph
    return real_values(outputs, graph.tensors[graph.outputs[0]]).reshape(len(outputs), -1)


def _labels(folder: Path, graph: Graph, count: int | None) -> tuple[Label, ...]:
    labels = read_labels(folder)
    if labels[0].window_bytes:
        raise InputError(f"{folder}: its labels state windows, which task ad01 has; others have one sample a file")
    output = graph.tensors[graph.outputs[0]]
    if output.size != labels[0].classes:
        raise InputError(f"{folder}: has {labels[0].classes} classes, the model's output has {output.size} elements")
    return labels[:count]


def _labeled(
    read: Callable[[Sequence[Path]], Array], labels: tuple[Label, ...], files: tuple[Path, ...]
) -> LabeledSamples:
    classes = np.array([label.true_class for label in labels], np.int64)
    return LabeledSamples(FileSamples(files, read), classes, labels[0].classes, files)
