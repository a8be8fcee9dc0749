"""Lowering: each node gets the integers that its kernel decided, and constants that can be folded are folded."""

from __future__ import annotations

from dataclasses import replace

from tflq import limits
from tflq.errors import GraphError, RuntimeOperandError, UnsupportedError
from tflq.graph import Array, Graph, Node
from tflq.interpreter.execution.control import CONTROL
from tflq.interpreter.execution.deferred import Deferred, placed
from tflq.interpreter.operands.sound_scales import require_sound_scales
from tflq.interpreter.registry import Kernel, Run, arithmetic, arithmetic_of, has_kernel, kernel, kernel_name

_WITHOUT_SCALES = ("tflq.interpreter.kernels.move.", "tflq.interpreter.kernels.plain.")
"""Kernels that take codes as they are."""


def lower(graph: Graph, default_arithmetic: str = "tflite", is_called: bool = False) -> Graph:
    """Return the graph with `arithmetic` and `params` in every node.

    A node whose inputs are all constant, or whose result depends on shapes only, is evaluated here; its outputs become
    constants. A node that needs values or shapes which are computed at run time carries `Deferred` instead of integers.

    Args:
        graph: any graph; nodes that name an arithmetic keep it.
        default_arithmetic: for nodes that name none.
        is_called: whether other graphs run this one, with inputs of any shape.

    Raises:
        UnsupportedError: operators or types without a kernel, and what kernels refuse; all operators are listed at
            once.
        GraphError: an attribute or operand that contradicts the operator.
    """
    lowered = graph.copy()
    _refuse_missing(lowered, default_arithmetic)
    moving = set(graph.inputs) if is_called else set()
    refused: list[UnsupportedError] = []
    folded = 0
    for index, node in enumerate(lowered.nodes):
        if node.operator in CONTROL:
            lowered.nodes[index] = replace(node, arithmetic=default_arithmetic, params=Deferred("runs other graphs"))
            moving.update(node.outputs)
            continue
        unsure = not moving.isdisjoint(node.inputs)
        try:
            lowered.nodes[index], found = lower_node(lowered, index, default_arithmetic, unsure)
        except UnsupportedError as error:
            refused.append(error)
            continue
        if unsure or isinstance(lowered.nodes[index].params, Deferred):
            moving.update(node.outputs)
        elif _is_foldable(lowered, index, found):
            folded = _fold(lowered, index, found.run, folded)
    if refused:
        raise refused[0] if len(refused) == 1 else UnsupportedError("; ".join(map(str, refused)))
    return lowered


def lower_node(graph: Graph, index: int, default_arithmetic: str, unsure: bool = False) -> tuple[Node, Kernel]:
    """Return one node with its arithmetic and integers, and the kernel that runs it.

    Args:
        graph: the graph.
        index: of the node.
        default_arithmetic: where the node names none.
        unsure: whether the shapes of its inputs may change at run time: what does not fit now may fit then.

    Raises:
        UnsupportedError, GraphError: as `lower`.
    """
    node, operands = graph.nodes[index], graph.operands(index)
    name = arithmetic_of(node, operands, default_arithmetic)
    found = kernel(name, kernel_name(node))
    params: object
    try:
        if not found.module.startswith(_WITHOUT_SCALES):
            require_sound_scales(operands)
        params = found.lower(node, operands)
        if found.per_sample and not all(t is None or t.is_constant for t in operands.inputs):
            params = Deferred("the shape of its result depends on values")
    except RuntimeOperandError as error:
        params = Deferred(f"input {error.position} is computed at run time")
    except (GraphError, UnsupportedError) as error:
        if not unsure:
            raise placed(error, operands.where) from None
        params = Deferred(str(error))
    return replace(node, arithmetic=name, params=params), found


def _refuse_missing(graph: Graph, default: str) -> None:
    missing: dict[str, list[str]] = {}
    for index, node in enumerate(graph.nodes):
        name = arithmetic_of(node, graph.operands(index), default)
        if node.operator not in CONTROL and not has_kernel(name, kernel_name(node)):
            operator = f"custom {node.custom_code}" if node.custom_code else node.operator
            missing.setdefault(f"{operator} in arithmetic '{name}'", []).append(str(index))
    if missing:
        lines = "; ".join(f"{what} (operator {', '.join(numbers)})" for what, numbers in missing.items())
        known = ", ".join(sorted(arithmetic(default).kernels))
        raise UnsupportedError(f"no kernel for {lines}; arithmetic '{default}' has {known}")


def _is_foldable(graph: Graph, index: int, found: Kernel) -> bool:
    inputs = graph.operands(index).inputs
    constant = all(t is None or t.is_constant for t in inputs)
    return bool(inputs) and not found.stateful and (found.shared_result or constant)


def _fold(graph: Graph, index: int, run: Run, folded: int) -> int:
    """Make the outputs of a node constants; return the bytes of all that was folded, `folded` before it."""
    node = graph.nodes[index]
    results = run(
        node.params, *(shared(t.data) if t and t.data is not None else None for t in graph.operands(index).inputs)
    )
    for t, result in zip(node.outputs, results, strict=True):
        value = result[0]
        value.setflags(write=False)
        graph.tensors[t] = replace(graph.tensors[t], data=value, shape=value.shape)
        folded += value.nbytes
    limits.current().require("max_memory", folded, f"bytes of constants computed up to {graph.where(index)}")
    return folded


def shared(data: Array) -> Array:
    """Give a constant the leading axis of length 1 that kernels expect."""
    return data[None]
