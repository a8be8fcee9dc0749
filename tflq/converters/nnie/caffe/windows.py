"""Layers of Caffe with weights or windows: convolutions, fully connected layers, pools, upsampling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.arrays import Singles
from tflq.converters.nnie.caffe.layer import CaffeLayer, Parameter, Site, Step, power_step
from tflq.converters.nnie.caffe.moves import TO_LAST, cut, reshape_steps
from tflq.errors import UnsupportedError
from tflq.interpreter.operands.sliding_windows import Window, window_of
from tflq.interpreter.operands.windows import window_of_node
from tflq.schemas.nnie import limits


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
    """FULLY_CONNECTED: an InnerProduct, which flattens an image as c, h, w: columns are permuted from h, w, c.

    Several rows of a sample are pixels: a Convolution of 1x1.
    """
    weights = _weights(site)
    depth, (height, width, channels) = weights.shape[1], site.image()
    rows = int(np.prod(site.shape)) // depth
    if rows > site.batch and channels == depth:  # a product for each pixel
        return _convolution(site, weights[:, :, None, None], 1, Window((1, 1)))
    if rows != site.batch:
        raise UnsupportedError(f"an input {site.shape} makes {rows} rows of {depth}; Caffe's InnerProduct makes one")
    order = np.arange(depth).reshape(height, width, channels).transpose(2, 0, 1).reshape(-1)
    weights = weights[:, order]
    bias = _bias(site)
    fields = {"num_output": weights.shape[0], "bias_term": bias is not None}
    blobs = (np.ascontiguousarray(weights),) if bias is None else (np.ascontiguousarray(weights), bias)
    return [site.layer("InnerProduct", {"inner_product_param": fields}, blobs), *site.rectifier()]


def _convolution(site: Site, weights: Singles, groups: int, window: Window | None = None) -> list[CaffeLayer]:
    """Return the layer of weights [O, I/g, KH, KW]; uneven padding becomes even by zero rows of the kernel."""
    height, width, _ = site.image()
    window = window or window_of_node(site.node, (1, height, width, 1), (1, *weights.shape[2:], 1))
    rows, columns = window.bottom - window.top, window.right - window.left
    if rows % window.dilation[0] or columns % window.dilation[1]:
        raise UnsupportedError(
            f"uneven padding {window.padding} with dilation {window.dilation}; Caffe pads both sides alike: pad with "
            f"'valid' and an input that fits"
        )
    # More padding behind: zeros in front of the kernel; more in front: zeros behind it. They lie `dilation` rows apart.
    taps = (rows // window.dilation[0], columns // window.dilation[1])
    zeros = [(max(0, n), max(0, -n)) for n in taps]
    weights = np.ascontiguousarray(np.pad(weights, ((0, 0), (0, 0), *zeros)))
    _check_limits(window, (weights.shape[2], weights.shape[3]), groups)
    bias = _bias(site)
    fields: dict[str, int | tuple[int, ...]] = {
        "num_output": weights.shape[0],
        "bias_term": bias is not None,
        "pad_h": max(window.top, window.bottom),
        "pad_w": max(window.left, window.right),
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


def deconvolution(site: Site) -> list[CaffeLayer]:
    """TRANSPOSE_CONV: Deconvolution, weights [O, KH, KW, I] -> [I, O, KH, KW].

    Where the cut is not even, the whole output and a Slice each way.
    """
    weights = np.ascontiguousarray(np.moveaxis(_weights(site), 3, 0))
    height, width, _ = site.image()
    _, *wanted, channels = site.output_image()
    window = window_of(site.node.attributes, (wanted[0], wanted[1]), (weights.shape[2], weights.shape[3]))
    fronts = (window.top, window.left)
    whole = [(n - 1) * s + k for n, s, k in zip((height, width), window.stride, window.kernel, strict=True)]
    spare = [size - out - front for size, out, front in zip(whole, wanted, fronts, strict=True)]
    if min(spare) < 0:
        raise UnsupportedError(f"an output of {wanted[0]}x{wanted[1]}; Caffe's Deconvolution ends at {whole}")
    is_even = tuple(spare) == fronts
    pads = fronts if is_even else (0, 0)
    _check_limits(window, window.kernel, 1)
    bias = _bias(site, 3)
    fields: dict[str, int | tuple[int, ...]] = {
        "num_output": channels,
        "bias_term": bias is not None,
        "pad_h": pads[0],
        "pad_w": pads[1],
        "kernel_h": window.kernel[0],
        "kernel_w": window.kernel[1],
        "stride_h": window.stride[0],
        "stride_w": window.stride[1],
    }
    blobs = (weights,) if bias is None else (weights, bias)
    layer = site.layer("Deconvolution", {"convolution_param": fields}, blobs)
    if is_even:
        return [layer, *site.rectifier()]
    name = f"{site.name}_whole"
    layers = [CaffeLayer(name, layer.type, layer.bottoms, (name,), layer.parameters, blobs)]
    cuts = {
        axis: range(front, front + out)
        for axis, front, out, size in zip((2, 3), fronts, wanted, whole, strict=True)
        if out != size
    }
    return [*layers, *cut(site.name, name, site.top, cuts, dict(zip((2, 3), whole, strict=True))), *site.rectifier()]


def _check_limits(window: Window, kernel: tuple[int, int], groups: int) -> None:
    bound = limits()
    if max(kernel) > bound.largest_kernel:
        raise UnsupportedError(f"a kernel of {kernel}; NNIE takes up to {bound.largest_kernel} each way")
    if max(window.padding) > bound.largest_pad:
        raise UnsupportedError(f"padding {window.padding}; NNIE takes up to {bound.largest_pad}")
    if groups > bound.largest_group:
        raise UnsupportedError(f"{groups} groups; NNIE takes up to {bound.largest_group}: split the layer")


def _weights(site: Site) -> Singles:
    weights = site.constant(1)
    if weights is None or not weights.size:
        raise UnsupportedError("there are no weights; Caffe needs them")
    return np.asarray(weights, np.float32)


def _bias(site: Site, position: int = 2) -> Singles | None:
    bias = site.constant(position)
    return None if bias is None else np.asarray(bias, np.float32).reshape(-1)


def max_pool(site: Site) -> list[CaffeLayer]:
    """MAX_POOL_2D, where Caffe's windows are the same."""
    return _pool(site, "MAX")


