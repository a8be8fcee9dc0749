"""The options that give tensors their ranges before a target quantises them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from tflq.graph import Graph, Model

_Function = TypeVar("_Function", bound=Callable[..., Any])  # click's own type for decorated functions

KEPT_SAMPLES = 100
"""Samples that targets may write out beside the model."""


@dataclass(frozen=True)
class CalibrationChoice:
    """What the user asked.

    Attributes:
        files: samples, as --input names them.
        strategy: how a range follows from them.
        batch_size: samples of a batch.
        momentum: share of the old value in moving averages.
        bins: of histograms.
        shuffle: seed to shuffle the samples with.
        ranges: a file of ranges, which win.
        template: a file of settings and ranges of each layer; its ranges win over those of the samples.
    """

    files: tuple[str, ...]
    strategy: str | None
    batch_size: int | None
    momentum: float | None
    bins: int | None
    shuffle: int | None
    ranges: str | None
    template: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was asked."""
        return not self.files and not self.statistics and self.ranges is None and self.template is None

    @property
    def statistics(self) -> bool:
        """Whether anything was asked of the statistics."""
        asked = (self.strategy, self.batch_size, self.momentum, self.bins, self.shuffle)
        return any(value is not None for value in asked)


def calibration(function: _Function) -> Callable[..., Any]:
    """Add --calibrate, --ranges, --template and the options of the statistics; the function gets `calibration`.

    The settings of a template come as if --set and --layer had said them.
    """

    @wraps(function)
    def command(
        *arguments: object,
        calibrate: tuple[str, ...],
        strategy: str | None,
        batch_size: int | None,
        momentum: float | None,
        bins: int | None,
        shuffle: int | None,
        ranges: str | None,
        template: str | None,
        **others: object,
    ) -> object:
        choice = CalibrationChoice(calibrate, strategy, batch_size, momentum, bins, shuffle, ranges, template)
        if template is not None:
            others.update(template_settings(template, others))
        return function(*arguments, calibration=choice, **others)

    return _with_options(command)


def template_settings(path: str, given: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Return --set and --layer as a template says them, what the user gave for single layers behind.

    Args:
        path: of the template.
        given: the command's other parameters: assignments and layers, target_name where it has one.

    Raises:
        UsageError: settings for the whole graph beside the template's own.
        OptionError: a template for another target.
        InputError, FormatError: the file is none.
    """
    from tflq.converters.template import read_template
    from tflq.errors import OptionError

    found = read_template(path)
    if given.get("assignments"):
        raise click.UsageError("--set and --template both hold for the whole graph; change 'settings' in the template")
    target = given.get("target_name")
    if target not in (None, "all", found.target):
        raise OptionError(f"{path}: is a template for target {found.target}, not {target}")
    layers = given.get("layers", ())
    assert isinstance(layers, tuple)
    return {"assignments": found.assignments, "layers": (*found.rules, *layers)}


def refuse_calibration_without_target(choice: CalibrationChoice) -> None:
    """Refuse options that nothing would use."""
    if not choice.is_empty:
        raise click.UsageError(
            "--calibrate, --ranges, --template and the options of statistics are for a target; add --target"
        )


def calibrated(model: Model, choice: CalibrationChoice, real: bool = False) -> Model:
    """Return the model with ranges on the tensors of its main graph; the model itself where nothing was asked.

    Raises:
        UsageError: an option of the statistics without samples.
        InputError, OptionError, FormatError: samples, a strategy or a file that do not fit.
    """
    graph = model.main
    if choice.files:
        graph = _from_samples(model, choice, real)
    elif choice.statistics:
        raise click.UsageError(
            "--strategy, --batch-size, --momentum, --bins and --shuffle are for samples; add --calibrate FILE"
        )
    if choice.template is not None:
        graph = _from_template(graph, choice.template)
    if choice.ranges is not None:
        graph = _from_file(graph, choice.ranges)
    return model if graph is model.main else replace(model, graphs=[graph, *model.graphs[1:]])


def _from_samples(model: Model, choice: CalibrationChoice, real: bool) -> Graph:
    from tflq.analysis.inputs import given_inputs
    from tflq.analysis.inputs.files import file_of_sample
    from tflq.cli import output
    from tflq.cli.common import input_names
    from tflq.converters.calibration import StatisticsOptions, calibrate
    from tflq.errors import SampleError

    default = StatisticsOptions()
    options = StatisticsOptions(
        choice.strategy or default.strategy,
        choice.batch_size or default.batch_size,
        default.momentum if choice.momentum is None else choice.momentum,
        choice.bins or default.bins,
        shuffle_seed=choice.shuffle,
        keep_samples=KEPT_SAMPLES,
    )
    samples = given_inputs(model.main, choice.files, input_names(model), real)
    if samples.clipped:
        output.warn(f"{samples.clipped} calibration values lie outside the range of their input and were clipped")
    arrays = list(samples.arrays)
    try:
        with output.Bar("calibrate", samples.count) as bar:
            return calibrate(
                model.main, arrays, options, graphs=model.graphs, state="independent", progress=bar.advance
            )
    except SampleError as error:
        inputs = zip(samples.files, model.main.inputs, strict=True)
        files = [file_of_sample(path, model.main.tensors[t], error.sample) for path, t in inputs]
        raise SampleError(f"{', '.join(files)}: {error}", error.sample) from None


def _from_file(graph: Graph, path: str) -> Graph:
    from tflq.converters.calibration import parse_ranges, with_ranges
    from tflq.errors import InputError
    from tflq.files import read_bytes

    try:
        text = bytes(read_bytes(path)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no text in UTF-8: {error.reason} at byte {error.start}") from None
    return with_ranges(graph, parse_ranges(text, path), path)


def _from_template(graph: Graph, path: str) -> Graph:
    from tflq.converters.template import read_template, with_template_ranges

    return with_template_ranges(graph, read_template(path))


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option(
                "--calibrate",
                multiple=True,
                metavar="[NAME=]FILE",
                help="Samples that give tensors their ranges, for a target and a model without ranges of its own: "
                "files as for --input. Repeat it for each input.",
            ),
            click.option(
                "--strategy",
                metavar="NAME",
                help="How a range follows from the samples: extrema (default), mean, weighted-mean, 3std, kld, "
                "99.99percentile, aciq-laplace, aciq-gauss, mse and others (docs/calibration.md).",
            ),
            click.option(
                "--batch-size", type=click.IntRange(min=1), help="Samples of a calibration batch; 10 unless told."
            ),
            click.option(
                "--momentum",
                type=click.FloatRange(0, 1),
                help="Share of the old value in moving averages; 0.9 unless told.",
            ),
            click.option("--bins", type=click.IntRange(min=16), help="Bins of a histogram; 2048 unless told."),
            click.option(
                "--shuffle",
                type=click.IntRange(min=0),
                metavar="SEED",
                help="Shuffle the samples; without it they keep their order, on which moving averages depend.",
            ),
            click.option(
                "--ranges",
                type=click.Path(),
                metavar="FILE",
                help="Ranges by hand: lines of tensor,min,max, or JSON {tensor: [min, max]}. They win over all others.",
            ),
            click.option(
                "--template",
                type=click.Path(),
                metavar="FILE",
                help="Settings and ranges of each layer, as `tflq convert --write-template` writes them; --layer and "
                "--ranges win over it.",
            ),
        )
    ):
        function = option(function)
    return function
