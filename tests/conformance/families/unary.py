"""Functions of one tensor, element by element or along its last axis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.conformance import draws as d
from tests.conformance.case import Case, node_case
from tests.conformance.cells import Cell
from tests.conformance.draws import Draw
from tests.support.nodes import Result, sampled
from tflq.graph import Affine, Attribute, DType

INT8, UINT8, INT16, FLOAT32 = DType.INT8, DType.UINT8, DType.INT16, DType.FLOAT32
_STATED = {
    ("logistic", INT8): (1 / 256, -128), ("logistic", UINT8): (1 / 256, 0), ("logistic", INT16): (1 / 32768, 0),
    ("tanh", INT16): (1 / 32768, 0),
    ("softmax", INT8): (1 / 256, -128), ("softmax", UINT8): (1 / 256, 0), ("softmax", INT16): (1 / 32768, 0),
    ("log_softmax", INT8): (1 / 16, 127), ("log_softmax", UINT8): (1 / 16, 255),
    ("l2_normalization", INT8): (1 / 128, 0), ("l2_normalization", UINT8): (1 / 128, 128),
}  # fmt: skip
_SCALES = {
    "gelu": (-10, 0), "abs": (-12, 2), "exp": (-12, 2), "log": (-12, 2), "sqrt": (-12, 2), "rsqrt": (-12, 2),
    "elu": (-10, 0), "log_softmax": (-12, 1), "softmax": (-10, 2), "hard_swish": (-8, -2),
}  # fmt: skip
_ROWS = ("softmax", "log_softmax", "l2_normalization")
_ROOTS = ("sqrt", "rsqrt")


def function(draw: Draw, cell: Cell) -> Case:
    shape = d.shape_of(draw, 3, 40) if cell.operator in _ROWS else d.shape_of(draw, 4, 9)
    low, high = _SCALES.get(cell.operator, (-12, 2))
    source = d.quantization(draw, cell.kind, low, high)
    x = d.data(draw, cell, shape, source)
    if source is not None and cell.operator in _ROOTS:
        x = sampled(np.maximum(x.value, x.value.dtype.type(source.zero_point[0])), source)
    target = _target(draw, cell, source, low, high)
    return node_case(cell.operator, [x], [d.result(cell, target)], **_attributes(draw, cell))


def _target(draw: Draw, cell: Cell, source: Affine | None, low: int, high: int) -> Affine | None:
    stated = _STATED.get((cell.operator, cell.dtype))
    if source is None or cell.operator == "neg":
        return source
    if stated is not None:
        return d.affine(cell.dtype, *stated)
    return d.quantization(draw, cell.kind, low, high)


def _attributes(draw: Draw, cell: Cell) -> dict[str, Attribute]:
    if cell.operator == "gelu":
        return {"approximate": d.flag(draw)}
    if cell.operator == "leaky_relu":
        return {"alpha": float(np.float32(draw(st.floats(-1, 2, width=32))))}
    if cell.operator == "softmax":
        return {"beta": float(np.float32(d.pick(draw, [1.0, 0.1, 0.5, 2.0])))}
    return {}


def raw(draw: Draw, cell: Cell) -> Case:
    """Operators that give the type of their input and look at no scale, or give no data at all."""
    x = d.data(draw, cell, d.shape_of(draw))
    if cell.operator in ("real", "imag", "complex_abs"):
        return node_case(cell.operator, [x], [DType.FLOAT32 if cell.dtype is DType.COMPLEX64 else DType.FLOAT64])
    return node_case(cell.operator, [x], [cell.dtype])


def about(draw: Draw, cell: Cell) -> Case:
    """RANK and SHAPE."""
    x = d.data(draw, cell, d.shape_of(draw))
    if cell.operator == "rank":
        return node_case("rank", [x], [DType.INT32])
    kind = DType.INT64 if d.flag(draw) else DType.INT32
    return node_case("shape", [x], [kind], out_type=kind.value)


def normalization(draw: Draw, cell: Cell) -> Case:
    shape = (d.whole(draw, 1, 2), d.whole(draw, 1, 4), d.whole(draw, 1, 4), d.whole(draw, 1, 12))
    options = {"radius": d.whole(draw, 0, 5), "bias": 1.0, "alpha": d.pick(draw, [0.25, 1.0]), "beta": 0.5}
    return node_case(cell.operator, [d.data(draw, cell, shape)], [cell.dtype], **options)


def fake_quant(draw: Draw, cell: Cell) -> Case:
    low, high = -float(d.whole(draw, 0, 20)) / 4, float(d.whole(draw, 1, 20)) / 4
    options: dict[str, Attribute] = {"min": low, "max": high, "num_bits": d.whole(draw, 2, 16), "narrow_range": False}
    return node_case(cell.operator, [d.data(draw, cell, d.shape_of(draw))], [cell.dtype], **options)


def cast(draw: Draw, cell: Cell) -> Case:
    names = [
        "float32",
        "float64",
        "float16",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "bool",
        "complex64",
    ]
    target = DType(str(d.pick(draw, names)))
    stated = {"in_data_type": cell.dtype.value, "out_data_type": target.value}
    return node_case("cast", [d.data(draw, cell, d.shape_of(draw))], [target], **stated)


def bitcast(draw: Draw, cell: Cell) -> Case:
    kinds = [
        t
        for t in DType
        if t.bits == cell.dtype.bits and t.storage.kind in "iuf" and "loat8" not in t.value and "bfloat" not in t.value
    ]
    return node_case("bitcast", [d.data(draw, cell, d.shape_of(draw))], [d.pick(draw, kinds)])


def bucketize(draw: Draw, cell: Cell) -> Case:
    boundaries = np.sort(d.numbers(draw, DType.FLOAT32, (d.whole(draw, 0, 6),))[0])
    x = d.data(draw, cell, d.shape_of(draw), bound=20)
    return node_case("bucketize", [x], [DType.INT32], boundaries=boundaries)


def quantize(draw: Draw, cell: Cell) -> Case:
    shape = d.shape_of(draw, 4, 9)
    if cell.dtype is FLOAT32 or cell.dtype is DType.INT4:
        target = cell.dtype if cell.is_quantized else DType(str(d.pick(draw, ["int8", "uint8", "int16"])))
        q = _channels(draw, target, shape)
        reals = d.numbers(draw, INT16, shape).astype(np.float32) / 100 * q.scale[0]
        return node_case("quantize", [sampled(reals)], [Result(target, q)], shape=shape)
    kinds = {INT8: (INT8, UINT8, INT16), UINT8: (INT8, UINT8, INT16), INT16: (INT8, INT16, DType.INT32)}
    target = draw(st.sampled_from(kinds.get(cell.dtype, (INT8, INT16))))
    low = -20 if cell.dtype.bits > 8 else -12
    source, into = d.quantization(draw, cell.kind, low, 0), d.quantization(draw, target, low, 2)
    return node_case("quantize", [d.data(draw, cell, shape, source)], [Result(target, into)])


def dequantize(draw: Draw, cell: Cell) -> Case:
    shape = d.shape_of(draw, 4, 9)
    q = None
    if cell.is_quantized:
        q = _channels(draw, cell.dtype, shape) if cell.dtype.bits == 8 else d.quantization(draw, cell.kind)
    return node_case("dequantize", [d.data(draw, cell, shape, q)], [DType.FLOAT32])


def _channels(draw: Draw, dtype: DType, shape: tuple[int, ...]) -> Affine:
    """One scale, or one for each channel of some axis."""
    one = d.quantization(draw, dtype)
    assert one is not None
    axis = d.whole(draw, -1, len(shape) - 1)
    if axis < 0:
        return one
    rng = np.random.default_rng(d.whole(draw, 0, 999))
    count = shape[axis]
    zeros = rng.integers(dtype.minimum, dtype.maximum, count) if dtype.bits <= 8 else np.zeros(count, np.int64)
    scale = (one.scale[0] * rng.uniform(0.5, 1, count)).astype(np.float32)
    return Affine(scale, zeros, axis, dtype.bits, dtype.is_signed)
