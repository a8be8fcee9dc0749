"""The faults: each makes a dump of a network that a device with that fault would give, and says what must be named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.faults import device
from tests.faults.case import Case, Plant, Planted, Values
from tflq.diagnosis.compare.isolated import constants_of, run_node
from tflq.errors import TflqError
from tflq.interpreter.registry import kernel


def dumped(change: Callable[[Case, np.ndarray, int], np.ndarray | None], says: str, image: bool = True) -> Plant:
    """A fault of the dump: one tensor is written wrongly, the layers behind it are sound."""

    def plant(c: Case) -> Planted | None:
        i = c.pick(lambda i: not image or (c.sound[c.out(i)].ndim == 5 and c.sound[c.out(i)].shape[2] > 1))
        if i is None:
            return None
        t = c.out(i)
        made = change(c, c.sound[t], t)
        return None if made is None else Planted({**c.sound, t: np.ascontiguousarray(made)}, t, says)

    return plant


def _bytes(a: np.ndarray, width: int) -> np.ndarray | None:
    flat = a.reshape(len(a), -1).view(np.uint8)
    if flat.shape[1] % width:
        return None
    turned = np.ascontiguousarray(flat.reshape(len(a), -1, width)[..., ::-1])
    return turned.reshape(flat.shape).view(a.dtype).reshape(a.shape)


def _other_layer(c: Case, a: np.ndarray, t: int) -> np.ndarray | None:
    same = [o for o, b in c.sound.items() if o != t and b.shape == a.shape and b.dtype == a.dtype]
    return c.sound[int(c.rng.choice(same))] if same else None


def _cut(c: Case, a: np.ndarray, _t: int) -> np.ndarray:
    flat = a.reshape(len(a), -1).copy()
    flat[:, int(c.rng.integers(flat.shape[1] // 4, flat.shape[1] * 3 // 4)) :] = 0
    return flat.reshape(a.shape)


def _rows(c: Case, a: np.ndarray, _t: int) -> np.ndarray | None:
    if len(a) < 3:
        return None
    made, rows = a.copy(), int(c.rng.integers(1, max(2, a.shape[2] // 2)))
    made[:, :, :rows] = np.roll(a, 1, 0)[:, :, :rows]
    return made


def _address(c: Case, a: np.ndarray, _t: int) -> np.ndarray:
    return np.roll(a.reshape(len(a), -1), int(c.rng.integers(1, 9)), 1).reshape(a.shape)


def _permuted(c: Case, a: np.ndarray, _t: int) -> np.ndarray | None:
    if a.shape[-1] < 4:
        return None
    made, three = a.copy(), c.rng.choice(a.shape[-1], 3, replace=False)
    made[..., three] = a[..., np.roll(three, 1)]
    return made


def _dead(c: Case, a: np.ndarray, _t: int) -> np.ndarray:
    made = a.copy()
    made[..., int(c.rng.integers(a.shape[-1]))] = 7
    return made


def _lower(c: Case, a: np.ndarray, _t: int) -> np.ndarray | None:
    if a.dtype.itemsize > 1:
        return None
    made, channel, kind = a.astype(int), int(c.rng.integers(a.shape[-1])), np.iinfo(a.dtype)
    made[..., channel] -= int(c.rng.integers(2, 20))
    return np.clip(made, kind.min, kind.max).astype(a.dtype)


def given_input(change: Callable[[Case, np.ndarray], np.ndarray | None], says: str) -> Plant:
    """A fault of the input: the whole network runs on something else."""

    def plant(c: Case) -> Planted | None:
        t = c.graph.inputs[0]
        made = change(c, c.inputs[t])
        if made is None or len(c.graph.inputs) > 1:
            return None
        found = c.play({}, {t: np.ascontiguousarray(made)})
        first = next(n for n in c.graph.nodes if t in n.inputs)
        return Planted(found, first.outputs[0], says)

    return plant


def _eight(change: Callable[[np.ndarray, np.iinfo], np.ndarray]):
    def changed(_c: Case, x: np.ndarray) -> np.ndarray | None:
        if x.dtype.itemsize > 1 or x.dtype.kind not in "iu":
            return None
        kind = np.iinfo(x.dtype)
        return np.clip(change(x.astype(int), kind), kind.min, kind.max).astype(x.dtype)

    return changed


def _image(change: Callable[[np.ndarray], np.ndarray], square: bool = False, channels: int = 1):
    def changed(_c: Case, x: np.ndarray) -> np.ndarray | None:
        if x.ndim != 5 or x.shape[-1] < channels or (square and x.shape[2] != x.shape[3]):
            return None
        return change(x).reshape(x.shape)

    return changed


def layer_fault(change: Callable[[Case, device.Layer], dict | None], says: str) -> Plant:
    """A fault of a linear layer: its result is what a device with that fault gives, and is carried on."""

    def plant(c: Case) -> Planted | None:
        found = c.linear()
        if found is None:
            return None
        i, layer = found
        changes = change(c, layer)
        if changes is None:
            return None
        read = c.graph.nodes[i].inputs[0]
        made = c.play({i: lambda v: device.run(replace(layer, x=v[read]), **changes)})
        return Planted(made, c.out(i), says)

    return plant


def _bias(change: Callable[[np.ndarray], np.ndarray], says: str):
    def changed(_c: Case, layer: device.Layer) -> dict:
        return {"bias": layer.bias - layer.plain + change(layer.plain)}

    return layer_fault(changed, says)


def _weights(change: Callable[[Case, np.ndarray], np.ndarray | None], says: str):
    """Other weights, with the zero point folded in as a compiler would for them."""

    def changed(c: Case, layer: device.Layer) -> dict | None:
        w = change(c, layer.w)
        if w is None:
            return None
        rows = len(layer.w)
        sums = layer.w.reshape(rows, -1).sum(1).astype(np.int64) - w.reshape(rows, -1).sum(1).astype(np.int64)
        return {"w": w, "bias": layer.bias + layer.zi * sums}

    return layer_fault(changed, says)


def _kernel(change: Callable[[np.ndarray], np.ndarray], square: bool = False):
    def changed(_c: Case, w: np.ndarray) -> np.ndarray | None:
        if w.ndim != 4 or w.shape[1] * w.shape[2] == 1 or (square and w.shape[1] != w.shape[2]):
            return None
        return change(w)

    return changed


def _bit(c: Case, w: np.ndarray) -> np.ndarray:
    made = w.astype(np.int8).copy()
    place = tuple(int(c.rng.integers(n)) for n in w.shape)
    made.view(np.uint8)[place] ^= np.uint8(1 << int(c.rng.integers(5, 8)))
    return made


def _stale(c: Case, w: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(w * c.rng.uniform(0.9, 1.1, w.shape) + c.rng.normal(0, 9, w.shape)), -127, 127)


def _page(c: Case, layer: device.Layer) -> dict | None:
    """Erased flash reads 0xFF: -1 where weights are signed, 255 less their zero point where not."""
    w = layer.w
    if (w.ndim == 4 and w.shape[3] == 1) or len(w) < 4:
        return None
    made, half = w.copy(), len(w) // 2
    made[half : half + max(1, half // 2)] = layer.erased
    rows = len(w)
    sums = w.reshape(rows, -1).sum(1).astype(np.int64) - made.reshape(rows, -1).sum(1).astype(np.int64)
    return {"w": made, "bias": layer.bias + layer.zi * sums}


def _scales(kind: str):
    def changed(_c: Case, layer: device.Layer) -> dict | None:
        m, n = np.broadcast_arrays(layer.m, layer.n)
        if len(set(zip(m.tolist(), n.tolist(), strict=True))) < 2 or m.size < 2 or layer.m.size < 2:
            return None
        if kind == "neighbor":
            return {"m": np.roll(m, 1), "n": np.roll(n, 1)}
        best = int(np.argmax(m * np.exp2(-n.astype(float))))
        return {"m": np.full_like(m, m[best]), "n": np.full_like(n, n[best])}

    return layer_fault(changed, r"scale|multiplier")


def _rounding(how: str, says: str):
    """Every linear layer of the network rounds otherwise."""

    def plant(c: Case) -> Planted | None:
        faults, first = {}, None
        for i, node in enumerate(c.graph.nodes):
            x = c.sound.get(node.inputs[0], c.inputs.get(node.inputs[0])) if node.inputs else None
            layer = None if x is None else device.layer_of(c.graph, i, x)
            if layer is None or not np.array_equal(device.run(layer), c.sound[c.out(i)]):
                continue
            read = node.inputs[0]
            faults[i] = lambda v, layer=layer, read=read: device.run(replace(layer, x=v[read]), rounding=how)
        made = c.play(faults)
        for i in faults:
            if first is None and not np.array_equal(made[c.out(i)], c.sound[c.out(i)]):
                first = c.out(i)
        return None if first is None else Planted(made, first, says)

    return plant


def _bits(saturates: bool):
    def changed(c: Case, layer: device.Layer) -> dict | None:
        largest = int(np.abs(device.totals(layer)).max())
        bits = largest.bit_length() - int(c.rng.integers(0, 2))
        return {"bits": bits, "saturates": saturates} if bits > 8 else None

    return layer_fault(changed, r"accumulator has \d+ bits.* and " + ("saturates" if saturates else "wraps"))


def _shifted(c: Case, layer: device.Layer) -> dict | None:
    return {"n": layer.n + int(c.rng.choice([-2, -1, 1, 2]))} if layer.n.min() > 3 else None


def _padded(c: Case, layer: device.Layer) -> dict | None:
    if layer.window is None or layer.pad == 0 or not (layer.window.top or layer.window.bottom):
        return None
    return {"pad": 0}


def _zero_point(c: Case, layer: device.Layer) -> dict | None:
    sums = layer.w.reshape(len(layer.w), -1).sum(1).astype(np.int64)
    return {"bias": layer.bias + layer.zi * sums, "pad": 0} if layer.zi else None


def operator_fault(
    names: tuple[str, ...], change: Callable[[Case, int, Values], np.ndarray | None], says: str
) -> Plant:
    """A fault of another operator, carried on."""

    def plant(c: Case) -> Planted | None:
        i = c.pick(lambda i: c.graph.nodes[i].operator in names)
        if i is None or change(c, i, {**constants_of(c.graph), **c.inputs, **c.sound}) is None:
            return None
        return Planted(c.play({i: lambda v: change(c, i, v)}), c.out(i), says)

    return plant


def _one_input(c: Case, i: int, values: Values) -> np.ndarray | None:
    node = c.graph.nodes[i]
    t = node.inputs[0]
    if len(node.inputs) < 2 or c.graph.tensors[t].quantization is None:
        return None
    nothing = np.full_like(values[t], c.graph.tensors[t].affine.zero_point[0])
    return run_node(node, {**values, t: nothing})[node.outputs[0]]


def _sharper(c: Case, i: int, values: Values) -> np.ndarray | None:
    node = c.graph.nodes[i]
    if node.attributes.get("beta") is None:
        return None
    beta = {**node.attributes, "beta": float(node.attributes["beta"]) * 2}
    changed = replace(node, attributes=type(node.attributes)(beta))
    try:
        params = kernel(node.arithmetic, node.operator).lower(changed, c.graph.operands(i))
    except TflqError:
        return None
    return run_node(replace(changed, params=params), values)[node.outputs[0]]


def _passed(c: Case, i: int, values: Values) -> np.ndarray | None:
    x, out = values[c.graph.nodes[i].inputs[0]], c.graph.tensors[c.out(i)]
    return x.copy() if x.shape[1:] == out.shape and x.dtype == out.dtype.storage else None


def _whole_window(c: Case, i: int, values: Values) -> np.ndarray | None:
    node = c.graph.nodes[i]
    p, out = node.params, c.graph.tensors[node.outputs[0]]
    if type(p).__name__ != "AveragePool" or out.dtype.storage != np.int8 or node.arithmetic != "tflite":
        return None
    x, v = values[node.inputs[0]].astype(np.int64), p.window
    kh, kw = v.kernel
    image = np.pad(x[:, 0], ((0, 0), (v.top, v.bottom + kh), (v.left, v.right + kw), (0, 0)))
    seen = np.lib.stride_tricks.sliding_window_view(image, (kh, kw), (1, 2))[:, :: v.stride[0], :: v.stride[1]]
    total = seen[:, : out.shape[1], : out.shape[2]].sum((-1, -2))
    mean = np.sign(total) * ((np.abs(total) + kh * kw // 2) // (kh * kw))
    return np.clip(mean, -128, 127).astype(np.int8)[:, None]


FAULTS: dict[str, Plant] = {
    "another layer": dumped(_other_layer, r"contains the values of"),
    "sample before": dumped(lambda c, a, t: np.roll(a, 1, 0) if len(a) > 2 else None, r"sample before", False),
    "sample behind": dumped(lambda c, a, t: np.roll(a, -1, 0) if len(a) > 2 else None, r"sample after", False),
    "CHW": dumped(lambda c, a, t: np.moveaxis(a, -1, 2).reshape(a.shape), r"stored as CHW|axes are stored"),
    "WHC": dumped(lambda c, a, t: a.transpose(0, 1, 3, 2, 4).reshape(a.shape), r"stored as WHC|axes are stored"),
    "upside down": dumped(lambda c, a, t: a[:, :, ::-1], r"rows are in reverse order"),
    "mirrored": dumped(lambda c, a, t: a[:, :, :, ::-1], r"columns are in reverse order"),
    "channels reversed": dumped(lambda c, a, t: a[..., ::-1], r"channels are in reverse|permuted|exchanged"),
    "halves": dumped(
        lambda c, a, t: np.roll(a, a.shape[-1] // 2, -1) if a.shape[-1] % 2 == 0 else None, r"halves|permuted|exchanged"
    ),
    "16-bit words": dumped(lambda c, a, t: _bytes(a, 2), r"16-bit words|permuted|exchanged"),
    "32-bit words": dumped(lambda c, a, t: _bytes(a, 4), r"32-bit words|permuted|exchanged|reverse"),
    "128 off": dumped(
        lambda c, a, t: (a.view(np.uint8) ^ np.uint8(128)).view(a.dtype) if a.dtype.itemsize == 1 else None,
        r"128 off",
        False,
    ),
    "never written": dumped(lambda c, a, t: np.zeros_like(a), r"never written|constant"),
    "cut short": dumped(_cut, r"stops at element"),
    "rows of the sample before": dumped(_rows, r"from the sample before"),
    "address": dumped(_address, r"an address is off"),
    "permuted": dumped(_permuted, r"permuted|exchanged|copies"),
    "dead": dumped(_dead, r"constant|everywhere"),
    "too low": dumped(_lower, r"too low"),
    "input BGR": given_input(_image(lambda x: x[..., ::-1], channels=2), r"reversed"),
    "input transposed": given_input(_image(lambda x: x.swapaxes(2, 3), square=True), r"rows and columns exchanged"),
    "input upside down": given_input(_image(lambda x: x[:, :, ::-1]), r"upside down"),
    "input mirrored": given_input(_image(lambda x: x[:, :, :, ::-1]), r"mirrored"),
    "input planes": given_input(_image(lambda x: np.moveaxis(x, -1, 2), channels=2), r"planes"),
    "input of another sample": given_input(lambda c, x: np.roll(x, 1, 0) if len(x) > 2 else None, r"sample before"),
    "input sign bit": given_input(_eight(lambda x, k: ((x - k.min + 128) & 255) + k.min), r"sign bit"),
    "input halved": given_input(_eight(lambda x, k: x >> 1), r"halved"),
    "input doubled": given_input(_eight(lambda x, k: x * 2), r"doubled"),
    "input / 255": given_input(_eight(lambda x, k: np.rint((x - k.min) / 255 * 127)), r"255|x / 2"),
    "bias missing": _bias(lambda b: b * 0, r"bias is missing"),
    "bias twice": _bias(lambda b: b * 2, r"bias counts twice"),
    "bias of the neighbor": _bias(lambda b: np.roll(b, 1), r"bias is that of the channel before"),
    "bias byte order": _bias(
        lambda b: b.astype(np.int32).byteswap().astype(np.int64), r"bias has the other byte order"
    ),
    "bias of 16 bits": _bias(lambda b: b.astype(np.int16).astype(np.int64), r"bias is cut to 16 bits"),
    "kernel transposed": _weights(_kernel(lambda w: w.transpose(0, 2, 1, 3), True), r"rows and columns of the kernel"),
    "kernel turned": _weights(_kernel(lambda w: w[:, ::-1, ::-1]), r"turned by 180"),
    "weights zero": _weights(lambda c, w: w * 0, r"weights are all zero|constant"),
    "one weight's bit": _weights(_bit, r"^weight|the weight \["),
    "stale weights": _weights(_stale, r"another version|have factors"),
    "erased page": layer_fault(_page, r"erased|constant"),
    "scale of the neighbor": _scales("neighbor"),
    "one scale for all": _scales("largest"),
    "rounding half up": _rounding("half up", r"rounding"),
    "no rounding": _rounding("floor", r"floor|cut toward 0"),
    "shift": layer_fault(
        lambda c, d: {"n": d.n + int(c.rng.choice([-2, -1, 1, 2]))} if d.n.min() > 3 else None, r"2\^"
    ),
    "accumulator wraps": _bits(False),
    "accumulator saturates": _bits(True),
    "result wraps": layer_fault(lambda c, d: {"wraps": True}, r"wraps"),
    "padding 0": layer_fault(_padded, r"padded with 0"),
    "input zero point": layer_fault(_zero_point, r"input's zero point"),
    "output zero point": layer_fault(lambda c, d: {"zero": 0} if d.zero else None, r"output's zero point"),
    "clamp missing": layer_fault(
        lambda c, d: {"low": np.iinfo(d.dtype).min} if d.low > np.iinfo(d.dtype).min else None,
        r"activation is omitted",
    ),
    "clamp added": layer_fault(
        lambda c, d: {"low": d.zero} if d.low < d.zero else None, r"ReLU is applied instead|lost: clamped at 0"
    ),
    "one input of a sum": operator_fault(("add", "eltwise", "mul"), _one_input, r"input 1 does not arrive"),
    "softmax scale": operator_fault(("softmax",), _sharper, r"scale is off by 2\^"),
    "nothing done": operator_fault(
        ("relu", "relu6", "softmax", "max_pool_2d", "logistic", "add"),
        _passed,
        r"does nothing|its input is stored|contains the values of|does not arrive|left out|omitted",
    ),
    "pool's count": operator_fault(("average_pool_2d",), _whole_window, r"whole window"),
}
