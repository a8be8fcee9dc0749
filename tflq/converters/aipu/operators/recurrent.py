"""GRUv1, GRUv3 and BasicLSTM (docs/rules/aipu/operators.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tflq.arrays import Singles
from tflq.converters.aipu import emitted as ir
from tflq.converters.aipu.descriptor import Internal, Layer, OutputType, Row, by_range
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.ranges import range_of, symmetric_scale
from tflq.converters.aipu.translation import Translation
from tflq.converters.aipu.weights import cleared, quantize_biases, scaled_weights
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Affine, Array, Attributes, DType, Graph, Node, Operands, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.basic_lstm import LstmParams, early_shift
from tflq.interpreter.kernels.aipu.basic_lstm import multipliers_of as lstm_multipliers
from tflq.interpreter.kernels.aipu.curve import function_of
from tflq.interpreter.kernels.aipu.gru import SCALES, TABLE_BITS, WEIGHT_SCALES, GruParams, blocks_of, multipliers_of
from tflq.interpreter.kernels.aipu.scales import affine_of, reciprocal, required_constant, scale_of
from tflq.schemas.aipu import Value

_NAMES = ("states", "gate_sums", "gates", "candidate_sums", "candidates", "hidden")
_LSTM_NAMES = ("states", "gate_sums", "gates", "cell_sums", "cells")
_LIMITS = {"basic_lstm": (4.564205, 2.6293793), "gru_v1": (4.564202, 2.629377), "gru_v3": (4.8, 2.8)}
_WIDE_LIMITS = (10.0, 6.0)
"""What the tables of sigmoid and tanh read at most. Source: Compass Optimizer, ops/rnn.py."""

_EARLY = 15


def _outputs(_node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Symmetric, signed and restricted, whatever the mode."""
    chosen = replace(options, restricted=True)
    return tuple(by_range(t, True, chosen, is_symmetric=True) for t in operands.outputs)


def _scale(low: float, high: float, bits: int) -> np.float32:
    largest = np.float32(max(abs(np.float32(low)), abs(np.float32(high))))
    found: np.float32 = np.float32(symmetric_scale(largest, bits, True, True))
    return found


def _scales(node: Node, operands: Operands, bits: int) -> Singles:
    """Return what `SCALES` lists, by the ranges of the intermediates, those of sums limited as their tables are.

    Of BasicLSTM the cell of each step stands in place of h W_hc.
    """
    states, *pairs = (range_of(t) for t in operands.intermediates if t is not None)
    limits = _LIMITS[node.operator] if bits <= TABLE_BITS else _WIDE_LIMITS
    found = [_scale(*states, bits)]
    for (low, high), of_values, limit, method in zip(
        (pairs[0], pairs[2]), (pairs[1], pairs[3]), limits, ("SIGMOID", "TANH"), strict=True
    ):
        ends = np.clip([min(low, 0.0), max(high, 0.0)], -np.float32(limit), np.float32(limit)).astype(np.float32)
        function = function_of(Node("activation", (), (), Attributes({"method": method})))
        reached = function(ends.astype(np.float64)).astype(np.float32)
        found += [_scale(ends[0], ends[1], bits), _scale(*of_values, bits), _scale(reached[0], reached[1], bits)]
    return np.array([*found, *(_scale(*others, bits) for others in pairs[4:])], np.float32)


def _weights(node: Node, operands: Operands, options: LayerOptions) -> tuple[list[Tensor], Singles]:
    """Return the four blocks as integers, each with its scales, and what `SCALES` lists."""
    if options.per_channel and node.operator == "gru_v1":
        raise UnsupportedError(
            f"layer '{node.name}': GRUv1 with a scale each channel, at which the Optimizer's forward stops; allowed is "
            f"weights=per_tensor for this layer"
        )
    bits, s_x = options.activation_bits, scale_of(operands.input(0))
    scales = _scales(node, operands, bits)
    finer = np.float32(256 if bits <= TABLE_BITS else 1)
    s_h, s_f, s_fo, _, s_g = scales[:5]
    found: list[Tensor] = []
    for place, block in enumerate(blocks_of(node, np.asarray(required_constant(operands, "weights").data, np.float32))):
        before = reciprocal(found[-1].affine) if place % 2 else np.float32(1)
        target = ((finer * s_f) / s_x, s_x * before / s_h, (finer * s_g) / s_x, s_x * before / (s_h * s_fo))[place]
        weights = Tensor("", block.shape, DType.FLOAT32, data=block)
        groups = len(block) if options.per_channel else 0
        found.append(scaled_weights(weights, _ratios(np.asarray(target, np.float32)), options, groups, bits))
    return found, scales


