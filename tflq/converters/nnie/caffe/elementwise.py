"""Layers of Caffe without a window: activations, Eltwise, Concat, Softmax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters.nnie.caffe.layer import CaffeLayer, Site
from tflq.errors import UnsupportedError

Builder = Callable[[Site], list[CaffeLayer]]


def plain(kind: str) -> Builder:
    """Return the builder of a layer without parameters."""
    return lambda site: [site.layer(kind)]


def leaky(site: Site) -> list[CaffeLayer]:
    """LEAKY_RELU."""
    slope = float(np.float32(site.node.attributes.real("alpha")))
    return [site.layer("ReLU", {"relu_param": {"negative_slope": slope}})]


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


def eltwise(operation: str) -> Builder:
    """Return the builder of ADD ("SUM") or MUL ("PROD") of two computed tensors of one shape."""

    def build(site: Site) -> list[CaffeLayer]:
        if len(site.bottoms) != 2:
            raise UnsupportedError(
                "an operand is a constant; Caffe's Eltwise takes two computed ones: fold it into a layer"
            )
        if _shape(site, 0) != _shape(site, 1):
            raise UnsupportedError(f"shapes {_shape(site, 0)} and {_shape(site, 1)}; Caffe's Eltwise takes equal ones")
        return [site.layer("Eltwise", {"eltwise_param": {"operation": operation}}), *site.rectifier()]

    return build


def _shape(site: Site, position: int) -> tuple[int, ...]:
    return site.graph.tensors[site.sources[position]].shape
