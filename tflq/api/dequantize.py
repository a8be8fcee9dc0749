"""`tflq.dequantize`: the float network behind a quantised model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tflq.api.read_model import ModelSource, read_model
from tflq.api.result import WrittenModel, written
from tflq.converters.settled import dequantized
from tflq.quoting import Json


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
            "output": None if self.output is None else str(self.output),
            "size_bytes": self.size_bytes,
            "operators": sum(len(graph.nodes) for graph in new),
            "operators_before": sum(len(graph.nodes) for graph in old),
            "inputs_now_float": sum(before.dtype is not after.dtype for before, after in inputs),
        }


def dequantize(model: ModelSource, output: str | Path | None = None) -> DequantizeResult:
    """Return the float view of a model: float32 in place of every quantised tensor, constants dequantised.

    QUANTIZE, DEQUANTIZE and FAKE_QUANT go; ranges of activations stay as minimum and maximum.

    Args:
        model: quantised, or in part.
        output: a .tflite to write.

    Raises:
        GraphError: a constant whose scales do not fit its shape.
        OutputError: the file cannot be written.
    """
    found = read_model(model)
    result = dequantized(found)
    return DequantizeResult(result, found, written(result, output))