def _ratios(target: Singles) -> Callable[[Affine], Singles]:
    return lambda affine: (target / reciprocal(affine)).astype(np.float32)


def _constants(node: Node, operands: Operands, options: LayerOptions) -> Mapping[str, Tensor]:
    """Weights block by block; biases on the scales of their sums, zp_x folded in, the lowest bits cleared."""
    blocks, scales = _weights(node, operands, options)
    x, bits, biases = operands.input(0), options.activation_bits, required_constant(operands, "biases")
    state = Tensor("", (), DType.INT8, affine_of(scales[0], 0, bits))
    whole = replace(options, bias_effective_bits=0)
    cells = node.attributes.integer("cell_size")
    parts = np.split(np.asarray(biases.data), [2 * cells, 3 * cells])
    found, _ = multipliers_of(node, scale_of(x), scales, [reciprocal(b.affine) for b in blocks], bits)
    quantized = []
    read = ((blocks[0], x, 1), (blocks[2], x, 3), (blocks[3], state, 2))
    for part, (block, source, place) in zip(parts, read, strict=True):
        if not part.size:
            continue
        constant = quantize_biases(Tensor("", part.shape, DType.FLOAT32, data=part), block, source, whole)
        codes = np.asarray(constant.data, np.int64)
        early = max(int(found[place].n.max()) - _EARLY, 0) if bits > TABLE_BITS else 0
        quantized.append(codes if options.per_channel else cleared(codes, options.bias_effective_bits, early))
    top, bottom = (np.concatenate([np.asarray(b.data) for b in blocks[i : i + 2]], axis=1) for i in (0, 2))
    return {
        "weights": _plain(required_constant(operands, "weights"), np.concatenate([top, bottom]), options.weight_bits),
        "biases": _plain(biases, np.concatenate(quantized), options.bias_bits),
    }


def _plain(old: Tensor, codes: Array, bits: int) -> Tensor:
    """Return a constant of integers; its scales, several a tensor, are requested options."""
    dtype = next(d for d in (DType.INT8, DType.INT16, DType.INT32, DType.INT64) if bits <= d.bits)
    data = np.ascontiguousarray(codes, dtype.storage)
    data.setflags(write=False)
    return replace(old, dtype=dtype, quantization=affine_of(np.float32(1), 0, bits), data=data, range=None)


def _requested(node: Node, operands: Operands, options: LayerOptions) -> dict[str, Attribute]:
    blocks, scales = _weights(node, operands, options)
    flat = np.concatenate([reciprocal(block.affine) for block in blocks])
    return {SCALES: tuple(map(float, scales)), WEIGHT_SCALES: tuple(map(float, flat))}


def _emit(layer: ir.Lowered) -> ir.Emitted:
    params = layer.node.params
    assert isinstance(params, GruParams)
    narrow = params.dtype
    tables = {"lut_rt": params.sigmoid, "lut_zt": params.sigmoid, "lut_ht": params.tanh}
    constants: dict[str, Array] = {key: table.entries.astype(narrow) for key, table in tables.items()}
    m, n = (np.concatenate([getattr(f, key) for f in params.rescale]) for key in ("m", "n"))
    kind = "uint8" if m.max() <= np.iinfo(np.uint8).max else "uint16"
    keys: dict[str, Value] = {}
    if params.hidden is not None:
        own = "uint8" if params.bits <= TABLE_BITS else "uint16"
        keys = ir.factor_keys(ir.CURVED, params.hidden, own, "hidden_{0}_{1}")
    if m.size > len(params.rescale):
        constants |= {"scale": m.astype(np.dtype(kind)), "shift": n.astype(np.int8)}
    else:
        keys |= ir.factor_keys(ir.CURVED, params.rescale, kind)
    constants |= {
        "weights_scale": params.weight_scales,
        "weights_zp": np.zeros(params.weight_scales.shape, np.int32),
        "biases_scale": params.bias_scales,
        "biases_zp": np.zeros(params.bias_scales.shape, np.float32),
    }
    return ir.Emitted(constants, keys)


def _read(file: ir.FromFile) -> ir.Params:
    found, hidden = file.multiplier(), file.multiplier("hidden_{0}_{1}")
    pairs = {"sigmoid": "lut_rt", "tanh": "lut_ht", "weights_scale": "weights_scale", "biases_scale": "biases_scale"}
    given: ir.Params = {name: file.constants[key] for name, key in pairs.items() if key in file.constants}
    given = given if found is None else {**given, "rescale": found}
    return given if hidden is None else {**given, "hidden": hidden}


def _lstm_weights(operands: Operands, options: LayerOptions) -> Tensor:
    weights = required_constant(operands, "weights")
    groups = weights.shape[0] if options.per_channel else 0
    return scaled_weights(weights, lambda _: np.ones(1, np.float32), options, groups, options.activation_bits)


