"""The options that several commands share; each group fills one record of `tflq.api.options`."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import click

from tflq.api.options import CalibrationOptions, SampleOptions, TargetOptions, replace_options
from tflq.api.runtimes import REFERENCE, RUNTIME_NAMES
from tflq.cli import completion
from tflq.cli.in_force import CSV_OPTION, DEBUG_OPTION, JSON_OPTION, KERNELS_OPTION, LIMIT_OPTION, WIDE_OPTION, keep
from tflq.cli.outputs import OutputFolder, OutputPath, writing
from tflq.diagnosis.dumps.wanted import LAYOUTS, NUMBERINGS, TYPES, DumpOptions
from tflq.sampling.samples import Span

_Function = TypeVar("_Function", bound=Callable[..., Any])  # click's own type for decorated functions
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

path_option = partial(click.option, type=click.Path(path_type=Path))
"""An option whose value is a path."""
output_option = partial(click.option, type=OutputPath(path_type=Path))
"""An option whose value is a file to write."""


class ModelPath(click.Path):
    """A model's path; "-" is standard input, kept in a file of that name until the program ends."""

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
STATE_OPTION = click.option(
    "--state",
    type=click.Choice(("independent", "stream")),
    help="For models that keep state: a fresh one for each sample, or samples that are successive invocations.",
)
THREADS_OPTION = click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Run so many chunks of samples at the same time; results do not depend on it. It pays with one thread for "
    "numpy's own products: OPENBLAS_NUM_THREADS=1.",
)
SCHEDULER_OPTION = click.option(
    "--scheduler", metavar="tcp://HOST:PORT", help="Use the workers of this dask scheduler (extra `cluster`)."
)
JOBS_OPTION = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Share the samples out to so many processes; results do not depend on it.",
)
STRICT_OPTION = click.option("--strict", is_flag=True, help="Exit status 1 for differences that are known, too.")
ARITHMETIC_OPTION = click.option(
    "--arithmetic",
    type=click.Choice(("tflite", "float")),
    help="tflite: the params of TFLite's reference kernels, the default; float: the model's float view.",
)
RUNTIME_OPTION = click.option(
    "--runtime",
    type=click.Choice(RUNTIME_NAMES),
    default=REFERENCE,
    show_default=True,
    help="Runtime whose integers are computed: TFLite's reference kernels, or one that `tflq runtimes` lists.",
)
INPUT_OPTION = click.option(
    "-i",
    "--input",
    "samples__inputs",
    multiple=True,
    metavar="[NAME=]FILE",
    shell_complete=completion.file,
    help="Samples for an input: NAME=FILE, or FILE where there is only one input. FILE is .npy, .npz, raw .bin in the "
    "model's encoding (many samples one behind the other), a folder of .bin files, or a data description .json of "
    "images or WAV files (docs/guides/data.md). Repeat it for each input.",
)
DATA_HELP = (
    "Samples of a labeled data set: TASK=DIR, the one of a task of `tflq bench`; or DIR, a folder with y_labels.csv "
    "whose files are as the model's input lies in memory, or a data description .json."
)
SIDE_HELP = (
    "MODEL.tflite, MODEL.tflite@float, MODEL.tflite@TARGET (@tflite is what a model alone means), or a tensor dump: "
    "a file or folder (docs/guides/dumps.md). A second one without a model (@float, @gap9-ne16) takes the first one's."
)


def record(name: str, kind: Callable[..., object], *options: _Decorator) -> _Decorator:
    """Return a decorator that adds options and gives the function one record of their values.

    Args:
        name: of the function's parameter.
        kind: the record; the option for its field F calls its value NAME__F.
        options: click's.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(*arguments: object, **given: object) -> object:
            own = {key: given.pop(key) for key in tuple(given) if key.startswith(f"{name}__")}
            values = {key.removeprefix(f"{name}__"): value for key, value in own.items()}
            return function(*arguments, **{name: kind(**values)}, **given)

        decorated: Callable[..., Any] = command
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def read_span(ctx: click.Context, param: click.Parameter, text: str | None) -> Span | None:
    """Read START:STOP, or STOP alone for 0:STOP, as an option's callback."""
    if text is None:
        return None
    first, colon, last = text.partition(":")
    start, stop = (first, last) if colon else ("0", first)
    if not (start.isdecimal() and stop.isdecimal() and int(start) < int(stop)):
        raise click.BadParameter(f"'{text}' is no range; write START:STOP, as 0:500, or STOP alone", ctx, param)
    return Span(int(start), int(stop))


def count_option(default_samples: int) -> _Decorator:
    """Return the option for the number of random samples."""
    return click.option(
        "-n",
        "--samples",
        "samples__count",
        type=click.IntRange(min=1),
        help=f"Number of random samples, if no samples are named (default: {default_samples}).",
    )


def sample_options(default_samples: int) -> _Decorator:
    """Add the options that say which samples to run; the function gets `samples: SampleOptions`."""
    return record(
        "samples",
        SampleOptions,
        INPUT_OPTION,
        click.option(
            "-d", "--data", "samples__data", metavar="[TASK=]DIR", shell_complete=completion.task_folder, help=DATA_HELP
        ),
        click.option(
            "--real",
            "samples__real",
            is_flag=True,
            help="The samples are real numbers: convert them with each input's scale and zero point. "
            "Without it an array must have the model's own type.",
        ),
        count_option(default_samples),
        click.option(
            "--take",
            "samples__take",
            callback=read_span,
            metavar="START:STOP",
            help="Samples to use (default: all).",
        ),
        click.option(
            "--seed", "samples__seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the samples."
        ),
    )


