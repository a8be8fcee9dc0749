"""Which nodes of a .tflite file XNNPACK takes: the conditions of LiteRT's delegate on integers of 8 bits.

A node that it refuses runs in LiteRT's optimized kernel. Operators without a separate rule are not listed.

Source: LiteRT delegates/xnnpack/xnnpack_delegate.cc; docs/guides/runtimes.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tflq.graph import Affine, DType, Graph, Node, Operands, Tensor
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor

OPTIMIZED = "litert-optimized"
Takes = Callable[[Node, Operands], bool]


def leave_to_optimized(graph: Graph) -> dict[int, str]:
    """Return the nodes that XNNPACK refuses in a stored graph: index -> `litert-optimized`."""
    left = {}
    for index, node in enumerate(graph.nodes):
        if node.arithmetic is None and _has_integers(operands := graph.operands(index)):
            condition = CONDITIONS.get(node.operator)
            if condition is None or not condition(node, operands):
                left[index] = OPTIMIZED
    return left


def _has_integers(operands: Operands) -> bool:
    tensors = [t for t in (*operands.inputs, *operands.outputs) if t is not None]
    return any(isinstance(t.quantization, Affine) and t.dtype.is_integer for t in tensors)


def _has_type(tensor: Tensor | None, *more: DType) -> bool:
    return tensor is not None and tensor.dtype in (*EIGHT_BITS, *more)


def _float32_scale(tensor: Tensor) -> np.float32:
    return per_tensor(tensor)[0]


def _has_static_weights(node: Node, operands: Operands) -> bool:  # noqa: ARG001
    x, weights, bias = operands.input(0), operands.input(1), operands.optional(2)
    is_static = weights.is_constant and (bias is None or bias.is_constant)
    return is_static and _has_type(x) and operands.output().dtype is x.dtype


def _is_transposed(node: Node, operands: Operands) -> bool:  # noqa: ARG001
    static = [operands.input(0), operands.input(1), operands.optional(3)]
    return all(t is None or t.is_constant for t in static) and _has_type(operands.input(2))


def _is_sum_in_range(node: Node, operands: Operands) -> bool:  # noqa: ARG001
    tensors = operands.input(0), operands.input(1), operands.output()
    if not all(map(_has_type, tensors)):
        return False
    ratios = [_float32_scale(t) / _float32_scale(tensors[2]) for t in tensors[:2]]
    return all(1 / 1024 <= ratio < 256 for ratio in ratios)


def _is_product_in_range(node: Node, operands: Operands) -> bool:  # noqa: ARG001
    tensors = operands.input(0), operands.input(1), operands.output()
    if not all(map(_has_type, tensors)):
        return False
    return bool(1 / 65536 <= _float32_scale(tensors[0]) * _float32_scale(tensors[1]) / _float32_scale(tensors[2]) < 256)


def _has_static_operand(node: Node, operands: Operands) -> bool:  # noqa: ARG001
    return operands.input(1).is_constant and _has_type(operands.input(0))


def _is_leaky_relu_in_range(node: Node, operands: Operands) -> bool:
    source, output = operands.input(0), operands.output()
    if not (_has_type(source) and _has_type(output)):
        return False
    positive = _float32_scale(source) / _float32_scale(output)
    negative = positive * np.float32(node.attributes.real("alpha", 0.0))
    return bool(1 / 256 <= positive <= 128 and -127.99609375 <= negative <= 128 and abs(negative) >= 1 / 256)


def _is_quantize_in_range(node: Node, operands: Operands) -> bool:  # noqa: ARG001
    source, output = operands.input(0), operands.output()
    if source.dtype.is_floating:
        return _has_type(output)
    if not (_has_type(source) and source.dtype is output.dtype):
        return False
    return bool(1 / 256 <= _float32_scale(source) / _float32_scale(output) <= 128)


def _is_of_8_bits(node: Node, operands: Operands) -> bool:  # noqa: ARG001
    return _has_type(operands.input(0))


CONDITIONS: Mapping[str, Takes] = {
    "conv_2d": _has_static_weights,
    "depthwise_conv_2d": _has_static_weights,
    "fully_connected": _has_static_weights,
    "transpose_conv": _is_transposed,
    "add": _is_sum_in_range,
    "sub": _is_sum_in_range,
    "mul": _is_product_in_range,
    "mean": _has_static_operand,
    "sum": _has_static_operand,
    "resize_bilinear": _has_static_operand,
    "leaky_relu": _is_leaky_relu_in_range,
    "quantize": _is_quantize_in_range,
    "dequantize": _is_of_8_bits,
}
