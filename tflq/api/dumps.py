"""`tflq.dumps`: how a tensor dump is understood beside its model, without comparing anything."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tflq.api.options import CalibrationOptions, Progress, SampleSource, TargetOptions, changed, silent
from tflq.api.read_model import ModelSource
from tflq.api.result import TableResult, picked
from tflq.api.sides import Quantizing, parse_side, read_beside
from tflq.api.target import complete
from tflq.diagnosis.dumps.understanding import Reading, Understood
from tflq.diagnosis.dumps.wanted import DumpOptions
from tflq.errors import UsageError
from tflq.quoting import Json


@dataclass(frozen=True)
class DumpsOptions:
    """How a dump is read.

    Attributes:
        dump: what the caller knows of it.
        target: settings, where the model runs under a target.
        calibration: its ranges.
    """

    dump: DumpOptions = DumpOptions()
    target: TargetOptions = field(default_factory=TargetOptions)
    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)


@dataclass(frozen=True)
class DumpsResult(TableResult):
    """How a dump was understood.

    Attributes:
        model: whose tensors they are.
        understood: each tensor's array, layout and encoding, and why.
    """

    model: str
    understood: Understood

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each tensor that was found."""
        return [_row(r) for r in self.understood.readings]

    def report(self) -> Mapping[str, Json]:
        """Return the rows, what was passed over, and what the dump lacks."""
        found = self.understood
        facts = picked(found, "samples", "notes", "missing")
        return {"dump": found.path, "model": self.model, **facts, "tensors": self.rows()}


def dumps(
    path: str | os.PathLike[str],
    model: ModelSource,
    samples: SampleSource = None,
    options: DumpsOptions = DumpsOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> DumpsResult:
    """Say how a tensor dump is understood: which array is which tensor, its layout and encoding, and why.

    Args:
        path: of the dump: a file or folder, [TENSOR=]FILE for one array.
        model: whose tensors it holds: a model, or "MODEL@TARGET".
        samples: those that it is a dump of; they tell how many it holds, where its files do not.
        options: what the caller knows of the dump.
        progress: shows how far the calibration is.
        **changes: fields of the options.

    Raises:
        UsageError: no dump, or no model.
        InputError: a dump that cannot be read, or a question with its choices.
        OptionError, FormatError, UnsupportedError: a model or settings that do not fit.
    """
    options = changed(options, changes)
    given, named = parse_side(path), parse_side(model)
    if not given.is_dump or named.is_dump:
        wrong = f"'{given.text}' is no dump" if not given.is_dump else f"'{named.text}' is a dump"
        raise UsageError(f"{wrong}; write DUMP --model MODEL")
    quantizing = Quantizing(complete(options.target, options.calibration), options.calibration, progress)
    quantizing.refuse_unless(named)
    _, found = read_beside(given, named, named.model(), samples, options.dump, quantizing, needs_samples=False)
    assert found.understood is not None
    return DumpsResult(named.text, found.understood)


def _row(reading: Reading) -> Mapping[str, Json]:
    facts = picked(reading, "source", "stored", "layout", "encoding", "why")
    return {"tensor": reading.wanted.name, "samples": len(reading.array), **facts}
