"""`tflq.export`: test vectors of each layer, or the network as a C99 program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from tflq.api.options import CalibrationOptions, SampleSource, TargetOptions, replace_options
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import Result
from tflq.api.samples import samples as choose_samples
from tflq.api.target import choose_execution, merge_settings
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

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import ExportKeywords


@dataclass(frozen=True)
class ProgramResult(Result):
    """A C99 program of a network, written to a folder.

    Attributes:
        model: File name of the model.
        arithmetic: Name of the arithmetic: a target, or a runtime.
        folder: Output folder.
        program: Source text, tensors and arena.
        samples: Number of samples in samples.bin.
        sizes: File name -> size in bytes.
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
        UnsupportedError: The network has no form in C99.
        UsageError: The network keeps state, and the execution's samples are not a stream.
        OutputError: The folder cannot be written.
    """
    program = program_of(execution.engine, model, arithmetic)
    graph = program.graph
    wanted = {*program.tensors, *graph.inputs}
    computed = tuple(sorted(wanted - set(execution.graph.inputs)))
    chunks = list(execution.iterate(samples, computed))
    values = {t: concatenate([chunk[t] for chunk in chunks]) for t in computed}
    values.update(zip(execution.graph.inputs, execution.encode(samples.take(0, samples.count)), strict=True))

    def concatenate_bytes(tensors: Sequence[int]) -> bytes:
        return b"".join(np.ascontiguousarray(values[t][s]).tobytes() for s in range(samples.count) for t in tensors)

    files = {name: text.encode() for name, text in program.files.items()}
    files |= {"samples.bin": concatenate_bytes(graph.inputs), "expected.bin": concatenate_bytes(program.tensors)}
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
    """Options of an export.

    Attributes:
        vectors: Format of test vectors: c, arrays for a C99 compiler; hex, one file per array for $readmemh; npz, one
            archive per layer.
        program: Language of a program instead of vectors: c99, the whole network as one readable C program that
            computes the same bits.
        target: Target to quantize for (default: the unchanged model).
        layers: Layers to export: numbers, names or globs of names, or operators (default: all).
        calibration: Ranges for the target.
        runtime: Runtime to compute the integers of, without a target.
        state: State handling of stateful models; the samples of a program are always a stream.
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
    """Test vectors of the layers, written to a folder.

    Attributes:
        facts: Head of index.json: model, target, samples; and the format of the vectors.
        folder: Output folder.
        layers: Vectors of each layer.
        files: File name -> content.
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
    **changes: Unpack[ExportKeywords],
) -> ExportResult | ProgramResult:
    """Write test vectors of each layer for firmware and RTL test benches, or the network as a C program.

    Vectors are the inputs and expected outputs of the samples, weights and other constants, and the params that the
    arithmetic derived: multipliers, shifts, folded biases, tables. index.json lists shapes, types and scales. With
    `program`, the output is C99 source that computes every tensor bit for bit, the samples and the expected output
    (docs/guides/c99.md). All files are written, or none after an error.

    Args:
        model: Model with the layers.
        folder: Output folder; created if missing.
        samples: Samples to run (default: one random sample).
        options: Format, target, layers.
        **changes: Fields of the options, by name.

    Raises:
        UsageError: Settings without a target; layers of a program.
        InputError, OptionError, UnsupportedError: Samples, settings, layers or a model that do not fit.
        OutputError: The folder cannot be written.
    """
    options = replace_options(options, changes)
    target = merge_settings(options.target, options.calibration)
    original = read_model(model)
    chosen = choose_samples(original, samples)
    state = options.state or ("stream" if options.program else None)
    execution = choose_execution(original, target, options.calibration, runtime=options.runtime, state=state)
    if options.program:
        if options.layers:
            raise UsageError("a program contains all layers; write a model with some of them with `tflq cut`")
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
