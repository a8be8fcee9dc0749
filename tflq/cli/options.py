"""Options shared by several commands; each group fills one record of `tflq.api.options`."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import click

from tflq.api.options import CalibrationOptions, SampleOptions, TargetOptions, replace_options
from tflq.cli import completion
from tflq.cli.in_force import CSV_OPTION, DEBUG_OPTION, JSON_OPTION, KERNELS_OPTION, LIMIT_OPTION, WIDE_OPTION, keep
from tflq.cli.outputs import OutputFolder, OutputPath, writing
from tflq.cli.record_options import Decorator, Source, option, record
from tflq.diagnosis.dumps.wanted import LAYOUTS, NUMBERINGS, TYPES, DumpOptions

_Function = TypeVar("_Function", bound=Callable[..., Any])  # click's own type for decorated functions

path_option = partial(click.option, type=click.Path(path_type=Path))
"""An option whose value is a path."""
output_option = partial(click.option, type=OutputPath(path_type=Path))
"""An option whose value is a file to write."""


class ModelPath(click.Path):
    """Path of a model; standard input for "-" is stored in a temporary file until the program ends."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path of the file to read."""
        if value != "-":
            return super().convert(value, param, ctx)
        folder = TemporaryDirectory(prefix="tflq_")
        atexit.register(folder.cleanup)
        path = Path(folder.name, "stdin.tflite")
        path.write_bytes(sys.stdin.buffer.read())
        return str(path)


MODEL_ARGUMENT = click.argument("model", type=ModelPath())
STRICT_OPTION = click.option("--strict", is_flag=True, help="Exit with status 1 for known differences, too.")
SIDE_HELP = (
    "MODEL.tflite, MODEL.tflite@float, MODEL.tflite@TARGET (@tflite is the default), or a tensor dump: a file or "
    "folder (docs/guides/dumps.md). A second side without a model (@float, @gap9-ne16) takes the model of the first "
    "one."
)
_sample, _dump, _target, _calibrated = (
    partial(option, SampleOptions, prefix="samples"),
    partial(option, DumpOptions, prefix="dump"),
    partial(option, TargetOptions, prefix="target"),
    partial(option, CalibrationOptions, prefix="calibration"),
)
data_option = partial(option, metavar="[TASK=]DIR", shell_complete=completion.task_folder)
"""--data of a record."""


def worker_options(source: Source) -> Decorator:
    """Add --jobs and --scheduler from the fields of a record."""
    jobs = option(source, "jobs", "-j", "--jobs", minimum=1)
    scheduler = option(source, "scheduler", metavar="tcp://HOST:PORT")
    return lambda function: jobs(scheduler(function))


def random_samples(default_samples: int) -> tuple[Decorator, ...]:
    """Return --input, --real, --samples and --seed."""
    return (
        _sample("inputs", "-i", "--input", metavar="[NAME=]FILE", shell_complete=completion.file),
        _sample("real"),
        _sample("count", "-n", "--samples", minimum=1, show_default=str(default_samples)),
        _sample("seed", minimum=0),
    )


def sample_options(default_samples: int) -> Decorator:
    """Add the options that select samples; the function gets `samples: SampleOptions`."""
    named, *rest = random_samples(default_samples)
    data = data_option(SampleOptions, "data", "-d", "--data", prefix="samples")
    return record("samples", SampleOptions, named, data, *rest, _sample("take"))


dump_options = record(
    "dump",
    DumpOptions,
    _dump("map_path", "--map", metavar="FILE"),
    _dump("layout", type=click.Choice(LAYOUTS)),
    _dump("numbers", type=click.Choice(NUMBERINGS)),
    _dump("values", "--quantized-values", flag_value="quantized", help="Treat integral floats as quantized values."),
    _dump("values", "--real-values", flag_value="real", help="Treat integral floats as dequantized values."),
    _dump("dtype", type=click.Choice(TYPES)),
)
"""Adds the options for reading a dump; the function gets `dump: DumpOptions`."""


