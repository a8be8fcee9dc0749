"""What several commands share: options, reading a model, and how samples are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from tflq.analysis.inputs import Samples
    from tflq.graph import Graph, Model
    from tflq.interpreter.execution.engine import State

_Function = TypeVar("_Function", bound=Callable[..., Any])  # click's own type for decorated functions

MODEL_ARGUMENT = click.argument("model", type=click.Path())
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
INPUT_HELP = (
    "Samples for an input: NAME=FILE, or FILE where there is only one input. FILE is .npy, .npz, raw .bin in the "
    "model's encoding (many samples one behind the other), a folder of .bin files, or a data description .json of "
    "images or WAV files (docs/data.md). Repeat it for each input."
)


def _apply_limits(ctx: click.Context, _option: click.Parameter, words: tuple[str, ...]) -> None:
    """Put limits in force until the command ends."""
    from tflq.limits import exported, from_words

    if words:
        ctx.with_resource(exported(from_words(words)))


LIMIT_OPTION = click.option(
    "--limit",
    multiple=True,
    metavar="NAME=N",
    is_eager=True,
    expose_value=False,
    callback=_apply_limits,
    help="Raise or lower a limit on what a model may ask for, as memory=8G: bytes, memory, tensors, operators, "
    "subgraphs, depth, expansion, subgraph-runs (docs/reliability.md). Repeat it for several.",
)


def reporting(function: _Function) -> _Function:
    """Add the options that every command has: --limit, --json and --debug."""
    function = LIMIT_OPTION(function)
    function = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")(
        function
    )
    return click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")(function)


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
    """Read a .tflite file, OpenVINO's IR (an .xml with its .bin beside it) or Compass IR (a .txt with its .bin)."""
    from tflq.converters import tflite

    if path.lower().endswith(".xml"):
        from tflq.converters.openvino import reader

        return reader.read_model(path)
    if path.lower().endswith(".txt"):
        from tflq.converters.aipu import reader as compass

        return compass.read_model(path)
    return tflite.read_model(path)


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
