"""`tflq.cut` and `tflq.dequantize`: a model made of another, and the .tflite that it was written to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tflq.api.read_model import ModelSource, read_model
from tflq.api.result import Result
from tflq.api.samples import input_names
from tflq.converters.settled import dequantized, settled_model
from tflq.converters.tflite import write_model
from tflq.graph import Graph, Model, find_tensor
from tflq.graph import cut as cut_graph
from tflq.quoting import Json


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

    def report(self) -> Mapping[str, Json]:
        """Return the file and its size."""
        return {"output": None if self.output is None else str(self.output), "size_bytes": self.size_bytes}


class CutResult(WrittenModel):
    """The part."""

    def report(self) -> Mapping[str, Json]:
        """Return what is in the part and at its ends."""
        part = self.model.main
        return {
            **super().report(),
            "operators": [node.name for node in part.nodes],
            "operators_of_the_whole": len(self.whole.main.nodes),
            "inputs": _tensors(part, part.inputs),
            "outputs": _tensors(part, part.outputs),
        }


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


def _tensors(graph: Graph, indices: Sequence[int]) -> Json:
    found = [(t, graph.tensors[t]) for t in indices]
    return [{"index": t, "name": x.name, "dtype": x.dtype.value, "shape": x.shape} for t, x in found]


class DequantizeResult(WrittenModel):
    """The float network."""

    def report(self) -> Mapping[str, Json]:
        """Return its size against that of the whole."""
        old, new = self.whole.graphs, self.model.graphs
        inputs = [
            (before.tensors[a], after.tensors[b])
            for before, after in zip(old, new, strict=True)
            for a, b in zip(before.inputs, after.inputs, strict=True)
        ]
        return {
            **super().report(),
            "operators": sum(len(graph.nodes) for graph in new),
            "operators_before": sum(len(graph.nodes) for graph in old),
            "inputs_now_float": sum(before.dtype is not after.dtype for before, after in inputs),
        }


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
