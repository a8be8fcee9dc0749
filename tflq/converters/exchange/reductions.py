"""Operators over axes: sums, extremes, places, orders."""

from __future__ import annotations

import numpy as np

from tflq.converters.exchange.emitter import BOOL, FLOAT32, INT32, INT64, Emitter, Rule, written_shape
from tflq.converters.exchange.moves import is_place
from tflq.errors import UnsupportedError

_OF_INTEGERS = {"ReduceAny": "ReduceMax", "ReduceAll": "ReduceMin"}
_OF_BITS = {integer: bits for bits, integer in _OF_INTEGERS.items()}


def reduced(kind: str) -> Rule:
    """Return the rule of a reduction of ONNX."""

    def rule(e: Emitter) -> None:
        rank, keep = len(e.tensor(e.node.inputs[0]).shape), e.node.attributes.boolean("keep_dims", False)
        axes = sorted({int(a) % rank for a in e.constant_at(1).reshape(-1)})
        if not axes:
            e.result(e.at(0))
            return
        x = e.at(0) if keep or axes == [1, 2] else e.plain(0)
        shape = written_shape(e.output().shape, x.is_first)
        numbers = e.whole("axes", sorted(x.axis(a) for a in axes))
        found, of_bits = x, kind
        if x.dtype == BOOL and e.has("ReduceAny"):
            of_bits = _OF_BITS.get(kind, kind)
        elif x.dtype == BOOL:
            found, of_bits = e.cast(x, INT32), _OF_INTEGERS.get(kind, kind)
        first = x.is_first and len(shape) == 4
        value = e.add(of_bits, [found, numbers], shape, first=first, keepdims=int(keep))
        e.result(e.cast(value, x.dtype))

    return rule


def place(kind: str) -> Rule:
    """Return the rule of ARG_MAX and ARG_MIN: the first of equal ones."""

    def rule(e: Emitter) -> None:
        x = e.cast(e.plain(0), INT32) if e.at(0).dtype == BOOL else e.plain(0)
        axis = int(e.constant_at(1).flat[0]) % x.rank
        value = e.add(kind, [x], e.output().shape, INT64, False, axis=axis, keepdims=0, select_last_index=0)
        e.result(e.cast(value, e.output().dtype.storage))

    return rule


def cumsum(e: Emitter) -> None:
    """CUMSUM."""
    x, options = e.at(0), e.node.attributes
    axis = e.whole("axis", x.axis(int(e.constant_at(1).flat[0])))
    exclusive, reverse = (int(options.boolean(key, False)) for key in ("exclusive", "reverse"))
    e.result(e.add("CumSum", [x, axis], exclusive=exclusive, reverse=reverse))


def topk(e: Emitter) -> None:
    """TOPK_V2: the largest along the last axis, in order; of equal ones the first."""
    x, shape = e.plain(0), e.output().shape
    k = e.whole("k", [int(e.constant_at(1).flat[0])])
    values, places = e.add_multi("TopK", [x, k], [(shape, x.dtype), (shape, INT64)], False, axis=x.rank - 1)
    e.set_tensor(e.node.outputs[0], values)
    e.set_tensor(e.node.outputs[1], e.cast(places, e.output(1).dtype.storage))


def l2_normalization(e: Emitter) -> None:
    """L2_NORMALIZATION: x / max(sqrt(sum of x^2 over the channels), 1e-6)."""
    x = e.at(0)
    axis = x.axis(-1)
    shape = tuple(1 if a == axis else size for a, size in enumerate(x.shape))
    total = e.add("ReduceSum", [e.pair("Mul", x, x), e.whole("axes", [axis])], shape, keepdims=1)
    length = e.pair("Max", e.add("Sqrt", [total]), e.like(x, "least", 1e-6))
    e.result(e.pair("Div", x, length))


def log_softmax(e: Emitter) -> None:
    """LOG_SOFTMAX along the channels."""
    x = e.at(0)
    e.result(e.add("LogSoftmax", [x], axis=x.axis(-1)))


def local_response_normalization(e: Emitter) -> None:
    """LOCAL_RESPONSE_NORMALIZATION: x / (bias + alpha * sum of x^2 of channels c - radius .. c + radius - 1)^beta.

    TFLite leaves the last channel of the window out (reference/reference_ops.h), so ONNX's LRN is another operator: the
    sums are a product with a band matrix.
    """
    x, options = e.plain(0), e.node.attributes
    radius, channels = options.integer("radius"), x.shape[-1]
    offset = np.arange(channels)[:, None] - np.arange(channels)
    band = e.number("band", ((offset >= -radius) & (offset < radius)).astype(np.float32))
    total = e.add("MatMul", [e.pair("Mul", x, x), band])
    scaled = e.pair("Mul", total, e.like(x, "alpha", options.real("alpha")))
    base = e.pair("Add", scaled, e.like(x, "bias", options.real("bias")))
    e.result(e.pair("Div", x, e.pair("Pow", base, e.like(x, "beta", options.real("beta")))))


def segment_sum(e: Emitter) -> None:
    """SEGMENT_SUM: the product of one-hot segments, transposed, and the data as rows.

    Raises:
        UnsupportedError: other types than float32.
    """
    x, ids, shape = e.plain(0), e.plain(1), e.output().shape
    if x.dtype != FLOAT32:
        raise UnsupportedError(f"segments of {x.dtype} are added up; float32 can be written")
    rows = x.shape[0]
    chosen = e.cast(is_place(e, ids, shape[0], 0), FLOAT32)
    width = int(np.prod(x.shape[1:], dtype=np.int64))
    total = e.add("MatMul", [chosen, e.reshaped(x, (rows, width))], (shape[0], width))
    e.result(e.reshaped(total, shape))
