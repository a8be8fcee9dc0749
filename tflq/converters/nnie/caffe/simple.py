"""Layers of Caffe without a window: activations, Eltwise, Concat, Softmax, upsampling."""

from __future__ import annotations

import math

import numpy as np

from tflq.converters.nnie.caffe.layer import CaffeLayer, Site
from tflq.errors import UnsupportedError
from tflq.schemas.nnie import limits


def rectifier(site: Site) -> list[CaffeLayer]:
    """RELU; RELU6 where check.py lets it pass."""
    return [site.layer("ReLU")]


def leaky(site: Site) -> list[CaffeLayer]:
    """LEAKY_RELU."""
    slope = float(np.float32(site.node.attributes.real("alpha")))
    return [site.layer("ReLU", {"relu_param": {"negative_slope": slope}})]


def sigmoid(site: Site) -> list[CaffeLayer]:
    """LOGISTIC."""
    return [site.layer("Sigmoid")]


def tanh(site: Site) -> list[CaffeLayer]:
    """TANH."""
    return [site.layer("TanH")]


def prelu(site: Site) -> list[CaffeLayer]:
    """PRELU with one slope for each channel, or one for all."""
    alpha = site.constant(1)
    channels = site.shape[-1]
    if alpha is None or alpha.size not in (1, channels) or alpha.size != alpha.reshape(-1, alpha.shape[-1]).shape[1]:
        shape = None if alpha is None else alpha.shape
        raise UnsupportedError(f"slopes of shape {shape}; Caffe's PReLU takes one for each of {channels} channels")
    fields = {"prelu_param": {"channel_shared": alpha.size == 1}}
    return [site.layer("PReLU", fields, (np.asarray(alpha, np.float32).reshape(-1),))]


def softmax(site: Site) -> list[CaffeLayer]:
    """SOFTMAX over the channels, Caffe's axis 1."""
    beta = site.node.attributes.real("beta", 1.0)
    if beta != 1:
        raise UnsupportedError(f"beta is {beta:g}; Caffe's Softmax has 1: scale the layer in front of it")
    if len(site.shape) not in (2, 4) or (
        len(site.shape) == 4 and site.graph.tensors[site.node.inputs[0]].shape[-1] != site.shape[-1]
    ):
        raise UnsupportedError(
            f"an input of shape {site.shape}; Caffe's Softmax takes [N, C] or the channels of an image"
        )
    return [site.layer("Softmax")]


def add(site: Site) -> list[CaffeLayer]:
    """ADD of two computed tensors of one shape."""
    return _eltwise(site, "SUM")


def mul(site: Site) -> list[CaffeLayer]:
    """MUL of two computed tensors of one shape."""
    return _eltwise(site, "PROD")


def concatenation(site: Site) -> list[CaffeLayer]:
    """CONCATENATION of channels."""
    rank = len(site.shape)
    axis = site.node.attributes.integer("axis")
    if len(site.bottoms) != len(site.node.inputs):
        raise UnsupportedError("an operand is a constant; Caffe's Concat takes computed ones")
    if (
        rank not in (2, 4)
        or axis % rank != rank - 1
        or len({len(_shape(site, i)) for i in range(len(site.sources))}) > 1
    ):
        raise UnsupportedError(f"concatenation of axis {axis} of {site.shape}; NNIE takes the channels, the last axis")
    return [site.layer("Concat", {"concat_param": {"axis": 1}}), *site.rectifier()]


def upsample(site: Site) -> list[CaffeLayer]:
    """RESIZE_NEAREST_NEIGHBOR by 2: a Deconvolution of 2x2 ones, stride 2, one group a channel."""
    height, width, channels = site.image()
    output = site.graph.tensors[site.node.outputs[0]].shape
    factor = limits().upsampling
    flags = [site.node.attributes.boolean(name, False) for name in ("align_corners", "half_pixel_centers")]
    if output[1:3] != (factor * height, factor * width) or flags[0]:
        raise UnsupportedError(
            f"resize from {height}x{width} to {output[1]}x{output[2]}; NNIE takes nearest neighbours of {factor} times"
        )
    fields = {"num_output": channels, "bias_term": False, "kernel_size": factor, "stride": factor, "group": channels}
    ones = np.ones((channels, 1, factor, factor), np.float32)
    return [site.layer("Deconvolution", {"convolution_param": fields}, (ones,))]


def _eltwise(site: Site, operation: str) -> list[CaffeLayer]:
    if len(site.bottoms) != 2:
        raise UnsupportedError(
            "an operand is a constant; Caffe's Eltwise takes two computed ones: fold it into a layer"
        )
    if _shape(site, 0) != _shape(site, 1):
        raise UnsupportedError(f"shapes {_shape(site, 0)} and {_shape(site, 1)}; Caffe's Eltwise takes equal ones")
    return [site.layer("Eltwise", {"eltwise_param": {"operation": operation}}), *site.rectifier()]


def _shape(site: Site, position: int) -> tuple[int, ...]:
    return site.graph.tensors[site.sources[position]].shape


def is_flattening(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether a reshape only makes rows of what Caffe flattens by itself: [N, ...] to [N, K], or back to 1x1 images."""
    rows = bool(before) and bool(after) and before[0] == after[0]
    return rows and (
        len(after) == 2 or (len(after) == 4 and after[1:3] == (1, 1) and math.prod(before[1:]) == before[-1])
    )
