"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN with float32 activations.

Source: docs/rules/tflite/index.md.

h = act(((b + W x) + A a) + R h), each product added as vector_functions.py does, or as tflite/hybrid.py if the weights
are integers (tflite/hybrid_rnn.py).

BIDIRECTIONAL_SEQUENCE_RNN: one cell forward, one backward. A second input with separate weights is added in both cells.
One without weights is the backward cell's input if the time axis is first; if the batch axis is first TFLite reads the
first input there too.

Source: TFLite kernels/internal/kernel_utils.cc (RnnBatchStep).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.float.vector_functions import activate, lane_product, require_activation
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.products import require_state
from tflq.interpreter.registry import Kernel


class Addend(Protocol):
    """Weights with a product that is added to a sum."""

    def add_product(self, start: Singles, x: Singles) -> Singles:
        """Return start + W x: float32[S, B, U] and float32[S, B, K] -> float32[S, B, U]."""


MakeAddend = Callable[[Tensor, Array], Addend]
"""Packs constant weights; it checks their type."""


@dataclass(frozen=True, eq=False)
class FloatAddend:
    """Weights of float32.

    Attributes:
        weights: [U, K].
    """

    weights: Singles

    def add_product(self, start: Singles, x: Singles) -> Singles:
        """Return start + W x in four lanes."""
        return lane_product(x, self.weights, np.broadcast_to(start, (*x.shape[:-1], len(self.weights))))


@dataclass(frozen=True, eq=False)
class RnnCell:
    """One cell.

    Attributes:
        weights: [U, I].
        recurrent: [U, U].
        bias: float32[U].
        activation: fused.
        second: [U, A] of the second input, or None.
    """

    weights: Addend
    recurrent: Addend
    bias: Singles
    activation: str
    second: Addend | None = None


def run_cell(
    cell: RnnCell, steps: Singles, hidden: Singles, second: Singles | None = None, backward: bool = False
) -> tuple[Singles, Singles]:
    """Run a cell over a sequence.

    Args:
        cell: the cell.
        steps: float32[T, S, B, I].
        hidden: float32[S, B, U].
        second: float32[T, S, B, A], or None.
        backward: whether to begin at the end.

    Returns:
        Outputs float32[T, S, B, U] and the new hidden state.
    """
    count = len(steps)
    outputs = np.empty((count, *hidden.shape), np.float32)
    with np.errstate(all="ignore"):
        for t in range(count)[:: -1 if backward else 1]:
            total = cell.weights.add_product(cell.bias, steps[t])
            if cell.second is not None and second is not None:
                total = cell.second.add_product(total, second[t])
            hidden = activate(cell.recurrent.add_product(total, hidden), cell.activation)
            outputs[t] = hidden
    return outputs, hidden


def check_cell(
    operands: Operands, positions: tuple[int, int, int, int], batch: int, inputs: int
) -> tuple[Tensor, Tensor, int]:
    """Check the shapes of a cell.

    Args:
        operands: Operands of the node.
        positions: Positions of weights, recurrent weights, bias and hidden state.
        batch: B.
        inputs: I.

    Returns:
        Weights, recurrent weights, and the number of units.

    Raises:
        GraphError: they contradict each other, or the state is no variable.
    """
    weights, recurrent, bias, hidden = (operands.input(p) for p in positions)
    units = weights.shape[0] if weights.shape else 0
    if weights.shape != (units, inputs) or recurrent.shape != (units, units) or bias.shape != (units,):
        raise GraphError(
            f"weights {weights.shape}, recurrent weights {recurrent.shape} and bias {bias.shape} do not fit "
            f"{inputs} inputs"
        )
    require_state(hidden, (batch, units))
    return weights, recurrent, units


def spread(state: object, batch: int, samples: int) -> Singles:
    """Bring a hidden state [S or 1, B * U elements] to float32[S, B, U]."""
    held = cast(Singles, state)
    flat = held.reshape(len(held), batch, -1)
    return np.broadcast_to(flat, (samples, *flat.shape[1:]))