def average_pool(site: Site) -> list[CaffeLayer]:
    """AVERAGE_POOL_2D without padding: readers of Caffe differ in what they divide a cut window by."""
    return _pool(site, "AVE")


def reduced(kind: str, is_sum: bool = False, is_least: bool = False) -> Callable[[Site], list[CaffeLayer]]:
    """Return the builder of a reduction: a pool over height and width; channels through Permute.

    The least number is minus the largest of the negated ones.

    Raises:
        UnsupportedError: the batch is among the axes.
    """

    def build(site: Site) -> list[CaffeLayer]:
        height, width, channels = site.image()
        rank, axes = len(site.shape), site.constant(1)
        found = sorted({int(a) % rank for a in axes.reshape(-1)}) if axes is not None else []
        places = {site.axis(a, rank) if a else 0 for a in found}
        if not places or 0 in places:
            raise UnsupportedError(f"a reduction of {found} of {rank} sizes; NNIE has no operation on the batch")
        kernel = (height if 2 in places else 1, width if 3 in places else 1)
        steps: list[Step] = []
        if kernel != (1, 1) or 1 not in places:
            steps.append(_over(kind, kernel))
        if 1 in places:  # [N, H, W, C] has the channels where a pool has columns
            steps += [TO_LAST, _over(kind, (1, channels)), TO_LAST, TO_LAST]
        if is_sum:
            steps.append(power_step(kernel[0] * kernel[1] * (channels if 1 in places else 1)))
        left = (site.batch, height // kernel[0], width // kernel[1], 1 if 1 in places else channels)
        if left != site.output_image():
            steps += reshape_steps(left, site.output_image())
        turned = [power_step(-1)] if is_least else []
        return site.chain(*turned, *steps, *turned)

    return build


def _over(kind: str, kernel: tuple[int, int]) -> Step:
    if max(kernel) > limits().largest_kernel:
        raise UnsupportedError(f"a window of {kernel}; NNIE takes up to {limits().largest_kernel} each way")
    return ("Pooling", {"pooling_param": _fields(kind, kernel, (1, 1), (0, 0))}, ())


def upsample(site: Site) -> list[CaffeLayer]:
    """RESIZE_NEAREST_NEIGHBOR by 2: a Deconvolution of 2x2 ones, stride 2, one group a channel."""
    height, width, channels = site.image()
    output = site.graph.tensors[site.node.outputs[0]].shape
    factor = limits().upsampling
    flags = [site.node.attributes.boolean(name, False) for name in ("align_corners", "half_pixel_centers")]
    if output[1:3] != (factor * height, factor * width) or flags[0]:
        raise UnsupportedError(
            f"resize from {height}x{width} to {output[1]}x{output[2]}; NNIE takes nearest neighbors of {factor} times"
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
    needed = [(n - 1) * s + k for n, s, k in zip(output, window.stride, kernel, strict=True)]
    kept = {a: range(n) for a, n, size in zip((2, 3), needed, (height, width), strict=True) if n < size}
    if kept and not any(window.padding):  # rows that no window reads: Caffe would make an output of them
        name = f"{site.name}_fit"
        front = cut(name, site.bottoms[0], name, kept, {2: height, 3: width})
        parameters: dict[str, Parameter] = {"pooling_param": _fields(kind, kernel, window.stride, pad)}
        return [*front, CaffeLayer(site.name, "Pooling", (name,), (site.top,), parameters), *site.rectifier()]
    sizes = [_caffe_size(s, k, p, t) for s, k, p, t in zip((height, width), kernel, pad, stride, strict=True)]
    if tuple(sizes) != output:
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
