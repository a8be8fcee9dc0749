"""Layers of Caffe with weights or windows: convolutions, fully connected layers, pools, upsampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.converters.nnie.caffe.layer import CaffeLayer, Parameter, Site
from tflq.errors import UnsupportedError
from tflq.interpreter.accumulate import Window, window_of
from tflq.schemas.nnie import limits

Floats = NDArray[np.float32]


def convolution(site: Site) -> list[CaffeLayer]:
    """CONV_2D: weights [O, KH, KW, I/g] become [O, I/g, KH, KW]."""
    weights = _weights(site)
    channels = site.image()[2]
    if channels % weights.shape[3]:
        raise UnsupportedError(f"weights {weights.shape} do not fit {channels} input channels")
    return _convolution(site, np.moveaxis(weights, 3, 1), channels // weights.shape[3])


def depthwise(site: Site) -> list[CaffeLayer]:
    """DEPTHWISE_CONV_2D: weights [1, KH, KW, C * m] become [C * m, 1, KH, KW], in C groups."""
    return _convolution(site, np.moveaxis(_weights(site), 3, 0), site.image()[2])


def fully_connected(site: Site) -> list[CaffeLayer]:
    """FULLY_CONNECTED: an InnerProduct, which flattens an image as c, h, w: columns are permuted from h, w, c."""
    weights = _weights(site)
    if site.node.attributes.boolean("keep_num_dims", False) and len(site.shape) > 2:
        raise UnsupportedError("keep_num_dims with several rows; Caffe's InnerProduct makes one row of a sample")
    if site.shape[0] * weights.shape[1] != int(np.prod(site.shape)):
        raise UnsupportedError(f"an input of shape {site.shape} makes several rows; Caffe's InnerProduct makes one")
    if len(site.shape) == 4:
        height, width, channels = site.image()
        order = np.arange(weights.shape[1]).reshape(height, width, channels).transpose(2, 0, 1).reshape(-1)
        weights = weights[:, order]
    elif len(site.shape) != 2:
        raise UnsupportedError(f"an input of shape {site.shape}; Caffe's InnerProduct takes 2 or 4 axes here")
    bias = _bias(site)
    fields = {"num_output": weights.shape[0], "bias_term": bias is not None}
    blobs = (np.ascontiguousarray(weights),) if bias is None else (np.ascontiguousarray(weights), bias)
    return [site.layer("InnerProduct", {"inner_product_param": fields}, blobs), *site.rectifier()]


def _convolution(site: Site, weights: Floats, groups: int) -> list[CaffeLayer]:
    """Return the layer of weights [O, I/g, KH, KW]; uneven padding becomes even by zero rows in front of the kernel."""
    height, width, _ = site.image()
    window = window_of(site.node.attributes, (height, width), (weights.shape[2], weights.shape[3]))
    rows, columns = window.bottom - window.top, window.right - window.left
    if (rows and window.dilation[0] > 1) or (columns and window.dilation[1] > 1):
        raise UnsupportedError(
            f"uneven padding {window.padding} with dilation {window.dilation}; Caffe pads both sides alike: pad with "
            f"'valid' and an input that fits"
        )
    weights = np.ascontiguousarray(np.pad(weights, ((0, 0), (0, 0), (rows, 0), (columns, 0))))
    _check_limits(window, (weights.shape[2], weights.shape[3]), groups)
    bias = _bias(site)
    fields: dict[str, int | tuple[int, ...]] = {
        "num_output": weights.shape[0],
        "bias_term": bias is not None,
        "pad_h": window.bottom,
        "pad_w": window.right,
        "kernel_h": weights.shape[2],
        "kernel_w": weights.shape[3],
        "group": groups,
        "stride_h": window.stride[0],
        "stride_w": window.stride[1],
    }
    if window.dilation != (1, 1):
        fields["dilation"] = window.dilation
    blobs = (weights,) if bias is None else (weights, bias)
    return [site.layer("Convolution", {"convolution_param": fields}, blobs), *site.rectifier()]


def _check_limits(window: Window, kernel: tuple[int, int], groups: int) -> None:
    bound = limits()
    if max(kernel) > bound.largest_kernel:
        raise UnsupportedError(f"a kernel of {kernel}; NNIE takes up to {bound.largest_kernel} each way")
    if max(window.padding) > bound.largest_pad:
        raise UnsupportedError(f"padding {window.padding}; NNIE takes up to {bound.largest_pad}")
    if groups > bound.largest_group:
        raise UnsupportedError(f"{groups} groups; NNIE takes up to {bound.largest_group}: split the layer")


def _weights(site: Site) -> Floats:
    weights = site.constant(1)
    if weights is None or not weights.size:
        raise UnsupportedError("there are no weights; Caffe needs them")
    return np.asarray(weights, np.float32)


def _bias(site: Site) -> Floats | None:
    bias = site.constant(2)
    return None if bias is None else np.asarray(bias, np.float32).reshape(-1)


def max_pool(site: Site) -> list[CaffeLayer]:
    """MAX_POOL_2D, where Caffe's windows are the same."""
    return _pool(site, "MAX")


