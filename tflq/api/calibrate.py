"""`tflq.calibrate`: ranges of tensors, from samples or files, for a target to quantize by."""

from __future__ import annotations

from dataclasses import replace

from tflq.api.options import CalibrationOptions, Progress, changed, silent
from tflq.api.read_model import ModelSource, read_model
from tflq.api.samples import given_samples
from tflq.converters.calibration import StatisticsOptions, parse_ranges, with_ranges
from tflq.converters.calibration import calibrate as calibrate_graph
from tflq.converters.settled import settled_model
from tflq.converters.targets import find_target
from tflq.converters.template import read_template, with_template_ranges
from tflq.errors import InputError, SampleError, UsageError
from tflq.files import read_bytes
from tflq.graph import Graph, Model, float_view
from tflq.sampling.files import file_of_sample

KEPT_SAMPLES = 100
"""Samples that targets may write out beside the model."""


def calibrate(
    model: ModelSource,
    options: CalibrationOptions | None = None,
    *,
    target: str | None = None,
    progress: Progress = silent,
    **changes: object,
) -> Model:
    """Return the model as targets see it: settled (converters/settled.py), with ranges on its main graph's tensors.

    Args:
        model: float, or quantized: its own ranges stay where none are given.
        options: samples, statistics, and files of ranges.
        target: Name of the target with the defaults of the statistics; None for extrema in batches of 10.
        progress: shows how far it is.
        **changes: fields of the options.

    Raises:
        UsageError: an option of the statistics without samples.
        InputError, OptionError, FormatError: samples, a strategy or a file that do not fit.
    """
    found, options = settled_model(read_model(model)), changed(options or CalibrationOptions(), changes)
    graph = found.main
    if options.has_samples:
        graph = _from_samples(found, options, find_target(target).statistics if target else None, progress)
    elif options.has_statistics:
        raise UsageError(
            "--strategy, --batch-size, --momentum, --bins and --shuffle are for samples; add --calibrate FILE"
        )
    if options.template is not None:
        graph = with_template_ranges(graph, read_template(options.template))
    if options.ranges is not None:
        graph = _from_file(graph, options.ranges)
    return found if graph is found.main else replace(found, graphs=[graph, *found.graphs[1:]])


def refuse_calibration_without_target(options: CalibrationOptions) -> None:
    """Refuse options that nothing would use.

    Raises:
        UsageError: there are any.
    """
    if not options.is_empty:
        raise UsageError(
            "--calibrate, --ranges, --template and the options of statistics are for a target; add --target, or name "
            "it as MODEL@TARGET where a side is asked for"
        )


def _from_samples(
    model: Model, options: CalibrationOptions, default: StatisticsOptions | None, progress: Progress
) -> Graph:
    usual = default or StatisticsOptions()
    statistics = StatisticsOptions(
        options.strategy or usual.strategy,
        options.batch_size or usual.batch_size,
        usual.momentum if options.momentum is None else options.momentum,
        options.bins or usual.bins,
        shuffle_seed=options.shuffle,
        keep_samples=KEPT_SAMPLES,
    )
    # A target with its tool's statistics calibrates on the real numbers, as the tool does, not on quantized values.
    read = replace(model, graphs=[float_view(model.main), *model.graphs[1:]]) if default and options.real else model
    samples = given_samples(read, options.samples, options.real, "calibration")
    try:
        with progress("calibrate", samples.count) as advance:
            return calibrate_graph(
                model.main, list(samples.arrays), statistics, graphs=model.graphs, state="independent", progress=advance
            )
    except SampleError as error:
        if not samples.files:
            raise
        inputs = zip(samples.files, model.main.inputs, strict=True)
        files = [file_of_sample(path, model.main.tensors[t], error.sample) for path, t in inputs]
        raise SampleError(f"{', '.join(files)}: {error}", error.sample) from None


def _from_file(graph: Graph, path: str) -> Graph:
    try:
        text = bytes(read_bytes(path)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no text in UTF-8: {error.reason} at byte {error.start}") from None
    return with_ranges(graph, parse_ranges(text, path), path)
