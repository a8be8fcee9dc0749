"""Faults of buffers, tiles and constants from a wrong place, as a device with tiles and DMA makes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.faults import device
from tests.faults.case import Case, Plant, Planted, Values
from tests.faults.planted import _bias, _weights, operator_fault
from tflq.diagnosis.compare.isolated import run_node

_FILTERS = ("conv_2d", "convolution")
_POOLS = (*_FILTERS, "depthwise_conv_2d", "max_pool_2d", "average_pool_2d")


def _dumped(change: Callable[[Case, np.ndarray, int], np.ndarray | None], says: str) -> Plant:
    """A fault of the dump of one image: of the first one, in random order, that it shows in."""

    def plant(c: Case) -> Planted | None:
        for i in c.rng.permutation(len(c.graph.nodes)).tolist():
            t = c.out(i)
            image = c.sound.get(t)
            made = None if image is None or image.ndim != 5 else change(c, image, t)
            if made is not None and not np.array_equal(made, c.sound[t]):
                return Planted({**c.sound, t: np.ascontiguousarray(made)}, t, says)
        return None

    return plant


def _exchanged(_c: Case, a: np.ndarray, _t: int) -> np.ndarray | None:
    return a[[1, 0, *range(2, len(a))]] if len(a) > 2 else None


def _crop(_c: Case, a: np.ndarray, _t: int) -> np.ndarray | None:
    return np.roll(a, (1, 1), (2, 3)) if min(a.shape[2:4]) > 4 else None


def _early_clamp(c: Case, a: np.ndarray, t: int) -> np.ndarray | None:
    quantization = c.graph.tensors[t].quantization
    if a.dtype != np.int8 or quantization is None or not 5 < abs(int(c.graph.tensors[t].affine.zero_point[0])) < 120:
        return None
    zero = int(c.graph.tensors[t].affine.zero_point[0])
    return np.clip(a.astype(int), max(-128, zero - 128), min(127, zero + 127)).astype(np.int8)


def _rows_before(_c: Case, a: np.ndarray, _t: int) -> np.ndarray | None:
    if a.shape[2] < 8:
        return None
    made = a.copy()
    made[:, :, 4:8] = a[:, :, 0:4]
    return made


def _overlap(c: Case, a: np.ndarray, t: int) -> np.ndarray | None:
    later = [o for o, b in c.sound.items() if o > t and b.dtype == a.dtype and b[0].size * 2 >= a[0].size >= 64]
    if not later:
        return None
    flat, other = a.reshape(len(a), -1).copy(), c.sound[later[0]].reshape(len(a), -1)
    tail = flat.shape[1] // 3
    flat[:, -tail:] = other[:, :tail]
    return flat.reshape(a.shape)


def _word_off(_c: Case, w: np.ndarray) -> np.ndarray | None:
    return np.roll(w.reshape(-1), 4).reshape(w.shape) if w[0].size not in (2, 4) else None


def _shifted_bias(bias: np.ndarray) -> np.ndarray:
    return bias >> 4


def _row_changed(change: Callable[[np.ndarray, int], None]) -> Callable[[Case, int, Values], np.ndarray | None]:
    """A fault of the rows that a filter reads; the row is in the middle of the image."""

    def changed(c: Case, i: int, values: Values) -> np.ndarray | None:
        node = c.graph.nodes[i]
        t = node.inputs[0]
        x = values[t]
        if x.ndim != 5 or x.shape[2] < 6:
            return None
        made = np.array(x)
        change(made, x.shape[2] // 2)
        return run_node(node, {**values, t: made})[node.outputs[0]]

    return changed


def _stale(x: np.ndarray, row: int) -> None:
    x[:, :, row] = x[:, :, row - 1]


def _halo(c: Case, i: int, values: Values) -> np.ndarray | None:
    """The output row in the middle lacks the input rows beyond a border in its windows."""
    node = c.graph.nodes[i]
    t = node.inputs[0]
    x, affine = values[t], c.graph.tensors[t].quantization
    if x.ndim != 5 or x.shape[2] < 6 or affine is None:
        return None
    border, sound = x.shape[2] // 2, run_node(node, values)[node.outputs[0]]
    made = np.array(x)
    made[:, :, border:] = c.graph.tensors[t].affine.zero_point[0]
    lost = run_node(node, {**values, t: made})[node.outputs[0]]
    rows = np.flatnonzero((lost[:, :, : sound.shape[2]] != sound).any(axis=(0, 1, 3, 4)))
    if not len(rows):
        return None
    result = sound.copy()
    result[:, :, rows[0]] = lost[:, :, rows[0]]
    return result


def _half_softmax(c: Case, i: int, values: Values) -> np.ndarray | None:
    """Powers of 2 in place of powers of e."""
    node = c.graph.nodes[i]
    x, y = c.graph.tensors[node.inputs[0]], c.graph.tensors[node.outputs[0]]
    if x.quantization is None or y.quantization is None or node.attributes.get("beta") != 1.0:
        return None
    real = (values[node.inputs[0]].astype(np.float64) - x.affine.zero_point[0]) * x.affine.scale[0]
    powers = np.exp2(real - real.max(axis=-1, keepdims=True))
    ratio = powers / powers.sum(axis=-1, keepdims=True) / y.affine.scale[0]
    codes = np.floor(ratio + 0.5) + y.affine.zero_point[0]
    return np.clip(codes, -128, 127).astype(y.dtype.storage)


def _pushed(c: Case, i: int, values: Values) -> np.ndarray | None:
    """ReLU6 computed as a hard swish."""
    node = c.graph.nodes[i]
    x, y = c.graph.tensors[node.inputs[0]], c.graph.tensors[node.outputs[0]]
    if x.quantization is None or y.quantization is None:
        return None
    real = (values[node.inputs[0]].astype(np.float64) - x.affine.zero_point[0]) * x.affine.scale[0]
    ratio = real * np.clip(real / 6 + 0.5, 0, 1) / y.affine.scale[0]
    codes = np.trunc(ratio + np.copysign(0.5, ratio)) + y.affine.zero_point[0]
    return np.clip(codes, -128, 127).astype(y.dtype.storage)


def _joined(_c: Case, i: int, values: Values) -> np.ndarray | None:
    node = _c.graph.nodes[i]
    parts = [values[t] for t in node.inputs]
    if any(p.ndim != 5 or p.dtype != parts[0].dtype for p in parts):
        return None
    sound = run_node(node, values)[node.outputs[0]]
    cuts = np.cumsum([p.shape[-1] for p in parts])[:-1]
    flat = np.concatenate([p.reshape(len(sound), -1) for p in np.split(sound, cuts, axis=-1)], axis=1)
    return flat.reshape(sound.shape)


def _one_bias(c: Case) -> Planted | None:
    """One bias of a layer is 0, and the dump holds the output alone."""
    found = c.linear()
    if found is None:
        return None
    i, layer = found
    later = [n for n in c.graph.nodes[i + 1 :] if n.operator in ("conv_2d", "depthwise_conv_2d", "fully_connected")]
    if not later or not layer.plain.any():
        return None
    channel = int(np.argmax(np.abs(layer.plain.reshape(-1))))
    bias = layer.bias.copy()
    bias.reshape(-1)[channel] -= layer.plain.reshape(-1)[channel]
    read = c.graph.nodes[i].inputs[0]
    made = c.play({i: lambda v: device.run(device.replace(layer, x=v[read]), bias=bias)})
    t = c.graph.outputs[0]
    return Planted({t: made[t]}, t, rf"bias of channel {channel} is 0")


FAULTS: dict[str, Plant] = {
    "samples exchanged": _dumped(_exchanged, r"samples 0 and 1 are exchanged"),
    "crop off": _dumped(_crop, r"moved by 1 row down and 1 column to the right"),
    "clamped early": _dumped(_early_clamp, r"clamped to its type before the zero point"),
    "tile not renewed": _dumped(_rows_before, r"rows 4\.\.7.* contain the results of 4 rows before"),
    "buffers overlap": _dumped(_overlap, r"the buffers overlap"),
    "weights a word off": _weights(_word_off, r"weights are read 4 elements before"),
    "bias not shifted": _bias(_shifted_bias, r"bias is shifted to the right by 4"),
    "line not renewed": operator_fault(_POOLS, _row_changed(_stale), r"a line buffer was not advanced"),
    "halo lost": operator_fault(_FILTERS, _halo, r"a tile lacks the data beyond its border"),
    "softmax of base 2": operator_fault(("softmax",), _half_softmax, r"powers of 2"),
    "another curve": operator_fault(("relu6", "logistic", "tanh"), _pushed, r"function computed is hard swish"),
    "operands in a row": operator_fault(("concatenation",), _joined, r"one after another in memory"),
    "one bias, output alone": _one_bias,
}
"""Name -> fault."""