def _lstm_constants(node: Node, operands: Operands, options: LayerOptions) -> Mapping[str, Tensor]:
    """Biases with the forget bias, zp_x times the input's columns, the lowest bits cleared: i, f, o and g apart."""
    weights, biases = _lstm_weights(operands, options), required_constant(operands, "biases")
    x, bits, scales = operands.input(0), options.activation_bits, _scales(node, operands, options.activation_bits)
    cells, columns = node.attributes.integer("cell_size"), node.attributes.integer("input_size")
    real = np.array(biases.data, np.float32)
    real[2 * cells : 3 * cells] += np.float32(node.attributes.real("forget_bias", 0.0))
    of_input = replace(weights, data=np.asarray(weights.data)[:, :columns])
    found = quantize_biases(replace(biases, data=real), of_input, x, replace(options, bias_effective_bits=0))
    if options.per_channel:
        return {"weights": weights, "biases": found}
    s_c = scale_of(operands.input(2))
    rescale = lstm_multipliers(node, scale_of(x), s_c, scales, reciprocal(weights.affine), bits)
    early = rescale[1].first_n - early_shift(rescale, bits) if bits > TABLE_BITS else 0
    codes, is_cell = np.array(found.data, np.int64), np.arange(4 * cells) // cells == 1
    for rows in (is_cell, ~is_cell):
        codes[rows] = cleared(codes[rows], options.bias_effective_bits, early)
    return {"weights": weights, "biases": replace(found, data=codes.astype(found.dtype.storage))}


def _lstm_requested(node: Node, operands: Operands, options: LayerOptions) -> dict[str, Attribute]:
    return {SCALES: tuple(map(float, _scales(node, operands, options.activation_bits)))}


def _emit_lstm(layer: ir.Lowered) -> ir.Emitted:
    params = layer.node.params
    assert isinstance(params, LstmParams)
    tables = dict.fromkeys(("lut_it", "lut_ft", "lut_ot"), params.sigmoid) | {
        "lut_ct": params.tanh,
        "lut_h": params.tanh,
    }
    m, n = (np.concatenate([getattr(f, key) for f in params.rescale]) for key in ("m", "n"))
    constants: dict[str, Array] = {key: table.entries.astype(params.dtype) for key, table in tables.items()}
    constants |= {
        "scale": m.astype(np.uint8 if m.max() <= np.iinfo(np.uint8).max else np.uint16),
        "shift": n.astype(np.int8),
        "diff_shifts": params.diff_shifts.astype(np.int8),
    }
    return ir.Emitted(constants, {"lut_shift_value": params.lut_shift, "lut_shift_type": "int8"})


def _read_lstm(file: ir.FromFile) -> ir.Params:
    pairs = {"sigmoid": "lut_it", "tanh": "lut_ct", "diff_shifts": "diff_shifts"}
    given: ir.Params = {name: file.constants[key] for name, key in pairs.items() if key in file.constants}
    found, shift = file.multiplier(), file.numbers("lut_shift_value")
    given = given if found is None else {**given, "rescale": found}
    return given if shift is None else {**given, "lut_shift": shift}


_INPUTS = 24
_PEEPHOLES, _PROJECTION, _NORMS = (9, 10, 11), (16, 17), (20, 21, 22, 23)
_STATES = (18, 19)
_ROWS = ("input", "cell", "forget", "output")
"""Gates in the rows of Compass's weights; TFLite has input, forget, cell, output."""


def refuse_lstm_sequence(graph: Graph, node: Node) -> str:
    """Return why UNIDIRECTIONAL_SEQUENCE_LSTM cannot be mapped; empty if it can.

    Source: Compass Parser, lite/passes/front_passes.py, convert_special_uni_seq_lstm; back_passes.py,
    convert_uni_lstm.
    """
    if len(node.inputs) != _INPUTS:
        return f"{len(node.inputs)} inputs; the Parser takes {_INPUTS}: write the file with a newer converter"
    given = {place for place, t in enumerate(node.inputs) if t != ABSENT}
    for places, name in ((_PEEPHOLES, "peepholes"), (_PROJECTION, "a projection"), (_NORMS, "layer normalization")):
        if given.intersection(places):
            return f"{name} within the layer; the Parser takes none"
    if not given.issuperset(range(1, 9)):
        return "coupled input and forget gates; the Parser takes four gates"
    if node.attributes.boolean("time_major", False) or len(graph.tensors[node.inputs[0]].shape) != 3:
        return "time is the first axis; allowed is the second of three: transpose the input"
    if node.attributes.text("fused_activation_function") != "tanh" or node.attributes.real("proj_clip", 0.0):
        return "another activation than tanh, or proj_clip; allowed is tanh without proj_clip"
    return ""


