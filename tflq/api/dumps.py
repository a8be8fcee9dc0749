"""`tflq.dumps`: how a tensor dump is understood beside its model, without comparing anything."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from tflq.api.options import CalibrationOptions, Progress, SampleSource, TargetOptions, changed, silent
from tflq.api.read_model import ModelSource
from tflq.api.result import Result
from tflq.api.sides import Quantizing, parse_side, read_beside
from tflq.api.target import complete
from tflq.diagnosis.dumps.understanding import Understood
from tflq.diagnosis.dumps.wanted import DumpOptions
from tflq.errors import UsageError
from tflq.report import Column, Table, Verdict, identifier


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
class DumpsResult(Result):
    """How a dump was understood.

    Attributes:
        model: whose tensors they are.
        understood: each tensor's array, layout and encoding, and why.
    """

    FACTS = (
        Column("dump", "dump", get="understood.path"),
        Column("model", "model"),
        Column("samples", "samples", get="understood.samples"),
        Column("notes", get="understood.notes"),
        Column("missing", get="understood.missing"),
    )

    model: str
    understood: Understood

    @property
    def verdict(self) -> Verdict:
        """Number of tensors that were recognized."""
        found = self.understood
        return Verdict("", len(found.readings), f"tensors recognized in {found.path}", self.model, found.samples)

    @property
    def notes(self) -> Sequence[str]:
        """Omitted arrays and missing tensors."""
        missing = self.understood.missing
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        return [*self.understood.notes, *([f"not in it: {', '.join(missing[:5])}{more}"] if missing else [])]

    def tables(self) -> Sequence[Table]:
        """Return a row for each tensor."""
        return [Table("tensors", _TENSORS, self.understood.readings, "Tensors")]


_TENSORS = (
    identifier("tensor", "tensor", "wanted.name"),
    Column("samples", get=lambda reading: len(reading.array)),
    identifier("source", "array"),
    Column("stored", "stored"),
    Column("layout", "layout"),
    Column("encoding", "numbers"),
    Column("why", "evidence", rank=1),
)


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
