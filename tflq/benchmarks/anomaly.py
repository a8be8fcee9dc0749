"""Anomaly detection: distance of an autoencoder's output from its input, averaged over the windows of a file."""

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


def concatenate_rows(views: Sequence[NDArray[ScalarT]], start: int, stop: int) -> NDArray[ScalarT]:
    """Return rows start..stop-1 of the concatenated views."""
    pieces, first = [], 0
    for view in views:
        pieces.append(view[max(start - first, 0) : max(stop - first, 0)])
        first += len(view)
    return np.concatenate(pieces)


@dataclass(frozen=True)
class Windows:
    """Windows of floating-point values, which may overlap, as samples of a model.

    Attributes:
        task: Task that defines the encoding of a window.
        graph: Graph of the model.
        views: Windows of each file, float32[W, N], without a copy.
    """

    task: Task
    graph: Graph
    views: tuple[NDArray[np.float32], ...]

    @property
    def count(self) -> int:
        """Number of windows of all files."""
        return sum(map(len, self.views))

    def float_windows(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return windows start..stop-1 unchanged: float32[stop - start, N]."""
        return concatenate_rows(self.views, start, stop)

    def take(self, start: int, stop: int) -> list[Array]:
        """Return windows start..stop-1 in the encoding of the model's input."""
        return [self.task.encode(self.float_windows(start, stop), self.graph.tensors[self.graph.inputs[0]])]


@dataclass(frozen=True)
class LabeledWindows:
    """Files with their classes and windows.

    Attributes:
        samples: Windows, file by file.
        labels: Classes of the files, int64[F]: 0 normal, 1 anomaly.
        files: Paths of the files.
    """

    samples: Windows
    labels: NDArray[np.int64]
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Detection:
    """Separation of anomalies from normal files by the errors.

    Attributes:
        name: Name of the execution.
        normal: Number of normal files.
        anomalies: Number of anomalous files.
        windows: Number of windows of all files.
        errors: Mean squared error of each file.
        auc: Area under the ROC curve over files; None unless both kinds occur.
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
    """Read the data set of an anomaly task: the first `count` lines of its labels (default: all).

    Raises:
        InputError: A model with different sizes of input and output; labels without windows, with other classes or with
            windows of another size; files that are missing, too short, or not a sequence of float32.
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
        execution: Autoencoder, in some arithmetic.
        data: Windows for the model that `execution` was made from.
        progress: Called with the number of windows just finished.
    """
    errors: list[NDArray[np.float32]] = []
    start = 0
    for chunk in execution.iterate(data.samples):
        outputs = real_outputs(execution, chunk[execution.graph.outputs[0]])
        errors.append(squared_errors(data.samples.float_windows(start, start + len(outputs)), outputs))
        start += len(outputs)
        progress(len(outputs))
    return np.concatenate(errors)[:, None]


def summarize_errors(name: str, errors: Array, data: LabeledWindows) -> Detection:
    """Average the windows' errors, real[W, 1], to one score per file, and compare the scores with the labels."""
    ends = np.cumsum([len(view) for view in data.samples.views])[:-1]
    scores = [float(part.mean(dtype=np.float64)) for part in np.split(errors[:, 0], ends)]
    abnormal = data.labels == ANOMALY
    anomalies = int(abnormal.sum())
    auc = area_under_roc(np.array(scores), abnormal)
    return Detection(name, len(scores) - anomalies, anomalies, len(errors), tuple(scores), auc)


def squared_errors(inputs: NDArray[np.float32], outputs: Array) -> NDArray[np.float32]:
    """Return the mean squared error of each window, float32[W] of float32[W, N] and real[W, N].

    Outputs, differences, squares and their sum are float32, summed in the order of the elements, as on the reference
    device (mlcommons/tiny, benchmark/reference_submissions/anomaly_detection/submitter_implemented.cpp,
    calculate_result).
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
            f"({task.size} float32) and a stride that is a multiple of 4 bytes; its lines state {stated}"
        )


def _views(path: Path, label: Label) -> NDArray[np.float32]:
    data = read_bytes(path)
    item = np.dtype("<f4").itemsize
    if len(data) % item or len(data) < label.window_bytes:
        raise InputError(
            f"{path}: has {len(data)} bytes; needed are float32 values, at least one window of {label.window_bytes} "
            "bytes"
        )
    numbers = np.frombuffer(data, "<f4").astype(np.float32, copy=False)
    return sliding_window_view(numbers, label.window_bytes // item)[:: label.stride_bytes // item]
