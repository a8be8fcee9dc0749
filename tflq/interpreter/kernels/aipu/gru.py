"""GRUv1, GRUv3: gates by tables, states of one scale, six multipliers (docs/rules/aipu/operators.md).

v = x W_x + clamp32(RNE(h W_h * M_0 * 2^-N_0)) + b; r, u = sigm(clamp(RNE(v * M_1 * 2^-N_1))). The candidate likewise
with M_2 and M_3, h W_h replaced by RNE(r * h * 2^-bits) W_hc (GRUv3), or by
r * clamp(RNE((h W_hc + b_h) * M_h * 2^-N_h)) (GRUv1). The state is
h = clamp(RNE((clamp32(RNE((max - u) * c * M_4 * 2^-N_4)) + u * h) * M_5 * 2^-N_5)), without the lowest value.

From 16 bits on sums are shifted before they are multiplied, by the bits of N beyond 10, and so are the biases: at every
step again, because the Optimizer overwrites them. The first state is read unchanged, whatever its scale.

Source: Compass Optimizer, ops/gruv3.py, gruv1.py, rnn.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers, Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, Attributes, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.curve import function_of
from tflq.interpreter.kernels.aipu.imported import imported_array, imported_multiplier
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multipliers, scaled
from tflq.interpreter.kernels.aipu.scales import affine_of, bits_of, constant_codes, scale_of
from tflq.interpreter.kernels.aipu.tables import Table, table_of
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN
from tflq.interpreter.registry import Kernel

Number = TypeVar("Number", np.int64, np.float32)

SCALES = "recurrent_scales"
"""Requested option: s of the states, of the gates' sums and values, of their table, of the candidate's, of h W_hc."""

WEIGHT_SCALES = "recurrent_weight_scales"
"""Requested option: s_w of the four blocks W_xg, W_hg, W_xc, W_hc, one behind the other."""

TABLE_BITS = 8
_KEPT = 10
_SIGMOID, _TANH = "SIGMOID", "TANH"


@dataclass(frozen=True, eq=False)
class GruParams:
    """The params of one GRU.

    Attributes:
        weights: W_xg, W_hg, W_xc, W_hc, int64[rows, columns].
        biases: Biases of the gates, the candidate, and of GRUv1 h W_hc.
        sigmoid: table of the gates.
        tanh: table of the candidate.
        rescale: M_0, N_0 to M_5, N_5; the first four one for all rows or one each.
        hidden: M_h and N_h of GRUv1; None of GRUv3.
        weight_scales: Scales of the four blocks, for the file.
        bias_scales: Scales of gates and candidate, for the file.
        outputs: H for all states, Hn for the last, in order.
        is_reversed: whether time runs backward.
        bits: Bits of the quantized values.
        kept: Bits of N that remain after the first shift, from 16 bits on.
        dtype: Storage type of the outputs.
    """

    weights: tuple[Integers, ...]
    biases: tuple[Integers, ...]
    sigmoid: Table
    tanh: Table
    rescale: tuple[Multiplier, ...]
    hidden: Multiplier | None
    weight_scales: Singles
    bias_scales: Singles
    outputs: tuple[str, ...]
    is_reversed: bool
    bits: int
    kept: int
    dtype: np.dtype[np.generic]


def words_of(node: Node, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a list of words among the keys of a layer."""
    value = node.attributes.get(key)
    return default if value is None else tuple(str(word) for word in np.atleast_1d(np.asarray(value)))


def blocks_of(node: Node, weights: NDArray[Number]) -> tuple[NDArray[Number], ...]:
    """Return W_xg, W_hg, W_xc, W_hc of weights [3 S, I + S].

    Raises:
        GraphError: weights of another shape.
    """
    cells, columns = node.attributes.integer("cell_size"), node.attributes.integer("input_size")
    if weights.shape != (3 * cells, columns + cells):
        raise GraphError(f"weights {weights.shape}; allowed is {(3 * cells, columns + cells)}")
    return tuple(part for rows in (weights[: 2 * cells], weights[2 * cells :]) for part in np.split(rows, [columns], 1))


def refuse_gru(node: Node) -> None:
    """Refuse other activations and other outputs.

    Raises:
        UnsupportedError: names them.
    """
    activations = words_of(node, "activations", (_SIGMOID, _TANH))
    if activations != (_SIGMOID, _TANH):
        raise UnsupportedError(f"activations={','.join(activations)}; allowed are {_SIGMOID},{_TANH}")
    outputs = words_of(node, "out_sequence", ("H",))
    if not outputs or set(outputs) - {"H", "Hn"}:
        raise UnsupportedError(f"out_sequence={','.join(outputs)}; allowed are H, Hn")