def target_options(
    target_help: str | None = None,
    *,
    required: bool = False,
    layer_metavar: str = "PATTERN:KEY=VALUE",
    layer_help: str | None = None,
) -> Decorator:
    """Add --set, --layer and --settings; the function gets `target: TargetOptions`.

    Args:
        target_help: Help of --target; None to omit that option.
        required: True if the command needs a target.
        layer_metavar: Value of --layer in the help.
        layer_help: Help of --layer, if it differs from the record's.
    """
    named = (
        ()
        if target_help is None
        else (
            _target(
                "name",
                "-t",
                "--target",
                required=required,
                metavar="TARGET",
                shell_complete=completion.targets,
                help=target_help,
            ),
        )
    )
    return record(
        "target",
        TargetOptions,
        *named,
        _target("settings", "-s", "--set", metavar="KEY=VALUE", shell_complete=completion.settings),
        _target("layers", "-l", "--layer", metavar=layer_metavar, shell_complete=completion.layers, help=layer_help),
        _target("file", "--settings", type=click.Path(), metavar="FILE"),
    )


def _calibration(**values: object) -> CalibrationOptions:
    """Create the record; --real of the samples also applies to the samples of the calibration."""
    parameters = click.get_current_context().params
    is_real = any(value for key, value in parameters.items() if key.endswith("__real"))
    return replace_options(CalibrationOptions(real=is_real), values)


calibration_options = record(
    "calibration",
    _calibration,
    _calibrated("samples", "--calibrate", metavar="[NAME=]FILE", shell_complete=completion.task_folder),
    _calibrated("strategy", metavar="NAME"),
    _calibrated("batch_size", minimum=1),
    _calibrated("momentum", type=click.FloatRange(0, 1)),
    _calibrated("bins", minimum=16),
    _calibrated("shuffle", minimum=0, metavar="SEED"),
    _calibrated("ranges", type=click.Path(), metavar="FILE"),
    _calibrated("template", type=click.Path(), metavar="FILE"),
)
"""Adds --calibrate, --ranges, --template and the options of the statistics; the function gets `calibration`."""


def reporting(function: _Function) -> _Function:
    """Add the general options: --limit, --kernels, --json, --csv, --wide and --debug."""
    return judging(KERNELS_OPTION(function))


def judging(function: _Function) -> _Function:
    """Add the options of `reporting` without --kernels, which selects TFLite's kernels in `tflq verify`."""
    return JSON_OPTION(CSV_OPTION(WIDE_OPTION(DEBUG_OPTION(LIMIT_OPTION(function)))))


def _keep_page(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    """Refuse a page that cannot be written, before the work starts."""
    if value is None:
        return
    if value.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter(f"{value}: the name must end in .html", ctx, param)
    if not value.parent.is_dir():
        raise click.BadParameter(f"{value}: the folder {value.parent} does not exist", ctx, param)
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise click.UsageError("--report needs jinja2: pip install 'tflq[report]'") from None
    keep(ctx, param, value)


def report_option(function: _Function) -> _Function:
    """Add --report; `output.show` writes the page."""
    return click.option(
        "--report",
        type=OutputPath(path_type=Path, dir_okay=False),
        metavar="FILE.html",
        expose_value=False,
        callback=_keep_page,
        help="Page to write in addition: one HTML file that needs no network (extra `report`).",
    )(function)


def with_page(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --report, --force and the options of `reporting`, for commands that write files or a page."""
    decorated: Callable[..., Any] = report_option(reporting(writing(function)))
    return decorated


tflite_output = output_option("-o", "--output", "path", required=True, metavar="FILE.tflite", help="Output file.")
"""Adds --output for commands that convert a model to a model."""


def folder_output(source: Source) -> Decorator:
    """Add --output for commands that write several files."""
    kind = OutputFolder(path_type=Path)
    return option(source, "folder", "-o", "--output", type=kind, required=True, default=None, metavar="DIR")
