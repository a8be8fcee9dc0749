"""LSTM of float32 over a sequence, with or without a second input (docs/rules/tflite/index.md).

g = act(W x + A a + R h + p * c + b), with layer normalization act(n * normal(W x + A a + R h + p * c) + b); c = f * c +
i * g, clipped, i = 1 - f if the gates are coupled; h = o * act(c), or its projection P h + b, clipped. Products in the
order of eigen.py, the logistic function and tanh of eigen.py. Elements of a gate that do not fill vector registers use
the C library's exp; its last bit depends on the host.

Source: TFLite kernels/lstm_eval.cc (EvalFloat, LstmStepFloat).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Node
from tflq.interpreter.kernels.float.eigen import eigen_product, logistic, scalars_of
from tflq.interpreter.kernels.float.vector_functions import activate, require_activation
from tflq.interpreter.operands.lstm import LstmShapes


class Matrix(Protocol):
    """Weights that multiply vectors: of float32, or integers that meet quantized vectors."""

    def prepare(self, x: Singles) -> object:
        """Make vectors float32[S, B, K] ready for `times` of any matrix of the same LSTM."""

    def times(self, prepared: object) -> Singles:
        """Return the product float32[S, B, rows]."""


@dataclass(frozen=True, eq=False)
class FloatMatrix:
    """Weights of float32.

    Attributes:
        weights: [rows, K].
        together: whether the vectors of a batch are multiplied in one product.
    """

    weights: Singles
    together: bool

    def prepare(self, x: Singles) -> object:
        """Return the vectors unchanged."""
        return x

    def times(self, prepared: object) -> Singles:
        """Return the product, in Eigen's order."""
        return eigen_product(cast(Singles, prepared), self.weights, self.together)


@dataclass(frozen=True, eq=False)
class FloatGate:
    """One gate.

    Attributes:
        weights: [C, I].
        recurrent: [C, O], or float32[C] for a diagonal.
        bias: float32[C].
        second: [C, A] of the second input, or None.
        peephole: float32[C], or None.
        norm: float32[C], or None.
    """

    weights: Matrix
    recurrent: Matrix | Singles
    bias: Singles
    second: Matrix | None = None
    peephole: Singles | None = None
    norm: Singles | None = None


@dataclass(frozen=True, eq=False)
class FloatLstm:
    """The params of an LSTM of float32.

    Attributes:
        shapes: sizes.
        gates: Gates by name; without "input" it is 1 - forget.
        activation: Activation of the cell gate and of the cells.
        cell_clip: bound of the cells; 0 for none.
        projection: [O, C], or None.
        projection_bias: float32[O], or None.
        projection_clip: bound of the projection; 0 for none.
        backward: whether the sequence runs from its end.
    """

    shapes: LstmShapes
    gates: dict[str, FloatGate]
    activation: str
    cell_clip: np.float32
    projection: Matrix | None
    projection_bias: Singles | None
    projection_clip: np.float32
    backward: bool = False

    @property
    def together(self) -> bool:
        """Whether the sequences of a batch run side by side; else one after the other."""
        return self.shapes.time_major or not self.shapes.has_time


def cell_activation(node: Node) -> str:
    """Return the activation of the cells.

    Raises:
        UnsupportedError: TFLite has no vector function of that name, or leaves the gate unset ("none").
    """
    name = require_activation(node.attributes.text("fused_activation_function", "none"))
    if name == "none":
        raise UnsupportedError("fused activation 'none': TFLite leaves the cell gate unset; LSTMs need one, as tanh")
    return name


def clip_of(node: Node, name: str) -> np.float32:
    """Return a bound, 0 for none.

    Raises:
        GraphError: it is negative.
    """
    bound: np.float32 = np.float32(node.attributes.real(name, 0.0))
    if not bound >= 0:
        raise GraphError(f"{name} is {bound}; it is 0 for none, or positive")
    return bound


def run_lstm(
    layer: FloatLstm, x: Singles, second: Singles | None, hidden: Singles, cell: Singles
) -> tuple[Singles, ...]:
    """Run it over the sequence.

    Args:
        layer: the LSTM.
        x: float32[S, B, T, I], [S, T, B, I] or [S, B, I].
        second: the second input, [S, B, T, A] or [S, T, B, A]; None for none.
        hidden: output state, [S or 1, B * O elements].
        cell: cell state, [S or 1, B * C elements].

    Returns:
        float32[S, B, T, O] or as the input, output state [S, B, O], cell state [S, B, C].
    """
    shapes = layer.shapes
    samples = max(len(a) for a in (x, hidden, cell))
    steps = _steps(layer, x, samples)
    others = None if second is None else _steps(layer, second, samples)
    h = np.broadcast_to(hidden.reshape(len(hidden), shapes.batch, -1), (samples, shapes.batch, shapes.outputs))
    c = np.broadcast_to(cell.reshape(len(cell), shapes.batch, -1), (samples, shapes.batch, shapes.cells))
    outputs: list[Singles] = []
    order = range(shapes.steps)[:: -1 if layer.backward else 1]
    with np.errstate(all="ignore"):
        for t in order:
            h, c = _step(layer, steps[t], None if others is None else others[t], h, c)
            outputs.append(h)
    if layer.backward:
        outputs.reverse()
    result = np.stack(outputs, axis=1 if shapes.time_major else 2) if shapes.has_time else outputs[0]
    return result, h, c