def multipliers_of(
    node: Node, s_x: np.float32, scales: Singles, weight_scales: Sequence[Singles], bits: int
) -> tuple[tuple[Multiplier, ...], Multiplier | None]:
    """Return M and N of the six ratios, and M_h, N_h of GRUv1, all in float32.

    Args:
        node: Layer, a GRUv1 or GRUv3.
        s_x: Scale of the input.
        scales: Scales in the order of `SCALES`.
        weight_scales: Weight scales of the four blocks.
        bits: Bits of the quantized values.
    """
    s_h, s_f, s_fo, _, s_g, s_go, _, s_k = scales
    finer = np.float32(256 if bits <= TABLE_BITS else 1)
    of_gates, of_states = s_x * weight_scales[0], s_h * weight_scales[1]
    of_candidate, hidden = s_x * weight_scales[2], None
    if node.operator == "gru_v1":
        hidden = find_multipliers((s_k / (s_h * weight_scales[3])).astype(np.float32), bits)
        third = of_candidate / (hidden.m.astype(np.float32) * s_fo)
    else:
        third = np.float32(1 << bits) * of_candidate / (s_h * s_fo * weight_scales[3])
    ratios = (
        of_gates / of_states,
        finer * s_f / of_gates,
        third,
        finer * s_g / of_candidate,
        np.atleast_1d(s_h / s_go),
        np.atleast_1d(np.float32(1) / s_fo),
    )
    multipliers = [find_multipliers(np.asarray(ratio, np.float32), bits) for ratio in ratios]
    if bits <= TABLE_BITS:
        multipliers = [Multiplier(f.m, f.n + 8) if place in (1, 3) else f for place, f in enumerate(multipliers)]
    return tuple(multipliers), hidden


def lower(node: Node, operands: Operands) -> GruParams:
    """Decide tables and multipliers.

    Raises:
        UnsupportedError: other activations or outputs.
        GraphError: weights or biases of another shape.
    """
    refuse_gru(node)
    x, output, cells = operands.input(0), operands.output(), node.attributes.integer("cell_size")
    bits, weights = bits_of(output), blocks_of(node, constant_codes(operands, "weights"))
    biases = np.split(constant_codes(operands, "biases"), [2 * cells, 3 * cells])
    rows = [len(block) for block in weights]
    given = imported_multiplier(node)
    if given is None:
        scales = np.asarray(node.attributes[SCALES], np.float32)
        flat = np.asarray(node.attributes[WEIGHT_SCALES], np.float32)
        each = np.split(flat, 4 if flat.size == 4 else np.cumsum(rows)[:-1])
        rescale, hidden = multipliers_of(node, scale_of(x), scales, each, bits)
        bias_scales = np.concatenate([scale_of(x) * each[0], scale_of(x) * each[2]]).astype(np.float32)
    else:
        ends = np.cumsum((1,) * 5 if given.m.size == 6 else (*rows, 1))
        rescale = tuple(map(Multiplier, np.split(given.m, ends), np.split(given.n, ends)))
        hidden, scales = imported_multiplier(node, "hidden"), np.ones(8, np.float32)
        flat, bias_scales = (np.asarray(imported_array(node, f"{key}_scale")) for key in ("weights", "biases"))
    return GruParams(
        weights,
        tuple(biases),
        gate_table(node, "sigmoid", _SIGMOID, scales[1], scales[3], output),
        gate_table(node, "tanh", _TANH, scales[4], scales[6], output),
        rescale,
        hidden,
        flat,
        bias_scales,
        words_of(node, "out_sequence", ("H",)),
        node.attributes.text("direction", "forward") == "reverse",
        bits,
        node.attributes.integer("remain_shift", _KEPT),
        output.dtype.storage,
    )


