"""`tflq.dumps`: the interpretation of a tensor dump by its model, without a comparison."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tflq.api.options import CalibrationOptions, Progress, SampleSource, TargetOptions, replace_options, silent
from tflq.api.read_model import ModelSource
from tflq.api.result import Result
from tflq.api.sides import Quantizing, parse_side, read_beside
from tflq.api.target import merge_settings
from tflq.diagnosis.dumps.understanding import Understood
from tflq.diagnosis.dumps.wanted import DumpOptions
from tflq.errors import UsageError
from tflq.report import Column, Table, Verdict, identifier

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import DumpsKeywords


@dataclass(frozen=True)
class DumpsOptions:
    """Options for reading a dump.

    Attributes:
        dump: Layout and encoding of the dump, as far as its files do not specify them.
        target: Settings, if the model runs under a target.
        calibration: Ranges for the target.
    """

    dump: DumpOptions = DumpOptions()
    target: TargetOptions = field(default_factory=TargetOptions)
    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)


@dataclass(frozen=True)
class DumpsResult(Result):
    """Interpretation of a dump.

    Attributes:
        model: Name of the model with the tensors.
        understood: Array, layout and encoding of each tensor, with the evidence.
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
        understood = self.understood
        return Verdict(
            "", len(understood.readings), f"tensors recognized in {understood.path}", self.model, understood.samples
        )

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
    **changes: Unpack[DumpsKeywords],
) -> DumpsResult:
    """Interpret a tensor dump: the array, layout and encoding of each tensor, with the evidence.

    Args:
        path: Path of the dump: a file or folder, [TENSOR=]FILE for one array.
        model: Model with the tensors, or "MODEL@TARGET".
        samples: Samples that the dump was recorded with; they specify the number of samples if the files do not.
        options: Layout and encoding, as far as the files do not specify them.
        progress: Progress callback of the calibration.
        **changes: Fields of the options, by name.

    Raises:
        UsageError: The path is not a dump, or the model is one.
        InputError: The dump cannot be read, or is ambiguous; the message lists the choices.
        OptionError, FormatError, UnsupportedError: A model or settings that do not fit.
    """
    options = replace_options(options, changes)
    given, named = parse_side(path), parse_side(model)
    if not given.is_dump or named.is_dump:
        wrong = f"'{given.text}' is not a dump" if not given.is_dump else f"'{named.text}' is a dump"
        raise UsageError(f"{wrong}; write DUMP --model MODEL")
    quantizing = Quantizing(merge_settings(options.target, options.calibration), options.calibration, progress)
    quantizing.refuse_unless(named)
    _, dump = read_beside(given, named, named.model(), samples, options.dump, quantizing, needs_samples=False)
    assert dump.understood is not None
    return DumpsResult(named.text, dump.understood)
