"""Networks that faults are planted in: files where there are some, and networks drawn at random."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tests.support.faults import DIGITS
from tflq.converters.settled import settled_model
from tflq.converters.tflite import read_model
from tflq.graph import Affine, DType, GraphBuilder, Model

FILES = {
    "kws": "kws_ref_model.tflite",
    "ad": "ad01_int8.tflite",
    "vww": "vww_96_int8.tflite",
    "resnet": "pretrainedResnet_quant.tflite",
    "sww": "str_ww_ref_model.tflite",
}


def network(name: str, seed: int) -> Model | None:
    """Return a network by name; None where its file is not on this machine."""
    if name == "digits":
        return read_model(DIGITS)
    if name == "sheets":
        return Model([sheet_network(np.random.default_rng(seed))], source="sheets.tflite")
    if name.startswith("random"):
        return Model([random_network(np.random.default_rng([seed, int(name[6:])]))], source=f"{name}.tflite")
    if name.startswith("keras:"):
        path = Path(os.environ.get("TFLQ_DATA", ""), "cases", "keras", "files", f"{name[6:]}.int8.tflite")
        return settled_model(read_model(path)) if os.environ.get("TFLQ_DATA") and path.exists() else None
    path = Path(os.environ.get("TFLQ_DATA", ""), "models", FILES[name])
    return read_model(path) if os.environ.get("TFLQ_DATA") and path.exists() else None


def random_network(rng: np.random.Generator):
    """Convolutions, depthwise and 1x1 ones, sums with a branch, pools, a dense layer, softmax: drawn."""
    b = GraphBuilder("drawn")
    height, width, depth = int(rng.integers(9, 15)), int(rng.integers(8, 13)), int(rng.choice([1, 3]))
    zero = int(rng.integers(-20, 20))
    scale = np.float32(rng.uniform(0.01, 0.04))
    q = Affine.per_tensor(scale, zero)
    t, shape = b.input("image", (1, height, width, depth), DType.INT8, q), (1, height, width, depth)
    for i in range(int(rng.integers(3, 6))):
        kind = rng.choice(["conv_2d", "depthwise_conv_2d", "pointwise", "sum", "pool"]) if i else "conv_2d"
        t, shape, q = _layer(b, rng, str(kind), t, shape, q)
    t, shape, q = _layer(b, rng, "average", t, shape, q)
    flat = (1, int(np.prod(shape)))
    t = b.add("reshape", [t], flat, DType.INT8, q, new_shape=flat)
    t, q = _dense(b, rng, t, flat[1], q, int(rng.integers(4, 11)))
    out = (1, b._graph.tensors[t].shape[1])
    t = b.add("softmax", [t], out, DType.INT8, Affine.per_tensor(np.float32(1 / 256), -128), beta=1.0)
    return b.build([t])


def sheet_network(rng: np.random.Generator):
    """A convolution of stride 2, a PAD, a resize, and an ADD that saturates; the scales of the last three are equal."""
    b = GraphBuilder("sheets")
    q = Affine.per_tensor(np.float32(0.03), -5)
    t, _, q = _filter(b, rng, "conv_2d", b.input("image", (1, 8, 8, 2), DType.INT8, q), (1, 8, 8, 2), q, 4, 3, 2)
    sides = b.constant("sides", np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    t = b.add("pad", [t, sides], (1, 6, 6, 4), DType.INT8, q)
    size = b.constant("size", np.array([9, 9], np.int32))
    options = {"align_corners": False, "half_pixel_centers": True}
    t = b.add("resize_nearest_neighbor", [t, size], (1, 9, 9, 4), DType.INT8, q, **options)
    t = b.add("add", [t, t], (1, 9, 9, 4), DType.INT8, q, fused_activation_function="none")
    u = b.add("relu6", [t], (1, 9, 9, 4), DType.INT8, Affine.per_tensor(np.float32(6 / 255), -128))
    u = b.add("quantize", [u], (1, 9, 9, 4), DType.INT8, q)
    return b.build([b.add("concatenation", [t, u], (1, 9, 9, 8), DType.INT8, q, axis=3)])


def _layer(b, rng, kind, t, shape, q):
    _, h, w, c = shape
    if kind == "sum":
        branch, _, q2 = _filter(b, rng, "conv_2d", t, shape, q, c, 3, 1)
        out = Affine.per_tensor(np.float32(max(q.scale[0], q2.scale[0]) * 1.3), int(rng.integers(-30, 30)))
        act = str(rng.choice(["none", "relu"]))
        return b.add("add", [t, branch], shape, DType.INT8, out, fused_activation_function=act), shape, out
    if kind in ("pool", "average"):
        k = 2 if min(h, w) > 3 else 1
        pooled = (1, -(-h // k), -(-w // k), c)
        op = "average_pool_2d" if kind == "average" else "max_pool_2d"
        size = {"filter_width": k + 1, "filter_height": k + 1, "stride_w": k, "stride_h": k}
        made = b.add(op, [t], pooled, DType.INT8, q, padding="same", fused_activation_function="none", **size)
        return made, pooled, q
    if kind == "pointwise":
        return _filter(b, rng, "conv_2d", t, shape, q, int(rng.choice([8, 12, 16])), 1, 1)
    stride = int(rng.choice([1, 2])) if min(h, w) > 5 else 1
    outputs = c if kind == "depthwise_conv_2d" else int(rng.choice([8, 12, 16]))
    return _filter(b, rng, kind, t, shape, q, outputs, 3, stride)


def _filter(b, rng, kind, t, shape, q, outputs, k, stride):
    _, h, w, c = shape
    depthwise = kind == "depthwise_conv_2d"
    taps = k * k * (1 if depthwise else c)
    data = np.clip(np.rint(rng.normal(0, 45, (1, k, k, outputs) if depthwise else (outputs, k, k, c))), -127, 127)
    scales = rng.uniform(0.003, 0.012, outputs).astype(np.float32)
    weights = b.constant(
        f"w{t}", data.astype(np.int8), Affine(scales, np.zeros(outputs, np.int64), 3 if depthwise else 0)
    )
    reach = 127 * float(q.scale[0]) * 45 * float(scales.mean()) * np.sqrt(taps) * 0.6
    bias_scale = (q.scale[0] * scales).astype(np.float32)
    real = rng.normal(0, reach / 3, outputs)
    bias = b.constant(
        f"b{t}", np.rint(real / bias_scale).astype(np.int32), Affine(bias_scale, np.zeros(outputs, np.int64), 0)
    )
    act = str(rng.choice(["relu", "relu", "none", "relu6"]))
    out = Affine.per_tensor(np.float32(reach / 150), -128 if act != "none" else int(rng.integers(-40, 40)))
    made = (1, -(-h // stride), -(-w // stride), outputs)
    extra = {"depth_multiplier": 1} if depthwise else {}
    attributes = {"padding": "same", "stride_w": stride, "stride_h": stride, "dilation_w_factor": 1}
    y = b.add(
        kind,
        [t, weights, bias],
        made,
        DType.INT8,
        out,
        fused_activation_function=act,
        dilation_h_factor=1,
        **attributes,
        **extra,
    )
    return y, made, out


def _dense(b, rng, t, depth, q, outputs):
    data = np.clip(np.rint(rng.normal(0, 40, (outputs, depth))), -127, 127).astype(np.int8)
    scale = np.float32(rng.uniform(0.003, 0.01))
    weights = b.constant("dense/w", data, Affine.per_tensor(scale, 0))
    bias_scale = np.float32(q.scale[0] * scale)
    bias = b.constant("dense/b", rng.integers(-9000, 9000, outputs).astype(np.int32), Affine.per_tensor(bias_scale, 0))
    out = Affine.per_tensor(np.float32(0.12), int(rng.integers(-30, 30)))
    y = b.add("fully_connected", [t, weights, bias], (1, outputs), DType.INT8, out, fused_activation_function="none")
    return y, out
