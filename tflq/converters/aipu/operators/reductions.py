"""Layers over axes: Reduce, Cumulate, Moments, Normalization, LRN, and those that give indices (docs/aipu.md, 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.converters.aipu.descriptor import (
    Internal,
    Layer,
    OutputType,
    Single,
    follows_input,
    like,
    never,
    plain,
    typed,
)
from tflq.converters.aipu.emitted import (
    ADDITIVE,
    CURVED,
    TYPED,
    Computed,
    Emitted,
    Factors,
    Fixed,
    Lowered,
    Lut,
    Number,
    Part,
)
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.ranges import type_of_range
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.count import CountParams
from tflq.interpreter.kernels.aipu.indices import OneHotParams
from tflq.interpreter.kernels.aipu.multiplier import type_of_multiplier
from tflq.interpreter.kernels.aipu.normalization import ROOT_TABLE
from tflq.interpreter.kernels.aipu.scales import affine_of, bits_of, code_limits, is_plain, is_signed, offset_of

_PASSING, _OF_TRUTH = ("MIN", "MAX"), ("ANY", "ALL")


def _reduce(node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...] | None:
    """MIN and MAX pass the input's type; ANY and ALL are truth values."""
    method = node.attributes.text("method")
    if method in _OF_TRUTH:
        return (plain(8),)
    return (like(operands.input(0)),) if method in _PASSING else None


def _paper_reduce(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """MEAN: as the input."""
    return (like(operands.input(0)),)


def _reduce_needs_range(node: Node) -> bool:
    return node.attributes.text("method") not in (*_PASSING, *_OF_TRUTH)


_REDUCED: dict[str, tuple[Part, ...]] = {
    "SUM": (Factors(CURVED),),
    "MEAN": (Factors(CURVED),),
    "PROD": (Factors(CURVED, "uint16", shift="uint32"),),
}


def _emit_products(layer: Lowered) -> Emitted:
    (found,) = layer.multipliers("rescale")
    return Emitted({"scale": found.m.astype(np.uint16), "shift": found.n.astype(np.int32)})


_CUMULATED: dict[str, tuple[Part, ...]] = {
    "SUM": (Factors(CURVED, "uint16"),),
    "PROD": (Computed(_emit_products, Factors().read),),
}


def _cumulate(node: Node) -> Sequence[Part]:
    return _CUMULATED.get(node.attributes.text("method"), ())


def _emit_moments(layer: Lowered) -> Emitted:
    """The input's own multiplier is 1."""
    kind = type_of_multiplier(bits_of(layer.operands.output(1)))
    return Emitted(
        keys={"input_scale_value": 1, "input_scale_type": kind, "input_shift_value": 0, "input_shift_type": "int8"}
    )


def _normalised(_node: Node, operands: Operands) -> bool:
    x = operands.input(0)
    return code_limits(x)[0] + offset_of(x) < 0


def _emit_roots(_layer: Lowered) -> Emitted:
    return Emitted({"lut": ROOT_TABLE.astype(np.int16)})


def _lrn_values(node: Node, _operands: Operands, inputs: Sequence[Array]) -> tuple[Single, ...]:
    """Return the mean of the squares over each window of channels.

    Source: Compass Optimizer, ops/LRN.py, placeholders.
    """
    size = node.attributes.integer("size")
    squares = np.square(np.asarray(inputs[0], np.float32))
    padded = np.pad(squares, [(0, 0)] * (squares.ndim - 1) + [(size // 2, (size - 1) // 2)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, size, axis=-1)
    return ((windows.sum(axis=-1, dtype=np.float32) / np.float32(size)).astype(np.float32),)


def _segmented(_node: Node, operands: Operands) -> bool:
    return is_signed(operands.input(0))


def _top_k(node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    x = operands.input(0)
    return like(x), plain(16 if x.shape[node.attributes.integer("axis")] <= 1 << 16 else 32)


def _one_hot(node: Node, _operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Whole values as they are, others by their own range."""
    values = np.asarray(node.attributes["values"], np.float64)
    low, high = values.min(), values.max()
    if np.array_equal(values, np.trunc(values)):
        bits = next(b for b in (8, 16, 32) if low >= -(1 << (b - 1)) and high < 1 << (b - (low < 0)))
        return (plain(bits, bool(low < 0)),)
    bits = options.activation_bits
    return (typed(type_of_range(low, high, bits, bool(low < 0), options.is_symmetric, options.restricted)),)


def _emit_one_hot(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, OneHotParams)
    if is_plain(layer.operands.output()):
        return Emitted()
    return Emitted(changed={"values": tuple(int(c) for c in params.codes)})


def _emit_count(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, CountParams)
    first, last = (params.high, params.low) if params.falls else (params.low, params.high)
    return Emitted(changed={"min": first, "max": last})


def _paper_count(_node: Node, _operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """Return the type of counts without zero point."""
    return (typed(affine_of(np.float32(1), 0, 16, False)),)


LAYERS = {
    "arg_min_max": Layer("ArgMinMax", types=lambda _, o, __: (plain(16),) * len(o.outputs)),
    "count": Layer(
        "Count",
        types=lambda _, o, __: (plain(16, zp=offset_of(o.input(0))),),
        paper_types=_paper_count,
        emitted=(Computed(_emit_count),),
    ),
    "ctc_greedy_decoder": Layer(
        "CTCGreedyDecoder", types=lambda _, __, ___: (plain(16),), emitted=(Fixed(real_offsets=(0,)),)
    ),
    "cumulate": Layer("Cumulate", follows_input, emitted=_cumulate, keeps_whole=True),
    "in_top_k": Layer("InTopK", types=lambda _, __, ___: (plain(8),)),
    "lrn": Layer(
        "LRN",
        follows_input,
        emitted=(
            Lut(dtype=np.uint16),
            Factors(ADDITIVE, name="of_sum", names="{0}_sum_{1}"),
            Factors(ADDITIVE),
        ),
        internal=Internal(("square_sum",), _lrn_values, signed=False),
    ),
    "moments": Layer(
        "Moments",
        never,
        emitted=(Factors(TYPED, names="var_{0}_{1}", output=1), Computed(_emit_moments)),
        passed=(0,),
    ),
    "normalization": Layer(
        "Normalization",
        _normalised,
        emitted=(
            Computed(_emit_roots),
            Factors(TYPED),
            Number("reciprocal_shift_value", "shift", "reciprocal_shift_type"),
        ),
    ),
    "one_hot": Layer("OneHot", types=_one_hot, emitted=(Computed(_emit_one_hot),)),
    "reduce": Layer(
        "Reduce",
        follows_input,
        _reduce,
        _paper_reduce,
        lambda node: _REDUCED.get(node.attributes.text("method"), ()),
        keeps_whole=True,
        needs_range=_reduce_needs_range,
    ),
    "segment_reduce": Layer("SegmentReduce", _segmented, emitted=(Factors(CURVED, "uint16"),)),
    "top_k": Layer("TopK", types=_top_k),
}
