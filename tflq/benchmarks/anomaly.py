"""Anomaly detection: how far an autoencoder's output is from its input, averaged over the windows of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tflq.benchmarks.accuracy import area_under_roc, real_outputs
from tflq.benchmarks.labels import Label, read_labels
from tflq.benchmarks.tasks import Quality, Task
from tflq.errors import InputError
from tflq.files import read_bytes
from tflq.graph import Array, Graph
from tflq.parallel.executions import Execution
from tflq.sampling.files import require_files

ANOMALY = 1

ScalarT = TypeVar("ScalarT", bound=np.generic)


def joined(views: Sequence[NDArray[ScalarT]], start: int, stop: int) -> NDArray[ScalarT]:
    """Return rows start..stop-1 of what the views would be one behind the other."""
    pieces, first = [], 0
    for view in views:
        pieces.append(view[max(start - first, 0) : max(stop - first, 0)])
        first += len(view)
    return np.concatenate(pieces)


@dataclass(frozen=True)
class Windows:
    """Windows of real numbers, which may overlap, as samples of a model.

    Attributes:
        task: says how a window becomes an input.
        graph: the model's.
        views: for each file its windows, float32[W, N]; nothing is copied.
    """

    task: Task
    graph: Graph
    views: tuple[NDArray[np.float32], ...]

    @property
    def count(self) -> int:
        """Number of windows of all files."""
        return sum(map(len, self.views))

    def real(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return windows start..stop-1 as they are in the files: float32[stop - start, N]."""
        return joined(self.views, start, stop)

    def take(self, start: int, stop: int) -> list[Array]:
        """Return windows start..stop-1 in the encoding of the model's input."""
        return [self.task.encode(self.real(start, stop), self.graph.tensors[self.graph.inputs[0]])]


@dataclass(frozen=True)
class LabeledWindows:
    """Files with their classes, and the windows in them.

    Attributes:
        samples: the windows, file by file.
        labels: of the files, int64[F]: 0 normal, 1 anomaly.
        files: their paths.
    """

    samples: Windows
    labels: NDArray[np.int64]
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Detection:
    """How well the errors tell anomalies from normal files.

    Attributes:
        name: of the execution.
        normal: number of normal files.
        anomalies: number of the others.
        windows: number of windows of all files.
        errors: mean squared error of each file.
        auc: area under the ROC curve over files; None where one of the two kinds does not occur.
    """

    name: str
    normal: int
    anomalies: int
    windows: int
    errors: tuple[float, ...]
    auc: float | None

    def meets(self, quality: Quality) -> bool:
        """Whether the benchmark's quality is reached."""
        return self.auc is not None and self.auc >= quality.at_least


def load_windows(task: Task, folder: Path, graph: Graph, count: int | None = None) -> LabeledWindows:
    """Read the data set of an anomaly task: the first `count` lines of its labels, or all.

    Raises:
        InputError: a model whose output is not of its input's size; labels without windows, with other classes or
            windows of another size; files missing, too short, or not of whole numbers.
    """
    task.check(graph)
    labels = read_labels(folder)[:count]
    _check_windows(task, folder, labels[0])
    files = tuple(folder / label.file for label in labels)
    require_files(files)
    views = tuple(_views(path, label) for path, label in zip(files, labels, strict=True))
    classes = np.array([label.true_class for label in labels], np.int64)
    return LabeledWindows(Windows(task, graph, views), classes, files)


def window_errors(
    execution: Execution, data: LabeledWindows, progress: Callable[[int], object] = lambda _: None
) -> NDArray[np.float32]:
    """Run all windows and return the error of each, float32[W, 1].

    Args:
        execution: the autoencoder, in some arithmetic.
        data: windows for the model that `execution` was made from.
        progress: called with the number of windows just finished.
    """
    errors: list[NDArray[np.float32]] = []
    start = 0
    for chunk in execution.iterate(data.samples):
        outputs = real_outputs(execution, chunk[execution.graph.outputs[0]])
        errors.append(squared_errors(data.samples.real(start, start + len(outputs)), outputs))
        start += len(outputs)
        progress(len(outputs))
    return np.concatenate(errors)[:, None]


def summarize_errors(name: str, errors: Array, data: LabeledWindows) -> Detection:
    """Average the windows' errors, real[W, 1], over each file, whose score that is, and compare with the labels."""
    ends = np.cumsum([len(view) for view in data.samples.views])[:-1]
    scores = [float(part.mean(dtype=np.float64)) for part in np.split(errors[:, 0], ends)]
    abnormal = data.labels == ANOMALY
    anomalies = int(abnormal.sum())
    auc = area_under_roc(np.array(scores), abnormal)
    return Detection(name, len(scores) - anomalies, anomalies, len(errors), tuple(scores), auc)


def squared_errors(inputs: NDArray[np.float32], outputs: Array) -> NDArray[np.float32]:
    """Return the mean squared error of each window, float32[W] of float32[W, N] and real[W, N].

    Outputs, differences, squares and their sum in float32, one element after the other, as the reference device does
    (mlcommons/tiny, benchmark/reference_submissions/anomaly_detection/submitter_implemented.cpp, calculate_result).
    """
    differences = outputs.astype(np.float32) - inputs
    sums = np.add.accumulate(differences * differences, axis=1, dtype=np.float32)[:, -1]
    return np.asarray(sums / np.float32(inputs.shape[1]), np.float32)


def _check_windows(task: Task, folder: Path, label: Label) -> None:
    size = task.size * np.dtype(np.float32).itemsize
    if label.classes != 2:
        raise InputError(f"{folder}: has {label.classes} classes, {task.name} has 2: 0 normal, 1 anomaly")
    if label.window_bytes != size or label.stride_bytes % np.dtype(np.float32).itemsize:
        stated = f"windows of {label.window_bytes} bytes every {label.stride_bytes}" if label.window_bytes else "none"
        raise InputError(
            f"{folder}: {task.name} needs lines file,2,class,window_bytes,stride_bytes with windows of {size} bytes "
            f"({task.size} float32) and a stride of whole numbers of 4 bytes; they state {stated}"
        )


def _views(path: Path, label: Label) -> NDArray[np.float32]:
    data = read_bytes(path)
    item = np.dtype("<f4").itemsize
    if len(data) % item or len(data) < label.window_bytes:
        raise InputError(
            f"{path}: has {len(data)} bytes; float32 numbers and at least one window of {label.window_bytes} bytes "
            "are needed"
        )
    numbers = np.frombuffer(data, "<f4").astype(np.float32, copy=False)
    return sliding_window_view(numbers, label.window_bytes // item)[:: label.stride_bytes // item]