def average_pool(site: Site) -> list[CaffeLayer]:
    """AVERAGE_POOL_2D without padding: readers of Caffe differ in what they divide a cut window by."""
    return _pool(site, "AVE")


def mean(site: Site) -> list[CaffeLayer]:
    """MEAN over height and width: an average pool over the whole image."""
    height, width, _ = site.image()
    axes = site.constant(1)
    found = sorted(int(a) % 4 for a in axes.reshape(-1)) if axes is not None else []
    if found != [1, 2]:
        raise UnsupportedError(f"mean over axes {found}; Caffe's Pooling takes height and width, axes 1 and 2")
    return [site.layer("Pooling", {"pooling_param": _fields("AVE", (height, width), (1, 1), (0, 0))})]


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


def _pool(site: Site, kind: str) -> list[CaffeLayer]:
    height, width, _ = site.image()
    attributes = site.node.attributes
    kernel = (attributes.integer("filter_height"), attributes.integer("filter_width"))
    window = window_of(attributes, (height, width), kernel)
    if max(kernel) > limits().largest_kernel:
        raise UnsupportedError(f"a window of {kernel}; NNIE takes up to {limits().largest_kernel} each way")
    output = window.output_size((height, width))
    if kind == "AVE" and any(window.padding):
        raise UnsupportedError(
            f"average pool with padding {window.padding}; Caffe counts the padding, TFLite does not: use 'valid' and a "
            f"window that fits"
        )
    stride = tuple(1 if out == 1 else step for out, step in zip(output, window.stride, strict=True))
    pad = (window.top, window.left)
    sizes = [_caffe_size(s, k, p, t) for s, k, p, t in zip((height, width), kernel, pad, stride, strict=True)]
    partial = [(s + 2 * p - k) % t != 0 for s, k, p, t in zip((height, width), kernel, pad, stride, strict=True)]
    if tuple(sizes) != output or (kind == "AVE" and any(partial)):
        raise UnsupportedError(
            f"a window of {kernel} at stride {window.stride} leaves rows of {height}x{width} over; Caffe rounds its "
            f"output up to {sizes[0]}x{sizes[1]}, TFLite has {output[0]}x{output[1]}: crop the input to fit"
        )
    return [site.layer("Pooling", {"pooling_param": _fields(kind, kernel, stride, pad)}), *site.rectifier()]


def _caffe_size(size: int, kernel: int, pad: int, stride: int) -> int:
    """Return ceil((H + 2p - k) / s) + 1, less one if p > 0 and the last window would start at or beyond H + p."""
    output = -(-(size + 2 * pad - kernel) // stride) + 1
    return output - 1 if pad and (output - 1) * stride >= size + pad else output


def _fields(kind: str, kernel: tuple[int, int], stride: tuple[int, ...], pad: tuple[int, int]) -> Parameter:
    names = {"kernel_h": kernel[0], "kernel_w": kernel[1], "stride_h": stride[0], "stride_w": stride[1]}
    padding = {"pad_h": pad[0], "pad_w": pad[1]} if any(pad) else {}
    return {"pool": kind, **names, **padding}
