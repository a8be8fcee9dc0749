"""Layers that choose or combine rows: Concat, Gather, ReverseSequence, ScatterND, Repeat, Filter.

Source: docs/rules/aipu/operators.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu import emitted as ir
from tflq.converters.aipu.descriptor import (
    Layer,
    OutputType,
    Row,
    all_values,
    by_range,
    follows_input,
    plain,
    with_all_values,
)
from tflq.converters.aipu.operators.pairs import factors_of, read_pair
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.translation import Translation
from tflq.graph import Attributes, Graph, Node, Operands
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, is_signed
from tflq.schemas.aipu import Value

_TWELVE = 12


def _concat(node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Branches of one type pass it with all quantized values; others take the output's range, as wide as the widest."""
    branches = [t for t in operands.inputs if t is not None]
    if all(with_all_values(t) == with_all_values(branches[0]) for t in branches):
        return (with_all_values(branches[0]),)
    widest = replace(options, activation_bits=max(bits_of(t) for t in branches))
    return (by_range(operands.output(), follows_input(node, operands), widest),)


def _emit_scatter(layer: ir.Lowered) -> ir.Emitted:
    """As a pair, k in the output's unsigned type; MUL has M_0 and M_1, N_0 at the end and N_1 at each update."""
    (found,), bits = layer.multipliers("rescale"), bits_of(layer.operands.output())
    factors = factors_of(layer)
    if layer.param("method") == "MUL":
        kind = type_of_multiplier(bits)
        keys: dict[str, Value] = {
            "scale_value": (1, *factors),
            "shift_value": (found.first_n, 0, layer.number("step_shift")),
            "shift_type": ("int8",) * 3,
            "scale_type": (kind,) * 3,
        }
        return ir.Emitted(keys=keys)
    kind = "aligned_uint12" if bits == _TWELVE else type_of_multiplier(bits)
    keys = ir.factor_keys(ir.ADDITIVE, found, kind)
    keys |= {"scale_value": (found.first_m, *factors), "scale_type": ("uint16", kind, kind)}
    return ir.Emitted(keys=keys)


def _read_products(file: ir.FromFile) -> ir.Params:
    found = file.multiplier()
    if found is None or found.m.size != 3:
        return {}
    one = Multiplier(np.ones(1, np.int64), found.n[:1])
    return {"rescale": one, "factors": found.m[1:], "step_shift": found.n[2:]}


def _scatter(node: Node) -> Sequence[ir.Part]:
    is_product = node.attributes.text("reduction", "NONE") == "MUL"
    return (ir.Computed(_emit_scatter, _read_products if is_product else read_pair),)


def _scattered(_node: Node, operands: Operands) -> bool:
    return is_signed(operands.input(0)) or is_signed(operands.input(2))


