"""The target `tflite`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.converters.settings import Setting, Settings
from tflq.converters.targets import Artefacts, Specification
from tflq.converters.tflite_quantiser.check import problems_of
from tflq.converters.tflite_quantiser.emit import FILE, tflite_bytes
from tflq.converters.tflite_quantiser.options import SETTINGS
from tflq.converters.tflite_quantiser.quantise import ARITHMETIC, quantise_graph
from tflq.converters.tflite_quantiser.scales import codes
from tflq.converters.tflite_quantiser.specification import SPECIFICATION
from tflq.graph import Array, Graph, Model, Tensor


@dataclass(frozen=True)
class TfliteTarget:
    """TFLite itself; the fields of `tflq.converters.targets.Target`.

    Attributes:
        name: "tflite".
        summary: one line.
    """

    name: str
    summary: str

    @property
    def arithmetic(self) -> str:
        """Its kernels."""
        return ARITHMETIC

    @property
    def specification(self) -> Specification:
        """Types and fixed scales."""
        return SPECIFICATION

    @property
    def settings(self) -> Sequence[Setting]:
        """The keys that it knows."""
        return SETTINGS

    def check(self, graph: Graph, settings: Settings) -> tuple[str, ...]:  # noqa: ARG002
        """Return one line for each operator that runs other graphs."""
        return problems_of(graph)

    def quantise(self, graph: Graph, settings: Settings) -> Graph:
        """Return the quantised graph; raises as `quantise_graph`."""
        return quantise_graph(graph, settings)

    def encode(self, real: Array, tensor: Tensor) -> Array:
        """Return codes: clip(rha(f32(x / scale)) + zero_point), halves away from zero, as TFLite's QUANTIZE."""
        return codes(real, tensor.affine)

    def emit(self, graph: Graph, source: Model) -> Artefacts:
        """Return the .tflite file."""
        return {FILE: tflite_bytes(graph, source)}


TFLITE = TfliteTarget("tflite", "TFLite: int8 or 16x8 integers, weights only, or single operators in float")
