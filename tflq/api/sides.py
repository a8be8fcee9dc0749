"""Sides of `compare` and `explain`: a model, a model under an arithmetic or target, or a tensor dump."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from tflq.api.calibrate import calibrate, refuse_calibration_without_target
from tflq.api.options import CalibrationOptions, Progress, SampleOptions, SampleSource, TargetOptions, silent
from tflq.api.read_model import ModelSource, is_model_file, name_of, read_model
from tflq.api.samples import samples as choose_samples
from tflq.api.target import choose_target, refuse_settings_without_target
from tflq.converters.targets import target_names
from tflq.diagnosis.compare import ConvertedSamples, Dump, Running, dump_of
from tflq.diagnosis.dumps.files import SUFFIXES, read_archive
from tflq.diagnosis.dumps.wanted import Archive, DumpOptions
from tflq.errors import UsageError
from tflq.graph import Model
from tflq.interpreter.runtimes import REFERENCE, RUNTIME_NAMES, RuntimeName
from tflq.parallel.executions import as_is, for_target, in_float
from tflq.sampling import GivenSamples, Samples

_ARITHMETICS = ("tflite", "float", *RUNTIME_NAMES)


@dataclass(frozen=True)
class Side:
    """A side by name.

    Attributes:
        text: Side in the user's notation.
        source: Source of the model or dump; empty for the model of the first side.
        what: "tflite" or a runtime, "float" or a target; empty for a dump.
        tensor: Tensor in a file of one array.
    """

    text: str
    source: ModelSource
    what: str
    tensor: str | None = None

    @property
    def is_dump(self) -> bool:
        """Whether it is a file of tensors."""
        return not self.what

    @property
    def is_target(self) -> bool:
        """Whether it is a model under a target."""
        return not self.is_dump and self.what not in _ARITHMETICS

    @property
    def runtime(self) -> RuntimeName:
        """The runtime of a model in its own encoding."""
        return next((name for name in RUNTIME_NAMES if name == self.what), REFERENCE)

    def model(self, first: Model | None = None) -> Model:
        """Read the model, or take the first side's.

        Raises:
            UsageError: The first side is a dump.
        """
        if self.source:
            return read_model(self.source)
        if first is None:
            raise UsageError(f"'{self.text}' uses the model of the first side, which is a dump; name a model")
        return first

    def archive(self, options: DumpOptions) -> Archive:
        """Read the files of the dump."""
        return read_archive(str(self.source), self.tensor, options.map_path, options.dtype)


@dataclass(frozen=True)
class Quantizing:
    """How sides that are targets quantize.

    Attributes:
        target: Merged settings; the sides name the targets.
        calibration: Ranges for the targets.
        progress: Progress callback of the calibration.
    """

    target: TargetOptions
    calibration: CalibrationOptions
    progress: Progress = silent

    def refuse_unless(self, *sides: Side | None) -> None:
        """Refuse options that none of these sides uses.

        Raises:
            UsageError: An option is set, and no side is a target.
        """
        if not any(side is not None and side.is_target for side in sides):
            refuse_settings_without_target(self.target)
            refuse_calibration_without_target(self.calibration)

    def running(self, side: Side, model: Model, samples: Samples, samples_of: Model) -> Running:
        """Make a side ready to run.

        Args:
            side: Side to run.
            model: Model of the side.
            samples: Samples in the encoding of `samples_of`.
            samples_of: Model that the samples were made for.
        """
        own = samples if model is samples_of else ConvertedSamples(samples, samples_of.main, model.main)
        if side.is_target:
            ranged = calibrate(model, self.calibration, target=side.what, progress=self.progress)
            return Running(for_target(ranged.main, *choose_target(side.what, self.target)), own, side.text)
        if side.what == "float":
            return Running(in_float(model, "independent"), own, side.text)
        return Running(as_is(model, "independent", side.runtime), own, side.text)


def parse_side(given: ModelSource, may_lack_model: bool = False) -> Side:
    """Parse a side: MODEL, MODEL@RUNTIME, MODEL@float, MODEL@TARGET, or a dump: a folder or [TENSOR=]FILE.

    Raises:
        UsageError: A side without a required model, or an unknown arithmetic or target.
    """
    if not isinstance(given, (str, os.PathLike)):
        return Side(name_of(given), read_model(given), "tflite")
    text = os.fspath(given)
    path, tensor = text, None
    if not os.path.exists(text):
        name, _, file = text.rpartition("=")
        if name and file.lower().endswith(SUFFIXES):
            path, tensor = file, name
    if os.path.isdir(path) or (path.lower().endswith(SUFFIXES) and not is_model_file(path)):
        return Side(text, path, "", tensor)
    known = (*_ARITHMETICS, *target_names())
    if os.path.exists(text) or "@" not in text:
        if text in known and not os.path.exists(text):
            raise UsageError(
                f"'{text}' is not a file; for {text} of the same model write @{text}, or MODEL.tflite@{text}"
            )
        return Side(text, text, "tflite")
    path, _, what = text.rpartition("@")
    if what not in known:
        raise UsageError(f"'{text}': '@{what}' is unknown; there are {', '.join(known)}")
    if not path and not may_lack_model:
        raise UsageError(f"'{text}' names no model; write MODEL.tflite@{what}")
    return Side(text, path, what)


def parse_runtimes(*texts: ModelSource) -> tuple[ModelSource, tuple[RuntimeName, ...]]:
    """Return the model and the runtimes of sides MODEL@RUNTIME; MODEL without a runtime is `ref`.

    Raises:
        UsageError: A side of another kind, or of another model than the first.
    """
    sides = [parse_side(text, may_lack_model=place > 0) for place, text in enumerate(texts)]
    for side in sides:
        if side.is_dump or side.is_target or side.what == "float":
            raise UsageError(f"'{side.text}' is no runtime; write MODEL@RUNTIME: {', '.join(RUNTIME_NAMES)}")
        if side.source and side.source != sides[0].source:
            raise UsageError(f"'{side.text}' has another model than '{sides[0].text}'; runtimes share one model")
    return sides[0].source, tuple(side.runtime for side in sides)


def read_beside(
    given: Side,
    named: Side,
    model: Model,
    samples: SampleSource,
    options: DumpOptions,
    quantizing: Quantizing,
    needs_samples: bool = True,
) -> tuple[Running, Dump]:
    """Return a model that runs a dump's samples, and the dump as interpreted by the model.

    Raises:
        UsageError: The samples of the dump are required and unknown.
        InputError: As for `understand`.
    """
    options_only = isinstance(samples, SampleOptions) and samples.is_random and not samples.count
    is_specified = samples is not None and not options_only
    chosen = choose_samples(model, samples if is_specified else SampleOptions(count=1))
    side = quantizing.running(named, model, chosen, model)
    dump = dump_of(given.archive(options), side, options, chosen.count if is_specified else None)
    if not is_specified and needs_samples:
        side = replace(side, samples=_stored_inputs(dump, side))
    return side, dump


def _stored_inputs(dump: Dump, side: Running) -> Samples:
    """Return the inputs that a dump contains in the model's own encoding."""
    names = [side.columns[i].name for i in range(len(side.execution.graph.inputs))]
    if not side.execution.is_as_is or not all(name in dump.arrays for name in names):
        raise UsageError(
            f"{dump.name}: the samples of the dump are unknown; name them with --input (or --samples and --seed for "
            f"random samples of `tflq run`), or dump the model's inputs in its own encoding, too"
        )
    return GivenSamples([dump.arrays[name] for name in names])