def gate_table(node: Node, key: str, method: str, s_in: np.float32, s_out: np.float32, output: Tensor) -> Table:
    """Return the table of 256 entries, signed and restricted on both sides.

    That of sigmoid is mirrored about its middle: RNE(s (f(x) - 1 / 2)) + RNE(s / 2).
    """
    bits = bits_of(output)
    dtype = DType.INT8 if bits <= TABLE_BITS else DType.INT16
    x, y = (Tensor("", (), dtype, affine_of(s, 0, bits, True, True)) for s in (s_in, s_out))
    function = function_of(Node("activation", (), (), Attributes({"method": method})))
    middle = np.float32(0.5 if method == _SIGMOID else 0)

    def subtract_middle(v: Singles) -> Array:
        return np.asarray(function(v.astype(np.float64)).astype(np.float32) - middle, np.float32)

    table = table_of(node, x, y, subtract_middle, key=key, bits=TABLE_BITS)
    if imported_array(node, key) is not None:
        return table
    entries = np.clip(table.entries + int(np.rint(middle * s_out)), dtype.minimum, dtype.maximum)
    return replace(table, entries=entries)


def run(params: GruParams, x: Array, first: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run the GRU: quantized [S, N, T, I], [S, N, C] -> quantized [S, N, T, C], or [S, N, C]."""
    inputs = x.astype(np.int64)
    if params.is_reversed:
        inputs = inputs[:, :, ::-1]
    state = np.broadcast_to(first.astype(np.int64), (len(x), x.shape[1], first.shape[-1]))
    step, states = _Step(params), []
    for time in range(x.shape[2]):
        state = step.after(inputs[:, :, time], state)
        states.append(state)
    every = np.stack(states[::-1] if params.is_reversed else states, axis=2)
    return tuple((every if word == "H" else state).astype(params.dtype) for word in params.outputs)


class _Step:
    """One step after the other; from 16 bits on biases change with each."""

    def __init__(self, params: GruParams) -> None:
        self._params, self._biases = params, list(params.biases)
        self._lowest, self._highest = -(1 << (params.bits - 1)), (1 << (params.bits - 1)) - 1
        zero = [np.zeros_like(f.n) for f in params.rescale]
        is_wide = params.bits > TABLE_BITS
        self._early = [np.maximum(f.n - params.kept, 0) for f in params.rescale] if is_wide else zero
        self._left = [np.minimum(f.n, params.kept) if is_wide else f.n for f in params.rescale]

    def after(self, x: Integers, state: Integers) -> Integers:
        """Return the next state, int64[S, N, C]."""
        params, weights = self._params, self._params.weights
        sums = self._add_products(x @ weights[0].T, state @ weights[1].T, 0, 0)
        reset, update = np.split(params.sigmoid.lookup(self._clamp_sums(sums, 1)), 2, axis=-1)
        if params.hidden is None:
            shared = scaled(reset * state, 1, params.bits).astype(np.int64) @ weights[3].T
        else:
            self._shift(2, 2)
            product = state @ weights[3].T + self._biases[2]
            shared = reset * np.clip(params.hidden.apply(product), self._lowest, self._highest).astype(np.int64)
        candidate = params.tanh.lookup(self._clamp_sums(self._add_products(x @ weights[2].T, shared, 2, 1), 3))
        kept = limited_32(params.rescale[4].apply((self._highest - update) * candidate))
        total = params.rescale[5].apply(kept + update * state)
        return np.clip(total, self._lowest + 1, self._highest).astype(np.int64)

    def _add_products(self, of_input: Integers, of_state: Integers, place: int, bias: int) -> Integers:
        """Return x W + clamp32(RNE(h W * M * 2^-N)) + b, shifted early if the next N requires it."""
        behind, factor = self._early[place + 1], self._params.rescale[place]
        self._shift(bias, place + 1)
        early = limited_32(scaled(of_state, 1, self._early[place]))
        other = limited_32(scaled(early, factor.m, self._left[place] + behind))
        return limited_32(scaled(of_input, 1, behind)) + other + self._biases[bias]

    def _shift(self, bias: int, place: int) -> None:
        """Shift a bias for good, as the Optimizer does at every step."""
        if self._early[place].any():
            self._biases[bias] = limited_32(scaled(self._biases[bias], 1, self._early[place]))

    def _clamp_sums(self, sums: Integers, place: int) -> Integers:
        rescaled = scaled(sums, self._params.rescale[place].m, self._left[place])
        return np.clip(rescaled, self._lowest, self._highest).astype(np.int64)


def limited_32(values: Array) -> Integers:
    """Clamp integers to the range of 32 bits."""
    return np.clip(values, INT32_MIN, INT32_MAX).astype(np.int64)


KERNELS = {
    name: Kernel(
        lower,
        run,
        "gates by tables, h = (1 - u) c + u h",
        "Compass Optimizer, ops/gruv3.py, gruv1.py; docs/rules/aipu/operators.md",
    )
    for name in ("gru_v1", "gru_v3")
}
