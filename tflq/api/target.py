"""What use cases do with `TargetOptions`: complete them by the files that they name, and run a model so."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tflq.api.calibrate import calibrate, refuse_calibration_without_target
from tflq.api.options import CalibrationOptions, Progress, TargetOptions, changed, silent
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


def complete(
    target: TargetOptions | str | None, calibration: CalibrationOptions, names: Sequence[str] = ()
) -> TargetOptions:
    """Return options with what their file and the calibration's template say in them.

    The file's settings stand in front of the given ones; a template's in front of the given layers.

    Args:
        target: options, or a target's name.
        calibration: may name a template.
        names: the targets of a use case that takes several.

    Raises:
        UsageError: settings for the whole graph beside a template's own.
        OptionError: a file or template for another target.
        InputError, FormatError: a file that is none.

    Warns:
        TflqWarning: Lines of a vendor's file without effect.
    """
    options = target if isinstance(target, TargetOptions) else TargetOptions(target)
    if options.file is not None:
        options = _with_file(options, options.file, names)
    return options if calibration.template is None else _with_template(options, calibration.template)


def _with_file(options: TargetOptions, path: str, names: Sequence[str]) -> TargetOptions:
    found = read_settings(path)
    others = [name for name in (options.name, *names) if name is not None and name != found.target]
    if others:
        raise OptionError(
            f"{path}: holds settings of target {found.target}, not of {others[0]}; use --target {found.target}"
        )
    if found.ignored:
        warnings.warn(f"{path}: without effect here: {'; '.join(found.ignored)}", TflqWarning, stacklevel=3)
    settings, layers = (*found.assignments, *options.settings), (*found.layers, *options.layers)
    return replace(options, settings=settings, layers=layers, file=None)


def calibration_of(target: TargetOptions | str, calibration: CalibrationOptions) -> CalibrationOptions:
    """Return the calibration, with its unset fields filled from the vendor's settings file."""
    if not isinstance(target, TargetOptions) or target.file is None:
        return calibration
    found = dict(read_settings(target.file).calibration)
    if not calibration.has_samples and "samples" not in found:
        return calibration
    unsaid = {key: value for key, value in found.items() if not getattr(calibration, key)}
    return changed(calibration, unsaid)


def _with_template(options: TargetOptions, path: str) -> TargetOptions:
    found = read_template(path)
    if options.settings:
        raise UsageError("--set and --template both hold for the whole graph; change 'settings' in the template")
    if options.name not in (None, ALL, found.target):
        raise OptionError(f"{path}: is a template for target {found.target}, not {options.name}")
    return replace(options, settings=found.assignments, layers=(*found.rules, *options.layers))


def choose_target(name: str, options: TargetOptions, *, recovers: bool = False) -> tuple[Target, Settings]:
    """Return the target of that name and its complete settings.

    Args:
        name: of the target.
        options: its settings.
        recovers: whether weights are recovered, as a setting may ask.

    Raises:
        UsageError: a setting that asks for recovery, where there is none.
        OptionError: an unknown target or key, or a value outside its limits.
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
        UsageError: ALL beside another name, or with settings of one target.
    """
    if ALL not in names:
        return [choose_target(name, options, recovers=recovers) for name in names]
    if len(names) > 1:
        raise UsageError("--target all is every target; omit the others")
    if options.settings or options.layers:
        raise UsageError("--set and --layer are settings of one target; --target all takes each one's defaults")
    return [choose_target(name, options) for name in target_names()]


def fits_weights(settings: Settings) -> bool:
    """Return whether settings ask for weights that are fitted across layers."""
    return str(settings.values.get(GLOBAL_CALIBRATION, "none")) != "none"


def refuse_global_calibration(settings: Settings) -> None:
    """Refuse settings that ask for other weights, where none are looked for.

    Raises:
        UsageError: they do.
    """
    if fits_weights(settings):
        raise UsageError(
            f"{GLOBAL_CALIBRATION}={settings.values[GLOBAL_CALIBRATION]} finds other weights: `tflq convert` and "
            f"`tflq recover` do; omit it here, and give the file that `tflq recover` wrote"
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
        model: as it was read.
        target: complete.
        calibration: ranges for the target.
        arithmetic: without a target: TFLite's integers, or the float view.
        runtime: Runtime of TFLite's integers, without a target.
        state: without a target, for models that keep any.
        progress: shows how far the calibration is.

    Raises:
        UsageError: a target together with an arithmetic or a runtime, or settings without a target.
        OptionError, UnsupportedError: a target or runtime that does not exist, or a target that does not take the
            model.
    """
    if runtime != REFERENCE and (target.name is not None or arithmetic == "float"):
        other = "--target" if target.name is not None else "--arithmetic float"
        raise UsageError(f"{other} computes other integers than a runtime; omit --runtime")
    if target.name is not None:
        ranged = calibrate(model, calibration, target=target.name, progress=progress)
        if arithmetic is not None:
            raise UsageError("--target brings its own arithmetic; omit --arithmetic")
        return for_target(ranged.main, *choose_target(target.name, target))
    refuse_calibration_without_target(calibration)
    refuse_settings_without_target(target)
    return in_float(model, state) if arithmetic == "float" else as_is(model, state, runtime)


def refuse_settings_without_target(options: TargetOptions) -> None:
    """Refuse settings that nothing would use.

    Raises:
        UsageError: there are any.
    """
    if options.settings or options.layers:
        raise UsageError("--set and --layer are settings of a target; add --target")
