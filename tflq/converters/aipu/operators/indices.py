"""Layers that give indices or counts, or choose by them: ArgMinMax, TopK, OneHot, Count.

Source: docs/rules/aipu/operators.md.
"""

from __future__ import annotations

import numpy as np

from tflq.converters.aipu import emitted as ir
from tflq.converters.aipu.descriptor import Layer, OutputType, Row, plain, typed, with_all_values
from tflq.converters.aipu.operators.reductions import without_axes
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.ranges import type_of_range
from tflq.converters.aipu.translation import Translation
from tflq.graph import Attributes, Node, Operands
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.count import CountParams
from tflq.interpreter.kernels.aipu.indices import OneHotParams
from tflq.interpreter.kernels.aipu.scales import affine_of, is_plain, offset_of


def _top_k(node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    x = operands.input(0)
    return with_all_values(x), plain(16 if x.shape[node.attributes.integer("axis")] <= 1 << 16 else 32)


def _one_hot(node: Node, _operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Whole values as they are, in 12 bits where these do; others by their own range."""
    values = np.asarray(node.attributes["values"], np.float64)
    low, high = values.min(), values.max()
    if np.array_equal(values, np.trunc(values)):
        bits = next(b for b in (8, 12, 16, 32) if low >= -(1 << (b - 1)) and high < 1 << (b - (low < 0)))
        return (plain(bits, bool(low < 0)),)
    bits = options.activation_bits
    return (typed(type_of_range(low, high, bits, bool(low < 0), options.is_symmetric, options.restricted)),)


def _emit_one_hot(layer: ir.Lowered) -> ir.Emitted:
    params = layer.node.params
    assert isinstance(params, OneHotParams)
    if is_plain(layer.operands.output()):
        return ir.Emitted()
    return ir.Emitted(changed={"values": tuple(int(c) for c in params.codes)})


def _emit_count(layer: ir.Lowered) -> ir.Emitted:
    params = layer.node.params
    assert isinstance(params, CountParams)
    first, last = (params.high, params.low) if params.falls else (params.low, params.high)
    return ir.Emitted(changed={"min": first, "max": last})


def _paper_count(_node: Node, _operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """Return the type of counts without zero point."""
    return (typed(affine_of(np.float32(1), 0, 16, False)),)


def map_extreme(work: Translation, node: Node) -> None:
    """Map ARG_MAX, ARG_MIN."""
    axis = work.numbers(node, 1)[0] % len(work.shape(node.inputs[0]))
    method = "MAX" if node.operator == "arg_max" else "MIN"
    keys: dict[str, Attribute] = {"axis": axis, "method": method, "select_last_index": False}
    without_axes(work, node, "arg_min_max", keys, (axis,))


def map_one_hot(work: Translation, node: Node) -> None:
    """Map ONE_HOT."""
    on, off = (float(np.asarray(work.source.tensors[t].data).item()) for t in node.inputs[2:4])
    rank = len(work.shape(node.outputs[0]))
    keys: dict[str, Attribute] = {
        "axis": node.attributes.integer("axis", -1) % rank,
        "values": (off, on),
        "depth": work.numbers(node, 1)[0],
    }
    work.append(node, "one_hot", {}, Attributes(keys))


def map_top_k(work: Translation, node: Node) -> None:
    """Map TOPK_V2."""
    keys: dict[str, Attribute] = {
        "axis": len(work.shape(node.inputs[0])) - 1,
        "k": work.numbers(node, 1)[0],
        "sorted": True,
        "largest": True,
        "select_index": "first",
    }
    work.append(node, "top_k", {}, Attributes(keys))


LAYERS = {
    "arg_min_max": Layer("ArgMinMax", types=lambda _, o, __: (plain(16),) * len(o.outputs)),
    "count": Layer(
        "Count",
        types=lambda _, o, __: (plain(16, zp=offset_of(o.input(0))),),
        paper_types=_paper_count,
        emitted=(ir.Computed(_emit_count),),
    ),
    "ctc_greedy_decoder": Layer(
        "CTCGreedyDecoder", types=lambda _, __, ___: (plain(16),), emitted=(ir.Fixed(real_offsets=(0,)),)
    ),
    "in_top_k": Layer("InTopK", types=lambda _, __, ___: (plain(8),)),
    "one_hot": Layer("OneHot", types=_one_hot, emitted=(ir.Computed(_emit_one_hot),)),
    "top_k": Layer("TopK", types=_top_k),
}

# fmt: off
DOCS = (
    Row("4.2, 4.3", "ArgMax, ArgMin", "index of the extreme code, the first on ties", "g(ARG_MIN) r m",
        layer="ArgMinMax", tflite="ARG_MAX, ARG_MIN", signed="uint16, s = 1"),
    Row("4.19", "CTCGreedyDecoder",
        "best class of each step, repeats dropped, then the blank C - 1; 65535 behind them", "g m",
        signed="uint16, s = 1"),
    Row("4.37", "Histogram", "bins of quantized values between RNE(limit * s_x); zp stays in", "g m", layer="Count",
        signed="uint16, zp of the input", restriction="limits that become different quantized values"),
    Row("4.38", "InTopK", "1 where the target's code is among the k largest, ties count", "g m",
        signed="uint8, s = 1"),
    Row("4.49", "OneHot", "code of the on-value at the index, of the off-value elsewhere", "g r", tflite="ONE_HOT",
        signed="whole values: s = 1, unsigned where none is below 0; others by their range",
        restriction="integer indices"),
    Row("4.76", "TopK", "largest or smallest quantized values and their indices, the first on ties", "g r",
        tflite="TOPK_V2", signed="passes; index uint16", restriction="constant k"),
)
# fmt: on
