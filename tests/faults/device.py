"""A linear layer as a device computes it, in plain numpy, every step open to a fault; independent of tflq's kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Layer:
    """Weights [O, KH, KW, C/groups] or [O, K]; the bias with folded zero points; y = round(total M / 2^N) + zero."""

    x: np.ndarray
    w: np.ndarray
    bias: np.ndarray
    plain: np.ndarray
    m: np.ndarray
    n: np.ndarray
    zero: int
    low: int
    high: int
    pad: int
    window: object | None
    groups: int
    rounding: str
    zi: int
    erased: int = -1
    bits: int = 0
    saturates: bool = False
    wraps: bool = False
    shape: tuple = ()
    dtype: object = np.int8


def totals(layer: Layer) -> np.ndarray:
    w = layer.w.astype(np.int64)
    if layer.window is None:
        return layer.x.reshape(len(layer.x), -1, w.shape[1]).astype(np.int64) @ w.T + layer.bias
    v = layer.window
    kh, kw = v.kernel
    image = layer.x.reshape(-1, *layer.x.shape[-3:]).astype(np.int64)
    sides = ((0, 0), (v.top, v.bottom + kh), (v.left, v.right + kw), (0, 0))
    image = np.pad(image, sides, constant_values=layer.pad)
    seen = np.lib.stride_tricks.sliding_window_view(image, (kh, kw), (1, 2))[:, :: v.stride[0], :: v.stride[1]]
    seen = seen[:, : layer.shape[1], : layer.shape[2]]
    s, h, wd = seen.shape[:3]
    g, depth = layer.groups, w.shape[3]
    cut = seen.reshape(s, h, wd, g, depth, kh, kw)
    kernels = w.reshape(g, -1, kh, kw, depth)
    return np.einsum("shwgdyx,goyxd->shwgo", cut, kernels, optimize=True).reshape(s, h, wd, -1) + layer.bias


def rounded(t: np.ndarray, m: np.ndarray, n: np.ndarray, how: str) -> np.ndarray:
    p = t * m
    if how == "floor":
        return p >> n
    if how == "half up":
        return (p + ((np.int64(1) << n) >> 1)) >> n
    if how == "half even":
        low = p >> n
        rest, half = p - (low << n), (np.int64(1) << n) >> 1
        return low + ((rest > half) | ((rest == half) & (n > 0) & (low & 1 == 1)))
    if how == "away":
        real = t.astype(np.float64) * (m * np.exp2(-n.astype(np.float64)))
        return np.trunc(real + np.copysign(0.5, real)).astype(np.int64)
    left = np.maximum(31 - n, 0)
    p = (t << left) * m
    high = np.where(p >= 0, (p + (1 << 30)) >> 31, -((-(p + 1 - (1 << 30))) >> 31))
    right = np.maximum(n - 31, 0)
    mask = (np.int64(1) << right) - 1
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0))


def run(layer: Layer, **changes) -> np.ndarray:
    layer = replace(layer, **changes)
    t = totals(layer)
    if layer.bits:
        half = np.int64(1) << (layer.bits - 1)
        t = np.clip(t, -half, half - 1) if layer.saturates else ((t + half) & (2 * half - 1)) - half
    y = rounded(t, layer.m, layer.n, layer.rounding) + layer.zero
    if layer.wraps:
        kind = np.iinfo(layer.dtype)
        y = ((np.maximum(y, layer.low) - kind.min) & 255) + kind.min
    return np.clip(y, layer.low, layer.high).astype(layer.dtype).reshape(len(layer.x), *layer.shape)


def layer_of(graph, index: int, x: np.ndarray) -> Layer | None:
    """Take the numbers of a lowered node; None where it is no linear layer of 8-bit integers."""
    node = graph.nodes[index]
    p, output = node.params, graph.tensors[node.outputs[0]]
    kind = type(p).__name__
    common = {"x": x, "shape": output.shape, "dtype": output.dtype.storage}
    if x.dtype.itemsize > 1 or output.dtype.storage.itemsize > 1:
        return None
    if kind in ("QuantizedConvolution", "FullyConnected") and getattr(p, "constants", None) is not None:
        r, c = p.rule, p.constants
        how = {"DOUBLE": "double", "REAL": "away"}.get(r.rounding.name)
        numbers = (c.rescale.bias, c.bias, r.multiplier, 31 - r.shift, r.zero_point, r.minimum, r.maximum)
        window, groups, zi, w = getattr(p, "window", None), getattr(p, "groups", 1), p.input_zero_point, c.weights
    elif kind in ("ConvolutionLayer", "ProductLayer", "ProductParams") and hasattr(p, "filter"):
        f = p.filter
        window = p.prepared.window if kind == "ConvolutionLayer" else None
        groups, w = getattr(p, "groups", 1), f.weights
        zi = int(graph.tensors[node.inputs[0]].affine.zero_point[0])
        sums = w.reshape(len(w), -1).sum(axis=1)
        if hasattr(f, "rescaling") and not f.rescaling.pre_normalization:
            r, how = f.rescaling, "half up"
            numbers = (r.bias, f.bias, r.mul_bias.multiplier, r.shift, 0, r.minimum, r.maximum)
        elif hasattr(f, "output_zero_point"):
            plain, how = f.bias + zi * sums, "half up"
            numbers = (f.bias, plain, f.rescale.multiplier, f.rescale.shift, f.output_zero_point, f.minimum, f.maximum)
        elif hasattr(f, "fused") and f.remain_shift is None and f.fused.kind in ("NONE", "RELU"):
            zi, how = f.pad, "half even"
            low = f.codes.minimum if f.fused.kind == "NONE" else max(f.codes.minimum, -f.codes.offset)
            plain = f.bias + zi * sums
            numbers = (f.bias, plain, f.rescale.m, f.rescale.n, -f.codes.offset, low, f.codes.maximum)
        else:
            return None
    else:
        return None
    if how is None or np.any(np.asarray(numbers[3]) < 0):
        return None
    bias, plain, m, n, zero, low, high = numbers
    arrays = (np.asarray(a, np.int64) for a in (bias, plain, m, n))
    if window is not None and (w.ndim != 4 or window.dilation != (1, 1)):
        return None
    if window is not None and node.operator == "depthwise_conv_2d" and kind == "ConvolutionLayer":
        w = np.moveaxis(w, 1, 3)
    stored = graph.tensors[node.inputs[1]]
    common["erased"] = 255 - int(stored.affine.zero_point[0]) if stored.dtype.storage == np.uint8 else -1
    return Layer(common.pop("x"), w, *arrays, zero, low, high, zi, window, groups, how, zi, **common)
