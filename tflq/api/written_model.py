"""`tflq.cut` and `tflq.dequantize`: a model made of another, and the .tflite that it was written to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tflq.api.read_model import ModelSource, read_model
from tflq.api.result import Result
from tflq.api.samples import input_names
from tflq.converters.settled import dequantized, settled_model
from tflq.converters.tflite import write_model
from tflq.graph import Model, find_tensor
from tflq.graph import cut as cut_graph
from tflq.report import Column, Table, Verdict, identifier, number
from tflq.units import size


@dataclass(frozen=True)
class WrittenModel(Result):
    """A model made of another.

    Attributes:
        model: the new one.
        whole: the one that it was made of.
        output: the .tflite that it was written to, or None.
    """

    model: Model
    whole: Model
    output: Path | None

    @property
    def size_bytes(self) -> int | None:
        """Size of the file."""
        return None if self.output is None else self.output.stat().st_size

    @property
    def counts(self) -> tuple[int, int]:
        """Number of operators in the new model and in the original."""
        return sum(len(g.nodes) for g in self.model.graphs), sum(len(g.nodes) for g in self.whole.graphs)

    @property
    def verdict(self) -> Verdict:
        """Number of operators, and the file."""
        file = "" if self.size_bytes is None else f"{self.output}: {size(self.size_bytes)}"
        return Verdict("", self.counts[0], f"of {self.counts[1]} operators", advice=file)


_FILE = (
    Column("output", "written", get=lambda r: None if r.output is None else str(r.output)),
    Column("size_bytes", "size", text=lambda r: "" if r.size_bytes is None else size(r.size_bytes)),
)


class CutResult(WrittenModel):
    """A part of a model."""

    FACTS = (
        *_FILE,
        Column("operators", get=lambda r: [node.name for node in r.model.main.nodes]),
        Column("operators_of_the_whole", get=lambda r: r.counts[1]),
    )

    @property
    def counts(self) -> tuple[int, int]:
        """Number of operators in the part and in the original's main graph."""
        return len(self.model.main.nodes), len(self.whole.main.nodes)

    def tables(self) -> Sequence[Table]:
        """Return the inputs and outputs."""
        part = self.model.main
        columns = (
            number("index", "#", lambda t: t),
            identifier("name", "tensor", lambda t: part.tensors[t].name),
            Column("dtype", "type", get=lambda t: part.tensors[t].dtype.value),
            Column("shape", "shape", get=lambda t: part.tensors[t].shape),
        )
        return [Table("inputs", columns, part.inputs, "Inputs"), Table("outputs", columns, part.outputs, "Outputs")]


def cut(
    model: ModelSource,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    output: str | Path | None = None,
    *,
    settled: bool = False,
) -> CutResult:
    """Return the operators of a model between some tensors and others.

    Args:
        model: whose main graph is cut.
        inputs: tensors that become inputs, by name, a signature's name or index; the model's inputs where it is empty.
        outputs: tensors that become outputs; the model's outputs where it is empty.
        output: a .tflite to write.
        settled: first give tensors their true shapes and fold what is known before the run, as targets see a model.

    Raises:
        GraphError, OptionError: tensors that are unknown, or between which there is no part.
        OutputError: the file cannot be written.
    """
    whole = read_model(model)
    found = settled_model(whole) if settled else whole
    graph = cut_graph(found.main, _named(found, inputs), _named(found, outputs))
    part = replace(found, graphs=[graph, *found.graphs[1:]], signatures=[], extra=None)
    return CutResult(part, whole, _written(part, output))


def _named(model: Model, texts: Sequence[str]) -> list[int]:
    known = {
        **{name: t for s in model.signatures if s.graph == 0 for name, t in s.outputs.items()},
        **input_names(model),
    }
    names = {tensor.name for tensor in model.main.tensors}
    return [known[text] if text in known and text not in names else find_tensor(model.main, text) for text in texts]


class DequantizeResult(WrittenModel):
    """The float network."""

    FACTS = (
        *_FILE,
        Column("operators", get=lambda r: r.counts[0]),
        Column("operators_before", get=lambda r: r.counts[1]),
        Column("inputs_now_float", "inputs that are float now"),
    )

    @property
    def inputs_now_float(self) -> int:
        """Number of inputs with another type."""
        graphs = zip(self.whole.graphs, self.model.graphs, strict=True)
        inputs = [(a.tensors[t], b.tensors[u]) for a, b in graphs for t, u in zip(a.inputs, b.inputs, strict=True)]
        return sum(before.dtype is not after.dtype for before, after in inputs)


def dequantize(model: ModelSource, output: str | Path | None = None) -> DequantizeResult:
    """Return the float view of a model: float32 in place of every quantized tensor, constants dequantized.

    QUANTIZE, DEQUANTIZE and FAKE_QUANT go; ranges of activations stay as minimum and maximum.

    Args:
        model: quantized, or in part.
        output: a .tflite to write.

    Raises:
        GraphError: a constant whose scales do not fit its shape.
        OutputError: the file cannot be written.
    """
    found = read_model(model)
    result = dequantized(found)
    return DequantizeResult(result, found, _written(result, output))


def _written(model: Model, output: str | Path | None) -> Path | None:
    """Write a model if it is to be written."""
    if output is None:
        return None
    write_model(model, output)
    return Path(output)
