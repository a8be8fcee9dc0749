"""The options of the commands that try many settings of one model: `sensitivity` and `search`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from tflq.api.options import SampleOptions
from tflq.api.trials import DEFAULT_SAMPLES
from tflq.cli import completion
from tflq.cli.options import DATA_HELP, INPUT_OPTION, SCHEDULER_OPTION, count_option, path_option, read_span, record


def _read_widths(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...]:
    parts = [] if text is None else [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"'{text}' is no list of bits; write whole numbers with commas, as 4,6,8", ctx, param)
    return tuple(int(part) for part in parts)


GIVEN_SAMPLES = record(
    "samples",
    SampleOptions,
    INPUT_OPTION,
    click.option("--real", "samples__real", is_flag=True, help="The samples of --input are real numbers."),
    count_option(DEFAULT_SAMPLES),
    click.option(
        "--seed", "samples__seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of random samples."
    ),
)
DATA_OPTION = click.option("-d", "--data", metavar="[TASK=]DIR", shell_complete=completion.task_folder, help=DATA_HELP)
LABELS_OPTION = click.option(
    "--labels", metavar="FILE", help="Classes of the samples of --input: .npy or .csv, one integer for each sample."
)
METRIC_OPTION = click.option(
    "--metric",
    metavar="NAME",
    help="Judge by this instead of the accuracy: top-K (as top-3), sqnr, or FILE.py:function as `tflq bench` takes it; "
    "only files that you trust. Needs --data.",
)
_TRIALS = (
    click.option("--take", "span", callback=read_span, metavar="START:STOP", help="Samples to use (default: all)."),
    click.option("--widths", callback=_read_widths, metavar="BITS,BITS", help="Try only these bits, as 4,6,8."),
    click.option("-j", "--jobs", type=click.IntRange(min=1), help="Processes to use; one for each core unless told."),
    SCHEDULER_OPTION,
    path_option(
        "--results", metavar="FILE", help="Keep each result as it comes, and do not run again what is in the file."
    ),
)


def trials(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of samples, widths and workers: `samples: SampleOptions`, others as `TrialOptions` calls them."""

    @wraps(function)
    def command(*arguments: object, jobs: int | None, **given: object) -> object:
        return function(*arguments, jobs=jobs or os.cpu_count() or 1, **given)

    for option in reversed(_TRIALS):
        command = option(command)
    return DATA_OPTION(LABELS_OPTION(METRIC_OPTION(GIVEN_SAMPLES(command))))
