"""RNN layers with float32 activations and integer weights; their vectors are quantized at run time.

Source: docs/rules/tflite/index.md.

Source: TFLite kernels/internal/kernel_utils.cc (RnnBatchStep with int8 weights).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tflq.arrays import Singles
from tflq.graph import Array, DType, Node, Tensor
from tflq.interpreter.kernels.float.rnn import Addend, rnn_kernels
from tflq.interpreter.kernels.tflite.hybrid import HybridMatrix, prepare_hybrid, signed_weights
from tflq.interpreter.operands.checks import per_tensor, require_type


@dataclass(frozen=True, eq=False)
class HybridAddend(HybridMatrix):
    """Integer weights with a product that is added to a sum."""

    def add_product(self, start: Singles, x: Singles) -> Singles:
        """Return start + the product."""
        result: Singles = start + self.times(self.prepare(x))
        return result


def _addend_maker(node: Node) -> Callable[[Tensor, Array], Addend]:
    """Return a function that packs the integer weights of a node.

    Raises:
        UnsupportedError: (when called) weights of a type other than int8 and uint8, or with several scales.
    """
    asymmetric = node.attributes.boolean("asymmetric_quantize_inputs", False)

    def make(tensor: Tensor, data: Array) -> Addend:
        require_type(tensor, (DType.INT8, DType.UINT8))
        return HybridAddend(prepare_hybrid(signed_weights(data)), per_tensor(tensor)[0], asymmetric)

    return make


KERNELS = rnn_kernels(_addend_maker, hybrid=True, kind="of float32 with int8 or uint8 weights")
