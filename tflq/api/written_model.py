"""`tflq.cut` and `tflq.dequantize`: a model derived from another one, and the .tflite with it."""

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
    """A model derived from another one.

    Attributes:
        model: Derived model.
        whole: Original model.
        output: Path of the .tflite, or None.
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
    """Return the operators of a model from some tensors to later ones.

    Args:
        model: Model with the main graph to cut.
        inputs: Tensors that become inputs: names, names of a signature, indices, or layers as --layer names them
            (default: the model's inputs).
        outputs: Tensors that become outputs, named in the same way (default: the model's outputs).
        output: Path of a .tflite to write.
        settled: True to resolve shapes and fold constants first, as targets do.

    Raises:
        GraphError, OptionError: Tensors that are unknown, or without operators between them.
        OutputError: The file cannot be written.
    """
    whole = read_model(model)
    source = settled_model(whole) if settled else whole
    graph = cut_graph(source.main, _tensor_indices(source, inputs), _tensor_indices(source, outputs))
    part = replace(source, graphs=[graph, *source.graphs[1:]], signatures=[], extra=None)
    return CutResult(part, whole, _write_if_requested(part, output))


def _tensor_indices(model: Model, texts: Sequence[str]) -> list[int]:
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

    QUANTIZE, DEQUANTIZE and FAKE_QUANT are removed; ranges of activations are stored as minimum and maximum.

    Args:
        model: Quantized or partly quantized model.
        output: Path of a .tflite to write.

    Raises:
        GraphError: The scales of a constant do not fit its shape.
        OutputError: The file cannot be written.
    """
    original = read_model(model)
    result = dequantized(original)
    return DequantizeResult(result, original, _write_if_requested(result, output))


def _write_if_requested(model: Model, output: str | Path | None) -> Path | None:
    """Write a model if a path is given, and return the path."""
    if output is None:
        return None
    write_model(model, output)
    return Path(output)
