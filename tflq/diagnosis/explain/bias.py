"""The bias of a layer in an explanation: the bias of the graph, with the zero points that lowering folds into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tflq.diagnosis.explain.steps import Index, Step, Value
from tflq.graph import Affine, Operands, Tensor
from tflq.graph.operators import OPERATORS


def with_folded_bias(steps: Sequence[Step], operator: str, operands: Operands, place: Index) -> list[Step]:
    """Return the steps; the step "bias" has a formula if its value is not the bias of the graph.

    sum((x - Z_x) w) + b = sum(x w) + (b - Z_x sum(w)): the second term is stored in place of b.

    Args:
        steps: Steps of one element of a layer.
        operator: Operator of the layer.
        operands: Tensors of the layer.
        place: Index of the element; its last number is the output channel.
    """
    row = OPERATORS.get(operator)
    number = next((n for n, step in enumerate(steps) if step.label == "bias" and not step.formula), None)
    if row is None or row.bias is None or number is None or not isinstance(steps[number].value, int):
        return list(steps)
    formula = _formula(
        steps, steps[number].value, _of_graph(operands.optional(row.bias), place), operands.input(row.data)
    )
    return [replace(step, formula=formula) if n == number else step for n, step in enumerate(steps)]


def _of_graph(bias: Tensor | None, place: Index) -> int | None:
    if bias is None:
        return 0
    if bias.data is None or bias.data.ndim != 1 or bias.data.dtype.kind != "i":
        return None
    return int(bias.data[place[-1] if bias.data.size > 1 else 0])


def _formula(steps: Sequence[Step], value: Value, bias: int | None, data: Tensor) -> str:
    weights = next((step.value for step in steps if step.label == "weights"), None)
    if bias is None or bias == value or weights is None or not isinstance(data.quantization, Affine):
        return ""
    zero_point, total = int(data.quantization.zero_point[0]), sum(_numbers(weights))
    if value == bias - zero_point * total:
        return f"bias {bias} of the graph, zero point folded in: {bias} - {_operand(zero_point)} * {_operand(total)}"
    return f"bias {bias} of the graph, zero points of input and output folded in"


def _operand(number: float) -> str:
    return f"({number})" if number < 0 else f"{number}"


def _numbers(value: Value) -> Iterator[int]:
    if isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int):
        yield value
