"""What `compare` and `explain` take as a side: a model, a model under an arithmetic or target, or a tensor dump."""

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
        text: as it was given.
        source: of the model or dump; empty where the first side's model is meant.
        what: "tflite" or a runtime, "float" or a target; empty for a dump.
        tensor: the tensor that a file of one array holds.
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
            UsageError: the first side is a dump.
        """
        if self.source:
            return read_model(self.source)
        if first is None:
            raise UsageError(f"'{self.text}' takes the model of the first side, which is a dump; name a model")
        return first

    def archive(self, options: DumpOptions) -> Archive:
        """Read the files of the dump."""
        return read_archive(str(self.source), self.tensor, options.map_path, options.dtype)


@dataclass(frozen=True)
class Quantizing:
    """How sides that are targets quantize.

    Attributes:
        target: settings, complete; the sides name the targets.
        calibration: their ranges.
        progress: shows how far the calibration is.
    """

    target: TargetOptions
    calibration: CalibrationOptions
    progress: Progress = silent

    def refuse_unless(self, *sides: Side | None) -> None:
        """Refuse options that none of these sides would use.

        Raises:
            UsageError: there are any, and no side is a target.
        """
        if not any(side is not None and side.is_target for side in sides):
            refuse_settings_without_target(self.target)
            refuse_calibration_without_target(self.calibration)

    def running(self, side: Side, model: Model, samples: Samples, samples_of: Model) -> Running:
        """Make a side ready to run.

        Args:
            side: by name.
            model: its model.
            samples: in the encoding of `samples_of`.
            samples_of: the model that the samples were made for.
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
        UsageError: no model where one is needed, or an unknown arithmetic or target.
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
            raise UsageError(f"'{text}' is no file; for the same model's {text} write @{text}, or MODEL.tflite@{text}")
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
    """Return a model that runs a dump's samples, and the dump as the model understands it.

    Raises:
        UsageError: nothing says which samples it is a dump of, and they are needed.
        InputError: as `understand`.
    """
    said = samples is not None and not (isinstance(samples, SampleOptions) and samples.is_random and not samples.count)
    chosen = choose_samples(model, samples if said else SampleOptions(count=1))
    side = quantizing.running(named, model, chosen, model)
    dump = dump_of(given.archive(options), side, options, chosen.count if said else None)
    if not said and needs_samples:
        side = replace(side, samples=_held(dump, side))
    return side, dump


def _held(dump: Dump, side: Running) -> Samples:
    """Return the inputs that a dump holds in the model's own encoding."""
    names = [side.columns[i].name for i in range(len(side.execution.graph.inputs))]
    if not side.execution.is_as_is or not all(name in dump.arrays for name in names):
        raise UsageError(
            f"{dump.name}: say which samples it is a dump of, with --input (or --samples and --seed for random ones "
            f"of `tflq run`); a dump that holds the model's inputs in its own encoding needs neither"
        )
    return GivenSamples([dump.arrays[name] for name in names])
