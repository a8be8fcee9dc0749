"""The options of the commands that try many settings of one model: `sensitivity`, `search` and `recover`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from tflq.api.options import SampleOptions
from tflq.api.trials import DEFAULT_SAMPLES, JudgeOptions, TrialOptions
from tflq.cli.options import data_option, random_samples
from tflq.cli.record_options import Decorator, option, record


def _read_widths(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...]:
    parts = [] if text is None else [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"'{text}' is not a list of bits; write integers with commas, as 4,6,8", ctx, param)
    return tuple(int(part) for part in parts)


def given_samples(default_samples: int) -> Decorator:
    """Add the options of named or random samples; the function gets `samples: SampleOptions`."""
    return record("samples", SampleOptions, *random_samples(default_samples))


DATA_OPTION = data_option(JudgeOptions, "data", "-d", "--data")
LABELS_OPTION = option(JudgeOptions, "labels", metavar="FILE")
TAKE_OPTION = option(JudgeOptions, "span", "--take")
_TRIALS = (
    DATA_OPTION,
    LABELS_OPTION,
    option(JudgeOptions, "metric", metavar="NAME"),
    given_samples(DEFAULT_SAMPLES),
    TAKE_OPTION,
    option(TrialOptions, "widths", callback=_read_widths, multiple=False, type=str, metavar="BITS,BITS"),
    option(TrialOptions, "jobs", "-j", "--jobs", minimum=1, default=None, show_default="one per core"),
    option(TrialOptions, "scheduler", metavar="tcp://HOST:PORT"),
    option(TrialOptions, "results", metavar="FILE"),
)


def trials(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of samples, widths and workers: `samples: SampleOptions`, and fields of `TrialOptions`."""

    @wraps(function)
    def command(*arguments: object, jobs: int | None, **values: object) -> object:
        return function(*arguments, jobs=jobs or os.cpu_count() or 1, **values)

    decorated: Callable[..., Any] = command
    for add_option in reversed(_TRIALS):
        decorated = add_option(decorated)
    return decorated
