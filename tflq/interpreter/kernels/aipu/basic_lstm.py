"""Kernel of BASIC_LSTM.

v = x W_x + clamp32(RNE(h W_h * M_0 * 2^-N_0)) + b, rows i, g, f, o; i, f, o = sigm(clamp(RNE(v * M_1 * 2^-N_1))),
g = tanh(clamp(RNE(v * M_2 * 2^-N_2))); t = clamp32(i g + clamp32(RNE(f c * M_5 * 2^-N_5))). The state is
clamp(RNE(o tanh(clamp(RNE(t * M_3 * 2^-N_3))) * M_4 * 2^-N_4)), the cell clamp(RNE(t * M_6 * 2^-N_6)), both without the
lowest value. M_5 and M_6 are those of the step.

From 16 bits on sums and biases are shifted by N - L first, L the smallest of N_0, N_1 and 15, and products by D, so
that the shift of f c is 15. First states are read as they are, whatever their scale. The Optimizer clamps cells to
cell_clip in float, and so in their calibration, but not in integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers, Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.gru import SCALES, TABLE_BITS, gate_table, limited_32, words_of
from tflq.interpreter.kernels.aipu.imported import imported_multiplier, imported_numbers, number_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multipliers, scaled
from tflq.interpreter.kernels.aipu.scales import bits_of, constant_codes, reciprocal, required_constant, scale_of
from tflq.interpreter.kernels.aipu.tables import Table
from tflq.interpreter.registry import Kernel

_ACTIVATIONS = ("SIGMOID", "TANH", "TANH")
_FIRST_STEP = 5
_SHIFT = 15


@dataclass(frozen=True, eq=False)
class LstmParams:
    """The params of one LSTM.

    Attributes:
        of_input: W_x, int64[4 S, I].
        of_state: W_h, int64[4 S, S].
        biases: int64[4 S].
        sigmoid: table of i, f and o.
        tanh: table of g and of the cell.
        rescale: M_0, N_0 to M_4, N_4, then two of each step; M_1 and M_2 one for all rows, or 4 S and S.
        lut_shift: L; 0 at 8 bits.
        diff_shifts: D of each step.
        outputs: Y for all states, H and C for the last state and cell, in order.
        is_reversed: whether time runs backward.
        bits: of the quantized values.
        dtype: of the outputs.
    """

    of_input: Integers
    of_state: Integers
    biases: Integers
    sigmoid: Table
    tanh: Table
    rescale: tuple[Multiplier, ...]
    lut_shift: int
    diff_shifts: Integers
    outputs: tuple[str, ...]
    is_reversed: bool
    bits: int
    dtype: np.dtype[np.generic]


def refuse_lstm(node: Node) -> None:
    """Refuse other activations, outputs and limits.

    Raises:
        UnsupportedError: names them.
    """
    activations = words_of(node, "activations", _ACTIVATIONS)
    if activations != _ACTIVATIONS:
        raise UnsupportedError(f"activations={','.join(activations)}; allowed are {','.join(_ACTIVATIONS)}")
    outputs = words_of(node, "out_sequence", ("Y",))
    if not outputs or set(outputs) - {"Y", "H", "C"}:
        raise UnsupportedError(f"out_sequence={','.join(outputs)}; allowed are Y, H, C")
    if "threshold" in node.attributes:
        raise UnsupportedError("threshold: limits within the layer; allowed is cell_clip")


def multipliers_of(
    node: Node, s_x: np.float32, s_c: np.float32, scales: Singles, weight_scales: Singles, bits: int
) -> tuple[Multiplier, ...]:
    """Return M and N of every ratio, in float32.

    Args:
        node: the layer.
        s_x: of the input.
        s_c: of the first cell.
        scales: of states, gates' sums, values and table, cells' sums, values and table, then of the cell of each step.
        weight_scales: one, or one each row.
        bits: of the quantized values.
    """
    s_h, s_f, s_fo, _, s_g, s_go = scales[:6]
    finer, cells = np.float32(256 if bits <= TABLE_BITS else 1), node.attributes.integer("cell_size")
    sums = s_x * weight_scales
    of_cells = finer * s_g / sums
    ratios = [
        s_x / s_h,
        finer * s_f / sums,
        of_cells if of_cells.size == 1 else of_cells[cells : 2 * cells],
        finer * s_g / s_fo / s_go,
        s_h / s_fo / s_go,
    ]
    for before, after in zip((s_c, *scales[7:-1]), scales[7:], strict=True):
        ratios += [s_go / before, after / s_fo / s_go]
    multipliers = [find_multipliers(np.atleast_1d(np.asarray(r, np.float32)), bits) for r in ratios]
    if bits > TABLE_BITS:
        return tuple(multipliers)
    return tuple(Multiplier(f.m, f.n + 8) if place in (1, 2, 3) else f for place, f in enumerate(multipliers))


def early_shift(rescale: tuple[Multiplier, ...], bits: int) -> int:
    """Return L."""
    return 0 if bits <= TABLE_BITS else int(min(rescale[0].n.min(), rescale[1].n.min(), _SHIFT))


def _differences(rescale: tuple[Multiplier, ...], bits: int) -> Integers:
    """Return D of each step."""
    steps = (len(rescale) - _FIRST_STEP) // 2
    shifts = np.zeros(steps, np.int64)
    for t in range(steps if bits > TABLE_BITS else 0):
        before, after = (rescale[_FIRST_STEP + 2 * t + k].first_n for k in range(2))
        if before < _SHIFT:
            shifts[t] = min(_SHIFT - before, after, rescale[3].first_n)
    return shifts


def lower(node: Node, operands: Operands) -> LstmParams:
    """Decide tables, multipliers and shifts.

    Raises:
        UnsupportedError: other activations, outputs, limits.
        GraphError: weights of another shape.
    """
    refuse_lstm(node)
    x, output = operands.input(0), operands.output()
    cells, columns = node.attributes.integer("cell_size"), node.attributes.integer("input_size")
    weights, bits = constant_codes(operands, "weights"), bits_of(output)
    if weights.shape != (4 * cells, columns + cells):
        raise GraphError(f"weights {weights.shape}; allowed is {(4 * cells, columns + cells)}")
    given = imported_multiplier(node)
    scales: Singles = np.ones(7, np.float32)
    if given is None:
        scales = np.asarray(node.attributes[SCALES], np.float32)
        s_w = reciprocal(required_constant(operands, "weights").affine)
        rescale = multipliers_of(node, scale_of(x), scale_of(operands.input(2)), scales, s_w, bits)
    else:
        steps = node.attributes.integer("time_steps")
        is_single = given.m.size == _FIRST_STEP + 2 * steps
        ends = np.cumsum([1, *((1, 1) if is_single else (4 * cells, cells)), 1, 1, *(1,) * (2 * steps - 1)])
        rescale = tuple(map(Multiplier, np.split(given.m, ends), np.split(given.n, ends)))
    differences = imported_numbers(node, "diff_shifts")
    return LstmParams(
        weights[:, :columns],
        weights[:, columns:],
        constant_codes(operands, "biases"),
        gate_table(node, "sigmoid", _ACTIVATIONS[0], scales[1], scales[3], output),
        gate_table(node, "tanh", _ACTIVATIONS[1], scales[4], scales[6], output),
        rescale,
        number_of(node, "lut_shift", lambda: early_shift(rescale, bits)),
        _differences(rescale, bits) if differences is None else differences,
        words_of(node, "out_sequence", ("Y",)),
        node.attributes.text("direction", "forward") == "reverse",
        bits,
        output.dtype.storage,
    )


def run(params: LstmParams, x: Array, first: Array, cell: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run the LSTM: quantized [S, N, T, I], [S, N, C], [S, N, C] -> quantized [S, N, T, C], or [S, N, C]."""
    inputs = x.astype(np.int64)
    if params.is_reversed:
        inputs = inputs[:, :, ::-1]
    shape = (len(x), x.shape[1], first.shape[-1])
    state, kept = (np.broadcast_to(v.astype(np.int64), shape) for v in (first, cell))
    states = []
    for time in range(x.shape[2]):
        state, kept = _step(params, inputs[:, :, time], state, kept, time)
        states.append(state)
    every = np.stack(states[::-1] if params.is_reversed else states, axis=2)
    results = {"Y": every, "H": state, "C": kept}
    return tuple(results[word].astype(params.dtype) for word in params.outputs)


