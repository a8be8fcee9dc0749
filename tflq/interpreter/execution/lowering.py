"""Lowering: each node of a graph with settled shapes gets the params that its kernel decided.

One node of a program, ready to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Graph, Node
from tflq.graph.graph import find_workspaces
from tflq.interpreter.execution.control import CONTROL, require_handle
from tflq.interpreter.execution.deferred import Deferred, DeferredNode
from tflq.interpreter.execution.settle import lower_node, settle
from tflq.interpreter.execution.values import Value
from tflq.interpreter.registry import Kernel, arithmetic, arithmetic_of, has_kernel, kernel, kernel_name


def lower(graph: Graph, default_arithmetic: str = "tflite", is_called: bool = False) -> Graph:
    """Return the graph with `arithmetic` and `params` in every node.

    `settle` first determines all shapes, and turns values known before the run into constants (settle.py). A node that
    needs values or shapes which are computed at run time carries `Deferred` in place of params.

    Args:
        graph: any graph; nodes that name an arithmetic keep it.
        default_arithmetic: Arithmetic for nodes that name none.
        is_called: whether other graphs run this one, with inputs of any shape.

    Raises:
        UnsupportedError: operators or types without a kernel, and operands that kernels refuse; all operators are
            listed at
            once.
        GraphError: an attribute or operand that contradicts the operator.
    """
    require_kernels(graph, default_arithmetic)
    for t in sorted(find_workspaces(graph)):
        raise UnsupportedError(f"tensor '{graph.tensors[t].name}' is memory of a device, which no operator writes")
    settled = settle(graph, default_arithmetic, is_called)
    leave = arithmetic(default_arithmetic).leave
    left = {} if leave is None else leave(graph)
    lowered = settled.graph
    refused: list[UnsupportedError] = []
    for index, node in enumerate(lowered.nodes):
        if node.operator in CONTROL:
            require_handle(node, lowered.operands(index))
            lowered.nodes[index] = replace(node, arithmetic=default_arithmetic, params=Deferred("runs other graphs"))
        elif node is graph.nodes[index]:  # not lowered on the way
            name = left.get(index) or arithmetic_of(node, lowered.operands(index), default_arithmetic)
            is_open = not settled.open.isdisjoint(node.inputs)
            try:
                lowered.nodes[index] = lower_node(lowered, index, name, kernel(name, kernel_name(node)), is_open)
            except UnsupportedError as error:
                refused.append(error)
    if refused:
        raise refused[0] if len(refused) == 1 else UnsupportedError("; ".join(map(str, refused)))
    return lowered


def require_kernels(graph: Graph, default: str) -> None:
    """Check that there is a kernel for every node.

    Args:
        graph: any graph.
        default: the arithmetic of nodes that name none.

    Raises:
        UnsupportedError: operators without one, all of them in one message.
    """
    missing: dict[str, list[str]] = {}
    for index, node in enumerate(graph.nodes):
        name = arithmetic_of(node, graph.operands(index), default)
        if node.operator not in CONTROL and not has_kernel(name, kernel_name(node)):
            operator = f"custom {node.custom_code}" if node.custom_code else node.operator
            missing.setdefault(f"{operator} in arithmetic '{name}'", []).append(str(index))
    if missing:
        lines = "; ".join(f"{what} (operator {', '.join(numbers)})" for what, numbers in missing.items())
        known = f"arithmetic '{default}' has {', '.join(sorted(arithmetic(default).kernels))} "
        if all(what.startswith("custom ") for what in missing):  # a device's or a user's operator: no name is near
            known = (
                "`inspect`, `diff` and `cut` open the file; another program runs the operator, or a kernel of yours "
            )
        raise UnsupportedError(f"no kernel for {lines}; {known}(docs/internals/extending.md: how to add one)")


@dataclass(frozen=True)
class Step:
    """One node of a program.

    Attributes:
        index: Index of the node.
        node: lowered.
        kernel: None for operators that the engine itself executes.
        deferred: lowers the node at run time, for other operands and shapes than are known; None without a kernel.
        shapes: (position, shape) of the computed inputs that the integers were decided for: the shapes that the file
            states, which may be wrong; None if they are decided when the node runs.
        release: tensors that are not needed after this step.
    """

    index: int
    node: Node
    kernel: Kernel | None
    deferred: DeferredNode | None
    shapes: tuple[tuple[int, tuple[int, ...]], ...] | None
    release: tuple[int, ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """The tensors that it reads and writes."""
        return (*self.node.inputs, *self.node.outputs)

    def fits(self, operands: Sequence[Value | None]) -> bool:
        """Whether operands have the shapes that the integers were decided for."""
        if self.shapes is None:
            return False
        for position, shape in self.shapes:
            value = operands[position]
            if not (isinstance(value, np.ndarray) and value.shape[1:] == shape):
                return False
        return True
