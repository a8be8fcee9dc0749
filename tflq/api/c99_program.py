"""The network as a C99 program, with samples and what it must write for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tflq.analysis.c99.program import Program, program_of
from tflq.analysis.executions import Execution
from tflq.analysis.inputs import Samples
from tflq.api.result import TableResult
from tflq.files import output_folder
from tflq.interpreter.execution.values import concatenate
from tflq.quoting import Json, json_text


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
