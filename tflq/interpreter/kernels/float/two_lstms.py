"""What BIDIRECTIONAL_SEQUENCE_LSTM of float32 and with integer weights share: one LSTM forward, one backward.

A second input with weights of its own is added in both; one without weights is the backward LSTM's input.

Source: TFLite kernels/bidirectional_sequence_lstm.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.float.lstm_sequence import FloatLstm, Matrix, run_lstm
from tflq.interpreter.operands.lstm import GATES

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
    """What BIDIRECTIONAL_SEQUENCE_LSTM needs.

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
        node: with merge_outputs.
        operands: 48 inputs.
        lower_one: for each direction.
        make: for the weights of a second input.

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
    """Return some operands as those of one LSTM; weights that are computed at run time are asked for by their place."""
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