def _step(params: LstmParams, x: Integers, state: Integers, cell: Integers, time: int) -> tuple[Integers, Integers]:
    highest = (1 << (params.bits - 1)) - 1

    def clamp_product(values: Integers, factor: Multiplier, n: Integers, lowest: int = -highest) -> Integers:
        return np.clip(scaled(values, factor.m, n), lowest, highest).astype(np.int64)

    of_state, of_gates, of_cells, of_table, of_output, *steps = params.rescale
    before, after = steps[2 * time], steps[2 * time + 1]
    left, cells = params.lut_shift, len(params.biases) // 4
    h, own, bias = state @ params.of_state.T, x @ params.of_input.T, params.biases
    shift, behind = of_gates.n, of_cells.n
    if params.bits > TABLE_BITS:
        early = limited_32(scaled(h, 1, of_state.n - left))
        h = limited_32(scaled(early, of_state.m, of_gates.n))
        own, bias = (limited_32(scaled(v, 1, of_gates.n - left)) for v in (own, bias))
        rows = of_gates.n if of_gates.n.size == 1 else of_gates.n[:cells]
        shift, behind = np.full_like(of_gates.n, left), of_cells.n - rows + left
        sums = limited_32(own + h + bias)
    else:
        sums = own + limited_32(of_state.apply(h)) + bias
    each = np.split(clamp_product(sums, of_gates, shift, -highest - 1), 4, axis=-1)
    i, f, o = (params.sigmoid.lookup(each[place]) for place in (0, 2, 3))
    g = params.tanh.lookup(clamp_product(np.split(sums, 4, axis=-1)[1], of_cells, behind, -highest - 1))
    less = int(params.diff_shifts[time])
    total = limited_32(limited_32(scaled(i * g, 1, less)) + limited_32(scaled(f * cell, before.m, before.n + less)))
    shown = params.tanh.lookup(clamp_product(total, of_table, of_table.n - less))
    return clamp_product(o * shown, of_output, of_output.n), clamp_product(total, after, after.n - less)


KERNELS = {
    "basic_lstm": Kernel(lower, run,
        "gates by tables, states of one scale, cells of one scale a step (docs/rules/aipu/operators.md)",
        "Compass Optimizer, ops/basiclstm.py, rnn.py"),
}  # fmt: skip
