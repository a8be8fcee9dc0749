"""`tflq.samples`: the samples that a model is run on, from files, arrays, or at random."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.api.options import CalibrationOptions, Inputs, SampleOptions, SampleSource
from tflq.api.read_model import ModelSource, read_model
from tflq.benchmarks.scoring import load_data, split_named
from tflq.benchmarks.tasks import TASKS
from tflq.errors import InputError, TflqWarning, UsageError
from tflq.graph import Graph, Model
from tflq.graph.arena import macs
from tflq.sampling import GivenSamples, RandomSamples, Samples, given_arrays, given_inputs

UNREQUESTED_MACS = 10**10
"""Largest number of multiply-accumulates, over all samples, of a comparison on samples that the user did not name."""


def samples(model: ModelSource, source: SampleSource = None, *, count: int = 1) -> Samples:
    """Return samples for a model's inputs: `take(start, stop)` gives each input's array [stop - start, *shape].

    Args:
        model: whose inputs they are.
        source: files, arrays or options; random ones, within what the model's operators allow, where it names none.
        count: number of random samples where the options do not say it.

    Warns:
        TflqWarning: real numbers outside the range of their input were clipped.

    Raises:
        InputError: a file that cannot be read, an array that does not fit, an input without samples.
    """
    found = read_model(model)
    if isinstance(source, SampleOptions):
        options = source
    elif source is None or isinstance(source, (str, np.ndarray, Sequence, Mapping)):
        options = SampleOptions(() if source is None else source)
    else:
        return source
    refuse_count(options)
    if options.is_random:
        most = count if options.take is None else max(count, options.take.stop)
        every: Samples = RandomSamples(found.main, options.count or most, options.seed)
    elif options.data is None:
        every = given_samples(found, options.inputs, options.real, "input")
    else:
        if not (isinstance(options.inputs, (str, Sequence)) and not options.inputs):
            raise UsageError("--data and --input both name samples; give one of them")
        stop = None if options.take is None else options.take.stop
        every = load_data(*split_named(options.data), found.main, stop).samples
    return every if options.take is None else options.take.of(every)


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
    """Return the samples that are named, else those of the calibration, else random ones.

    Args:
        model: whose inputs they are.
        source: as of a use case.
        calibration: may name samples.
        count: number of random ones, and of the calibration's, where the options do not say it.
        all_given: take all of the calibration's.
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
    """Return the samples of files or arrays; `what` names them where some were clipped."""
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
        raise InputError(f"samples are {type(inputs).__name__}; give files, an array, or arrays by the inputs' names")
    if given.clipped:
        warnings.warn(
            f"{given.clipped} {what} values lie outside the range of their input and were clipped",
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
    """Return the names that the main graph's signatures give its inputs, with the tensors' indices."""
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
