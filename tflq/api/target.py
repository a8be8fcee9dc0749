"""Use of `TargetOptions`: merge the files that they name, choose targets, and create the execution of a model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tflq.api.calibrate import calibrate, refuse_calibration_without_target
from tflq.api.options import CalibrationOptions, Progress, TargetOptions, replace_options, silent
from tflq.converters.precision import GLOBAL_CALIBRATION
from tflq.converters.settings import Settings, parse_settings
from tflq.converters.settings_file import read_settings
from tflq.converters.targets import Target, find_target, target_names
from tflq.converters.template import read_template
from tflq.errors import OptionError, TflqWarning, UsageError
from tflq.graph import Model
from tflq.interpreter.execution.engine import State
from tflq.interpreter.runtimes import REFERENCE, RuntimeName
from tflq.parallel.executions import Execution, as_is, for_target, in_float

Arithmetic = Literal["tflite", "float"]
ALL = "all"


def merge_settings(
    target: TargetOptions | str | None, calibration: CalibrationOptions, names: Sequence[str] = ()
) -> TargetOptions:
    """Return options merged with their settings file and the calibration's template.

    Settings of the file precede the given ones; layers of the template precede the given layers.

    Args:
        target: Options, or a target's name.
        calibration: Calibration, which may name a template.
        names: Names of the targets, if a use case accepts several.

    Raises:
        UsageError: Settings for the whole graph in addition to the template's.
        OptionError: A file or template for another target.
        InputError, FormatError: A file of another kind.

    Warns:
        TflqWarning: Lines of a vendor's file without effect.
    """
    options = target if isinstance(target, TargetOptions) else TargetOptions(target)
    if options.file is not None:
        options = _with_file(options, options.file, names)
    return options if calibration.template is None else _with_template(options, calibration.template)


def _with_file(options: TargetOptions, path: str, names: Sequence[str]) -> TargetOptions:
    stored = read_settings(path)
    others = [name for name in (options.name, *names) if name is not None and name != stored.target]
    if others:
        raise OptionError(
            f"{path}: contains settings of target {stored.target}, not of {others[0]}; use --target {stored.target}"
        )
    if stored.ignored:
        warnings.warn(f"{path}: without effect here: {'; '.join(stored.ignored)}", TflqWarning, stacklevel=3)
    settings, layers = (*stored.assignments, *options.settings), (*stored.layers, *options.layers)
    return replace(options, settings=settings, layers=layers, file=None)


def fill_calibration(target: TargetOptions | str, calibration: CalibrationOptions) -> CalibrationOptions:
    """Return the calibration, with its unset fields filled from the vendor's settings file."""
    if not isinstance(target, TargetOptions) or target.file is None:
        return calibration
    values = dict(read_settings(target.file).calibration)
    if not calibration.has_samples and "samples" not in values:
        return calibration
    unsaid = {key: value for key, value in values.items() if not getattr(calibration, key)}
    return replace_options(calibration, unsaid)


def _with_template(options: TargetOptions, path: str) -> TargetOptions:
    template = read_template(path)
    if options.settings:
        raise UsageError("--set and --template both apply to the whole graph; change 'settings' in the template")
    if options.name not in (None, ALL, template.target):
        raise OptionError(f"{path}: is a template for target {template.target}, not {options.name}")
    return replace(options, settings=template.assignments, layers=(*template.rules, *options.layers))


def choose_target(name: str, options: TargetOptions, *, recovers: bool = False) -> tuple[Target, Settings]:
    """Return the target of that name and its complete settings.

    Args:
        name: Name of the target.
        options: Settings of the target.
        recovers: True if weights are recovered, which a setting may require.

    Raises:
        UsageError: A setting requires recovery, which this use case does not perform.
        OptionError: An unknown target or key, or a value outside its limits.
    """
    target = find_target(name)
    try:
        settings = parse_settings(target.settings, options.settings, options.layers)
    except OptionError as error:
        raise OptionError(f"target {name}: {error}") from None
    if not recovers:
        refuse_global_calibration(settings)
    return target, settings


def choose_targets(
    names: Sequence[str], options: TargetOptions, *, recovers: bool = False
) -> list[tuple[Target, Settings]]:
    """Return several targets, or every one for ALL; arguments and errors as for `choose_target`.

    Raises:
        UsageError: ALL in addition to another name, or with settings of one target.
    """
    if ALL not in names:
        return [choose_target(name, options, recovers=recovers) for name in names]
    if len(names) > 1:
        raise UsageError("--target all includes every target; omit all other names")
    if options.settings or options.layers:
        raise UsageError("--set and --layer need a single target; --target all uses the defaults of each")
    return [choose_target(name, options) for name in target_names()]


def fits_weights(settings: Settings) -> bool:
    """Return whether settings require weights that are fitted across layers."""
    return str(settings.values.get(GLOBAL_CALIBRATION, "none")) != "none"


def refuse_global_calibration(settings: Settings) -> None:
    """Refuse settings that require recovered weights.

    Raises:
        UsageError: A setting requires them.
    """
    if fits_weights(settings):
        raise UsageError(
            f"{GLOBAL_CALIBRATION}={settings.values[GLOBAL_CALIBRATION]} changes weights, which only `tflq convert` "
            "and "
            f"`tflq recover` do; omit it here, and pass the file that `tflq recover` wrote"
        )


def choose_execution(
    model: Model,
    target: TargetOptions,
    calibration: CalibrationOptions,
    *,
    arithmetic: Arithmetic | None = None,
    runtime: RuntimeName = REFERENCE,
    state: State | None = None,
    progress: Progress = silent,
) -> Execution:
    """Return the model ready to run in the one arithmetic that the options name.

    Args:
        model: Model as read from its file.
        target: Merged settings.
        calibration: Ranges for the target.
        arithmetic: TFLite's integers or the float view, without a target.
        runtime: Runtime to compute the integers of, without a target.
        state: State handling of stateful models, without a target.
        progress: Progress callback of the calibration.

    Raises:
        UsageError: A target together with an arithmetic or a runtime, or settings without a target.
        OptionError, UnsupportedError: A target or runtime does not exist, or the target does not support the model.
    """
    if runtime != REFERENCE and (target.name is not None or arithmetic == "float"):
        other = "--target" if target.name is not None else "--arithmetic float"
        raise UsageError(f"{other} does not compute a runtime's integers; omit --runtime")
    if target.name is not None:
        ranged = calibrate(model, calibration, target=target.name, progress=progress)
        if arithmetic is not None:
            raise UsageError("--target has its own arithmetic; omit --arithmetic")
        return for_target(ranged.main, *choose_target(target.name, target))
    refuse_calibration_without_target(calibration)
    refuse_settings_without_target(target)
    return in_float(model, state) if arithmetic == "float" else as_is(model, state, runtime)


def refuse_settings_without_target(options: TargetOptions) -> None:
    """Refuse settings that have no effect.

    Raises:
        UsageError: A setting is given.
    """
    if options.settings or options.layers:
        raise UsageError("--set and --layer need a target; add --target")