def normalize_rows(x: Singles) -> Singles:
    """Bring each row to mean 0 and deviation 1: sums in order, 1e-8 is added to the variance."""
    count = np.float32(x.shape[-1])
    difference: Singles = x - (_ordered_sum(x) / count)[..., None]
    variance: Singles = _ordered_sum(difference * difference) / count
    inverse: Singles = np.float32(1) / np.sqrt(variance + np.float32(1e-8))
    return difference * inverse[..., None]


def update_cell(layer: FloatLstm, opened: dict[str, Singles], cell: Singles) -> Singles:
    """C = f * c + i * g, clipped."""
    forget = opened["forget"]
    enter = opened.get("input", np.float32(1) - forget)
    new: Singles = forget * cell + opened["cell"] * enter
    return np.clip(new, -layer.cell_clip, layer.cell_clip) if layer.cell_clip > 0 else new


def open_gate(layer: FloatLstm, name: str, total: Singles) -> Singles:
    """Apply a gate's function to float32[S, B, C]; which elements fill registers follows from TFLite's scratch area."""
    if name == "cell":
        return activate(total, layer.activation)
    shapes = layer.shapes
    order: Sequence[str] = ("cell", "forget", "output") if "input" not in layer.gates else (
        "input", "cell", "forget", "output")  # fmt: skip
    start = order.index(name) * shapes.cells * shapes.batch
    if layer.together:
        flat = total.reshape(len(total), -1)
        return logistic(flat, scalars_of(flat.shape[1], start)).reshape(total.shape)
    each = [logistic(total[:, b], scalars_of(shapes.cells, start + b * shapes.cells)) for b in range(shapes.batch)]
    return np.stack(each, axis=1)


def _steps(layer: FloatLstm, x: Singles, samples: int) -> Singles:
    wide = np.broadcast_to(x, (samples, *x.shape[1:]))
    if not layer.shapes.has_time:
        return wide[None]
    return np.moveaxis(wide, 1 if layer.shapes.time_major else 2, 0)


def _step(
    layer: FloatLstm, x: Singles, second: Singles | None, hidden: Singles, cell: Singles
) -> tuple[Singles, Singles]:
    first = layer.gates["forget"]
    seen = [first.weights.prepare(x)]
    seen.append(hidden if isinstance(first.recurrent, np.ndarray) else first.recurrent.prepare(hidden))
    if second is not None and first.second is not None:
        seen.append(first.second.prepare(second))
    opened = {
        name: open_gate(layer, name, _gate(gate, seen, cell)) for name, gate in layer.gates.items() if name != "output"
    }
    cell = update_cell(layer, opened, cell)
    shown = open_gate(layer, "output", _gate(layer.gates["output"], seen, cell))
    product: Singles = shown * activate(cell, layer.activation)
    if layer.projection is None:
        return product, cell
    start = np.float32(0) if layer.projection_bias is None else layer.projection_bias
    projected: Singles = layer.projection.times(layer.projection.prepare(product)) + start
    if layer.projection_clip > 0:
        projected = np.clip(projected, -layer.projection_clip, layer.projection_clip)
    return projected, cell


def _gate(gate: FloatGate, seen: Sequence[object], cell: Singles) -> Singles:
    """Sum up a gate.

    Args:
        gate: the gate.
        seen: input, output state, and the second input if present, packed.
        cell: cell state.
    """
    start = np.float32(0) if gate.norm is not None else gate.bias
    total: Singles = gate.weights.times(seen[0]) + start
    if gate.second is not None:
        total = gate.second.times(seen[2]) + total
    if isinstance(gate.recurrent, np.ndarray):
        total = total + gate.recurrent * cast(Singles, seen[1])
    else:
        total = gate.recurrent.times(seen[1]) + total
    if gate.peephole is not None:
        total = total + gate.peephole * cell
    return total if gate.norm is None else normalize_rows(total) * gate.norm + gate.bias


def _ordered_sum(x: Singles) -> Singles:
    sums: Singles = np.add.accumulate(x, axis=-1)
    return sums[..., -1]
