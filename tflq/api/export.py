"""`tflq.export`: test vectors of each layer, or the network as a C99 program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tflq.api.options import CalibrationOptions, SampleSource, TargetOptions, changed
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import TableResult
from tflq.api.samples import samples as choose_samples
from tflq.api.target import choose_execution, complete
from tflq.emit.c99.program import Program, program_of
from tflq.emit.vectors import LayerVectors, collect, files_of, selected_layers
from tflq.errors import UsageError
from tflq.files import output_folder
from tflq.interpreter.execution.engine import State
from tflq.interpreter.execution.values import concatenate
from tflq.parallel.executions import Execution
from tflq.quoting import Json, json_text
from tflq.sampling import Samples


@dataclass(frozen=True)
class ProgramResult(TableResult):
    """A program that was written.

    Attributes:
        model: name of the file.
        arithmetic: whose integers.
        folder: where the files are.
        program: its text, tensors and arena.
        samples: how many there are in samples.bin.
        sizes: bytes of each file.
    """

    model: str
    arithmetic: str
    folder: Path
    program: Program
    samples: int
    sizes: Mapping[str, int]

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return the tensors in the order in which the program writes them."""
        graph = self.program.graph
        return [
            {
                "tensor": t,
                "name": graph.tensors[t].name,
                "type": graph.tensors[t].dtype.value,
                "shape": list(graph.tensors[t].shape),
                "bytes": graph.tensors[t].size * graph.tensors[t].dtype.storage.itemsize,
            }
            for t in self.program.tensors
        ]

    def report(self) -> Mapping[str, Json]:
        """Return the files with their sizes, the arena, what is left to the caller, and the rows."""
        return {
            "model": self.model,
            "program": "c99",
            "arithmetic": self.arithmetic,
            "samples": self.samples,
            "arena_bytes": self.program.arena_bytes,
            "state_bytes": self.program.state_bytes,
            "left_to_the_caller": dict(self.program.left_out),
            "files": {str(self.folder / name): size for name, size in self.sizes.items()},
            "tensors": self.rows(),
        }


def write_program(execution: Execution, samples: Samples, model: str, arithmetic: str, folder: Path) -> ProgramResult:
    """Write the program of an execution's graph, samples.bin and expected.bin.

    `./network < samples.bin` writes expected.bin: every tensor of each sample, as tflq computes it.

    Raises:
        UnsupportedError: the network has no form in C99.
        UsageError: it keeps state, and the execution's samples are no stream.
        OutputError: the folder cannot be written.
    """
    program = program_of(execution.engine, model, arithmetic)
    graph = program.graph
    wanted = {*program.tensors, *graph.inputs}
    computed = tuple(sorted(wanted - set(execution.graph.inputs)))
    chunks = list(execution.iterate(samples, computed))
    values = {t: concatenate([chunk[t] for chunk in chunks]) for t in computed}
    values.update(zip(execution.graph.inputs, execution.encode(samples.take(0, samples.count)), strict=True))

    def written(tensors: Sequence[int]) -> bytes:
        return b"".join(np.ascontiguousarray(values[t][s]).tobytes() for s in range(samples.count) for t in tensors)

    files = {name: text.encode() for name, text in program.files.items()}
    files |= {"samples.bin": written(graph.inputs), "expected.bin": written(program.tensors)}
    sizes = {name: len(data) for name, data in files.items()}
    result = ProgramResult(model, arithmetic, folder, program, samples.count, sizes)
    index = {key: value for key, value in result.report().items() if key != "files"}
    files["index.json"] = (json_text(index) + "\n").encode()
    with output_folder(folder) as scratch:
        for name, data in files.items():
            (scratch / name).write_bytes(data)
    return ProgramResult(
        model, arithmetic, folder, program, samples.count, {**sizes, "index.json": len(files["index.json"])}
    )


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
