"""LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM of float32 (docs/rules/tflite/index.md).

The arithmetic is in lstm_sequence.py. LSTM's basic cell: a = clamp(W [x, h] + b, the finite numbers), the product in
the order of eigen.py; c = s(a_input) tanh(a_cell) + s(a_forget) c; h = s(a_output) tanh(c), with s and tanh of
eigen.py. Elements of a row that do not fill registers of four use the C library's exp; its last bit depends on the
host.

Of two directions, a second input with separate weights is added in both; one without weights is the backward LSTM's
input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.float.convolution import LARGEST
from tflq.interpreter.kernels.float.eigen import eigen_product, logistic, scalars_of, tanh
from tflq.interpreter.kernels.float.lstm_sequence import (
    FloatGate,
    FloatLstm,
    FloatMatrix,
    Matrix,
    cell_activation,
    clip_of,
    run_lstm,
)
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.lstm import (
    CELL_STATE,
    GATES,
    INPUTS,
    OUTPUT_STATE,
    OUTPUTS,
    PROJECTION,
    PROJECTION_BIAS,
    GateTensors,
    LstmShapes,
    basic_results,
    is_basic,
    lstm_tensors,
    require_basic,
)
from tflq.interpreter.registry import Kernel

LowerOne = Callable[[Node, Operands], FloatLstm]
"""Gathers the constants of one LSTM from 20 operands (operands/lstm.py)."""
MakeMatrix = Callable[[Tensor, Array, bool], Matrix]
"""Packs weights; the flag says whether the sequences of a batch run side by side."""

INPUT_COUNT = 48
_FORWARD, _BACKWARD = tuple(range(1, 18)), tuple(range(18, 35))
_STATES = ((35, 36), (37, 38))
_SECOND = 39
_SECOND_WEIGHTS = (range(40, 44), range(44, 48))


@dataclass(frozen=True, eq=False)
class TwoLstms:
    """The params of BIDIRECTIONAL_SEQUENCE_LSTM.

    Attributes:
        forward: the LSTM that runs from the beginning.
        backward: the LSTM that runs from the end.
        merge: whether the outputs are joined along the last axis.
        added: whether the second input is added in both.
        own: whether the second input is the backward LSTM's input.
    """

    forward: FloatLstm
    backward: FloatLstm
    merge: bool
    added: bool
    own: bool


def lower_two(node: Node, operands: Operands, lower_one: LowerOne, make: MakeMatrix) -> TwoLstms:
    """Gather the constants of both LSTMs.

    Args:
        node: Layer with the attribute merge_outputs.
        operands: 48 inputs.
        lower_one: Function that lowers one direction.
        make: Function that packs the weights of a second input.

    Raises:
        UnsupportedError: another number of inputs, types, or a case in which TFLite reads beyond its states.
        GraphError: shapes that contradict each other.
    """
    if len(operands.inputs) != INPUT_COUNT:
        raise UnsupportedError(f"{len(operands.inputs)} inputs; the kernel takes {INPUT_COUNT}")
    second = operands.optional(_SECOND)
    added = operands.optional(_SECOND_WEIGHTS[0][1]) is not None
    if added and second is None:
        raise GraphError("weights of a second input are given, but no second input")
    own = second is not None and not added
    merge = node.attributes.boolean("merge_outputs", False)
    layers = []
    for index, positions in enumerate((_FORWARD, _BACKWARD)):
        x = _SECOND if index and own else 0
        layer = lower_one(node, _chosen(operands, (x, *positions, *_STATES[index])))
        if added:
            layer = _with_second(layer, operands, _SECOND_WEIGHTS[index], cast(Tensor, second), make)
        layers.append(replace(layer, backward=bool(index)))
    shapes = layers[0].shapes
    if shapes != layers[1].shapes:
        raise GraphError(f"the LSTMs of both directions must have the same sizes; found {shapes}, {layers[1].shapes}")
    if merge and not shapes.time_major and shapes.batch > 1:
        raise UnsupportedError(
            f"merged outputs of {shapes.batch} sequences with the batch in front: TFLite looks for their states behind "
            f"the end; allowed are one sequence, time in front, or separate outputs"
        )
    return TwoLstms(layers[0], layers[1], merge, added, own)


def run_two(params: TwoLstms, *arrays: Array | None) -> tuple[Array, ...]:
    """Run both: float32[S, B, T, I] or [S, T, B, I] -> outputs (one if merged), then the four states in their order."""
    x, second = cast(Singles, arrays[0]), cast(Singles | None, arrays[_SECOND])
    outputs, states = [], []
    for single, places in zip((params.forward, params.backward), _STATES, strict=True):
        held = [cast(Singles, arrays[p]) for p in places]
        source = cast(Singles, second) if params.own and single.backward else x
        result, *new = run_lstm(single, source, second if params.added else None, held[0], held[1])
        outputs.append(result)
        states += [n.reshape(len(result), *old.shape[1:]) for n, old in zip(new, held, strict=True)]
    joined = [np.concatenate(outputs, axis=-1)] if params.merge else outputs
    return (*joined, *states)


def _chosen(operands: Operands, positions: tuple[int, ...]) -> Operands:
    """Return the operands of one LSTM of two; raises as `Operands.constant` for weights computed at run time."""
    for p in positions[1:-2]:
        if operands.optional(p) is not None:
            operands.constant(p)
    return replace(operands, inputs=tuple(operands.optional(p) for p in positions))


def _with_second(layer: FloatLstm, operands: Operands, positions: range, second: Tensor, make: MakeMatrix) -> FloatLstm:
    gates = {}
    for name, position in zip(GATES, positions, strict=True):
        if name not in layer.gates:
            continue
        weights = operands.input(position)
        if weights.shape != (layer.shapes.cells, second.shape[-1]):
            raise GraphError(
                f"tensor '{weights.name}' has shape {weights.shape}, it needs {(layer.shapes.cells, second.shape[-1])}"
            )
        matrix = make(weights, operands.constant(position), layer.together)
        gates[name] = replace(layer.gates[name], second=matrix)
    return replace(layer, gates=gates)


@dataclass(frozen=True, eq=False)
class FloatBasicLstm:
    """The params of the basic cell of float32.

    Attributes:
        weights: float32[4 * U, I + U].
        bias: float32[4 * U].
        keeps: whether last output and state are variables, which get their new values.
    """

    weights: Singles
    bias: Singles
    keeps: tuple[bool, bool]


def lower_basic(operands: Operands) -> FloatBasicLstm:
    """Gather the constants; raises as `require_basic`."""
    keeps = require_basic(operands, [DType.FLOAT32] * INPUTS, [DType.FLOAT32] * OUTPUTS)
    weights, bias = (operands.constant(i).astype(np.float32) for i in (2, 3))
    return FloatBasicLstm(weights, bias.reshape(-1), keeps)


def run_basic(layer: FloatBasicLstm, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
    """Run it: float32[S, B, I], last output and state [S, B, U] -> output, state, both inputs, sums of the gates."""
    x, last, state = (cast(Singles, arrays[i]) for i in (0, 1, 4))
    samples = max(len(x), len(last), len(state))
    together = np.concatenate([np.broadcast_to(a, (samples, *a.shape[1:])) for a in (x, last)], axis=-1)
    with np.errstate(all="ignore"):
        sums = eigen_product(together, layer.weights, together=True) + layer.bias
        gates = np.minimum(np.maximum(sums, -LARGEST), LARGEST)
        enter, update, forget, leave = np.split(gates, 4, axis=-1)
        new: Singles = _logistic(enter) * tanh(update) + _logistic(forget) * state
        output: Singles = _logistic(leave) * tanh(new)
    return basic_results(output, new, together, gates, layer.keeps)


def _logistic(x: Singles) -> Singles:
    """Apply the logistic function to float32[S, B, U] with consecutive rows in aligned memory."""
    batch, units = x.shape[1:]
    scalars = np.concatenate([scalars_of(units, row * units) for row in range(batch)])
    return logistic(x.reshape(len(x), -1), scalars).reshape(x.shape)


def lower_float(node: Node, operands: Operands, sequence: bool) -> FloatLstm:
    """Gather the constants of an LSTM of float32.

    Args:
        node: Layer with clips and activation.
        operands: Operands as in operands/lstm.py.
        sequence: whether the input has an axis of time.

    Raises:
        UnsupportedError: a type other than float32, or an activation that TFLite does not have.
        GraphError: shapes that contradict each other.
    """
    for tensor in (*operands.inputs, operands.output()):
        if tensor is not None:
            require_type(tensor, (DType.FLOAT32,))
    tensors = lstm_tensors(node, operands, sequence)
    together = runs_together(tensors.shapes)
    projection = constant(operands, PROJECTION if tensors.projection is not None else -1)
    return FloatLstm(
        tensors.shapes,
        {name: _gate(gate, operands, together) for name, gate in tensors.gates.items()},
        cell_activation(node),
        clip_of(node, "cell_clip"),
        None if projection is None else FloatMatrix(projection, together),
        constant(operands, PROJECTION_BIAS if tensors.projection_bias is not None else -1),
        clip_of(node, "proj_clip"),
    )


def runs_together(shapes: LstmShapes) -> bool:
    """Whether the sequences of a batch run side by side; else one after the other."""
    return shapes.time_major or not shapes.has_time


def run_float(params: FloatLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it on the node's inputs; the returned states have their own shapes."""
    x, hidden, cell = (cast(Singles, arrays[i]) for i in (0, OUTPUT_STATE, CELL_STATE))
    result, new_hidden, new_cell = run_lstm(params, x, None, hidden, cell)
    count = len(result)
    return result, new_hidden.reshape(count, *hidden.shape[1:]), new_cell.reshape(count, *cell.shape[1:])


