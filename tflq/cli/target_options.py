"""The options that choose targets and their settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from tflq.analysis.executions import Execution
    from tflq.converters.settings import Settings
    from tflq.converters.targets import Target
    from tflq.graph import Model
    from tflq.interpreter.execution.engine import State

_Function = TypeVar("_Function", bound=Callable[..., Any])  # click's own type for decorated functions


def target_settings(function: _Function) -> Callable[..., Any]:
    """Add --set, --layer and --settings; what the file says stands in front of what the other two say."""

    @wraps(function)
    def command(
        *arguments: object,
        assignments: tuple[str, ...],
        layers: tuple[str, ...],
        settings_path: str | None,
        **others: object,
    ) -> object:
        if settings_path is not None:
            from tflq.converters.settings_file import read_settings

            found = read_settings(settings_path)
            _refuse_other_target(settings_path, found.target, others)
            assignments, layers = (*found.assignments, *assignments), (*found.layers, *layers)
        return function(*arguments, assignments=assignments, layers=layers, **others)

    return _with_options(command)


def _refuse_other_target(path: str, wanted: str, options: Mapping[str, object]) -> None:
    from tflq.errors import OptionError

    named = (options.get("target_name"), *(names if isinstance(names := options.get("target_names"), tuple) else ()))
    others = [name for name in named if name is not None and name != wanted]
    if others:
        raise OptionError(f"{path}: holds settings of target {wanted}, not of {others[0]}; use --target {wanted}")


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    function = click.option(
        "--settings",
        "settings_path",
        type=click.Path(),
        metavar="FILE",
        help="Settings of the target from a file that `tflq search -o` wrote; --set and --layer win over it.",
    )(function)
    function = click.option(
        "-l",
        "--layer",
        "layers",
        multiple=True,
        metavar="PATTERN:KEY=VALUE",
        help="A setting for single layers: PATTERN is an operator's number, a name or a glob of names, or an operator; "
        "later ones win. Repeat it for more.",
    )(function)
    return click.option(
        "-s",
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of the target; `tflq targets` lists them. Repeat it for more.",
    )(function)


def one_arithmetic(function: _Function) -> Callable[..., Any]:
    """Add --arithmetic, and --target with its settings, which exclude each other: `choose_execution` takes them."""
    command = click.option(
        "-t", "--target", "target_name", metavar="TARGET", help="Quantise for this target and run its integers."
    )(target_settings(function))
    return click.option(
        "--arithmetic",
        type=click.Choice(("tflite", "float")),
        help="tflite: the integers of TFLite's reference kernels, the default; float: the model's float view.",
    )(command)


def choose_execution(
    model: Model,
    arithmetic: str | None,
    target_name: str | None,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    state: State | None = None,
) -> Execution:
    """Return the model in the one arithmetic that the options name.

    Raises:
        UsageError: a target together with an arithmetic, or settings without a target.
        OptionError, UnsupportedError: a target that does not exist, or does not take the model.
    """
    from tflq.analysis.executions import as_is, for_target, in_float

    if target_name is not None:
        if arithmetic is not None:
            raise click.UsageError("--target brings its own arithmetic; leave --arithmetic away")
        return for_target(model.main, *choose_target(target_name, assignments, layers))
    refuse_settings_without_target(assignments, layers)
    return (in_float if arithmetic == "float" else as_is)(model, state)


def choose_target(name: str, assignments: tuple[str, ...], layers: tuple[str, ...]) -> tuple[Target, Settings]:
    """Return the target of that name and its complete settings.

    Raises:
        OptionError: an unknown target or key, or a value outside its limits.
    """
    from tflq.converters.settings import parse_settings
    from tflq.converters.targets import find_target
    from tflq.errors import OptionError

    target = find_target(name)
    try:
        return target, parse_settings(target.settings, assignments, layers)
    except OptionError as error:
        raise OptionError(f"target {name}: {error}") from None


def refuse_settings_without_target(assignments: tuple[str, ...], layers: tuple[str, ...]) -> None:
    """Refuse settings that nothing would use."""
    if assignments or layers:
        raise click.UsageError("--set and --layer are settings of a target; add --target")
