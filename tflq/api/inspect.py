"""`tflq.inspect`: the content of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from tflq.api.read_model import ModelSource, name_of, read_with_content
from tflq.api.result import Result, select_attributes
from tflq.converters.tflite.extras import ModelExtra
from tflq.diagnosis.inspection import GraphFacts, Refusals, refusals
from tflq.diagnosis.inspection import inspect as facts_of
from tflq.diagnosis.wide_multipliers import WideMultiplier, wide_multipliers
from tflq.graph import Model
from tflq.quoting import Json
from tflq.report import Column, Table, Verdict
from tflq.report.inspection import graph_tables, refusal_table, rest_table
from tflq.schemas.tflite.codec import describe_trailing
from tflq.units import size


@dataclass(frozen=True)
class InspectResult(Result):
    """Content of a model.

    Attributes:
        name: Name of the model.
        size_bytes: File size in bytes; None if the model was built in memory.
        model: Model as read from its file.
        graphs: Operators, tensors, sizes, MACs and memory of each graph.
        refused: Reasons of each target to refuse the main graph.
        wide_multipliers: Layers with results that depend on the processor in TFLite.
    """

    FACTS = (
        Column("model", "model", get="name"),
        Column("size_bytes", "size", text=lambda r: size(r.size_bytes or 0)),
        Column("schema_version", "schema version", get="model.version"),
        Column("description", "description", get="model.description"),
        Column("trailing", "trailing"),
        Column("graphs", get=lambda r: [_graph(graph) for graph in r.graphs]),
        Column(
            "signatures",
            get=lambda r: [select_attributes(s, "key", "graph", "inputs", "outputs") for s in r.model.signatures],
        ),
        Column("metadata", get=lambda r: {name: len(data) for name, data in r.model.metadata.items()}),
        Column("refused", get=lambda r: {one.target: one.reasons for one in r.refused}),
        Column("wide_multipliers", get=lambda r: [asdict(w) for w in r.wide_multipliers]),
    )

    MAIN = "operators"

    name: str
    size_bytes: int | None
    model: Model
    graphs: tuple[GraphFacts, ...]
    refused: tuple[Refusals, ...]
    wide_multipliers: tuple[WideMultiplier, ...]

    @property
    def trailing(self) -> str | None:
        """Description of the bytes after the model in its file; None without such bytes."""
        extra = self.model.extra
        content = extra.trailing_bytes if isinstance(extra, ModelExtra) else None
        return None if content is None else describe_trailing(content)

    @property
    def verdict(self) -> Verdict:
        """Number of operators, and number of operators without a kernel."""
        operators = [operator for graph in self.graphs for operator in graph.operators]
        lacking = sum(not operator.has_kernel for operator in operators)
        macs = sum(graph.macs for graph in self.graphs)
        kernels = f"{lacking} without a kernel" if lacking else "every operator has a kernel"
        return Verdict("", len(operators), f"operators, {macs:,} MACs", advice=kernels)

    @property
    def notes(self) -> Sequence[str]:
        """Name, size, version, description."""
        return [f"{fact.heading}: {fact.cell(self)}" for fact in self.FACTS if fact.head and fact.cell(self)]

    def tables(self) -> Sequence[Table]:
        """Return the ends, operators and tensors of each graph, and the refusals of each target."""
        graphs = [table for number, graph in enumerate(self.graphs) for table in graph_tables(number, graph)]
        return [*graphs, rest_table(self.model, self.wide_multipliers), refusal_table(self.refused)]


def inspect(model: ModelSource) -> InspectResult:
    """Return the content of a model.

    Operators, tensors, shapes, quantization, sizes, multiply-accumulates by precision, memory of the activations over
    the order of execution, signatures, metadata, operators without a kernel, and the reasons of targets to refuse it.

    Raises:
        InputError, FormatError, UnsupportedError: The model cannot be read.
    """
    original, content = read_with_content(model)
    graphs, refused = facts_of(original), refusals(original.main)
    size_bytes = None if content is None else len(content)
    return InspectResult(name_of(model), size_bytes, original, graphs, refused, wide_multipliers(original))


def _graph(graph: GraphFacts) -> Mapping[str, Json]:
    buffers: list[Json] = [
        {"tensor": b.tensor, "first": b.first, "last": b.last, "size_bytes": b.size, "offset": b.offset}
        for b in graph.arena.buffers
    ]
    arena = select_attributes(graph.arena, "peak_bytes", "peak_operator", "planned_bytes", "live_bytes")
    return {
        **select_attributes(graph, "name", "inputs", "outputs", "constant_bytes"),
        "arena": {**arena, "buffers": buffers},
        **select_attributes(graph, "macs", "macs_by_precision"),
        "operators": graph_tables(0, graph)[1].records(),
        "tensors": graph_tables(0, graph)[2].records(),
        "without_kernel": {**graph.missing},
        "false_shapes": [
            {"tensor": name, "stored": stored, "computed": computed}
            for name, (stored, computed) in graph.false_shapes.items()
        ],
    }
