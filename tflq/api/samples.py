"""`tflq.samples`: samples for a model, from files, from arrays, or random."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.api.options import CalibrationOptions, Inputs, LabelSource, SampleOptions, SampleSource, is_random
from tflq.api.read_model import ModelSource, read_model
from tflq.benchmarks.metrics import Labels
from tflq.benchmarks.scoring import load_data, load_judged, load_named, split_named
from tflq.benchmarks.tasks import TASKS
from tflq.errors import InputError, TflqWarning, UsageError
from tflq.graph import Graph, Model
from tflq.graph.arena import macs
from tflq.sampling import GivenSamples, RandomSamples, Samples, given_arrays, given_inputs
from tflq.sampling.files import read_class_file

UNREQUESTED_MACS = 10**10
"""Largest number of multiply-accumulates, over all samples, of a comparison on samples that the user did not name."""


@dataclass(frozen=True)
class SampleSet:
    """Samples for a model, with their labels.

    Attributes:
        samples: Samples in the encoding of the model.
        labels: Classes int64[S], or the content of the samples (boxes, masks, texts); None without labels.
    """

    samples: Samples
    labels: Labels | None = None


def open_samples(
    model: ModelSource,
    source: SampleSource = None,
    *,
    labels: LabelSource | None = None,
    data: str | None = None,
    count: int = 1,
    are_classes: bool = False,
) -> SampleSet:
    """Return the samples of any source, and their labels: arrays, files, folders, descriptions, data sets of tasks.

    Args:
        model: Model with the inputs.
        source: Files, arrays, (x, y), or options; random samples if it names none.
        labels: Classes of the samples.
        data: Labeled data set, [TASK=]DIR, instead of `source`; its labels must be classes, boxes, masks or texts.
        count: Default number of random samples.
        are_classes: Refuse other labels than classes.

    Raises:
        UsageError: `data` next to other samples or labels, or labels of random samples.
        InputError, OptionError: As `samples`; labels that do not fit.
    """
    original = read_model(model)
    source, labels = split_labels(source, labels)
    if data is None:
        if labels is not None and is_random(source):
            raise UsageError("--labels needs samples; name them with --input")
        chosen = samples(original, source, count=count)
        return SampleSet(chosen, None if labels is None else read_classes(labels, chosen.count, original.main))
    refuse_count(source, is_named=True)
    if not is_random(source):
        raise UsageError("--data and --input both name samples; omit one of them")
    if labels is not None:
        raise UsageError("--data contains labels; --labels needs --input")
    judged = (load_named if are_classes else load_judged)(data, original.main)
    return SampleSet(judged.samples, judged.labels)


def split_labels(source: SampleSource, labels: LabelSource | None) -> tuple[SampleSource, LabelSource | None]:
    """Return the samples and the labels of a source that may be (x, y).

    Raises:
        UsageError: (x, y), and labels given separately.
    """
    if not (isinstance(source, tuple) and len(source) == 2 and all(isinstance(part, np.ndarray) for part in source)):
        return source, labels
    if labels is not None:
        raise UsageError("samples are (x, y) with labels y, and labels are given again")
    x, y = source
    assert isinstance(x, np.ndarray)
    assert isinstance(y, np.ndarray)
    return x, y


def read_classes(labels: LabelSource, count: int, graph: Graph) -> NDArray[np.int64]:
    """Return classes, int64[S].

    Args:
        labels: File .npy or .csv (the class is the last number of a row), or integers [S].
        count: Number of samples S.
        graph: Graph with one output, which has an element for each class.

    Raises:
        InputError: Other values, another number of them, or several outputs.
    """
    where = labels if isinstance(labels, str) else "labels"
    array = read_class_file(labels) if isinstance(labels, str) else np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) != count:
        raise InputError(
            f"{where}: {array.dtype}{list(array.shape)}; classes must be integers [{count}], one class for each sample"
        )
    classes = graph.tensors[graph.outputs[0]].size if len(graph.outputs) == 1 else 0
    if not classes:
        raise InputError(f"{where}: classes need a model with one output; this one has {len(graph.outputs)}")
    if array.min() < 0 or array.max() >= classes:
        raise InputError(f"{where}: classes {array.min()}..{array.max()}; the model's output has {classes} elements")
    return array.astype(np.int64)


def samples(model: ModelSource, source: SampleSource = None, *, count: int = 1) -> Samples:
    """Return samples for a model's inputs: `take(start, stop)` returns each input's array [stop - start, *shape].

    Args:
        model: Model with the inputs.
        source: Files, arrays or options; random samples, within the range that the model's operators allow, if it names
            none.
        count: Number of random samples, unless the options specify it.

    Warns:
        TflqWarning: Floating-point values outside the range of their input were clipped.

    Raises:
        InputError: A file cannot be read, an array does not fit, an input has no samples.
    """
    original = read_model(model)
    source, _ = split_labels(source, None)
    if isinstance(source, tuple) and any(isinstance(part, np.ndarray) for part in source):
        raise InputError("samples are a tuple with arrays; pass an array, (x, y) with labels y, or arrays by name")
    if isinstance(source, SampleOptions):
        options = source
    elif source is None or isinstance(source, (str, np.ndarray, Sequence, Mapping)):
        options = SampleOptions(() if source is None else cast("Inputs", source))
    else:
        return source
    refuse_count(options)
    if options.is_random:
        most = count if options.take is None else max(count, options.take.stop)
        every: Samples = RandomSamples(original.main, options.count or most, options.seed)
    elif options.data is None:
        every = given_samples(original, options.inputs, options.real, "input")
    else:
        if not (isinstance(options.inputs, (str, Sequence)) and not options.inputs):
            raise UsageError("--data and --input both name samples; omit one of them")
        stop = None if options.take is None else options.take.stop
        every = load_data(*split_named(options.data), original.main, stop).samples
    return every if options.take is None else options.take.select(every)


def refuse_count(samples: SampleSource, is_named: bool = False) -> None:
    """Refuse a number of random samples next to named samples.

    Raises:
        UsageError: Both are given.
    """
    if isinstance(samples, SampleOptions) and samples.count is not None and (is_named or not samples.is_random):
        raise UsageError("--samples is the number of random samples; select from named ones with --take START:STOP")


def samples_or_calibration(
    model: Model, source: SampleSource, calibration: CalibrationOptions, count: int, *, all_given: bool = False
) -> Samples:
    """Return the named samples, or else the samples of the calibration, or else random ones.

    Args:
        model: Model with the inputs.
        source: Samples, as passed to a use case.
        calibration: Calibration, which may name samples.
        count: Number of samples of the calibration or of random samples, unless the options specify it.
        all_given: True to use all samples of the calibration.
    """
    options = SampleOptions() if source is None else source
    if isinstance(options, SampleOptions) and options.data is not None:
        chosen = samples(model, options)
        return chosen if all_given or options.take is not None else _first(chosen, count)
    if not (isinstance(options, SampleOptions) and options.is_random and calibration.has_samples):
        return samples(model, source, count=count)
    chosen = samples(model, replace(options, inputs=calibration.samples, real=calibration.real, count=None))
    return chosen if all_given else _first(chosen, options.count or count)


def _first(chosen: Samples, count: int) -> Samples:
    return GivenSamples(chosen.take(0, min(count, chosen.count)))


def given_samples(model: Model, inputs: Inputs, real: bool, what: str) -> GivenSamples:
    """Return the samples of files or arrays; `what` is their name in the warning about clipped values."""
    graph, names = model.main, input_names(model)
    if isinstance(inputs, str):
        inputs = (inputs,)
    if isinstance(inputs, Sequence) and len(inputs) == 1 and (data := _task_samples(graph, names, inputs[0])):
        return data
    if isinstance(inputs, np.ndarray):
        inputs = {"": inputs}
    if isinstance(inputs, Mapping):
        given = given_arrays(graph, inputs, names, real)
    elif isinstance(inputs, Sequence) and all(isinstance(path, str) for path in inputs):
        given = given_inputs(graph, inputs, names, real)
    else:
        raise InputError(f"samples are {type(inputs).__name__}; pass files, an array, or arrays by the inputs' names")
    if given.clipped:
        warnings.warn(
            f"{given.clipped} {what} values are outside the range of their input and were clipped",
            TflqWarning,
            stacklevel=3,
        )
    return given


def _task_samples(graph: Graph, names: Mapping[str, int], text: object) -> GivenSamples | None:
    """Return the samples of TASK=DIR in the encoding of the graph's input; None for a text that is none."""
    task, equals, _ = text.partition("=") if isinstance(text, str) else ("", "", "")
    known = {*names, *(graph.tensors[t].name for t in graph.inputs)}
    if not equals or task not in TASKS or task in known:
        return None
    data = load_data(*split_named(str(text)), graph).samples
    return GivenSamples(data.take(0, data.count))


def input_names(model: Model) -> dict[str, int]:
    """Return the names of inputs in the signatures of the main graph -> index of the tensor."""
    return {name: t for s in model.signatures if s.graph == 0 for name, t in s.inputs.items()}


def why_not_compared(graph: Graph, chosen: Samples, samples: SampleSource) -> str:
    """Return why a comparison is omitted: unnamed samples and a large network; empty if it is done."""
    is_counted = isinstance(samples, SampleOptions) and samples.count is not None
    if is_counted or not isinstance(chosen, RandomSamples):
        return ""
    total = chosen.count * sum(macs(graph, index) for index in range(len(graph.nodes)))
    if total <= UNREQUESTED_MACS:
        return ""
    return (
        f"{chosen.count} random samples take {total / 1e9:.3g} billion multiply-accumulates; name samples, or their "
        f"number (--samples 1), to compare on them"
    )
