"""Quantizes a model and holds the written file, run by TFLite, against tflq's own integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.single_op import assert_same_bits
from tflq.converters.calibration import calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import model_from_bytes
from tflq.converters.tflite_quantizer import TFLITE
from tflq.graph import Affine, Array, Graph, Model
from tflq.interpreter import Engine
from tflq.oracle import Oracle


@dataclass(frozen=True)
class Quantized:
    """A quantized model: the target's graph, its file, and the graph that the file holds."""

    graph: Graph
    content: bytes
    read: Graph

    def encode(self, inputs: Sequence[Array]) -> list[Array]:
        """Return samples in the encoding of the inputs."""
        tensors = [self.read.tensors[t] for t in self.read.inputs]
        return [
            TFLITE.encode(x, t) if isinstance(t.quantization, Affine) else x
            for x, t in zip(inputs, tensors, strict=True)
        ]


def quantize(model: Model, samples: Sequence[Array] | None, *assignments: str, layers: Sequence[str] = ()) -> Quantized:
    """Calibrate on samples of real numbers, quantize and write."""
    graph = model.main if samples is None else calibrate(model.main, list(samples))
    quantized = TFLITE.quantize(graph, parse_settings(TFLITE.settings, assignments, layers))
    (content,) = TFLITE.emit(quantized, model).values()
    return Quantized(quantized, content, model_from_bytes(content, "quantized model").main)


def same_in_tflite(found: Quantized, samples: Sequence[Array], oracle: Oracle, integers_only: bool = False) -> None:
    """Assert that every tensor that TFLite computes of the file is ours, bit for bit.

    `integers_only` leaves out floats, for models with float operators that use the host's mathematical functions.
    """
    codes = found.encode(samples)
    computed = [t for node in found.read.nodes for t in node.outputs]
    ours = Engine(found.read).run(codes, computed)
    judged = oracle.run(found.content, codes)
    for t in computed:
        if t in judged.tensors and not (integers_only and found.read.tensors[t].dtype.is_floating):
            assert_same_bits(ours[t], judged.tensors[t], f"tensor {t} '{found.read.tensors[t].name}'")
    lowered = Engine(found.graph).run(codes)
    for ours_t, read_t in zip(found.graph.outputs, found.read.outputs, strict=True):
        if read_t in ours and ours[read_t].dtype != object:  # shapes that differ between samples
            assert_same_bits(lowered[ours_t], ours[read_t], "the graph in memory")


def engines(found: Quantized) -> list[str]:
    """Return how each node runs; conversions and nodes without real numbers are left out."""
    return [e for node in found.graph.nodes if (e := node.attributes.text("engine", ""))]
