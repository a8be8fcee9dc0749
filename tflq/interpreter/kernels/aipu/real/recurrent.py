"""GRUv1, GRUv3 and BasicLSTM, step by step, and their internally quantized values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.arrays import Doubles
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.basic_lstm import refuse_lstm
from tflq.interpreter.kernels.aipu.gru import blocks_of, refuse_gru, words_of
from tflq.interpreter.kernels.aipu.real.rules import Compute, kernels, own_constant


def _states(node: Node, operands: Operands) -> Callable[[Array, Array], list[Doubles]]:
    """Return states, gates and candidates (before and after activation), h W_hc + b_h, [S, N, T, ...] each."""
    refuse_gru(node)
    weights, cells = blocks_of(node, own_constant(operands, "weights")[0]), node.attributes.integer("cell_size")
    biases = np.split(own_constant(operands, "biases")[0].astype(np.float64), [2 * cells, 3 * cells])
    backward = node.attributes.text("direction", "forward") == "reverse"
    w_xg, w_hg, w_xc, w_hc = (w.T.astype(np.float64) for w in weights)

    def compute(x: Array, first: Array) -> list[Doubles]:
        results: list[list[Doubles]] = [[] for _ in range(6)]
        inputs = (x[:, :, ::-1] if backward else x).astype(np.float64)
        state: Doubles = np.broadcast_to(first, (len(x), x.shape[1], cells)).astype(np.float64)
        for time in range(x.shape[2]):
            sums = inputs[:, :, time] @ w_xg + state @ w_hg + biases[0]
            gates = 1 / (1 + np.exp(-sums))
            reset, update = np.split(gates, 2, axis=-1)
            hidden = np.zeros_like(state)
            if node.operator == "gru_v1":
                hidden = state @ w_hc + biases[2]
                shared = reset * hidden
            else:
                shared = (reset * state) @ w_hc
            inner = inputs[:, :, time] @ w_xc + shared + biases[1]
            candidate = np.tanh(inner)
            state = (1 - update) * candidate + update * state
            for values, kept in zip((state, sums, gates, inner, candidate, hidden), results, strict=True):
                kept.append(values)
        return [np.stack(each, axis=2) for each in results]

    return compute


def _gru(node: Node, operands: Operands) -> Compute:
    states, words = _states(node, operands), words_of(node, "out_sequence", ("H",))
    backward = node.attributes.text("direction", "forward") == "reverse"

    def compute(x: Array, first: Array) -> tuple[Array, ...]:
        every = states(x, first)[0]
        return tuple((every[:, :, ::-1] if backward else every) if w == "H" else every[:, :, -1] for w in words)

    return compute


def _within(node: Node, operands: Operands) -> Compute:
    states = _states(node, operands)
    return lambda x, first: tuple(np.asarray(values, np.float32) for values in states(x, first))


def _cells(node: Node, operands: Operands) -> Callable[[Array, Array, Array], list[Doubles]]:
    """Return states, gates before and after the activation, cells before and after tanh, cells, [S, N, T, ...] each."""
    refuse_lstm(node)
    weights, biases = (
        own_constant(operands, "weights")[0].astype(np.float64),
        own_constant(operands, "biases")[0].astype(np.float64),
    )
    columns, size = node.attributes.integer("input_size"), node.attributes.integer("cell_size")
    biases[2 * size : 3 * size] += node.attributes.real("forget_bias", 0.0)
    backward = node.attributes.text("direction", "forward") == "reverse"
    limit = node.attributes.real("cell_clip", 0.0) or np.inf

    def compute(x: Array, first: Array, cell: Array) -> list[Doubles]:
        results: list[list[Doubles]] = [[] for _ in range(6)]
        inputs = (x[:, :, ::-1] if backward else x).astype(np.float64)
        shape = (len(x), x.shape[1], size)
        state, kept = (np.broadcast_to(v, shape).astype(np.float64) for v in (first, cell))
        for time in range(x.shape[2]):
            sums = inputs[:, :, time] @ weights[:, :columns].T + state @ weights[:, columns:].T + biases
            i, g, f, o = np.split(sums, 4, axis=-1)
            before = np.concatenate([i, f, o], axis=-1)
            gates = 1 / (1 + np.exp(-before))
            of_input, of_cell, of_output = np.split(gates, 3, axis=-1)
            kept = np.clip(of_cell * kept + of_input * np.tanh(g), -limit, limit)
            state = of_output * np.tanh(kept)
            both = np.concatenate([g, kept], axis=-1)
            for values, each in zip((state, before, gates, both, np.tanh(both), kept), results, strict=True):
                each.append(values)
        return [np.stack(each, axis=2) for each in results]

    return compute


def _lstm(node: Node, operands: Operands) -> Compute:
    cells, words = _cells(node, operands), words_of(node, "out_sequence", ("Y",))
    backward = node.attributes.text("direction", "forward") == "reverse"

    def compute(x: Array, first: Array, cell: Array) -> tuple[Array, ...]:
        states, *_, kept = cells(x, first, cell)
        results = {"Y": states[:, :, ::-1] if backward else states, "H": states[:, :, -1], "C": kept[:, :, -1]}
        return tuple(results[word] for word in words)

    return compute


def _within_lstm(node: Node, operands: Operands) -> Compute:
    cells = _cells(node, operands)

    def values(x: Array, first: Array, cell: Array) -> tuple[Array, ...]:
        *five, kept = cells(x, first, cell)
        steps = (kept[:, :, time] for time in range(kept.shape[2]))
        return tuple(np.asarray(v, np.float32) for v in (*five, *steps))

    return values


_RULE = (_gru, "gates by sigmoid, the candidate by tanh, h = (1 - u) c + u h")
KERNELS = kernels(
    {
        "basic_lstm": (_lstm, "gates by sigmoid, c = f c + i tanh(g), h = o tanh(c)"),
        "gru_v1": _RULE,
        "gru_v3": _RULE,
    },
    {"basic_lstm": _within_lstm, "gru_v1": _within, "gru_v3": _within},
)
