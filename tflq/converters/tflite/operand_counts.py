"""Checks how many inputs and outputs an operator of a .tflite file has, and which inputs are absent."""

from __future__ import annotations

from tflq.errors import GraphError
from tflq.graph import ABSENT, Node
from tflq.graph.operators import row_of


def check_counts(node: Node, where: str) -> None:
    """Check the params of a node's inputs and outputs; operators that take any are not looked at.

    Raises:
        GraphError: another number than TFLite's kernel takes, or an absent input that it needs.
    """
    row = row_of(node)
    for what, tensors, allowed in (("inputs", node.inputs, row.inputs), ("outputs", node.outputs, row.outputs)):
        if allowed is not None and (len(tensors) not in allowed if allowed else not tensors):
            names = " or ".join(map(str, allowed)) or "one or more"
            raise GraphError(f"{where}: found {len(tensors)} {what}; {node.operator} has {names}")
    if ABSENT in node.inputs and row.inputs is not None and not row.optional:
        raise GraphError(f"{where}: input {node.inputs.index(ABSENT)} is absent; {node.operator} needs it")
