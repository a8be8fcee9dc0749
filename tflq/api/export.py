"""`tflq.export`: test vectors of each layer, or the network as a C99 program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tflq.analysis.vectors import LayerVectors, collect, files_of, selected_layers
from tflq.api.c99_program import ProgramResult, write_program
from tflq.api.options import CalibrationOptions, SampleSource, TargetOptions, changed
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import TableResult
from tflq.api.samples import samples as choose_samples
from tflq.api.target import choose_execution, complete
from tflq.errors import UsageError
from tflq.files import output_folder
from tflq.interpreter.execution.engine import State
from tflq.quoting import Json


@dataclass(frozen=True)
class ExportOptions:
    """What is exported.

    Attributes:
        vectors: "c": arrays that a C99 compiler takes; "hex": one file an array for $readmemh; "npz": one archive a
            layer.
        program: "c99": one program that computes the network, in place of vectors.
        target: of this target's integers; TFLite's without it.
        layers: only these: numbers, names or globs of names, or operators; all where it is empty.
        calibration: ranges for the target.
        state: for models that keep state; a program's samples are a stream.
    """

    vectors: Literal["c", "hex", "npz"] = "npz"
    program: Literal["c99"] | None = None
    target: TargetOptions | str | None = None
    layers: tuple[str, ...] = ()
    calibration: CalibrationOptions = CalibrationOptions()
    state: State | None = None


@dataclass(frozen=True)
class ExportResult(TableResult):
    """What was exported.

    Attributes:
        facts: what index.json says of the whole, and the kind of vectors.
        folder: where the files are.
        layers: their vectors.
        files: content by name.
    """

    facts: Mapping[str, Json]
    folder: Path
    layers: tuple[LayerVectors, ...]
    files: Mapping[str, bytes]

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return the names of each layer's arrays."""
        return [
            {"index": layer.index, "name": layer.name, "arrays": [v.name for v in layer.vectors]}
            for layer in self.layers
        ]

    def report(self) -> Mapping[str, Json]:
        """Return the facts, the files with their sizes, and the rows."""
        sizes = {str(self.folder / name): len(data) for name, data in self.files.items()}
        return {**self.facts, "files": sizes, "layers": self.rows()}


def export(
    model: ModelSource,
    folder: str | Path,
    samples: SampleSource = None,
    options: ExportOptions = ExportOptions(),
    **changes: object,
) -> ExportResult | ProgramResult:
    """Write what each layer reads, holds and must write, for firmware and RTL test benches; or a program in C.

    Inputs and expected outputs of the samples, weights and other constants, and the params that the arithmetic decided:
    multipliers, shifts, folded biases, tables. index.json says shapes, types and scales. With `program`, C99 source
    that computes every tensor bit for bit, the samples and what it must write (docs/c99.md). All files, or none after
    an error.

    Args:
        model: whose layers they are.
        folder: to write into; it is made where it is missing.
        samples: one random sample where none are named.
        options: kind of files, target, layers.
        **changes: fields of the options.

    Raises:
        UsageError: settings without a target; layers of a program.
        InputError, OptionError, UnsupportedError: samples, settings, layers or a model that do not fit.
        OutputError: the folder cannot be written.
    """
    options = changed(options, changes)
    target = complete(options.target, options.calibration)
    found = read_model(model)
    chosen = choose_samples(found, samples)
    state = options.state or ("stream" if options.program else None)
    execution = choose_execution(found, target, options.calibration, state=state)
    if options.program:
        if options.layers:
            raise UsageError("a program has all layers; `tflq cut` makes a model of some of them")
        return write_program(execution, chosen, Path(name_of(model)).name, target.name or "tflite", Path(folder))
    vectors = collect(execution, chosen, selected_layers(execution.graph, list(options.layers)))
    facts: dict[str, str | int | None] = {
        "model": Path(name_of(model)).name,
        "target": target.name,
        "samples": chosen.count,
    }
    files = files_of(vectors, options.vectors, facts)
    with output_folder(Path(folder)) as scratch:
        for name, data in files.items():
            (scratch / name).write_bytes(data)
    return ExportResult({**facts, "vectors": options.vectors}, Path(folder), tuple(vectors), files)
