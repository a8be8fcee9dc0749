"""AVERAGE_POOL_2D of uint8 as DEPTHWISE_CONV_2D of int8.

The uint8 kernel rounds the mean of n values half up. The int8 kernel rounds half away from zero, so that it differs
if the mean of stored int8 values is a negative tie; ties need an even n. With A = sum of x - Z, weights 2^k and
bias 2, the convolution computes round((2^k * A + 2) / (2^k * n)): a tie of A / n is rounded up. The pass tries k = 6
to 2 and takes the first one that is equal for all A in -255 n .. 255 n.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tflq.converters.passes.rewrite import constant
from tflq.converters.tflite_quantizer.rules import version_of
from tflq.graph import Affine, Attributes, DType, Node, Operands
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from tflq.interpreter.operands.windows import pool_window

_POWERS = (6, 5, 4, 3, 2)
_BIAS = 2


def replace_unsigned_pools(editor: GraphEditor) -> None:
    """Replace pools of uint8 with the same even number of values in all windows."""
    for node in editor.nodes_of("average_pool_2d"):
        x, y = editor.tensors[node.inputs[0]], editor.tensors[node.outputs[0]]
        if x.dtype is not DType.UINT8 or not isinstance(x.quantization, Affine) or x.quantization != y.quantization:
            continue
        window, _ = pool_window(node, Operands((x,), (y,)))
        count = prod(window.kernel)
        power = None if any(window.padding) or count % 2 else find_power(count)
        if power is not None:
            _replace(editor, node, window.kernel, power)


def find_power(count: int) -> int | None:
    """Return the exponent k of the weights for windows of `count` values; None if no k is equal for all sums."""
    sums = np.arange(-255 * count, 255 * count + 1)
    expected = (2 * sums + count) // (2 * count)
    for power in _POWERS:
        multiplier, shift = quantize_multiplier(np.float64(np.float32(1 / (count << power))))
        totals = (sums << power) + _BIAS
        if np.array_equal(multiply_by_quantized_multiplier(totals, multiplier, shift), expected):
            return power
    return None


def _replace(editor: GraphEditor, node: Node, kernel: tuple[int, int], power: int) -> None:
    name, channels = editor.tensors[node.outputs[0]].name, editor.shape(node.outputs[0])[3]
    affine = editor.tensors[node.inputs[0]].affine
    scale = np.float32(1 / (prod(kernel) << power))
    weights = constant(
        f"{name};weights", np.full((1, *kernel, channels), 1 << power, np.int8), Affine.per_tensor(scale)
    )
    bias_scale = Affine.per_tensor(np.float32(scale * affine.scale[0]))
    bias = constant(f"{name};bias", np.full(channels, _BIAS, np.int32), bias_scale)
    operands = (node.inputs[0], editor.add_tensor(weights), editor.add_tensor(bias))
    kept = {key: node.attributes[key] for key in ("padding", "stride_w", "stride_h", "fused_activation_function")}
    attributes = Attributes({**kept, "depth_multiplier": 1, "dilation_w_factor": 1, "dilation_h_factor": 1})
    version = version_of("depthwise_conv_2d", DType.INT8)
    editor.replace(node, Node("depthwise_conv_2d", operands, node.outputs, attributes, node.name, version))
