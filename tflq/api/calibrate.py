"""`tflq.calibrate`: ranges of tensors, from samples or files, as input of a target's quantization."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tflq.api.options import CalibrationOptions, Progress, replace_options, silent
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

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import CalibrationKeywords

KEPT_SAMPLES = 100
"""Samples that targets may write out beside the model."""


def calibrate(
    model: ModelSource,
    options: CalibrationOptions | None = None,
    *,
    target: str | None = None,
    progress: Progress = silent,
    **changes: Unpack[CalibrationKeywords],
) -> Model:
    """Return the model as targets read it, with ranges on the tensors of its main graph.

    Shapes are resolved and constants folded (converters/settled.py).

    Args:
        model: Float model, or quantized model, which keeps its own ranges unless new ranges are given.
        options: Samples, statistics, and files of ranges.
        target: Name of the target with the defaults of the statistics; None for extrema in batches of 10.
        progress: Progress callback.
        **changes: Fields of the options, by name.

    Raises:
        UsageError: An option of the statistics without samples.
        InputError, OptionError, FormatError: Samples, a strategy or a file that do not fit.
    """
    resolved, options = settled_model(read_model(model)), replace_options(options or CalibrationOptions(), changes)
    graph = resolved.main
    if options.has_samples:
        graph = _from_samples(resolved, options, find_target(target).statistics if target else None, progress)
    elif options.has_statistics:
        raise UsageError(
            "--strategy, --batch-size, --momentum, --bins and --shuffle need samples; add --calibrate FILE"
        )
    if options.template is not None:
        graph = with_template_ranges(graph, read_template(options.template))
    if options.ranges is not None:
        graph = _from_file(graph, options.ranges)
    return resolved if graph is resolved.main else replace(resolved, graphs=[graph, *resolved.graphs[1:]])


def refuse_calibration_without_target(options: CalibrationOptions) -> None:
    """Refuse calibration options that would have no effect.

    Raises:
        UsageError: An option is set.
    """
    if not options.is_empty:
        raise UsageError(
            "--calibrate, --ranges, --template and the options of the statistics need a target; add --target, or write "
            "a side as MODEL@TARGET"
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
        raise InputError(f"{path}: is not UTF-8 text: {error.reason} at byte {error.start}") from None
    return with_ranges(graph, parse_ranges(text, path), path)