dump_options = record(
    "dump",
    DumpOptions,
    click.option(
        "--map", "dump__map_path", metavar="FILE", help="Where the tensors lie in raw bytes (docs/guides/dumps.md)."
    ),
    click.option(
        "--layout", "dump__layout", type=click.Choice(LAYOUTS), help="Order of a dump's axes, where shapes do not tell."
    ),
    click.option(
        "--numbers",
        "dump__numbers",
        type=click.Choice(NUMBERINGS),
        help="What the numbers in names of a dump count, where shapes do not tell.",
    ),
    click.option(
        "--quantized-values",
        "dump__values",
        flag_value="quantized",
        help="Whole numbers in floating point are quantized values.",
    ),
    click.option("--real-values", "dump__values", flag_value="real", help="They are real numbers."),
    click.option("--dtype", "dump__dtype", type=click.Choice(TYPES), help="Type of a dump's raw bytes."),
)


def target_options(
    target_help: str | None = None,
    *,
    required: bool = False,
    layer_metavar: str = "PATTERN:KEY=VALUE",
    layer_help: str = "A setting for single layers: PATTERN is an operator's number, a name or a glob of names, or an "
    "operator; later ones win. Repeat it for more.",
) -> _Decorator:
    """Add --set, --layer and --settings, and --target where it has a help; the function gets them as `target`."""
    named = (
        []
        if target_help is None
        else [
            click.option(
                "-t",
                "--target",
                "target__name",
                required=required,
                metavar="TARGET",
                shell_complete=completion.targets,
                help=target_help,
            )
        ]
    )
    return record(
        "target",
        TargetOptions,
        *named,
        click.option(
            "-s",
            "--set",
            "target__settings",
            multiple=True,
            metavar="KEY=VALUE",
            shell_complete=completion.settings,
            help="A setting of the target; `tflq targets` lists them. Repeat it for more.",
        ),
        click.option(
            "-l",
            "--layer",
            "target__layers",
            multiple=True,
            metavar=layer_metavar,
            shell_complete=completion.layers,
            help=layer_help,
        ),
        click.option(
            "--settings",
            "target__file",
            type=click.Path(),
            metavar="FILE",
            help="Settings of the target from a file that `tflq search -o` wrote; --set and --layer win over it.",
        ),
    )


def _calibration(**given: object) -> CalibrationOptions:
    """Fill the record; --real of the samples holds for those of the calibration, too."""
    others = click.get_current_context().params
    is_real = any(value for key, value in others.items() if key.endswith("__real"))
    return replace_options(CalibrationOptions(real=is_real), given)


calibration_options = record(
    "calibration",
    _calibration,
    click.option(
        "--calibrate",
        "calibration__samples",
        multiple=True,
        metavar="[NAME=]FILE",
        shell_complete=completion.task_folder,
        help="Samples that give tensors their ranges, for a target and a model without ranges of its own: "
        "files as for --input, or TASK=DIR, a data set of `tflq bench`. Repeat it for each input.",
    ),
    click.option(
        "--strategy",
        "calibration__strategy",
        metavar="NAME",
        help="How a range follows from the samples: extrema (default), mean, weighted-mean, 3std, kld, "
        "99.99percentile, aciq-laplace, aciq-gauss, mse and others (docs/guides/calibration.md).",
    ),
    click.option(
        "--batch-size",
        "calibration__batch_size",
        type=click.IntRange(min=1),
        help="Samples of a calibration batch; 10 unless told.",
    ),
    click.option(
        "--momentum",
        "calibration__momentum",
        type=click.FloatRange(0, 1),
        help="Share of the old value in moving averages; 0.9 unless told.",
    ),
    click.option(
        "--bins", "calibration__bins", type=click.IntRange(min=16), help="Bins of a histogram; 2048 unless told."
    ),
    click.option(
        "--shuffle",
        "calibration__shuffle",
        type=click.IntRange(min=0),
        metavar="SEED",
        help="Shuffle the samples; without it they keep their order, on which moving averages depend.",
    ),
    click.option(
        "--ranges",
        "calibration__ranges",
        type=click.Path(),
        metavar="FILE",
        help="Ranges by hand: lines of tensor,min,max, or JSON {tensor: [min, max]}. They win over all others.",
    ),
    click.option(
        "--template",
        "calibration__template",
        type=click.Path(),
        metavar="FILE",
        help="Settings and ranges of each layer, as `tflq convert --write-template` writes them; --layer and "
        "--ranges win over it.",
    ),
)
"""Adds --calibrate, --ranges, --template and the options of the statistics; the function gets `calibration`."""


def reporting(function: _Function) -> _Function:
    """Add the options that every command has: --limit, --kernels, --json, --csv, --wide and --debug."""
    return judging(KERNELS_OPTION(function))


def judging(function: _Function) -> _Function:
    """Add the options of `reporting` but --kernels: where TFLite judges, it names TFLite's own kernels."""
    return JSON_OPTION(CSV_OPTION(WIDE_OPTION(DEBUG_OPTION(LIMIT_OPTION(function)))))


def _keep_page(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    """Refuse before the work what could not be written after it."""
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
        help="Write the result as one HTML page that needs no network, too (extra: report).",
    )(function)


def with_page(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what commands have that write files and, when asked, a page: --report, --force and those of `reporting`."""
    decorated: Callable[..., Any] = report_option(reporting(writing(function)))
    return decorated


tflite_output = output_option("-o", "--output", "path", required=True, metavar="FILE.tflite", help="Where to write.")
"""Adds --output for commands that make a model of a model."""

folder_output = click.option(
    "-o",
    "--output",
    "folder",
    type=OutputFolder(path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder to write into; it is made where it is missing.",
)
"""Adds --output for commands that write several files."""
