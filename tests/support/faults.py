"""Models with one planted fault each, made of the small model inside the package."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.support.tracked import ROOT
from tflq.converters.tflite import read_model
from tflq.graph import Model, Tensor

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
LAYER, NODE, CHANNEL = 2, "CONV_2D_0_2", 3
"""The convolution and the channel that hold the fault."""


def digits() -> Model:
    return read_model(DIGITS)


def with_tensor(model: Model, index: int, tensor: Tensor) -> Model:
    graph = model.main.copy()
    graph.tensors[index] = tensor
    return replace(model, graphs=[graph, *model.graphs[1:]])


def corrupted_weights() -> Model:
    """One channel's weights are larger."""
    model = digits()
    index = model.main.nodes[LAYER].inputs[1]
    tensor = model.main.tensors[index]
    data = np.array(tensor.data)
    data[CHANNEL] = np.clip(data[CHANNEL].astype(int) + 9, -127, 127)
    return with_tensor(model, index, replace(tensor, data=data))


def wrong_multiplier() -> Model:
    """One channel's scale is larger, so that its multiplier is."""
    model = digits()
    index = model.main.nodes[LAYER].inputs[1]
    tensor = model.main.tensors[index]
    scale = np.array(tensor.affine.scale)
    scale[CHANNEL] *= 1.5
    return with_tensor(model, index, replace(tensor, quantization=replace(tensor.affine, scale=scale)))


def with_output_scale(factor: float) -> Model:
    """The layer's output has another scale: a smaller one saturates, a larger one wastes quantized values."""
    model = digits()
    index = model.main.nodes[LAYER].outputs[0]
    tensor = model.main.tensors[index]
    scale = (tensor.affine.scale * np.float32(factor)).astype(np.float32)
    changed = with_tensor(model, index, replace(tensor, quantization=replace(tensor.affine, scale=scale)))
    pooled = changed.main.nodes[LAYER + 1].outputs[0]
    affine = changed.main.tensors[index].affine
    changed = with_tensor(changed, pooled, replace(changed.main.tensors[pooled], quantization=affine))
    bias = changed.main.nodes[LAYER + 2].inputs[2]  # counts in steps of its input
    codes = changed.main.tensors[bias]
    finer = replace(codes.affine, scale=(codes.affine.scale * np.float32(factor)).astype(np.float32))
    data = np.rint(np.asarray(codes.data) / factor).astype(np.int32)
    return with_tensor(changed, bias, replace(codes, quantization=finer, data=data))