def map_lstm_sequence(work: Translation, node: Node) -> None:
    """Map UNIDIRECTIONAL_SEQUENCE_LSTM to BasicLSTM, with first states as Constants of two axes.

    Source: Compass Parser, lite/passes/front_passes.py, convert_special_uni_seq_lstm; one int8 and one float file.
    """
    _, steps, size = work.shape(node.inputs[0])
    tensors = [None if t == ABSENT else work.source.tensors[t] for t in node.inputs]
    cells = work.shape(node.outputs[0])[-1]
    by_gate = dict(zip(("input", "forget", "cell", "output"), range(4), strict=True))

    def values(first: int, gate: str) -> Singles:
        tensor = tensors[first + by_gate[gate]]
        shape = (cells,)
        return np.zeros(shape, np.float32) if tensor is None else np.asarray(tensor.data, np.float32)

    weights = np.concatenate([np.hstack([values(1, gate), values(5, gate)]) for gate in _ROWS])
    biases = np.concatenate([values(12, gate) for gate in _ROWS])
    keys: dict[str, Attribute] = {"time_steps": steps, "input_size": size, "cell_size": cells}
    activations = np.array(["SIGMOID", "TANH", "TANH"])
    keys |= {"activations": activations, "direction": "forward", "out_sequence": np.array(["Y"])}
    clip = node.attributes.real("cell_clip", 0.0)
    keys |= {"cell_clip": float(f"{clip:.12f}")} if clip else {}
    states = [_first_state(work, node, place, cells) for place in _STATES]
    constants = {"weights": weights, "biases": biases}
    work.add(node, "basic_lstm", (work.operand(node.inputs[0]), *states), node.outputs, keys, constants)
    work.add_internal(node.outputs[0], dict.fromkeys((*_LSTM_NAMES, *(f"cell_{t}" for t in range(steps)))))


def _first_state(work: Translation, node: Node, place: int, cells: int) -> int:
    """Return the Constant of a first state: the file's variable at the start of a run, with its range."""
    t, other = node.inputs[place], node.inputs[_STATES[0]]
    batch = work.shape(node.inputs[0])[0]
    if t == ABSENT:
        name, stated = f"{work.name_of(node.outputs[0])}_{'hc'[_STATES.index(place)]}_init", None
    else:
        name, stated = work.name_of(t), work.source.tensors[t].range
    if place != _STATES[0] and t == other:
        return work.places[t]
    top = work.layer_of_constant(f"{name}_post_reshape", np.zeros((batch, cells), np.float32), stated)
    if t != ABSENT:
        work.places[t] = top
    return top


LAYERS = {
    "basic_lstm": Layer(
        "BasicLSTM",
        types=_outputs,
        emitted=(ir.Computed(_emit_lstm, _read_lstm),),
        internal=Internal(_LSTM_NAMES, each_step="cell"),
        constants=_lstm_constants,
        needs_range=True,
        requested=_lstm_requested,
    ),
} | {
    operator: Layer(
        name,
        types=_outputs,
        emitted=(ir.Computed(_emit, _read),),
        internal=Internal(_NAMES),
        constants=_constants,
        needs_range=True,
        requested=_requested,
        has_own_scales=True,
    )
    for operator, name in (("gru_v1", "GRUv1"), ("gru_v3", "GRUv3"))
}

# fmt: off
DOCS = (
    Row("-", "(gated recurrent units)", "v = x W_x + RNE(h W_h * M_0 * 2^-N_0) + b; gates t_s(RNE(v * M_1 * "
        "2^-N_1)), the candidate by M_2, M_3 and t_h; h = RNE((RNE((max - u) c * M_4 * 2^-N_4) + u h) * M_5 * "
        "2^-N_5)", "v", layer="GRUv1, GRUv3", signed="signed, symmetric, restricted",
        restriction="SIGMOID and TANH; GRUv1 with one scale a tensor; samples for calibration; test_more_layers.py"),
    Row("-", "(long short-term memory)", "v as GRU, rows i, g, f, o; t = i g + RNE(f c * M_5 * 2^-N_5), h = RNE(o "
        "t_h(RNE(t * M_3 * 2^-N_3)) * M_4 * 2^-N_4), c = RNE(t * M_6 * 2^-N_6), M_5 and M_6 of each step", "v",
        layer="BasicLSTM", tflite="UNIDIRECTIONAL_SEQUENCE_LSTM", signed="signed, symmetric, restricted",
        restriction="SIGMOID, TANH, TANH; samples for calibration; test_more_layers.py"),
)
# fmt: on
