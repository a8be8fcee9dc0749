"""`tflq inspect`: what a model holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.common import MODEL_ARGUMENT, read_model, reporting

if TYPE_CHECKING:
    from tflq.analysis.inspection import GraphFacts, OperatorFacts, Refusals
    from tflq.graph import Model, Tensor

_SHOWN = 4
"""Tensors that are named where activations are largest."""
_BAR_WIDTH = 12


@click.command("inspect")
@MODEL_ARGUMENT
@click.option("--tensors", "show_tensors", is_flag=True, help="List every tensor, constants too.")
@reporting
def command(model: str, show_tensors: bool, as_json: bool) -> None:
    """Show what MODEL holds.

    Operators, tensors, shapes, quantisation, sizes, multiply-accumulates by precision, the memory of activations over
    the order of execution, signatures, metadata, operators without a kernel, and what each target would refuse.
    """
    from tflq.analysis.inspection import inspect, refusals

    found = read_model(model)
    graphs = inspect(found)
    refused = refusals(found.main)
    size_bytes = os.path.getsize(model)
    if as_json:
        output.json_report(_report(model, size_bytes, found, graphs, refused))
        return
    output.pairs(_head(model, size_bytes, found))
    for number, graph in enumerate(graphs):
        _print_graph(number, graph, show_tensors)
    _print_refusals(refused)
    _print_rest(found)


def _head(path: str, size_bytes: int, model: Model) -> dict[str, str]:
    rows = {"model": path, "size": output.size(size_bytes), "schema version": str(model.version)}
    return {**rows, "description": model.description} if model.description else rows


def _print_graph(number: int, graph: GraphFacts, show_tensors: bool) -> None:
    from tflq.analysis.inspection import describe_quantisation

    output.line()
    output.line(f"graph {number} '{graph.name}': {len(graph.operators)} operators, {len(graph.tensors)} tensors")
    for role, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for t in indices:
            tensor = graph.tensors[t]
            quantisation = describe_quantisation(tensor.quantisation) or "not quantised"
            output.line(f"  {role:<6} {t} '{tensor.name}' {_type(tensor)}, {quantisation}")
    output.line()
    columns = ("#", "operator", "output", "quantisation", "constants", "MACs", "activations", "")
    rows = [_operator_row(graph, operator) for operator in graph.operators]
    rows.append(("", "total", "", "", output.size(graph.constant_bytes), f"{graph.macs:,}", "", ""))
    output.table(columns, rows, right=("#", "constants", "MACs", "activations"))
    if graph.macs:
        output.line(f"MACs: {', '.join(f'{count:,} {kind}' for kind, count in graph.macs_by_precision.items())}")
    _print_arena(graph)
    for operator, nodes in graph.missing.items():
        output.line(f"no kernel for {operator}: operator {', '.join(map(str, nodes))}")
    if not graph.missing:
        output.line("every operator has a kernel")
    if show_tensors:
        output.line()
        _print_tensors(graph)


def _print_arena(graph: GraphFacts) -> None:
    """Print the peak with who is alive there, and the size of a plan."""
    arena = graph.arena
    if arena.peak_operator is None:
        return
    alive = arena.alive_at(arena.peak_operator)
    shown = ", ".join(f"'{output.short(graph.tensors[b.tensor].name)}' {output.size(b.size)}" for b in alive[:_SHOWN])
    more = f" and {len(alive) - _SHOWN} more" if len(alive) > _SHOWN else ""
    output.line(
        f"activations: at most {output.size(arena.peak_bytes)} at a time, at operator {arena.peak_operator}: "
        f"{shown}{more}; an arena of {output.size(arena.planned_bytes)} holds them"
    )


def _print_refusals(found: tuple[Refusals, ...]) -> None:
    output.line()
    taking = [r.target for r in found if not r.reasons]
    if taking:
        output.line(f"taken whole by {', '.join(taking)}")
    for refused in found:
        if refused.reasons:
            output.line(f"{refused.target} refuses {len(refused.reasons)}:")
        for reason in refused.reasons:
            output.line(f"  {reason}")


def _print_tensors(graph: GraphFacts) -> None:
    from tflq.analysis.arena import tensor_bytes
    from tflq.analysis.inspection import describe_quantisation

    rows = [
        (
            str(t),
            output.short(tensor.name),
            _type(tensor),
            "constant" if tensor.is_constant else "variable" if tensor.is_variable else "",
            output.size(tensor_bytes(tensor)),
            describe_quantisation(tensor.quantisation),
        )
        for t, tensor in enumerate(graph.tensors)
    ]
    output.table(("#", "tensor", "type", "kind", "size", "quantisation"), rows, right=("#", "size"))


def _print_rest(model: Model) -> None:
    for signature in model.signatures:
        names = f"{', '.join(signature.inputs)} -> {', '.join(signature.outputs)}"
        output.line(f"signature '{signature.key}' of graph {signature.graph}: {names}")
    for name, data in model.metadata.items():
        output.line(f"metadata '{name}': {output.size(len(data))}")


def _operator_row(graph: GraphFacts, operator: OperatorFacts) -> tuple[str, ...]:
    from tflq.analysis.inspection import describe_quantisation

    outputs = [graph.tensors[t] for t in operator.outputs]
    live = graph.arena.live_bytes[operator.index]
    return (
        str(operator.index),
        operator.operator,
        ", ".join(map(_type, outputs)),
        describe_quantisation(outputs[0].quantisation) if outputs else "",
        output.size(operator.constant_bytes) if operator.constant_bytes else "",
        f"{operator.macs:,}" if operator.macs else "",
        output.size(live),
        _bar(live, graph.arena.peak_bytes),
    )


def _bar(value: int, largest: int) -> str:
    return "\u2588" * round(_BAR_WIDTH * value / largest) if largest else ""


def _type(tensor: Tensor) -> str:
    shape = tensor.shape_signature or tensor.shape
    return f"{tensor.dtype.value}[{','.join('?' if size < 0 else str(size) for size in shape)}]"


def _report(
    path: str, size_bytes: int, model: Model, graphs: tuple[GraphFacts, ...], refused: tuple[Refusals, ...]
) -> dict[str, output.Json]:
    return {
        "model": path,
        "size_bytes": size_bytes,
        "schema_version": model.version,
        "description": model.description,
        "graphs": [_graph_report(graph) for graph in graphs],
        "signatures": [
            {"key": s.key, "graph": s.graph, "inputs": s.inputs, "outputs": s.outputs} for s in model.signatures
        ],
        "metadata": {name: len(data) for name, data in model.metadata.items()},
        "refused": {r.target: r.reasons for r in refused},
    }


def _graph_report(graph: GraphFacts) -> dict[str, output.Json]:
    return {
        "name": graph.name,
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "constant_bytes": graph.constant_bytes,
        "arena": {
            "peak_bytes": graph.arena.peak_bytes,
            "peak_operator": graph.arena.peak_operator,
            "planned_bytes": graph.arena.planned_bytes,
            "live_bytes": graph.arena.live_bytes,
            "buffers": [
                {"tensor": b.tensor, "first": b.first, "last": b.last, "size_bytes": b.size, "offset": b.offset}
                for b in graph.arena.buffers
            ],
        },
        "macs": graph.macs,
        "macs_by_precision": graph.macs_by_precision,
        "operators": [
            {
                "index": o.index,
                "operator": o.operator,
                "name": o.name,
                "version": o.version,
                "inputs": o.inputs,
                "outputs": o.outputs,
                "constant_bytes": o.constant_bytes,
                "macs": o.macs,
                "precision": o.precision,
                "has_kernel": o.has_kernel,
            }
            for o in graph.operators
        ],
        "tensors": [_tensor_report(tensor) for tensor in graph.tensors],
        "without_kernel": {**graph.missing},
    }


def _tensor_report(tensor: Tensor) -> dict[str, output.Json]:
    from tflq.analysis.arena import tensor_bytes
    from tflq.graph import Affine

    report: dict[str, output.Json] = {
        "name": tensor.name,
        "dtype": tensor.dtype.value,
        "shape": tensor.shape,
        "shape_signature": tensor.shape_signature,
        "is_constant": tensor.is_constant,
        "is_variable": tensor.is_variable,
        "size_bytes": tensor_bytes(tensor),
        "quantisation": None,
        "range": None,
    }
    if isinstance(tensor.quantisation, Affine):
        affine = tensor.quantisation
        report["quantisation"] = {
            "scale": affine.scale.tolist(),
            "zero_point": affine.zero_point.tolist(),
            "axis": affine.axis,
        }
    elif tensor.quantisation is not None:
        report["quantisation"] = type(tensor.quantisation).__name__.lower()
    if tensor.range is not None:
        report["range"] = {"minimum": tensor.range.minimum.tolist(), "maximum": tensor.range.maximum.tolist()}
    return report
