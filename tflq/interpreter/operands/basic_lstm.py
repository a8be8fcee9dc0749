"""Operands of LSTM's basic cell: five inputs, four outputs; all gates in one product (docs/tflite.md).

Input [B, I], last output [B, U], weights [4 * U, I + U] of the gates input, cell, forget and output, bias [4 * U],
state [B, U]; output, new state, input and last output side by side, sums of the gates.

Source: TFLite kernels/lstm.cc (namespace basic).
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type

INPUTS, OUTPUTS = 5, 4


def is_basic(node: Node) -> bool:
    """Whether an LSTM is the basic cell."""
    return node.attributes.text("kernel_type", "full") == "basic"


def require_basic(operands: Operands, types: Sequence[DType], results: Sequence[DType]) -> tuple[bool, bool]:
    """Check types and shapes; return whether last output and state are variables, which get their new values.

    Args:
        operands: of the node.
        types: of the inputs.
        results: of the outputs.

    Raises:
        UnsupportedError: other types.
        GraphError: another number of operands, or shapes that contradict each other.
    """
    if len(operands.inputs) != INPUTS or len(operands.outputs) != OUTPUTS:
        raise GraphError(
            f"{len(operands.inputs)} inputs and {len(operands.outputs)} outputs; the basic cell has {INPUTS} and "
            f"{OUTPUTS}"
        )
    x, last, weights, bias, state = (operands.input(i) for i in range(INPUTS))
    for tensor, dtype in zip((*operands.inputs, *operands.outputs), (*types, *results), strict=True):
        if tensor is not None:
            require_type(tensor, (dtype,))
    units = last.shape[-1] if last.shape else 0
    if (
        len(x.shape) != 2
        or weights.shape != (4 * units, x.shape[1] + units)
        or bias.size != 4 * units
        or not last.shape == state.shape == (x.shape[0], units)
    ):
        raise GraphError(
            f"input {x.shape}, last output {last.shape}, weights {weights.shape}, bias {bias.shape} and state "
            f"{state.shape} do not fit"
        )
    return last.is_variable, state.is_variable


def basic_results(
    output: Array, state: Array, together: Array, gates: Array, keeps: tuple[bool, bool]
) -> tuple[Array, ...]:
    """Return the outputs, behind them the new values of those states that are variables."""
    kept = [value for value, keep in zip((output, state), keeps, strict=True) if keep]
    return (output, state, together, gates, *kept)
