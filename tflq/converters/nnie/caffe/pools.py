"""Pools in Caffe, whose output size is rounded up."""

from __future__ import annotations

from tflq.converters.nnie.caffe.layer import CaffeLayer, Parameter, Site
from tflq.errors import UnsupportedError
from tflq.interpreter.accumulate import window_of
from tflq.schemas.nnie import limits


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
