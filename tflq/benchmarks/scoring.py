"""Data sets of any kind, and what a model scores on them."""

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
    """Whether a data set is named by its description."""
    return path.suffix.lower() == SUFFIX and not path.is_dir()


def load_described(path: Path, graph: Graph, count: int | None = None) -> LabeledSamples:
    """Read the files of a description (docs/guides/data.md) for a classifier: all, or the first `count`.

    Raises:
        InputError: no labels; more classes than the model's output has elements; what the files raise.
        MissingExtraError: the package that reads the files is not installed.
    """
    description = read_description(path).first(count)
    if description.truth is not None:
        raise InputError(
            f"{path}: its labels are {description.truth.kind}, which `tflq bench`, search and sensitivity take"
        )
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise InputError(
            f"{path}: gives samples of one input for one output; the model has {len(graph.inputs)} and "
            f"{len(graph.outputs)}"
        )
    if description.labels is None:
        raise InputError(f'{path}: says no labels; add "labels": "folders" where each class has a folder of its own')
    outputs = graph.tensors[graph.outputs[0]].size
    if len(description.classes) > outputs:
        raise InputError(f"{path}: has {len(description.classes)} classes, the model's output has {outputs} elements")
    array, _ = described_array(description, graph.tensors[graph.inputs[0]])
    return LabeledSamples(GivenSamples([array]), np.array(description.labels, np.int64), outputs, description.files)


DataSet = LabeledSamples | LabeledWindows | LabeledStreams | LabeledTruth
Score = Accuracy | Detection | WakeWords | Judged


def load_data(task: Task | None, folder: Path, graph: Graph, count: int | None = None) -> DataSet:
    """Read a data set: a task's, or any folder with y_labels.csv, whose files then hold what the model's input takes.

    For sww01 a folder or file with the runner's truth of streams is a stream. Any other .json describes images or sound
    instead, with or without a task that classifies.

    Labels that state windows are those of an anomaly detector, whose windows are of its input's size.

    Raises:
        InputError: data, labels and model do not fit each other.
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
    """Return the description of samples whose labels are no classes, where a folder or file is one."""
    if not is_description(folder) or (task is not None and task.name == "sww01"):
        return None
    description = read_description(folder)
    if description.truth is not None and task is not None:
        raise InputError(f"{folder}: its labels are {description.truth.kind}; {task.name} has others")
    return None if description.truth is None else description


def kind_of_labels(text: str) -> str:
    """Return the kind of labels of [TASK=]DIR: "classes", "boxes", "masks" or "texts".

    Raises:
        OptionError, InputError: as `load_judged`.
    """
    description = _described_truth(*split_named(text))
    return "classes" if description is None or description.truth is None else description.truth.kind


def load_judged(text: str, graph: Graph) -> LabeledSamples | LabeledTruth:
    """Read what judges settings, named [TASK=]DIR: classes, boxes, masks or texts; errors as for `load_data`."""
    task, folder = split_named(text)
    description = _described_truth(task, folder)
    return load_classified(task, folder, graph) if description is None else load_truth(description, graph)


def load_classified(task: Task | None, folder: Path, graph: Graph, count: int | None = None) -> LabeledSamples:
    """Read a data set for a classifier; arguments and errors as for `load_data`."""
    if is_description(folder):
        return load_described(folder, graph, count)
    return load_folder(folder, graph, count) if task is None else load(task, folder, graph, count)


def split_named(text: str) -> tuple[Task | None, Path]:
    """Return the task and the folder of [TASK=]DIR; a folder that has such a name stands alone.

    Raises:
        OptionError: there is no such task.
    """
    task, equals, folder = text.partition("=")
    return (find_task(task), Path(folder)) if equals and not Path(text).exists() else (None, Path(text))


def load_named(text: str, graph: Graph) -> LabeledSamples:
    """Read a data set for a classifier that is named [TASK=]DIR; arguments and errors as for `load_data`."""
    return load_classified(*split_named(text), graph)


def run_data(execution: Execution, data: DataSet, progress: Callable[[int], object] = lambda _: None) -> Array:
    """Run all samples and return what a device answers to each, real[S, values]: outputs, or one window's error.

    Where labels are no classes, the outputs are all of the model's, one behind the other.

    Args:
        execution: the model in some arithmetic.
        data: samples for the model that `execution` was made from.
        progress: called with the number of samples just finished.
    """
    if isinstance(data, (LabeledSamples, LabeledStreams)):
        return answers(execution, data.samples, progress)
    if isinstance(data, LabeledTruth):
        return all_outputs(execution, data.samples, progress)
    return window_errors(execution, data, progress)


def score(name: str, values: Array, data: DataSet) -> Score:
    """Compare what was answered, real[S, values], with the labels."""
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
        raise InputError("a stream is one sequence of windows; no part of it is measured")
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
    """Return the first files of a data set, of each its first window: what mlcommons' runner takes for performance.

    Raises:
        InputError: the data set has fewer files.
    """
    if isinstance(data, LabeledStreams):
        raise InputError("a stream gives accuracy alone; performance takes windows in files with y_labels.csv")
    if isinstance(data, LabeledTruth):
        raise InputError("performance takes samples with classes, or windows in files with y_labels.csv")
    if len(data.labels) < count:
        raise InputError(f"performance is measured with {count} inputs, the data set has {len(data.labels)} files")
    labels, files = data.labels[:count], data.files[:count]
    if isinstance(data, LabeledSamples):
        return replace(data, samples=GivenSamples(data.samples.take(0, count)), labels=labels, files=files)
    views = tuple(view[:1] for view in data.samples.views[:count])
    return LabeledWindows(replace(data.samples, views=views), labels, files)
