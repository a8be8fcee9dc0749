"""Lowering: each node gets the integers that its kernel decided, and constants that can be folded are folded."""

from __future__ import annotations

from dataclasses import replace

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, Graph, Node
from tflq.interpreter.registry import Kernel, Run, arithmetic, arithmetic_of, has_kernel, kernel


def lower(graph: Graph, default_arithmetic: str = "tflite") -> Graph:
    """Return the graph with `arithmetic` and `integers` in every node.

    A node whose inputs are all constant, or whose result depends on shapes only, is evaluated here; its outputs become
    constants.

    Args:
        graph: any graph; nodes that name an arithmetic keep it.
        default_arithmetic: for nodes that name none.

    Raises:
        UnsupportedError: operators or types without a kernel; all such operators are listed at once.
        GraphError: an attribute or operand that contradicts the operator.
    """
    lowered = graph.copy()
    _refuse_missing(lowered, default_arithmetic)
    for index in range(len(lowered.nodes)):
        lowered.nodes[index], found = lower_node(lowered, index, default_arithmetic)
        inputs = lowered.operands(index).inputs
        if inputs and (found.shared_result or all(t is None or t.is_constant for t in inputs)):
            _fold(lowered, index, found.run)
    return lowered


def lower_node(graph: Graph, index: int, default_arithmetic: str) -> tuple[Node, Kernel]:
    """Return one node with its arithmetic and integers, and the kernel that runs it. Raises as `lower`."""
    node, operands = graph.nodes[index], graph.operands(index)
    name = arithmetic_of(node, operands, default_arithmetic)
    found = kernel(name, node.operator)
    try:
        integers = found.lower(node, operands)
    except (GraphError, UnsupportedError) as error:
        if str(error).startswith(operands.where):
            raise
        raise type(error)(f"{operands.where}: {error}") from None
    return replace(node, arithmetic=name, integers=integers), found


def _refuse_missing(graph: Graph, default: str) -> None:
    missing: dict[str, list[str]] = {}
    for index, node in enumerate(graph.nodes):
        name = arithmetic_of(node, graph.operands(index), default)
        if not has_kernel(name, node.operator):
            operator = f"custom {node.custom_code}" if node.custom_code else node.operator
            missing.setdefault(f"{operator} in arithmetic '{name}'", []).append(str(index))
    if missing:
        lines = "; ".join(f"{what} (operator {', '.join(numbers)})" for what, numbers in missing.items())
        known = ", ".join(sorted(arithmetic(default).kernels))
        raise UnsupportedError(f"no kernel for {lines}; arithmetic '{default}' has {known}")


def _fold(graph: Graph, index: int, run: Run) -> None:
    node = graph.nodes[index]
    results = run(
        node.integers, *(shared(t.data) if t and t.data is not None else None for t in graph.operands(index).inputs)
    )
    for t, result in zip(node.outputs, results, strict=True):
        value = result[0]
        value.setflags(write=False)
        graph.tensors[t] = replace(graph.tensors[t], data=value, shape=value.shape)


def shared(data: Array) -> Array:
    """Give a constant the leading axis of length 1 that kernels expect."""
    return data[None]
