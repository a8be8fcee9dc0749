"""`tflq inspect`: what a model holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tflq.api.inspect import InspectResult, inspect, tensor_bytes
from tflq.cli import output
from tflq.cli.options import MODEL_ARGUMENT, reporting
from tflq.diagnosis.inspection import GraphFacts, OperatorFacts, Refusals, describe_quantization

if TYPE_CHECKING:
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

    Operators, tensors, shapes, quantization, sizes, multiply-accumulates by precision, the memory of activations over
    the order of execution, signatures, metadata, operators without a kernel, and what each target would refuse.
    """
    found = inspect(model)
    output.show(found, as_json, lambda: _print(found, show_tensors))


def _print(found: InspectResult, show_tensors: bool) -> None:
    output.pairs(_head(found))
    for number, graph in enumerate(found.graphs):
        _print_graph(number, graph, show_tensors)
    output.lines(map(str, found.wide_multipliers))
    _print_refusals(found.refused)
    _print_rest(found.model)


def _head(found: InspectResult) -> dict[str, str]:
    size, version = output.size(found.size_bytes or 0), str(found.model.version)
    rows = {"model": found.name, "size": size, "schema version": version}
    more = {"description": found.model.description, "trailing": found.trailing}
    return {**rows, **{name: text for name, text in more.items() if text}}


def _print_graph(number: int, graph: GraphFacts, show_tensors: bool) -> None:
    output.line()
    output.line(f"graph {number} '{graph.name}': {len(graph.operators)} operators, {len(graph.tensors)} tensors")
    for role, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for t in indices:
            tensor = graph.tensors[t]
            quantization = describe_quantization(tensor.quantization) or "not quantized"
            output.line(f"  {role:<6} {t} '{tensor.name}' {_type(tensor)}, {quantization}")
    output.line()
    columns = ("#", "operator", "output", "quantization", "constants", "MACs", "activations", "")
    rows = [_operator_row(graph, operator) for operator in graph.operators]
    rows.append(("", "total", "", "", output.size(graph.constant_bytes), f"{graph.macs:,}", "", ""))
    output.table(columns, rows, right=("#", "constants", "MACs", "activations"), least=("", "quantization"))
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
    rows = [
        (
            str(t),
            output.short(tensor.name),
            _type(tensor),
            "constant" if tensor.is_constant else "variable" if tensor.is_variable else "",
            output.size(tensor_bytes(tensor)),
            describe_quantization(tensor.quantization),
        )
        for t, tensor in enumerate(graph.tensors)
    ]
    output.table(("#", "tensor", "type", "kind", "size", "quantization"), rows, right=("#", "size"))


def _print_rest(model: Model) -> None:
    for signature in model.signatures:
        names = f"{', '.join(signature.inputs)} -> {', '.join(signature.outputs)}"
        output.line(f"signature '{signature.key}' of graph {signature.graph}: {names}")
    for name, data in model.metadata.items():
        output.line(f"metadata '{name}': {output.size(len(data))}")


def _operator_row(graph: GraphFacts, operator: OperatorFacts) -> tuple[str, ...]:
    outputs = [graph.tensors[t] for t in operator.outputs]
    live = graph.arena.live_bytes[operator.index]
    return (
        str(operator.index),
        operator.operator,
        ", ".join(map(_type, outputs)),
        describe_quantization(outputs[0].quantization) if outputs else "",
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
