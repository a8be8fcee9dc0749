"""Layers of weights and biases: ordered sums of float32, the bias, the fused activation.

Source: docs/rules/aipu/values.md#linear-layers.
"""

from __future__ import annotations

import numpy as np

from tflq.arrays import Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import sequential_convolution, sequential_product
from tflq.interpreter.accumulate.products import sequential_products
from tflq.interpreter.accumulate.transposed import sequential_transposed
from tflq.interpreter.accumulate.volumes import VolumeWindow, sequential_volume
from tflq.interpreter.kernels.aipu.linear import dilate_transposed
from tflq.interpreter.kernels.aipu.pooling import window_of
from tflq.interpreter.kernels.aipu.real.functions import fused_activation
from tflq.interpreter.kernels.aipu.real.rules import Compute, kernels, own_constant
from tflq.interpreter.kernels.aipu.unweighted import BIASES
from tflq.interpreter.operands.sliding_windows import Window


def _constants(operands: Operands) -> tuple[Singles, Singles]:
    """Return weights, and biases with the leading axis."""
    return own_constant(operands, "weights")[0], own_constant(operands, BIASES)


def _convolution(node: Node, operands: Operands) -> Compute:
    x, (weights, biases), then = operands.input(0), _constants(operands), fused_activation(node, operands)
    groups = x.shape[3] // weights.shape[3] if weights.shape[3] else 0
    stated = x.shape[3] if node.operator == "depthwise_conv" else node.attributes.integer("group", 1)
    if groups != stated or groups * weights.shape[3] != x.shape[3] or weights.shape[0] % groups:
        raise UnsupportedError(f"group={stated}: weights {weights.shape} do not fit an input of {x.shape}")
    window: Window = window_of(node, x, operands.output())

    def compute(v: Singles) -> Array:
        return then(sequential_convolution(v, weights, window, groups) + biases)

    return compute


def _convolution_3d(node: Node, operands: Operands) -> Compute:
    x, output, then = operands.input(0), operands.output(), fused_activation(node, operands)
    weights, biases = _constants(operands)
    groups, value = node.attributes.integer("group", 1), node.attributes.integer
    if weights.ndim != 5 or weights.shape[4] * groups != x.shape[4]:
        raise UnsupportedError(f"group={groups}: weights {weights.shape} do not fit an input of {x.shape}")
    taps = np.ascontiguousarray(weights.transpose(3, 1, 2, 4, 0))
    stride, dilation = ((value(f"{k}_z"), value(f"{k}_y"), value(f"{k}_x")) for k in ("stride", "dilation"))
    before = (value("pad_z_begin"), value("pad_y_begin"), value("pad_x_begin"))
    kernel = (taps.shape[0], taps.shape[1], taps.shape[2])
    sizes = (output.shape[1], output.shape[2], output.shape[3])
    window = VolumeWindow(kernel, stride, dilation, before, sizes)
    each = np.split(taps, groups, axis=-1)

    def compute(v: Singles) -> Array:
        parts = np.split(v, groups, axis=-1)
        sums = [sequential_volume(part, own_taps, window) for part, own_taps in zip(parts, each, strict=True)]
        return then(np.concatenate(sums, axis=-1) + biases)

    return compute


def _conv_transpose(node: Node, operands: Operands) -> Compute:
    (weights, biases), then = _constants(operands), fused_activation(node, operands)
    spread, place = dilate_transposed(node, weights, operands.output())

    def compute(v: Singles) -> Array:
        return then(sequential_transposed(v, spread, place) + biases)

    return compute


def _fully_connected(node: Node, operands: Operands) -> Compute:
    (weights, biases), then, shape = _constants(operands), fused_activation(node, operands), operands.output().shape

    def compute(v: Singles) -> Array:
        sums = sequential_product(v.reshape(-1, weights.shape[1]), weights)
        return then((sums.reshape(len(v), -1, weights.shape[0]) + biases).reshape(len(v), *shape))

    return compute


def _mat_mul(node: Node, _operands: Operands) -> Compute:
    turned = [node.attributes.boolean(key) for key in ("trans_a", "trans_b")]

    def compute(a: Singles, b: Singles) -> Array:
        left, right = (np.swapaxes(x, -1, -2) if turn else x for x, turn in zip((a, b), turned, strict=True))
        return sequential_products(left, right)

    return compute


def _batch_norm(node: Node, operands: Operands) -> Compute:
    rank, then = len(operands.input(0).shape), fused_activation(node, operands)
    behind = (1,) * (rank - 1 - node.attributes.integer("axis") % rank)
    weights, biases = (c.reshape(-1, *behind) for c in _constants(operands))
    return lambda x: then(x * weights + biases)


def _bias_add(node: Node, operands: Operands) -> Compute:
    rank = len(operands.input(0).shape)
    biases = own_constant(operands, BIASES).reshape(-1, *(1,) * (rank - 1 - node.attributes.integer("axis", -1) % rank))
    return lambda x: x + biases


_SUMS = "sum of x * w + b, then the fused activation"
KERNELS = kernels(
    {
        "batch_norm": (_batch_norm, "x * w + b, then the fused activation"),
        "bias_add": (_bias_add, "x + b"),
        "conv_transpose": (_conv_transpose, _SUMS),
        "convolution": (_convolution, _SUMS),
        "convolution_3d": (_convolution_3d, _SUMS),
        "depthwise_conv": (_convolution, _SUMS),
        "fully_connected": (_fully_connected, _SUMS),
        "mat_mul": (_mat_mul, "x @ y"),
    }
)