_POSITIONS = (1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class SimpleRnn:
    """The params of a simple recurrent layer.

    Attributes:
        cell: the cell.
        batch: sequences.
        time: axis of time among [S, ...] of the input; None for an input without one.
    """

    cell: RnnCell
    batch: int
    time: int | None


def _lower_simple(node: Node, operands: Operands, sequence: bool, make: MakeAddend) -> SimpleRnn:
    """Check the operands and pack the weights.

    Args:
        node: Layer with activation and time_major.
        operands: input, weights [U, I], recurrent weights [U, U], bias [U], hidden state [B, U].
        sequence: whether the input has an axis of time.
        make: packs weights; it checks their type.

    Raises:
        UnsupportedError: types or an activation that the kernel does not take.
        GraphError: shapes that contradict each other.
    """
    x = operands.input(0)
    for tensor in (x, operands.input(3), operands.input(4), operands.output()):
        require_type(tensor, (DType.FLOAT32,))
    if len(x.shape) != (3 if sequence else 2):
        raise GraphError(f"input {x.shape} must have {3 if sequence else 2} axes")
    time_major = sequence and node.attributes.boolean("time_major", False)
    batch = x.shape[1] if time_major else x.shape[0]
    weights, recurrent, _ = check_cell(operands, _POSITIONS, batch, x.shape[-1])
    activation = require_activation(node.attributes.text("fused_activation_function", "none"))
    cell = RnnCell(
        make(weights, operands.constant(1)),
        make(recurrent, operands.constant(2)),
        operands.constant(3).astype(np.float32),
        activation,
    )
    return SimpleRnn(cell, batch, None if not sequence else 1 if time_major else 2)


def _run_simple(params: SimpleRnn, x: Array, *others: Array) -> tuple[Array, ...]:
    """Run it: float32[S, B, T, I], [S, T, B, I] or [S, B, I] -> the same with U, and the new hidden state."""
    hidden = others[3]
    samples = max(len(x), len(hidden))
    wide = cast(Singles, np.broadcast_to(x, (samples, *x.shape[1:])))
    steps = wide[None] if params.time is None else np.moveaxis(wide, params.time, 0)
    outputs, last = run_cell(params.cell, steps, spread(hidden, params.batch, samples))
    result = outputs[0] if params.time is None else np.moveaxis(outputs, 0, params.time)
    return result, last.reshape(samples, *hidden.shape[1:])


def _float_addend(tensor: Tensor, data: Array) -> Addend:
    """Pack weights of float32.

    Raises:
        UnsupportedError: they have another type.
    """
    require_type(tensor, (DType.FLOAT32,))
    return FloatAddend(cast(Singles, data))


def rnn_kernels(make: Callable[[Node], MakeAddend], hybrid: bool, kind: str) -> dict[str, Kernel]:
    """Return the rows of the family.

    RNN: float32[S, B, I] -> [S, B, U], and the hidden state. UNIDIRECTIONAL_SEQUENCE_RNN: float32[S, B, T, I] or
    [S, T, B, I] -> the same with U, and the hidden state. BIDIRECTIONAL_SEQUENCE_RNN: as `run_two`.

    Args:
        make: Function that returns the weight packer of a node.
        hybrid: whether the weights are integers.
        kind: Kind of the layers, for the summaries.
    """

    def lower_step(node: Node, operands: Operands) -> SimpleRnn:
        return _lower_simple(node, operands, sequence=False, make=make(node))

    def lower_sequence(node: Node, operands: Operands) -> SimpleRnn:
        return _lower_simple(node, operands, sequence=True, make=make(node))

    def lower_both_ways(node: Node, operands: Operands) -> TwoRnns:
        return lower_two(node, operands, make(node), hybrid)

    return {
        "rnn": Kernel(lower_step, _run_simple, f"one step {kind}", "TFLite kernels/basic_rnn.cc"),
        "unidirectional_sequence_rnn": Kernel(
            lower_sequence,
            _run_simple,
            f"a sequence {kind}",
            "TFLite kernels/unidirectional_sequence_rnn.cc",
        ),
        "bidirectional_sequence_rnn": Kernel(
            lower_both_ways,
            run_two,
            f"a sequence forward and backward {kind}",
            "TFLite kernels/bidirectional_sequence_rnn.cc",
        ),
    }


INPUT_COUNT = 12
_FORWARD, _BACKWARD = (1, 2, 3, 4), (5, 6, 7, 8)
_SECOND, _SECOND_WEIGHTS = 9, (10, 11)


@dataclass(frozen=True, eq=False)
class TwoRnns:
    """The params of BIDIRECTIONAL_SEQUENCE_RNN.

    Attributes:
        forward: the cell that runs from the beginning.
        backward: the cell that runs from the end.
        batch: sequences.
        time: axis of time among [S, ...] of the input: 1 or 2.
        merge: whether the outputs are joined along the last axis.
        added: whether the second input is added in both cells.
        own: whether the second input is the backward cell's input.
        rounds: Number of runs over the sequence; the states continue from one run to the next.
    """

    forward: RnnCell
    backward: RnnCell
    batch: int
    time: int
    merge: bool
    added: bool
    own: bool
    rounds: int


def lower_two(node: Node, operands: Operands, make: MakeAddend, hybrid: bool) -> TwoRnns:
    """Gather the constants of both cells.

    Args:
        node: Layer with activation, time_major, merge_outputs.
        operands: 12 inputs.
        make: packs weights; it checks their type.
        hybrid: whether the weights are integers. If the time axis is first TFLite's hybrid kernel then runs the whole
            sequence once for each of its steps.

    Raises:
        UnsupportedError: another number of inputs, types, or a case in which TFLite reads beyond a tensor.
        GraphError: shapes that contradict each other.
    """
    if len(operands.inputs) != INPUT_COUNT:
        raise UnsupportedError(f"{len(operands.inputs)} inputs; the kernel takes {INPUT_COUNT}")
    x, second = operands.input(0), operands.optional(_SECOND)
    given = [operands.optional(p) is not None for p in _SECOND_WEIGHTS]
    if len(x.shape) != 3 or given[0] != given[1] or (given[0] and second is None):
        raise GraphError(f"input {x.shape} must have 3 axes, and a second input weights for both cells or none")
    if second is not None and second.shape != x.shape:
        raise UnsupportedError(f"second input {second.shape}; TFLite steps through it as through the first, {x.shape}")
    for tensor in (x, *operands.outputs, *(() if second is None else (second,))):
        require_type(tensor, (DType.FLOAT32,))
    time_major = node.attributes.boolean("time_major", False)
    merge = node.attributes.boolean("merge_outputs", False)
    batch, steps = (x.shape[1], x.shape[0]) if time_major else (x.shape[0], x.shape[1])
    asymmetric = node.attributes.boolean("asymmetric_quantize_inputs", False)
    if hybrid and merge and time_major and batch > 1 and not asymmetric:
        raise UnsupportedError("merged outputs of several sequences, time in front, symmetric: TFLite reads no address")
    own = second is not None and not given[0] and time_major
    forward, backward = (
        _cell(node, operands, p, w if given[0] else None, batch, make)
        for p, w in zip((_FORWARD, _BACKWARD), _SECOND_WEIGHTS, strict=True)
    )
    rounds = steps if hybrid and time_major else 1
    return TwoRnns(forward, backward, batch, 1 if time_major else 2, merge, given[0], own, rounds)


def run_two(params: TwoRnns, *arrays: Array | None) -> tuple[Array, ...]:
    """Run both: float32[S, B, T, I] or [S, T, B, I] -> outputs (one if merged), then both hidden states."""
    x, first, last = (cast(Singles, arrays[p]) for p in (0, _FORWARD[3], _BACKWARD[3]))
    second = cast(Singles | None, arrays[_SECOND])
    samples = max(len(x), len(first), len(last), 0 if second is None else len(second))
    steps = _steps(params, x, samples)
    others = None if second is None else _steps(params, second, samples)
    states = [spread(state, params.batch, samples) for state in (first, last)]
    outputs: list[Singles] = [steps, steps]
    for _ in range(params.rounds):
        for i, cell in enumerate((params.forward, params.backward)):
            source = others if i and params.own and others is not None else steps
            outputs[i], states[i] = run_cell(cell, source, states[i], others if params.added else None, bool(i))
    shown = [np.moveaxis(o, 0, params.time) for o in outputs]
    joined = [np.concatenate(shown, axis=-1)] if params.merge else shown
    return (*joined, *(s.reshape(samples, *old.shape[1:]) for s, old in zip(states, (first, last), strict=True)))


def _steps(layer: TwoRnns, x: Singles, samples: int) -> Singles:
    return np.moveaxis(np.broadcast_to(x, (samples, *x.shape[1:])), layer.time, 0)


def _cell(
    node: Node,
    operands: Operands,
    positions: tuple[int, int, int, int],
    second: int | None,
    batch: int,
    make: MakeAddend,
) -> RnnCell:
    weights, recurrent, units = check_cell(operands, positions, batch, operands.input(0).shape[-1])
    for p in positions[2:]:
        require_type(operands.input(p), (DType.FLOAT32,))
    added = None
    if second is not None:
        tensor = operands.input(second)
        if tensor.shape != weights.shape:
            raise GraphError(f"tensor '{tensor.name}' has shape {tensor.shape}, it needs {(units, weights.shape[1])}")
        added = make(tensor, operands.constant(second))
    return RnnCell(
        make(weights, operands.constant(positions[0])),
        make(recurrent, operands.constant(positions[1])),
        operands.constant(positions[2]).astype(np.float32),
        require_activation(node.attributes.text("fused_activation_function", "none")),
        added,
    )


KERNELS = rnn_kernels(lambda _: _float_addend, hybrid=False, kind="of float32, equal to TFLite bit for bit")
