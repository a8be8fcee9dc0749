"""FakeQuantize: reals to the values of their levels, in one piece (fake_quantise.py)."""

from __future__ import annotations

from tflq.errors import GraphError
from tflq.graph import Array, DType, FakeQuantize, Node, Operands
from tflq.interpreter.kernels.openvino.fake_quantise import Floats, level_indices, level_values, require_sound
from tflq.interpreter.operands.checks import require_type


def lower(node: Node, operands: Operands) -> FakeQuantize:  # noqa: ARG001
    """Return the rule that the output carries.

    Raises:
        UnsupportedError: another type than float32.
        GraphError: an output without a rule, or one that `require_sound` refuses.
    """
    output = operands.output()
    for tensor in (operands.input(0), output):
        require_type(tensor, (DType.FLOAT32,))
    rule = output.quantisation
    if not isinstance(rule, FakeQuantize):
        raise GraphError(f"'{output.name}' states no levels and ranges")
    require_sound(rule, f"'{output.name}'")
    return rule


def run(params: FakeQuantize, x: Floats) -> tuple[Array, ...]:
    """Run it: float32[S, ..., C] -> float32[S, ..., C]."""
    return (level_values(level_indices(x, params), params),)
