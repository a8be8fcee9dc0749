"""Data sets of any kind, and a model's scores on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from tflq.benchmarks.accuracy import Accuracy, LabeledSamples, answers, load, load_folder, summarize
from tflq.benchmarks.anomaly import Detection, LabeledWindows, load_windows, summarize_errors, window_errors
from tflq.benchmarks.labels import read_labels
from tflq.benchmarks.tasks import Task, find_task
from tflq.benchmarks.truth import Judged, LabeledTruth, judge, load_truth
from tflq.benchmarks.wake_words import LabeledStreams, WakeWords, holds_streams, load_streams, summarize_streams
from tflq.errors import InputError
from tflq.graph import Array, Graph
from tflq.parallel.executions import Execution, all_outputs
from tflq.sampling import GivenSamples, Samples
from tflq.sampling.described import Description, described_array, read_description
from tflq.sampling.samples import FileSamples, Span

SUFFIX = ".json"


def is_description(path: Path) -> bool:
    """Whether a path is a data description."""
    return path.suffix.lower() == SUFFIX and not path.is_dir()


def load_described(path: Path, graph: Graph, count: int | None = None) -> LabeledSamples:
    """Read the files of a description (docs/guides/data.md) for a classifier: the first `count` (default: all).

    Raises:
        InputError: Missing labels; more classes than elements of the model's output; a file that cannot be read.
        MissingExtraError: The package that reads the files is not installed.
    """
    description = read_description(path).first(count)
    if description.truth is not None:
        raise InputError(
            f"{path}: its labels are {description.truth.kind}, which only `tflq bench`, search and sensitivity support"
        )
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise InputError(
            f"{path}: contains samples of one input for one output; the model has {len(graph.inputs)} and "
            f"{len(graph.outputs)}"
        )
    if description.labels is None:
        raise InputError(f'{path}: has no labels; add "labels": "folders" if each class has a separate folder')
    outputs = graph.tensors[graph.outputs[0]].size
    if len(description.classes) > outputs:
        raise InputError(f"{path}: has {len(description.classes)} classes, the model's output has {outputs} elements")
    array, _ = described_array(description, graph.tensors[graph.inputs[0]])
    return LabeledSamples(GivenSamples([array]), np.array(description.labels, np.int64), outputs, description.files)


DataSet = LabeledSamples | LabeledWindows | LabeledStreams | LabeledTruth
Score = Accuracy | Detection | WakeWords | Judged


def load_data(task: Task | None, folder: Path, graph: Graph, count: int | None = None) -> DataSet:
    """Read a data set: a task's, or any folder with y_labels.csv and files in the format of the model's input.

    For sww01 a folder or file with the runner's truth of streams is a stream. Any other .json describes images or
    sound, with or without a classification task. Labels with windows belong to an anomaly detector with windows of its
    input's size.

    Raises:
        InputError: Data, labels and model do not fit each other.
    """
    description = _described_truth(task, folder)
    if description is not None:
        return load_truth(description.first(count), graph)
    if task is not None and task.is_anomaly:
        return load_windows(task, folder, graph, count)
    if task is not None and task.name == "sww01" and holds_streams(folder):
        return load_streams(task, folder, graph)
    if task is None and not is_description(folder) and read_labels(folder)[0].window_bytes and graph.inputs:
        size = graph.tensors[graph.inputs[0]].size
        own = Task("this folder", "", "anomaly detection", (size,), ("float32",), 0, 1.0, 0, None, is_anomaly=True)
        return load_windows(own, folder, graph, count)
    return load_classified(task, folder, graph, count)


def _described_truth(task: Task | None, folder: Path) -> Description | None:
    """Return the description, if the path is one and its labels are not classes."""
    if not is_description(folder) or (task is not None and task.name == "sww01"):
        return None
    description = read_description(folder)
    if description.truth is not None and task is not None:
        raise InputError(f"{folder}: its labels are {description.truth.kind}; {task.name} needs classes")
    return None if description.truth is None else description


def kind_of_labels(text: str) -> str:
    """Return the kind of labels of [TASK=]DIR: "classes", "boxes", "masks" or "texts".

    Raises:
        OptionError, InputError: As for `load_judged`.
    """
    description = _described_truth(*split_named(text))
    return "classes" if description is None or description.truth is None else description.truth.kind


def load_judged(text: str, graph: Graph) -> LabeledSamples | LabeledTruth:
    """Read the samples and labels of [TASK=]DIR: classes, boxes, masks or texts; errors as for `load_data`."""
    task, folder = split_named(text)
    description = _described_truth(task, folder)
    return load_classified(task, folder, graph) if description is None else load_truth(description, graph)


def load_classified(task: Task | None, folder: Path, graph: Graph, count: int | None = None) -> LabeledSamples:
    """Read a data set for a classifier; arguments and errors as for `load_data`."""
    if is_description(folder):
        return load_described(folder, graph, count)
    return load_folder(folder, graph, count) if task is None else load(task, folder, graph, count)


def split_named(text: str) -> tuple[Task | None, Path]:
    """Return the task and the folder of [TASK=]DIR; the whole text is the folder if such a path exists.

    Raises:
        OptionError: The task is unknown.
    """
    task, equals, folder = text.partition("=")
    return (find_task(task), Path(folder)) if equals and not Path(text).exists() else (None, Path(text))


def load_named(text: str, graph: Graph) -> LabeledSamples:
    """Read a data set for a classifier that is named [TASK=]DIR; arguments and errors as for `load_data`."""
    return load_classified(*split_named(text), graph)


def run_data(execution: Execution, data: DataSet, progress: Callable[[int], object] = lambda _: None) -> Array:
    """Run all samples and return a device's results for each, real[S, values]: outputs, or the error of one window.

    If labels are not classes, the values are all outputs of the model, concatenated.

    Args:
        execution: Model in some arithmetic.
        data: Samples for the model that `execution` was made from.
        progress: Called with the number of samples just finished.
    """
    if isinstance(data, (LabeledSamples, LabeledStreams)):
        return answers(execution, data.samples, progress)
    if isinstance(data, LabeledTruth):
        return all_outputs(execution, data.samples, progress)
    return window_errors(execution, data, progress)


def score(name: str, values: Array, data: DataSet) -> Score:
    """Compare results, real[S, values], with the labels."""
    if isinstance(data, LabeledStreams):
        return summarize_streams(name, values.astype(np.float64), data)
    if isinstance(data, LabeledTruth):
        return judge(name, values.astype(np.float64), data)
    return summarize(name, values, data) if isinstance(data, LabeledSamples) else summarize_errors(name, values, data)


def take_samples(data: DataSet, span: Span) -> DataSet:
    """Return some of the samples of a data set, or of the files with the windows of an anomaly detector.

    Raises:
        InputError: There are fewer; a stream, which is one sequence.
    """
    if isinstance(data, LabeledStreams):
        raise InputError("a stream is one sequence of windows; a part of it cannot be measured")
    count = len(data.labels) if isinstance(data, LabeledWindows) else data.samples.count
    if span.stop > count:
        raise InputError(f"samples {span} were requested; there are 0:{count}")
    files = data.files[span.start : span.stop]
    if isinstance(data, LabeledWindows):
        views = data.samples.views[span.start : span.stop]
        return LabeledWindows(replace(data.samples, views=views), data.labels[span.start : span.stop], files)
    samples = data.samples
    if isinstance(samples, FileSamples):  # the files are read when they run
        chosen: Samples = replace(samples, files=samples.files[span.start : span.stop])
    else:
        chosen = span.select(samples)
    if isinstance(data, LabeledTruth):
        return replace(data, samples=chosen, labels=data.labels.part(span.start, span.stop), files=files)
    return replace(data, samples=chosen, labels=data.labels[span.start : span.stop], files=files)


def first_samples(data: DataSet, count: int) -> DataSet:
    """Return the first files, or their first windows, as MLCommons' runner selects them for performance.

    Raises:
        InputError: The data set has fewer files.
    """
    if isinstance(data, LabeledStreams):
        raise InputError("performance is not measured on a stream; use windows in files with y_labels.csv")
    if isinstance(data, LabeledTruth):
        raise InputError("performance is measured on samples with classes, or windows in files with y_labels.csv")
    if len(data.labels) < count:
        raise InputError(f"performance is measured on {count} inputs; the data set has {len(data.labels)} files")
    labels, files = data.labels[:count], data.files[:count]
    if isinstance(data, LabeledSamples):
        return replace(data, samples=GivenSamples(data.samples.take(0, count)), labels=labels, files=files)
    views = tuple(view[:1] for view in data.samples.views[:count])
    return LabeledWindows(replace(data.samples, views=views), labels, files)
