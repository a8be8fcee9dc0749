"""`tflq.export`: test vectors of each layer, or the network as a C99 program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import numpy as np

from tflq.api.options import CalibrationOptions, SampleSource, TargetOptions, changed
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import Result
from tflq.api.samples import samples as choose_samples
from tflq.api.target import choose_execution, complete
from tflq.emit.c99.program import Program, program_of
from tflq.emit.vectors import LayerVectors, collect, files_of, selected_layers
from tflq.errors import UsageError
from tflq.files import output_folder
from tflq.interpreter.execution.engine import State
from tflq.interpreter.execution.values import concatenate
from tflq.interpreter.runtimes import REFERENCE, RuntimeName, find_runtime
from tflq.parallel.executions import Execution
from tflq.quoting import Json, json_text
from tflq.report import Column, Table, Verdict, identifier, number
from tflq.sampling import Samples
from tflq.units import size


@dataclass(frozen=True)
class ProgramResult(Result):
    """A program that was written.

    Attributes:
        model: name of the file.
        arithmetic: whose integers.
        folder: where the files are.
        program: its text, tensors and arena.
        samples: how many there are in samples.bin.
        sizes: bytes of each file.
    """

    FACTS = (
        Column("model", "model"),
        Column("program", get=lambda _: "c99"),
        Column("arithmetic", "arithmetic"),
        Column("samples", "samples"),
        Column("arena_bytes", get="program.arena_bytes"),
        Column("state_bytes", get="program.state_bytes"),
        Column("left_to_the_caller", get=lambda r: dict(r.program.left_out)),
        Column("files", get=lambda r: {str(r.folder / name): length for name, length in r.sizes.items()}),
    )

    model: str
    arithmetic: str
    folder: Path
    program: Program
    samples: int
    sizes: Mapping[str, int]

    @property
    def verdict(self) -> Verdict:
        """Number of tensors that the program computes."""
        unit = f"tensors in a program of {self.model}, an arena of {size(self.program.arena_bytes)}"
        return Verdict("", len(self.program.tensors), unit, self.arithmetic, self.samples)

    @property
    def notes(self) -> Sequence[str]:
        """Work of the caller, and the command that builds and checks the program."""
        left = [f"left to the caller: {name}: {why}" for name, why in self.program.left_out.items()]
        return [*left, f"{self.folder}: build and check it there:", _BUILD]

    def tables(self) -> Sequence[Table]:
        """Return the tensors in the order in which the program writes them, and the files."""
        tensors = self.program.graph.tensors
        columns = (
            Column("tensor", get=lambda t: t),
            Column("name", get=lambda t: tensors[t].name),
            Column("type", get=lambda t: tensors[t].dtype.value),
            Column("shape", get=lambda t: tensors[t].shape),
            Column("bytes", get=lambda t: tensors[t].size * tensors[t].dtype.storage.itemsize),
        )
        return [Table("tensors", columns, self.program.tensors), _file_table(self.sizes)]


_BUILD = "cc -std=c99 -O2 -o network network.c main.c && ./network < samples.bin | cmp - expected.bin"


def _file_table(sizes: Mapping[str, int]) -> Table:
    columns = (
        identifier("", "file", lambda row: row[0]),
        number("", "size", lambda row: row[1], lambda row: size(row[1])),
    )
    return Table("", columns, list(sizes.items()), "Files")


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
    index = {fact.key: fact.value(result) for fact in result.FACTS if fact.key != "files"}
    index["tensors"] = result.table("tensors").records()
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
        runtime: Runtime of TFLite's integers, without a target.
        state: for models that keep state; a program's samples are a stream.
    """

    vectors: Literal["c", "hex", "npz"] = "npz"
    program: Literal["c99"] | None = None
    target: TargetOptions | str | None = None
    layers: tuple[str, ...] = ()
    calibration: CalibrationOptions = CalibrationOptions()
    runtime: RuntimeName = REFERENCE
    state: State | None = None


@dataclass(frozen=True)
class ExportResult(Result):
    """What was exported.

    Attributes:
        facts: Head of index.json: model, target, samples; and the kind of vectors.
        folder: where the files are.
        layers: their vectors.
        files: content by name.
    """

    FACTS = (
        *(Column(name, name, get=f"facts.{name}") for name in ("model", "target", "samples", "vectors")),
        Column("files", get=lambda r: {str(r.folder / name): len(data) for name, data in r.files.items()}),
    )

    facts: Mapping[str, Json]
    folder: Path
    layers: tuple[LayerVectors, ...]
    files: Mapping[str, bytes]

    @property
    def verdict(self) -> Verdict:
        """Number of files."""
        total = size(sum(map(len, self.files.values())))
        samples = cast(int, self.facts["samples"])
        return Verdict("", len(self.files), f"files in {self.folder}, {total}", samples=samples)

    def tables(self) -> Sequence[Table]:
        """Return the names of each layer's arrays."""
        return [Table("layers", _LAYERS, self.layers, "Layers")]


_LAYERS = (
    number("index", "#"),
    Column("", "operator", get="operator", rank=1),
    identifier("name", "layer"),
    Column("", "arithmetic", get="arithmetic", rank=2),
    Column("arrays", get=lambda layer: [vector.name for vector in layer.vectors]),
    number("", "arrays", lambda layer: len(layer.vectors)),
    number("", "size", lambda layer: size(sum(vector.values.nbytes for vector in layer.vectors))),
)


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
    that computes every tensor bit for bit, the samples and what it must write (docs/guides/c99.md). All files, or none
    after
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
    execution = choose_execution(found, target, options.calibration, runtime=options.runtime, state=state)
    if options.program:
        if options.layers:
            raise UsageError("a program has all layers; `tflq cut` makes a model of some of them")
        name = target.name or find_runtime(options.runtime).arithmetic
        return write_program(execution, chosen, Path(name_of(model)).name, name, Path(folder))
    vectors = collect(execution, chosen, selected_layers(execution.graph, list(options.layers)))
    facts: dict[str, str | int | None] = {
        "model": Path(name_of(model)).name,
        "target": target.name,
        **({} if options.runtime == REFERENCE else {"runtime": options.runtime}),
        "samples": chosen.count,
    }
    files = files_of(vectors, options.vectors, facts)
    with output_folder(Path(folder)) as scratch:
        for name, data in files.items():
            (scratch / name).write_bytes(data)
    return ExportResult({**facts, "vectors": options.vectors}, Path(folder), tuple(vectors), files)
