"""`tflq.convert`: files of a model for one target or all, and the similarity of each layer to floating point."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tflq.api.calibrate import calibrate
from tflq.api.micro_arena import describe_arena
from tflq.api.options import (
    CalibrationOptions,
    Progress,
    SampleOptions,
    SampleSource,
    TargetOptions,
    replace_options,
    silent,
)
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.recover import RecoverOptions, recover_ranged, require_named
from tflq.api.recovered_layers import METADATA
from tflq.api.run_record import record_call
from tflq.api.samples import samples_or_calibration, why_not_compared
from tflq.api.target import choose_target, fill_calibration, fits_weights, merge_settings
from tflq.benchmarks.all_targets import summarize
from tflq.benchmarks.scoring import load_named
from tflq.converters.engines import EngineChoices
from tflq.converters.settings import Settings
from tflq.converters.targets import Artifacts, Target, find_target, target_names, targets_with
from tflq.diagnosis.similarity import Similarities, measured_similarities
from tflq.emit.written import check_emitted
from tflq.errors import OptionError, UsageError
from tflq.files import output_folder
from tflq.graph import Graph, Model
from tflq.graph.rewriting import Change, select_changes, trace_passes
from tflq.parallel.executions import as_is, for_target
from tflq.precision.recover import RealSamples
from tflq.sampling import GivenSamples, Samples

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import ConvertKeywords
from tflq.api.conversion import ConvertAllResult, ConvertResult

DEFAULT_SAMPLES = 32


@dataclass(frozen=True)
class ConvertOptions:
    """Options of a conversion.

    Attributes:
        calibration: Ranges of the tensors.
        engine: Choice of engines: auto, by the cycles of the target's estimate, with a report of the gain (default: the
            engines of the settings).
        recover: True to recover the weights first, with named samples (docs/guides/recover.md); a setting may request
            it, too.
        trace_passes: True to list the lines of the graph that each pass of the target changes.
        passes: Names of the passes to list (default: all that change the graph).
    """

    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)
    recover: bool = False
    engine: Literal["auto"] | None = None
    trace_passes: bool = False
    passes: tuple[str, ...] = ()


@record_call
def convert(
    model: ModelSource,
    target: TargetOptions | str,
    folder: str | os.PathLike[str] | None = None,
    samples: SampleSource = None,
    options: ConvertOptions = ConvertOptions(),
    *,
    progress: Progress = silent,
    **changes: Unpack[ConvertKeywords],
) -> ConvertResult:
    """Quantize a model for a target and write its files: all of them, or none after an error.

    Each layer's result is compared with floating point. The emitted .tflite also runs in TFLite and is compared with
    the target's own arithmetic, if ai-edge-litert or tensorflow is installed. Both comparisons are omitted on unnamed
    samples if they take more than `UNREQUESTED_MACS` multiply-accumulates. Without a folder no files are written.

    Args:
        model: Model to convert.
        target: Target with its settings, or its name.
        folder: Output folder; created if missing.
        samples: Samples to compare on (default: samples of the calibration, or 32 random ones).
        options: Calibration, recovery, engines.
        progress: Progress callback.
        **changes: Fields of the options, by name.

    Raises:
        UsageError, OptionError, InputError, FormatError: Options, samples or files that do not fit.
        UnsupportedError: Operators that the target does not support; the message lists all of them.
        OutputError: The files cannot be written.
    """
    options = replace_options(options, changes)
    options = replace(options, calibration=fill_calibration(target, options.calibration))
    wanted = merge_settings(target, options.calibration)
    original = read_model(model)
    chosen = samples_or_calibration(original, samples, options.calibration, DEFAULT_SAMPLES)
    chosen_target, settings = choose_target(wanted.name or "", wanted, recovers=True)
    ranged = calibrate(original, options.calibration, target=chosen_target.name, progress=progress)
    engines = None if options.engine is None else _choose_engines(options.engine, chosen_target, ranged.main, settings)
    settings = settings if engines is None else engines.settings
    if options.recover or fits_weights(settings):
        ranged, chosen = _recover_model(original, ranged, (chosen_target, settings), wanted, samples, options)
    with trace_passes() if options.trace_passes else nullcontext(list[Change]()) as trace:
        execution = for_target(ranged.main, chosen_target, settings)
    selected = select_changes(trace, options.passes)
    with nullcontext() if folder is None else output_folder(folder) as scratch:
        artifacts = _artifacts(chosen_target, execution.graph, ranged)
        skipped = why_not_compared(execution.graph, chosen, samples)
        compared = skipped or check_emitted(execution, artifacts, chosen)
        if scratch is not None:
            _write(scratch, artifacts)
    measured: Similarities | str = skipped
    if not skipped:
        with progress("compare", chosen.count) as advance:
            measured = measured_similarities(execution, ranged, chosen, advance)
    where = None if folder is None else Path(folder)
    name, graph = name_of(model), execution.graph
    arena = describe_arena(chosen_target.arithmetic, graph, artifacts)
    report = (artifacts, compared, measured, engines, selected, arena)
    return ConvertResult(name, original, chosen_target, settings, ranged, graph, where, *report)


@record_call
def convert_all(
    model: ModelSource,
    folder: str | os.PathLike[str] | None = None,
    samples: SampleSource = None,
    options: ConvertOptions = ConvertOptions(),
    *,
    progress: Progress = silent,
    **changes: Unpack[ConvertKeywords],
) -> ConvertAllResult:
    """Quantize a model for every target with its defaults, write a folder for each, and compare them.

    If a target refuses the model, its row states the reason. Arguments and errors as for `convert`.
    """
    options = replace_options(options, changes)
    original = read_model(model)
    if options.engine is not None:
        raise UsageError("--engine auto needs a single target; --target all uses the defaults of each")
    chosen = samples_or_calibration(original, samples, options.calibration, DEFAULT_SAMPLES)
    ranged = calibrate(original, options.calibration, progress=progress)
    labeled = None
    if isinstance(samples, SampleOptions) and samples.data is not None:
        labeled = load_named(samples.data, original.main)
    names, reference, rows = target_names(), as_is(original), []
    with progress("convert", len(names)) as advance:
        for name in names:
            rows.append(summarize(reference, ranged, find_target(name), chosen, labeled))
            advance(1)
    if folder is not None:
        with output_folder(folder) as scratch:
            for row in rows:
                if not row.refused:
                    (scratch / row.target).mkdir()
                    _write(scratch / row.target, row.artifacts)
    where = None if folder is None else Path(folder)
    return ConvertAllResult(name_of(model), where, tuple(rows), chosen.count, labeled is not None)


def _artifacts(target: Target, graph: Graph, ranged: Model) -> Artifacts:
    """Return the target's files; a recovered model adds the record of its recovery."""
    about = ranged.metadata.get(METADATA)
    files = target.emit(graph, ranged)
    return files if about is None else {**files, "recovered.json": bytes(about)}


def _recover_model(
    original: Model,
    ranged: Model,
    target: tuple[Target, Settings],
    wanted: TargetOptions,
    samples: SampleSource,
    options: ConvertOptions,
) -> tuple[Model, Samples]:
    """Return the recovered float model with its ranges, and the samples for it."""
    require_named(samples, options.calibration.has_samples)
    opened = samples_or_calibration(original, samples, options.calibration, 0, all_given=True)
    given = GivenSamples(opened.take(0, opened.count))
    recovered = recover_ranged((original, ranged), *target, wanted, given, RecoverOptions())
    floats = RealSamples(given, original.main, recovered.model.main)
    return recovered.model, GivenSamples(floats.take(0, floats.count))


def _choose_engines(engine: str, target: Target, graph: Graph, settings: Settings) -> EngineChoices:
    if engine != "auto":
        raise UsageError(f"engine '{engine}': allowed is auto")
    if target.choose_engines is None:
        allowed = ", ".join(targets_with("choose_engines"))
        raise OptionError(f"target {target.name} has a single engine; --engine auto needs one of {allowed}")
    return target.choose_engines(graph, settings)


def _write(folder: Path, artifacts: Artifacts) -> None:
    for name, data in artifacts.items():
        (folder / name).write_bytes(data)
