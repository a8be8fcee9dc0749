"""Convolutions of uint8 as convolutions of int8 with weights of zero point 0.

w - Z_w is in -255..255. It is the sum of n parts in -127..127: floor((w - Z_w + i) / n), i = 0..n-1. The input is
joined n times along its channels, so that the sum of products stays; a depthwise layer becomes a grouped CONV_2D.

TFLite computes the scale of uint8 as float32(S_x * S_w) / S_y, that of int8 in float64. The pass chooses S_w so that
both rules return the same integers for every accumulator: they have the same thresholds. If no S_w does, a RESHAPE
states S_x = 1, and S_w is float32(S_x * S_w).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.converters.passes.rewrite import constant, derived_tensor
from tflq.converters.tflm.passes.repeat import join
from tflq.converters.tflm.passes.signed import as_int8
from tflq.graph import ABSENT, Affine, Attributes, DType, Node, Operands, Tensor
from tflq.graph.operators import row_of
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.kernels.tflite.weighted import WeightedLayer
from tflq.interpreter.registry import kernel

_LARGEST = 127
_STEPS = (0, 1, -1, 2, -2, 3, -3, 4, -4)
"""Units in the last place of S_w that are tried."""
_POSITIONS = ("transpose_conv", "conv_2d", "depthwise_conv_2d")


@dataclass(frozen=True)
class _Layer:
    """A node with its operands.

    Attributes:
        node: The node.
        tensors: Inputs, and the output as the last.
    """

    node: Node
    tensors: tuple[Tensor | None, ...]

    def find_thresholds(self, arithmetic: str) -> Integers | None:
        """Return the thresholds of an arithmetic in sums of (x - smallest x) * w; None if its rule can wrap."""
        operands = Operands(self.tensors[:-1], tuple(t for t in self.tensors[-1:] if t is not None))
        params = kernel(arithmetic, self.node.operator).lower(self.node, operands)
        if not isinstance(params, WeightedLayer) or params.constants is None:
            return None
        constants = params.constants
        if constants.rescale.step_map is None:
            return None
        x = self.tensors[row_of(self.node).data]
        assert x is not None
        lowest = x.dtype.minimum - (params.input_zero_point if self.node.operator == "transpose_conv" else 0)
        sums = constants.weights.astype(np.int64).reshape(constants.weights.shape[0], -1).sum(axis=1)
        thresholds: Integers = constants.rescale.step_map.steps().thresholds - lowest * sums
        return thresholds


def separate_zero_points(editor: GraphEditor) -> None:
    """Replace uint8 weights of convolutions by int8 weights with zero point 0, and inputs by joined ones."""
    for node in editor.nodes_of(*_POSITIONS):
        weights = editor.tensors[node.inputs[1]]
        if weights.dtype is DType.UINT8 and weights.data is not None and isinstance(weights.quantization, Affine):
            _rewrite(editor, node)


def _rewrite(editor: GraphEditor, node: Node) -> None:
    data = row_of(node).data
    old = _Layer(node, tuple(None if t == ABSENT else editor.tensors[t] for t in (*node.inputs, *node.outputs)))
    weights = editor.tensors[node.inputs[1]]
    assert weights.data is not None
    shifted = weights.data.astype(np.int64) - int(weights.affine.zero_point[0])
    count = max(1, -(-int(np.abs(shifted).max()) // _LARGEST))
    parts = [(shifted + i) // count for i in range(count)]
    x = node.inputs[data]
    if count > 1 and node.operator == "depthwise_conv_2d":
        parts = [np.stack([np.moveaxis(part[0], 2, 0) for part in parts], axis=3)]

        node = _as_grouped(editor, node)
        x = _join_in_groups(editor, node, x, count)
    elif count > 1:
        x = join(editor, node, [x] * count, 3)
    values = np.concatenate(parts, axis=3).astype(np.int8)
    node = editor.change(node, inputs=(x if p == data else t for p, t in enumerate(node.inputs)))
    _choose_scale(editor, node, old, values)


def _as_grouped(editor: GraphEditor, node: Node) -> Node:
    names = ("padding", "stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor", "fused_activation_function")
    attributes = Attributes({name: node.attributes[name] for name in names if name in node.attributes})
    return editor.replace(node, replace(node, operator="conv_2d", attributes=attributes, extra=None, version=3))


def _join_in_groups(editor: GraphEditor, node: Node, t: int, count: int) -> int:
    """Return the tensor with each channel repeated `count` times: [N, H, W, C] -> [N, H, W, C * count]."""
    batch, height, width, channels = editor.shape(t)
    apart = _reshape(editor, node, t, (batch, height, width, channels, 1))
    joined = join(editor, node, [apart] * count, 4)
    return _reshape(editor, node, joined, (batch, height, width, channels * count))


def _reshape(editor: GraphEditor, before: Node, t: int, shape: tuple[int, ...]) -> int:
    number = len(editor.tensors)
    result = derived_tensor(editor, t, f"{editor.tensors[before.outputs[0]].name};shaped{number}", shape)
    sizes = editor.add_tensor(constant(f"{editor.tensors[result].name};shape", np.array(shape, np.int32)))
    attributes = Attributes({"new_shape": shape})
    editor.add(Node("reshape", (t, sizes), (result,), attributes, f"{before.name}_shaped"), before=before)
    return result


def _choose_scale(
    editor: GraphEditor, node: Node, old: _Layer, values: np.ndarray[tuple[int, ...], np.dtype[np.int8]]
) -> None:
    """Set weights with a scale at which the int8 rule equals the uint8 rule."""
    data = row_of(node).data
    weights, x = editor.tensors[node.inputs[1]], editor.tensors[node.inputs[data]]
    product = np.float32(x.affine.scale[0]) * np.float32(weights.affine.scale[0])
    wanted = old.find_thresholds("tflite")
    operands = [None if t == ABSENT else as_int8(editor.tensors[t]) for t in (*node.inputs, *node.outputs)]
    for scale in _list_scales(product, x):
        tensor = _build_weights(weights, values, scale)
        operands[1] = tensor
        reached = _Layer(node, tuple(operands)).find_thresholds("tflm")
        if wanted is not None and reached is not None and np.array_equal(wanted, reached):
            editor.set_input(node, 1, editor.add_tensor(tensor))
            return
    relabeled = _reshape(editor, node, node.inputs[data], x.shape)
    unit = replace(x.affine, scale=np.ones(1, np.float32))
    editor.tensors[relabeled] = replace(editor.tensors[relabeled], quantization=unit)
    node = editor.set_input(node, data, relabeled)
    editor.set_input(node, 1, editor.add_tensor(_build_weights(weights, values, product)))


def _list_scales(product: np.float32, x: Tensor) -> Iterator[np.float32]:
    nearest = np.float32(float(product) / float(x.affine.scale[0]))
    for steps in _STEPS:
        yield (nearest.view(np.int32) + np.int32(steps)).view(np.float32)


def _build_weights(stated: Tensor, values: np.ndarray[tuple[int, ...], np.dtype[np.int8]], scale: np.float32) -> Tensor:
    quantization = Affine(np.array([scale], np.float32), np.zeros(1, np.int64))
    return constant(stated.name, values, quantization)
