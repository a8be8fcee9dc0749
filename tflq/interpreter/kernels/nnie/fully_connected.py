"""FULLY_CONNECTED of dequantised logarithmic codes; sums of float32 in TFLite's order, float bias (docs/nnie.md, 5)."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float import fully_connected
from tflq.interpreter.kernels.nnie.logarithm import Floats
from tflq.interpreter.kernels.nnie.weights import WeightedLayer, lower_weights


@dataclass(frozen=True, eq=False)
class LogarithmicProduct:
    """A fully connected layer.

    Attributes:
        layer: z, codes and what they stand for.
        product: what the float kernel decided.
    """

    layer: WeightedLayer
    product: fully_connected.FloatFullyConnected


def lower(node: Node, operands: Operands) -> LogarithmicProduct:
    """Decide codes and shapes; raises as `lower_weights` and the float kernel."""
    return LogarithmicProduct(lower_weights(node, operands), fully_connected.lower(node, operands))


def run(params: LogarithmicProduct, x: Floats, _weights: Array, bias: Floats | None = None) -> tuple[Array, ...]:
    """Run it: [S, ..., K], bias [O] -> [S, rows, O], float32."""
    quantised = params.layer.inputs.apply(x)
    return fully_connected.run(params.product, quantised, params.layer.weights[None], bias)
