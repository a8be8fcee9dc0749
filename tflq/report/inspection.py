"""The tables of `inspect`: ends, operators and tensors of a graph, refusals of targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tflq.diagnosis.inspection import GraphFacts, OperatorFacts, Refusals, describe_quantization
from tflq.diagnosis.wide_multipliers import WideMultiplier
from tflq.graph import Affine, Model, Tensor
from tflq.graph.arena import tensor_bytes
from tflq.quoting import Json
from tflq.report.table import Column, Table, identifier, keys, number
from tflq.units import size

_SHOWN = 4
"""Tensors that are named at the peak of the activations."""
_BAR_WIDTH = 12


def graph_tables(index: int, graph: GraphFacts) -> list[Table]:
    """Return the inputs and outputs, the operators, and the tensors of a graph."""
    title = f"Graph {index} '{graph.name}': {len(graph.operators)} operators, {len(graph.tensors)} tensors"
    ends = [("input", t) for t in graph.inputs] + [("output", t) for t in graph.outputs]
    tensors = [{"index": t, "tensor": tensor} for t, tensor in enumerate(graph.tensors)]
    return [
        Table("", _ends(graph), ends, title),
        Table("operators", _operators(graph), graph.operators, "Operators", _graph_notes(graph), in_json=False),
        Table("tensors", _TENSORS, tensors, "Tensors", terminal="on request", in_json=False),
    ]


def refusal_table(refused: Sequence[Refusals]) -> Table:
    """Return the reasons of each target that refuses operators."""
    taking = [one.target for one in refused if not one.reasons]
    rows = [(one.target, reason) for one in refused for reason in one.reasons]
    columns = (identifier("", "target", lambda row: row[0]), Column("", "refuses", get=lambda row: row[1]))
    return Table("", columns, rows, "Targets", [f"taken whole by {', '.join(taking)}"] if taking else [])


def rest_table(model: Model, wide: Sequence[WideMultiplier]) -> Table:
    """Return wide multipliers, signatures and metadata as sentences."""
    signatures = [
        f"signature '{s.key}' of graph {s.graph}: {', '.join(s.inputs)} -> {', '.join(s.outputs)}"
        for s in model.signatures
    ]
    metadata = [f"metadata '{name}': {size(len(data))}" for name, data in model.metadata.items()]
    return Table(notes=[*map(str, wide), *signatures, *metadata])


def _graph_notes(graph: GraphFacts) -> list[str]:
    """Return totals, the peak of the activations with its tensors, and operators without a kernel."""
    notes = [f"constants: {size(graph.constant_bytes)}"]
    if graph.macs:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in graph.macs_by_precision.items())
        notes.append(f"MACs: {graph.macs:,}: {kinds}")
    arena = graph.arena
    if arena.peak_operator is not None:
        alive = arena.alive_at(arena.peak_operator)
        shown = ", ".join(f"'{graph.tensors[b.tensor].name}' {size(b.size)}" for b in alive[:_SHOWN])
        more = f" and {len(alive) - _SHOWN} more" if len(alive) > _SHOWN else ""
        notes.append(
            f"activations: at most {size(arena.peak_bytes)} at a time, at operator {arena.peak_operator}: "
            f"{shown}{more}; an arena of {size(arena.planned_bytes)} holds them"
        )
    for operator, nodes in graph.missing.items():
        notes.append(f"no kernel for {operator}: operator {', '.join(map(str, nodes))}")
    notes += (
        f"false stored shape: '{name}' {list(stored)}, computed {list(computed)}; TensorFlow Lite Micro trusts it: "
        f"`tflq cut --settled` writes the computed one"
        for name, (stored, computed) in graph.false_shapes.items()
    )
    return notes


def _ends(graph: GraphFacts) -> tuple[Column, ...]:
    def tensor(row: tuple[str, int]) -> Tensor:
        return graph.tensors[row[1]]

    return (
        Column("", "end", get=lambda row: row[0]),
        number("", "#", lambda row: row[1]),
        identifier("", "tensor", lambda row: tensor(row).name),
        Column("", "type", get=lambda row: _type(tensor(row))),
        Column("", "quantization", get=lambda row: describe_quantization(tensor(row).quantization) or "not quantized"),
    )


def _operators(graph: GraphFacts) -> tuple[Column, ...]:
    live = graph.arena.live_bytes
    return (
        number("index", "#"),
        Column("operator", "operator"),
        *keys("name", "version", "inputs", "outputs"),
        Column("", "output", get=lambda o: ", ".join(_type(graph.tensors[t]) for t in o.outputs)),
        Column("", "quantization", get=partial(_quantization, graph), rank=4),
        number(
            "constant_bytes", "constants", form=lambda o: size(o.constant_bytes) if o.constant_bytes else "", rank=1
        ),
        number("macs", "MACs", form=lambda o: f"{o.macs:,}" if o.macs else "", rank=1, bar=True),
        *keys("precision", "has_kernel"),
        number("", "activations", lambda o: live[o.index], lambda o: size(live[o.index]), rank=2, bar=True),
        Column("", "activations over time", get=lambda o: _bar(live[o.index], graph.arena.peak_bytes), rank=5),
    )


def _quantization(graph: GraphFacts, operator: OperatorFacts) -> str:
    return describe_quantization(graph.tensors[operator.outputs[0]].quantization) if operator.outputs else ""


def _bar(value: int, largest: int) -> str:
    return "\u2588" * round(_BAR_WIDTH * value / largest) if largest else ""


def _type(tensor: Tensor) -> str:
    shape = tensor.shape_signature or tensor.shape
    return f"{tensor.dtype.value}[{','.join('?' if size < 0 else str(size) for size in shape)}]"


def _constants(operator: OperatorFacts) -> str:
    return size(operator.constant_bytes) if operator.constant_bytes else ""


def _bytes(row: Mapping[str, Tensor]) -> int:
    return tensor_bytes(row["tensor"])


def _quantization_text(row: Mapping[str, Tensor]) -> str:
    return describe_quantization(row["tensor"].quantization)


def _kind(row: Mapping[str, Tensor]) -> str:
    return "constant" if row["tensor"].is_constant else "variable" if row["tensor"].is_variable else ""


def _parameters(row: Mapping[str, Tensor]) -> Json:
    affine = row["tensor"].quantization
    if isinstance(affine, Affine):
        return {"scale": affine.scale.tolist(), "zero_point": affine.zero_point.tolist(), "axis": affine.axis}
    return None if affine is None else type(affine).__name__.lower()


def _range(row: Mapping[str, Tensor]) -> Json:
    limits = row["tensor"].range
    return None if limits is None else {"minimum": limits.minimum.tolist(), "maximum": limits.maximum.tolist()}


_TENSORS = (
    number("", "#", "index"),
    identifier("name", "tensor", "tensor.name"),
    Column("dtype", get="tensor.dtype.value"),
    Column("", "type", get=lambda row: _type(row["tensor"])),
    *(Column(key, get=f"tensor.{key}") for key in ("shape", "shape_signature", "is_constant", "is_variable")),
    Column("", "kind", get=_kind, rank=2),
    number("size_bytes", "size", _bytes, lambda row: size(_bytes(row)), rank=1),
    Column("quantization", "quantization", get=_parameters, text=_quantization_text),
    Column("range", get=_range),
)
