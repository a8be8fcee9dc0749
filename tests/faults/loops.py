"""Faults of memory and loops: blocks of channels, longer rows, lost bits, kernels cut short, windows and tables off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.faults import device
from tests.faults.case import Case, Plant, Planted, Values
from tests.faults.planted import dumped, given_input, layer_fault, operator_fault
from tflq.diagnosis.compare.isolated import run_node
from tflq.errors import TflqError
from tflq.interpreter.registry import kernel

_CURVES = (
    "logistic",
    "tanh",
    "hard_swish",
    "leaky_relu",
    "elu",
    "gelu",
    "silu",
    "exp",
    "sigmoid",
    "activation",
    "curve",
)
_WINDOWS = ("average_pool_2d", "max_pool_2d", "conv_2d", "depthwise_conv_2d", "convolution", "pooling")
_SUMS = ("add", "concatenation", "eltwise", "concat", "mul", "sub")


def _blocks(k: int) -> Callable[[Case, np.ndarray, int], np.ndarray | None]:
    def change(_c: Case, a: np.ndarray, _t: int) -> np.ndarray | None:
        if a.ndim != 5 or a.shape[-1] % k or a.shape[-1] == k:
            return None
        return a.reshape(len(a), -1, a.shape[-1] // k, k).transpose(0, 2, 1, 3).reshape(a.shape)

    return change


def _interleaved(_c: Case, a: np.ndarray, _t: int) -> np.ndarray | None:
    half = a.shape[-1] // 2
    if a.shape[-1] % 2 or half < 3:
        return None
    made = np.empty_like(a)
    made[..., 0::2], made[..., 1::2] = a[..., :half], a[..., half:]
    return made


def _pitch(c: Case, a: np.ndarray, _t: int) -> np.ndarray | None:
    if a.shape[2] < 3:
        return None
    row = a.shape[3] * a.shape[4]
    wide = np.zeros((len(a), a.shape[2], row + int(c.rng.integers(1, min(9, row))) if row > 1 else 2), a.dtype)
    wide[:, :, :row] = a.reshape(len(a), -1, row)
    return wide.reshape(len(a), -1)[:, : a[0].size].reshape(a.shape)


def _bytes_of(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Case, np.ndarray, int], np.ndarray | None]:
    def changed(_c: Case, a: np.ndarray, _t: int) -> np.ndarray | None:
        return change(np.ascontiguousarray(a).view(np.uint8)).view(a.dtype) if a.dtype.itemsize == 1 else None

    return changed


def _turned(u: np.ndarray) -> np.ndarray:
    return np.packbits(np.unpackbits(u[..., None], axis=-1)[..., ::-1], axis=-1)[..., 0]


def _seven_bits(_c: Case, a: np.ndarray, _t: int) -> np.ndarray | None:
    return np.clip(a, -64, 63) if a.dtype == np.int8 else None


def _first_sample(_c: Case, a: np.ndarray, _t: int) -> np.ndarray:
    return np.broadcast_to(a[:1], a.shape).copy()


def _compiled(layer: device.Layer, w: np.ndarray) -> dict:
    """Other weights, the zero point folded into the bias as a compiler would for them."""
    sums = (layer.w.astype(np.int64) - w).reshape(len(w), -1).sum(axis=1)
    return {"w": w, "bias": layer.bias + layer.zi * sums}


def _weights_of(change: Callable[[Case, np.ndarray], np.ndarray | None], says: str) -> Plant:
    def changed(c: Case, layer: device.Layer) -> dict | None:
        w = change(c, layer.w.astype(np.int64))
        return None if w is None else _compiled(layer, w)

    return layer_fault(changed, says)


def _column_lost(_c: Case, w: np.ndarray) -> np.ndarray | None:
    if w.ndim != 4 or w.shape[2] < 2:
        return None
    made = w.copy()
    made[:, :, -1] = 0
    return made


def _depth_lost(_c: Case, w: np.ndarray) -> np.ndarray | None:
    if w.shape[-1] < 8:
        return None
    made = w.copy()
    made[..., -(w.shape[-1] // 4) :] = 0
    return made


def _products_lost(_c: Case, layer: device.Layer) -> dict | None:
    """The last quarter of the input is not multiplied; the bias still holds the zero point for it."""
    depth = layer.w.shape[-1]
    if depth < 8 or layer.groups > 1:
        return None
    x = layer.x.reshape(*layer.x.shape[:-1], -1, depth).copy()
    x[..., -(depth // 4) :] = 0
    return {"x": x.reshape(layer.x.shape)} if layer.window is None or not layer.window.top else None


def _lanes(_c: Case, w: np.ndarray) -> np.ndarray | None:
    if w.shape[-1] % 4:
        return None
    return w.reshape(*w.shape[:-1], -1, 4)[..., ::-1].reshape(w.shape)


def _shifted(axis: int, k: int) -> Callable[[Case, int, Values], np.ndarray | None]:
    def change(c: Case, i: int, values: Values) -> np.ndarray | None:
        node = c.graph.nodes[i]
        t = node.inputs[0]
        x = values[t]
        if x.ndim != 5 or x.shape[axis] < 3:
            return None
        quantization = c.graph.tensors[t].quantization
        made = np.roll(x, -k, axis)
        edge = 0 if quantization is None else quantization.zero_point[0]
        np.moveaxis(made, axis, 0)[-1 if k > 0 else 0] = edge
        return run_node(node, {**values, t: made})[node.outputs[0]]

    return change


def _last_row(c: Case, i: int, values: Values) -> np.ndarray | None:
    node = c.graph.nodes[i]
    x = values[node.inputs[0]]
    if x.ndim != 5 or x.shape[2] < 2:
        return None
    made = x.copy()
    made[:, :, -1] = made[:, :, -2]
    return run_node(node, {**values, node.inputs[0]: made})[node.outputs[0]]


def _entry(k: int) -> Callable[[Case, int, Values], np.ndarray | None]:
    def change(c: Case, i: int, values: Values) -> np.ndarray | None:
        node = c.graph.nodes[i]
        x = values[node.inputs[0]]
        if x.dtype.itemsize != 1 or x.shape[1:] != c.graph.tensors[c.out(i)].shape:
            return None
        moved = (x.view(np.uint8) + np.uint8(k)).view(x.dtype)
        return run_node(node, {**values, node.inputs[0]: moved})[node.outputs[0]]

    return change


def _like_output(which: int) -> Callable[[Case, int, Values], np.ndarray | None]:
    def change(c: Case, i: int, values: Values) -> np.ndarray | None:
        graph = c.graph.copy()
        node, tensors = graph.nodes[i], graph.tensors
        read = [t for t in node.inputs if not tensors[t].is_constant]
        out = tensors[node.outputs[0]].quantization
        if len(read) < 2 or out is None or tensors[read[which]].quantization is None:
            return None
        tensors[read[which]] = replace(tensors[read[which]], quantization=out)
        try:
            params = kernel(node.arithmetic, node.operator).lower(node, graph.operands(i))
        except TflqError:
            return None
        return run_node(replace(node, params=params), values)[node.outputs[0]]

    return change


def _filled(c: Case, i: int, values: Values) -> np.ndarray | None:
    node = c.graph.nodes[i]
    x = values[node.inputs[0]]
    ends = [np.full_like(x, end) for end in (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)]
    low, high = (run_node(node, {**values, node.inputs[0]: end})[node.outputs[0]] for end in ends)
    sound = run_node(node, values)[node.outputs[0]]
    return np.where(low == high, np.zeros_like(sound), sound) if (low == high).any() else None


def _other_side(_c: Case, layer: device.Layer) -> dict | None:
    v = layer.window
    if v is None or (v.top == v.bottom and v.left == v.right):
        return None
    return {"window": replace(v, top=v.bottom, bottom=v.top, left=v.right, right=v.left)}


def _corners(c: Case, i: int, values: Values) -> np.ndarray | None:
    """Nearest pixels by their upper left corners; the layer takes them by their centers."""
    node = c.graph.nodes[i]
    if not node.attributes.get("half_pixel_centers"):
        return None
    x, (_, height, width, _) = values[node.inputs[0]], c.graph.tensors[c.out(i)].shape
    rows, columns = (np.arange(n) * x.shape[axis] // n for axis, n in ((2, height), (3, width)))
    return x[:, :, rows][:, :, :, columns]


def _overflow(c: Case, i: int, values: Values) -> np.ndarray | None:
    """A sum of 8 bits that wraps, where all scales are equal."""
    node, tensors = c.graph.nodes[i], c.graph.tensors
    if c.graph.nodes[i].arithmetic not in (None, "", "tflite"):
        return None
    affine = [tensors[t].affine for t in (*node.inputs, *node.outputs)]
    if len({float(a.scale[0]) for a in affine}) > 1:
        return None
    x, y, z = (int(a.zero_point[0]) for a in affine)
    total = sum(values[t].astype(np.int64) for t in node.inputs) - x - y + z
    return total.astype(np.int8)


def _another_library(c: Case) -> Planted | None:
    """A float32 tensor of another library: each number is the next one below."""
    i = c.pick(lambda i: c.sound[c.out(i)].dtype == np.float32)
    if i is None:
        return None
    t = c.out(i)
    return Planted({**c.sound, t: np.nextafter(c.sound[t], np.float32(-np.inf))}, t, r"differ only by float32 rounding")


def _brighter(c: Case, x: np.ndarray) -> np.ndarray | None:
    if x.dtype.itemsize > 1:
        return None
    kind = np.iinfo(x.dtype)
    return np.clip(x.astype(int) + int(c.rng.integers(3, 30)), kind.min, kind.max).astype(x.dtype)


FAULTS: dict[str, Plant] = {
    "NC4HW4": dumped(_blocks(4), r"blocks of 4|permuted"),
    "NC8HW8": dumped(_blocks(8), r"blocks of 8|permuted"),
    "interleaved": dumped(_interleaved, r"interleaved|at a distance of|permuted"),
    "row pitch": dumped(_pitch, r"elements longer than they are read"),
    "lowest bit": dumped(_bytes_of(lambda u: u & np.uint8(254)), r"lowest bit", False),
    "nibbles": dumped(_bytes_of(lambda u: (u << np.uint8(4)) | (u >> np.uint8(4))), r"halves of 4 bits", False),
    "bits reversed": dumped(_bytes_of(_turned), r"bits are in reverse", False),
    "7 bits": dumped(_seven_bits, r"saturated to 7 bits", False),
    "first sample in all": dumped(_first_sample, r"dump contains sample 0 in every sample", False),
    "weights of 4 bits": _weights_of(lambda _c, w: w >> 4 << 4, r"have 4 bits"),
    "weights negated": _weights_of(lambda _c, w: -w, r"negated|times -1"),
    "lanes of 4": _weights_of(_lanes, r"words of 32 bits"),
    "column of the kernel lost": _weights_of(_column_lost, r"last column of the kernel"),
    "last inputs lost": _weights_of(_depth_lost, r"input channels do not count"),
    "last products lost": layer_fault(_products_lost, r"do not count, except in the zero point's share"),
    "window a row off": operator_fault(_WINDOWS, _shifted(2, 1), r"one row too low"),
    "window a column off": operator_fault(_WINDOWS, _shifted(3, -1), r"one column too far left"),
    "last row twice": operator_fault(_WINDOWS, _last_row, r"as the one before"),
    "table one up": operator_fault(_CURVES, _entry(1), r"one entry too far up"),
    "table by sign": operator_fault(_CURVES, _entry(128), r"other sign of its index|128"),
    "input 1 not rescaled": operator_fault(_SUMS, _like_output(0), r"rescaled|encoding|scale"),
    "input 2 not rescaled": operator_fault(_SUMS, _like_output(-1), r"rescaled|encoding|scale"),
    "filled with 0": operator_fault(("pad", "padv2"), _filled, r"filling is 0"),
    "padding on the other side": layer_fault(_other_side, r"padding of the .* on the other side"),
    "resize by corners": operator_fault(("resize_nearest_neighbor",), _corners, r"at their upper left corners"),
    "sum wraps": operator_fault(("add",), _overflow, r"wraps instead of saturating"),
    "another library": _another_library,
    "input brighter": given_input(_brighter, r"too high, saturated|zero point"),
}