def _filter(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """What is kept passes, with all quantized values; the count is whole."""
    return (*(with_all_values(t) for t in operands.inputs[:-1] if t is not None), plain(16))


def _emit_filter(layer: ir.Lowered) -> ir.Emitted:
    return ir.Emitted(real_offsets=(len(layer.operands.outputs) - 1,))


def map_concatenation(work: Translation, node: Node) -> None:
    """Map CONCATENATION."""
    rank = len(work.shape(node.outputs[0]))
    axis = Attributes({"axis": node.attributes.integer("axis") % rank})
    work.append(node, "concat", {}, axis, reads_all=True)


def map_pack(work: Translation, node: Node) -> None:
    """Each input gets the new axis, then Concat."""
    shape = work.shape(node.outputs[0])
    axis = node.attributes.integer("axis") % len(shape)
    single = (*shape[:axis], 1, *shape[axis + 1 :])
    inputs = [work.reshaped(node, work.operand(t), single) for t in node.inputs]
    work.add(node, "concat", inputs, node.outputs, {"axis": axis})


def map_gather(work: Translation, node: Node) -> None:
    """Map GATHER."""
    rank = len(work.shape(node.inputs[0]))
    keys: dict[str, Attribute] = {
        "axis": node.attributes.integer("axis", 0) % rank,
        "batch_dims": node.attributes.integer("batch_dims", 0) % (len(work.shape(node.inputs[1])) + 1),
    }
    work.append(node, "gather", {}, Attributes(keys), reads_all=True)


def map_embedding(work: Translation, node: Node) -> None:
    """Map EMBEDDING_LOOKUP."""
    inputs = [work.operand(t) for t in reversed(node.inputs)]
    work.add(node, "gather", inputs, node.outputs, {"axis": 0, "batch_dims": 0})


def map_gather_nd(work: Translation, node: Node) -> None:
    """Map GATHER_ND."""
    work.append(node, "gather_nd", {}, Attributes({"batch_dims": 0}), reads_all=True)


def map_reverse_sequence(work: Translation, node: Node) -> None:
    """Map REVERSE_SEQUENCE."""
    value = node.attributes.integer
    keys: dict[str, Attribute] = {"batch_axis": value("batch_dim", 0), "time_axis": value("seq_dim", 0)}
    work.append(node, "reverse_sequence", {}, Attributes(keys), reads_all=True)


def map_reverse(work: Translation, node: Node) -> None:
    """One ReverseSequence over the whole length; another axis counts as the batch."""
    shape = work.shape(node.inputs[0])
    axis = work.numbers(node, 1)[0] % len(shape)
    batch = 1 if axis == 0 else 0
    lengths = np.full(shape[batch], shape[axis], np.int32)
    name = work.name_of(node.outputs[0])
    inputs = (work.operand(node.inputs[0]), work.layer_of_constant(f"{name}_seq_len", lengths))
    work.add(node, "reverse_sequence", inputs, node.outputs, {"batch_axis": batch, "time_axis": axis})


def map_scatter_nd(work: Translation, node: Node) -> None:
    """Updates are added to zeros."""
    indices, updates = (work.operand(t) for t in node.inputs[:2])
    name = work.name_of(node.outputs[0])
    zeros = work.layer_of_constant(f"{name}_data", np.zeros(work.shape(node.outputs[0]), np.float32))
    work.add(node, "scatter_nd", (zeros, indices, updates), node.outputs, {"reduction": "ADD"})


def refuse_reverse(graph: Graph, node: Node) -> str:
    """Return why REVERSE_V2 cannot be mapped; empty if it can."""
    axes = graph.tensors[node.inputs[1]].size
    rank = len(graph.tensors[node.inputs[0]].shape)
    return f"{axes} axes of {rank}; allowed is one of two or more" if axes != 1 or rank < 2 else ""


LAYERS = {
    "concat": Layer(
        "Concat", follows_input, _concat, emitted=(ir.Factors(ir.ADDITIVE, name="rescales"),), has_width=True
    ),
    "filter": Layer("Filter", types=_filter, emitted=(ir.Computed(_emit_filter),)),
    "gather": Layer("Gather", types=all_values),
    "gather_nd": Layer("GatherND", types=all_values),
    "repeat": Layer("Repeat", types=all_values),
    "reverse_sequence": Layer("ReverseSequence"),
    "scatter_elements": Layer("ScatterElements", _scattered, emitted=_scatter, keeps_whole=True, has_width=True),
    "scatter_nd": Layer("ScatterND", _scattered, emitted=_scatter, keeps_whole=True, has_width=True),
}

# fmt: off
DOCS = (
    Row("4.12", "Concat", "each branch RNE((x + zp_i) * M_i * 2^-N_i) - zp_y; quantized values move where zero "
        "points are equal and scales within 1.05 of each other and the output's; branches of one type pass it", "g r",
        tflite="CONCATENATION, PACK", signed="signed where a branch is; as wide as the widest",
        restriction="`unify_concat=true` gives all branches the scale of the output"),
    Row("4.31", "Filter", "kept slices to the front, the code 0 behind them; their count", "g m",
        signed="passes; count uint16"),
    Row("4.33", "Gather", "quantized values chosen; an index below 0 counts from the end", "g(EMBEDDING_LOOKUP) r",
        tflite="GATHER, EMBEDDING_LOOKUP", restriction="index within the axis"),
    Row("4.34", "GatherND", "quantized values chosen; an index beyond the axis takes its last place", "g r",
        tflite="GATHER_ND", restriction="batch_dims 0"),
    Row("4.56", "Repeat", "each slice as often as told, the code 0 behind them", "g m"),
    Row("4.59", "ReverseSequence", "quantized values move; a length beyond the axis is the axis", "g r",
        tflite="REVERSE_SEQUENCE, REVERSE_V2", restriction="REVERSE_V2: one axis"),
    Row("-", "(scatter)",
        "as Eltwise with k of 8 bits, row of indices by row; ADD from TFLite, MUL, MAX, MIN, NONE from a float IR",
        "g r", layer="ScatterND", tflite="SCATTER_ND", signed="as Eltwise", restriction="constant shape"),
    Row("-", "(scatter by elements)",
        "as ScatterND, an index along one axis each; both sides limited to their bits together", "v",
        layer="ScatterElements", signed="as Eltwise", restriction="not MUL; test_more_layers.py"),
)
# fmt: on
