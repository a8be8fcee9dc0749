"""`tflq inspect`: what a model holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.common import MODEL_ARGUMENT, read_model, reporting

if TYPE_CHECKING:
    from tflq.analysis.inspection import GraphFacts, OperatorFacts
    from tflq.graph import Model, Tensor


@click.command("inspect")
@MODEL_ARGUMENT
@click.option("--tensors", "show_tensors", is_flag=True, help="List every tensor, constants too.")
@reporting
def command(model: str, show_tensors: bool, as_json: bool) -> None:
    """Show what MODEL holds.

    Operators, tensors, shapes, quantisation, sizes, multiply-accumulates, signatures, metadata, and operators without
    a kernel.
    """
    from tflq.analysis.inspection import inspect

    found = read_model(model)
    graphs = inspect(found)
    size_bytes = os.path.getsize(model)
    if as_json:
        output.json_report(_report(model, size_bytes, found, graphs))
        return
    output.pairs(_head(model, size_bytes, found))
    for number, graph in enumerate(graphs):
        _print_graph(number, graph, show_tensors)
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
    columns = ("#", "operator", "output", "quantisation", "constants", "MACs")
    rows = [_operator_row(graph, operator) for operator in graph.operators]
    rows.append(("", "total", "", "", output.size(graph.constant_bytes), f"{graph.macs:,}"))
    output.table(columns, rows, right=("#", "constants", "MACs"))
    output.line(f"largest sum of live activations: {output.size(graph.peak_activation_bytes)}")
    for operator, nodes in graph.missing.items():
        output.line(f"no kernel for {operator}: operator {', '.join(map(str, nodes))}")
    if not graph.missing:
        output.line("every operator has a kernel")
    if show_tensors:
        output.line()
        _print_tensors(graph)


def _print_tensors(graph: GraphFacts) -> None:
    from tflq.analysis.inspection import describe_quantisation, tensor_bytes

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
    return (
        str(operator.index),
        operator.operator,
        ", ".join(map(_type, outputs)),
        describe_quantisation(outputs[0].quantisation) if outputs else "",
        output.size(operator.constant_bytes) if operator.constant_bytes else "",
        f"{operator.macs:,}" if operator.macs else "",
    )


def _type(tensor: Tensor) -> str:
    shape = tensor.shape_signature or tensor.shape
    return f"{tensor.dtype.value}[{','.join('?' if size < 0 else str(size) for size in shape)}]"


def _report(path: str, size_bytes: int, model: Model, graphs: tuple[GraphFacts, ...]) -> dict[str, output.Json]:
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
    }


def _graph_report(graph: GraphFacts) -> dict[str, output.Json]:
    return {
        "name": graph.name,
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "constant_bytes": graph.constant_bytes,
        "peak_activation_bytes": graph.peak_activation_bytes,
        "macs": graph.macs,
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
                "has_kernel": o.has_kernel,
            }
            for o in graph.operators
        ],
        "tensors": [_tensor_report(tensor) for tensor in graph.tensors],
        "without_kernel": {**graph.missing},
    }


def _tensor_report(tensor: Tensor) -> dict[str, output.Json]:
    from tflq.analysis.inspection import tensor_bytes
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
