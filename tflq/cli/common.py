"""What several commands share: options, reading a model, and how samples are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tflq.cli.options import (
    INPUT_HELP as INPUT_HELP,
)
from tflq.cli.options import (
    LIMIT_OPTION as LIMIT_OPTION,
)
from tflq.cli.options import (
    MODEL_ARGUMENT as MODEL_ARGUMENT,
)
from tflq.cli.options import (
    STATE_OPTION as STATE_OPTION,
)
from tflq.cli.options import (
    THREADS_OPTION as THREADS_OPTION,
)
from tflq.cli.options import (
    reporting as reporting,
)

if TYPE_CHECKING:
    from tflq.analysis.inputs import Samples
    from tflq.graph import Graph, Model
    from tflq.interpreter.execution.engine import State

_Function = TypeVar("_Function", bound=Callable[..., Any])  # click's own type for decorated functions


def sampling(default_samples: int) -> Callable[[_Function], _Function]:
    """Add the options that say which samples to run."""

    def decorate(function: _Function) -> _Function:
        for option in reversed(
            (
                click.option("-i", "--input", "inputs", multiple=True, metavar="[NAME=]FILE", help=INPUT_HELP),
                click.option(
                    "--real",
                    is_flag=True,
                    help="The samples are real numbers: convert them with each input's scale and zero point. "
                    "Without it an array must have the model's own type.",
                ),
                click.option(
                    "-n",
                    "--samples",
                    type=click.IntRange(min=1),
                    help=f"Number of random samples where no --input is given; {default_samples} unless told.",
                ),
                click.option(
                    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the samples."
                ),
            )
        ):
            function = option(function)
        return function

    return decorate


def read_model(path: str) -> Model:
    """Read a model of any format; `tflq.api` does it where a command only parses and prints."""
    from tflq.api.read_model import read_model

    return read_model(path)


def chosen_state(name: str | None) -> State | None:
    """Return the state that --state names."""
    return "stream" if name == "stream" else "independent" if name == "independent" else None


def input_names(model: Model) -> dict[str, int]:
    """Return the names that the main graph's signatures give its inputs, with the tensors' indices."""
    return {name: t for s in model.signatures if s.graph == 0 for name, t in s.inputs.items()}


def choose_samples(model: Model, inputs: tuple[str, ...], real: bool, count: int, seed: int) -> Samples:
    """Return the samples that the options name: those of the files, else random ones."""
    from tflq.analysis.inputs import RandomSamples, given_inputs
    from tflq.cli import output

    if not inputs:
        return RandomSamples(model.main, count, seed)
    given = given_inputs(model.main, inputs, input_names(model), real)
    if given.clipped:
        output.warn(f"{given.clipped} input values lie outside the range of their input and were clipped")
    return given


def tensor_names(graph: Graph, indices: tuple[int, ...]) -> dict[int, str]:
    """Name tensors uniquely: by their name, with the index behind it where the name is empty or used twice."""
    names = [graph.tensors[t].name for t in indices]
    return {
        t: name if name and names.count(name) == 1 else f"{name or 'tensor'}#{t}"
        for t, name in zip(indices, names, strict=True)
    }
