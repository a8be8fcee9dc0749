"""Ranges of what layers compute within themselves and quantise: coordinates of boxes, squares, logarithms.

A node lists such tensors as its intermediates; they need ranges as outputs do. Each layer's row says how they follow
from its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.converters.aipu.operators import LAYERS
from tflq.graph import Array, Attributes, Node, Operands


def internal_names(operator: str, attributes: Attributes) -> tuple[str, ...]:
    """Return the names of a layer's intermediates, in order: by its method, of a recurrent layer by its time steps."""
    found = LAYERS[operator].internal
    if found is None or (found.methods and attributes.text("method", "") not in found.methods):
        return ()
    steps = attributes.integer("time_steps", 0) if found.each_step else 0
    return (*found.names, *(f"{found.each_step}_{t}" for t in range(steps)))


def internal_values(node: Node, operands: Operands, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return the real numbers whose ranges a layer's intermediates get.

    Args:
        node: of a float graph.
        operands: its tensors; constants are real numbers.
        inputs: real[S, *shape] of each input that is no constant.
    """
    found = LAYERS[node.operator].internal
    return () if found is None else found.values(node, operands, inputs)
