"""UNIDIRECTIONAL_SEQUENCE_LSTM beside docs/rules/gap9/operators.md#lstm, in Python's integers: zero points, layouts,
saturation."""

from __future__ import annotations

from itertools import product
from math import floor
from typing import Any

import numpy as np
import pytest

from tflq.graph import Affine, Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.gap9.mul_bias import MulBias
from tflq.interpreter.numerics.q15 import sigmoid_q15, tanh_q15

INPUTS, UNITS, GATES = 3, 2, 4


def norm(value: int, n: int) -> int:
    return (value + ((1 << n) >> 1)) >> n


def clip(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def curve(rule: Any, value: int) -> int:
    return int(rule(np.array([clip(value, -(1 << 17), (1 << 17) - 1)]))[0])


class Layer:
    """Weights, scales and zero points of one layer, drawn, and what section 13 makes of samples."""

    def __init__(self, on_ne16: bool, *, weight: float, state: float, cell: float, is_biased: bool, bits: int) -> None:
        self.on_ne16, self.cell = on_ne16, cell
        random = np.random.default_rng([on_ne16, bits, is_biased])
        half = (1 << (bits - 1)) - 1
        self.middle = half + 1 if on_ne16 else 0
        self.kind = DType.UINT8 if on_ne16 else DType.INT8
        self.x = Affine.per_tensor(0.021, 117 if on_ne16 else 0, 8, not on_ne16)
        self.h = Affine(np.array([state]), np.array([128 * on_ne16]), None, 8, not on_ne16, narrow_range=on_ne16)
        self.w, self.r = (random.integers(-half, half + 1, (GATES, UNITS, n)) for n in (INPUTS, UNITS))
        channels = UNITS if on_ne16 else 1
        steps = weight * (1 + random.random((2, GATES, channels)))
        self.w_scale, self.r_scale = np.broadcast_to(steps, (2, GATES, channels))
        self.bias = (random.normal(size=(GATES, UNITS)) * is_biased).astype(np.float32)
        self.bits = bits

    def graph(self, shape: tuple[int, ...], *, time_major: bool) -> Graph:
        b = GraphBuilder("lstm")
        inputs = [b.input("x", shape, self.kind, self.x)]
        for name, codes, scales in (("w", self.w, self.w_scale), ("r", self.r, self.r_scale)):
            for gate in range(GATES):
                scale, axis = scales[gate], 0 if self.on_ne16 else None
                affine = Affine(scale, np.array([self.middle]), axis, self.bits, not self.on_ne16, narrow_range=True)
                stored = (codes[gate] + self.middle).astype(self.kind.storage)
                inputs.append(b.constant(f"{name}{gate}", stored, affine))
        inputs += [-1, -1, -1, *(b.constant(f"b{gate}", self.bias[gate]) for gate in range(GATES))]
        options = {"time_major": time_major, "cell_max": self.cell, "fused_activation_function": "tanh"}
        y = b.add("unidirectional_sequence_lstm", inputs, (*shape[:2], UNITS), self.kind, self.h, **options)
        return b.build([y])

    def expected(self, params: Any, sequence: list[list[int]]) -> list[list[int]]:
        """Codes of the output at each time for one sequence of input codes."""
        z_h, c, found = int(self.h.zero_point[0]), [0] * UNITS, []
        h = [z_h] * UNITS
        for x in sequence:
            gates = [[self._gate(params, g, u, x, h) for u in range(UNITS)] for g in range(GATES)]
            made = [self._cell(params, c[u], *(gates[g][u] for g in range(GATES))) for u in range(UNITS)]
            h, c = [one[0] for one in made], [one[1] for one in made]
            found.append(h)
        return found

    def _gate(self, params: Any, g: int, u: int, x: list[int], h: list[int]) -> int:
        z_x, z_h = int(self.x.zero_point[0]), int(self.h.zero_point[0])
        w, r = self.w[g, u].tolist(), self.r[g, u].tolist()
        s_w, s_r = (float(s[g, min(u, s.shape[1] - 1)]) for s in (self.w_scale, self.r_scale))
        s_x, s_h = float(self.x.scale[0]), float(self.h.scale[0])
        at = g * UNITS + u
        m_i, n_i = taken(params.input_mul_bias, at, s_x * s_w / (s_h * s_r))
        m_r, n_r = taken(params.recurrent_mul_bias, at, s_h * s_r * 2**12)
        if self.on_ne16:
            a = norm(sum(p * q for p, q in zip(w, x, strict=True)) * m_i - z_x * sum(w) * m_i, n_i)
            bias = floor(float(self.bias[g, u]) * m_r / (s_h * s_r) + 0.5) - z_h * sum(r) * m_r
            q12 = norm((a + sum(p * q for p, q in zip(r, h, strict=True))) * m_r + bias, n_r)
        else:
            a = norm(sum(p * q for p, q in zip(w, x, strict=True)) * m_i, n_i)
            bias = floor(float(self.bias[g, u]) / (s_h * s_r) + 0.5)
            q12 = norm((a + sum(p * q for p, q in zip(r, h, strict=True)) + bias) * m_r, n_r)
        return curve(tanh_q15 if g == 2 else sigmoid_q15, q12)

    def _cell(self, params: Any, c: int, i: int, f: int, g: int, o: int) -> tuple[int, int]:
        s_c, s_h = self.cell / 127, float(self.h.scale[0])
        m, n = taken(params.cell_in, 0, s_c if self.on_ne16 else s_c / 8)
        total = norm(c * f * m, n) + norm(i * g, 15 if self.on_ne16 else 18)
        m, n = taken(params.cell_out, 0, 2.0 ** (-15 if self.on_ne16 else -12) / s_c)
        cell = clip(norm(total * m, n), -128, 127)
        m, n = taken(params.state_out, 0, 2.0**-15 / s_h)
        if self.on_ne16:
            out = norm(o * curve(tanh_q15, norm(total, 3)), 15)
            return clip(norm(out * m, n) + 128, 0, 255), cell
        return clip(norm(((o * curve(tanh_q15, total)) >> 15) * m, n), -128, 127), cell


def taken(found: MulBias, at: int, ratio: float) -> tuple[int, int]:
    """Return M and N, which stand for a ratio."""
    m, n = int(found.multiplier[at]), int(found.shift[at])
    assert abs(m - ratio * 2.0**n) <= 0.5001
    return m, n


CASES = {
    "small": (0.01, 1 / 127, 1.7),
    "the cell saturates": (0.02, 1 / 127, 0.8),
    "the cell saturates at both ends": (0.02, 1 / 127, 0.2),
    "the output saturates": (0.02, 0.3 / 127, 3.0),
    "arguments beyond 18 bits": (0.15, 1 / 127, 5.0),
}
"""Scale of 8-bit weights, of the state, and the largest cell."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("on_ne16", [True, False])
@pytest.mark.parametrize(("time_major", "batch", "bits"), [(False, 3, 8), (True, 2, 8), (False, 1, 4)])
@pytest.mark.parametrize("is_biased", [True, False])
def test_lstm(name: str, on_ne16: bool, time_major: bool, batch: int, bits: int, is_biased: bool) -> None:
    weight, state, cell = CASES[name]
    weight *= 127 / ((1 << (bits - 1)) - 1)
    layer = Layer(on_ne16, weight=weight, state=state, cell=cell, is_biased=is_biased, bits=bits)
    times = 6
    shape = (times, batch, INPUTS) if time_major else (batch, times, INPUTS)
    ends = np.iinfo(layer.kind.storage)
    x: Array = np.random.default_rng(batch).integers(ends.min, ends.max, (2, *shape), endpoint=True)
    x = x.astype(layer.kind.storage)
    graph = lower(layer.graph(shape, time_major=time_major), "gap9")
    found = Engine(graph).run([x])[graph.outputs[0]]
    params = graph.nodes[0].params
    by_batch, made = (np.swapaxes(a, 1, 2) if time_major else a for a in (x, found))
    for sample, n in product(range(2), range(batch)):
        assert made[sample, n].tolist() == layer.expected(params, by_batch[sample, n].tolist())