def constant(operands: Operands, position: int) -> Singles | None:
    """Return a constant as float32; None for position -1."""
    return None if position < 0 else operands.constant(position).astype(np.float32)


def _gate(gate: GateTensors, operands: Operands, together: bool) -> FloatGate:
    weights, recurrent, peephole, bias, norm = gate.positions
    back = operands.constant(recurrent).astype(np.float32)
    return FloatGate(
        FloatMatrix(operands.constant(weights).astype(np.float32), together),
        back if back.ndim == 1 else FloatMatrix(back, together),
        operands.constant(bias).astype(np.float32),
        None,
        constant(operands, peephole if gate.peephole is not None else -1),
        constant(operands, norm if gate.norm is not None else -1),
    )


def _lower_step(node: Node, operands: Operands) -> FloatLstm | FloatBasicLstm:
    return lower_basic(operands) if is_basic(node) else lower_float(node, operands, sequence=False)


def _run_step(params: FloatLstm | FloatBasicLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it: float32[S, B, I] -> [S, B, O], output state, cell state; or a basic cell."""
    return run_basic(params, arrays) if isinstance(params, FloatBasicLstm) else run_float(params, *arrays)


def _lower_both_ways(node: Node, operands: Operands) -> TwoLstms:
    return lower_two(node, operands, partial(lower_float, sequence=True), _matrix)


def _matrix(tensor: Tensor, data: Array, together: bool) -> Matrix:
    require_type(tensor, (DType.FLOAT32,))
    return FloatMatrix(cast(Singles, data), together)


KERNELS = {
    "lstm": Kernel(_lower_step, _run_step,
        "float32: one step of a full cell, or of a basic one", "TFLite kernels/lstm.cc"),
    "unidirectional_sequence_lstm": Kernel(partial(lower_float, sequence=True), run_float,
        "float32: [S, B, T, I] or [S, T, B, I] -> the same with O, output state, cell state",
        "TFLite kernels/unidirectional_sequence_lstm.cc"),
    "bidirectional_sequence_lstm": Kernel(_lower_both_ways, run_two,
        "float32: one LSTM forward, one backward", "TFLite kernels/bidirectional_sequence_lstm.cc"),
}  # fmt: skip
