"""`tflq.inspect`: what a model holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from tflq.api.read_model import ModelSource, name_of, read_with_content
from tflq.api.result import TableResult, picked
from tflq.converters.tflite.extras import ModelExtra
from tflq.diagnosis.inspection import GraphFacts, Refusals, refusals
from tflq.diagnosis.inspection import inspect as facts_of
from tflq.diagnosis.wide_multipliers import WideMultiplier, wide_multipliers
from tflq.graph import Affine, Model, Tensor
from tflq.graph.arena import tensor_bytes as tensor_bytes
from tflq.quoting import Json
from tflq.schemas.tflite.codec import describe_trailing


@dataclass(frozen=True)
class InspectResult(TableResult):
    """What a model holds.

    Attributes:
        name: of the model.
        size_bytes: of its file; None where it was not read from one.
        model: as it was read.
        graphs: operators, tensors, sizes, MACs and memory of each graph.
        refused: what each target would refuse of the main graph.
        wide_multipliers: layers whose results in TFLite depend on the processor.
    """

    name: str
    size_bytes: int | None
    model: Model
    graphs: tuple[GraphFacts, ...]
    refused: tuple[Refusals, ...]
    wide_multipliers: tuple[WideMultiplier, ...]

    @property
    def trailing(self) -> str | None:
        """What follows the model in its file, in words; None where nothing does."""
        extra = self.model.extra
        content = extra.trailing_bytes if isinstance(extra, ModelExtra) else None
        return None if content is None else describe_trailing(content)

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return the operators of the main graph."""
        return [asdict(operator) for operator in self.graphs[0].operators]

    def report(self) -> Mapping[str, Json]:
        """Return all facts."""
        return {
            "model": self.name,
            "size_bytes": self.size_bytes,
            "schema_version": self.model.version,
            "description": self.model.description,
            "trailing": self.trailing,
            "graphs": [_graph(graph) for graph in self.graphs],
            "signatures": [picked(s, "key", "graph", "inputs", "outputs") for s in self.model.signatures],
            "metadata": {name: len(data) for name, data in self.model.metadata.items()},
            "refused": {r.target: r.reasons for r in self.refused},
            "wide_multipliers": [asdict(w) for w in self.wide_multipliers],
        }


def inspect(model: ModelSource) -> InspectResult:
    """Return what a model holds.

    Operators, tensors, shapes, quantization, sizes, multiply-accumulates by precision, the memory of activations over
    the order of execution, signatures, metadata, operators without a kernel, and what each target would refuse.

    Raises:
        InputError, FormatError, UnsupportedError: a model that cannot be read.
    """
    found, content = read_with_content(model)
    graphs, refused = facts_of(found), refusals(found.main)
    size_bytes = None if content is None else len(content)
    return InspectResult(name_of(model), size_bytes, found, graphs, refused, wide_multipliers(found))


def _graph(graph: GraphFacts) -> Mapping[str, Json]:
    buffers: list[Json] = [
        {"tensor": b.tensor, "first": b.first, "last": b.last, "size_bytes": b.size, "offset": b.offset}
        for b in graph.arena.buffers
    ]
    arena = picked(graph.arena, "peak_bytes", "peak_operator", "planned_bytes", "live_bytes")
    return {
        **picked(graph, "name", "inputs", "outputs", "constant_bytes"),
        "arena": {**arena, "buffers": buffers},
        **picked(graph, "macs", "macs_by_precision"),
        "operators": [asdict(operator) for operator in graph.operators],
        "tensors": [_tensor(tensor) for tensor in graph.tensors],
        "without_kernel": {**graph.missing},
    }


def _tensor(tensor: Tensor) -> Mapping[str, Json]:
    affine, limits = tensor.quantization, tensor.range
    quantization: Json = None if affine is None else type(affine).__name__.lower()
    if isinstance(affine, Affine):
        scale, zero_point = affine.scale.tolist(), affine.zero_point.tolist()
        quantization = {"scale": scale, "zero_point": zero_point, "axis": affine.axis}
    return {
        "name": tensor.name,
        "dtype": tensor.dtype.value,
        **picked(tensor, "shape", "shape_signature", "is_constant", "is_variable"),
        "size_bytes": tensor_bytes(tensor),
        "quantization": quantization,
        "range": None if limits is None else {"minimum": limits.minimum.tolist(), "maximum": limits.maximum.tolist()},
    }
