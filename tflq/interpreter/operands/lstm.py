"""Operands of LSTM operators: the positions of the inputs, and whether their shapes fit (docs/rules/tflite/index.md).

I inputs, C cells, O outputs (O = C without projection). Gates are called input, forget, cell and output; an LSTM
without weights of the input gate couples it to the forget gate (CIFG): input = 1 - forget.

Source: TFLite kernels/lstm_shared.h, unidirectional_sequence_lstm.cc (CheckInputTensorDimensions).

Operands of LSTM's basic cell: five inputs, four outputs; all gates in one product (docs/rules/tflite/index.md).

Input [B, I], last output [B, U], weights [4 * U, I + U] of the gates input, cell, forget and output, bias [4 * U],
state [B, U]; output, new state, input and last output side by side, sums of the gates.

Source: TFLite kernels/lstm.cc (namespace basic).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.products import require_state

GATES = ("input", "forget", "cell", "output")
INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES, NORMS = (1, 2, 3, 4), (5, 6, 7, 8), (12, 13, 14, 15), (20, 21, 22, 23)
PEEPHOLES = (9, 10, None, 11)
PROJECTION, PROJECTION_BIAS, OUTPUT_STATE, CELL_STATE = 16, 17, 18, 19
INPUT_COUNTS = (20, 24)


@dataclass(frozen=True)
class LstmShapes:
    """Sizes of one LSTM over a sequence.

    Attributes:
        batch: independent sequences.
        steps: length of a sequence.
        inputs: I.
        cells: C.
        outputs: O.
        time_major: whether the input is [T, B, I] and not [B, T, I].
        has_time: whether the input has an axis of time; else it is [B, I].
    """

    batch: int
    steps: int
    inputs: int
    cells: int
    outputs: int
    time_major: bool
    has_time: bool = True


@dataclass(frozen=True, eq=False)
class GateTensors:
    """The tensors of one gate.

    Attributes:
        name: Name of the gate, one of GATES.
        weights: [C, I].
        recurrent: [C, O], or [C] for a diagonal.
        peephole: [C], or None.
        bias: [C]; optional if there is a layer normalization.
        norm: [C], or None.
        positions: Positions of weights, recurrent, peephole, bias and norm among the inputs.
    """

    name: str
    weights: Tensor
    recurrent: Tensor
    peephole: Tensor | None
    bias: Tensor
    norm: Tensor | None
    positions: tuple[int, int, int, int, int]


@dataclass(frozen=True, eq=False)
class LstmTensors:
    """The tensors of one LSTM.

    Attributes:
        shapes: sizes.
        x: the input.
        gates: Gates by name; without "input" the gate is coupled.
        projection: [O, C], or None.
        projection_bias: [O], or None.
        output_state: B * O elements.
        cell_state: B * C elements.
    """

    shapes: LstmShapes
    x: Tensor
    gates: dict[str, GateTensors]
    projection: Tensor | None
    projection_bias: Tensor | None
    output_state: Tensor
    cell_state: Tensor


def lstm_tensors(node: Node, operands: Operands, sequence: bool = True) -> LstmTensors:
    """Gather and check the operands of an LSTM.

    Args:
        node: Node with time_major.
        operands: 20 inputs, or 24 if a layer normalization may be given.
        sequence: whether the input has an axis of time.

    Raises:
        GraphError: shapes that contradict each other, parts that are given only in part, state that is no variable.
        UnsupportedError: another number of inputs.
    """
    if len(operands.inputs) not in INPUT_COUNTS:
        raise UnsupportedError(f"{len(operands.inputs)} inputs; the kernel takes 20 or 24")
    x = operands.input(0)
    if len(x.shape) != (3 if sequence else 2):
        raise GraphError(f"input {x.shape} must have {3 if sequence else 2} axes")
    weights, recurrent = operands.input(INPUT_WEIGHTS[3]), operands.input(RECURRENT_WEIGHTS[3])
    time_major = sequence and node.attributes.boolean("time_major", False)
    batch, steps = (x.shape[1], x.shape[0]) if time_major else (x.shape[0], x.shape[1] if sequence else 1)
    shapes = LstmShapes(batch, steps, x.shape[-1], weights.shape[0], recurrent.shape[-1], time_major, has_time=sequence)
    found = {name: gate for i, name in enumerate(GATES) if (gate := _gate(operands, i)) is not None}
    _check(shapes, found)
    output_state, cell_state = operands.input(OUTPUT_STATE), operands.input(CELL_STATE)
    require_state(output_state, (batch, shapes.outputs))
    require_state(cell_state, (batch, shapes.cells))
    projection, bias = operands.optional(PROJECTION), operands.optional(PROJECTION_BIAS)
    _require_shape(projection, (shapes.outputs, shapes.cells))
    _require_shape(bias, (shapes.outputs,))
    if projection is None and (bias is not None or shapes.outputs != shapes.cells):
        raise GraphError(f"{shapes.cells} cells and {shapes.outputs} outputs need a projection")
    return LstmTensors(shapes, x, found, projection, bias, output_state, cell_state)


def _gate(operands: Operands, index: int) -> GateTensors | None:
    peephole = PEEPHOLES[index]
    positions = (INPUT_WEIGHTS[index], RECURRENT_WEIGHTS[index], -1 if peephole is None else peephole, BIASES[index],
                 NORMS[index])  # fmt: skip
    found = [operands.optional(p) if p >= 0 else None for p in positions]
    if index == 0 and found[0] is None and found[1] is None:
        if found[2] is not None or found[3] is not None:
            raise GraphError("an LSTM without input gate has no bias and no peephole weights for it either")
        return None
    weights, recurrent, bias = (operands.input(positions[i]) for i in (0, 1, 3))
    has_norms = operands.optional(NORMS[1]) is not None
    norm = operands.input(NORMS[index]) if has_norms else None
    return GateTensors(GATES[index], weights, recurrent, found[2], bias, norm, positions)


def _check(shapes: LstmShapes, gates: dict[str, GateTensors]) -> None:
    cells = shapes.cells
    for gate in gates.values():
        _require_shape(gate.weights, (cells, shapes.inputs))
        if gate.recurrent.shape != (cells,) or shapes.outputs != cells:
            _require_shape(gate.recurrent, (cells, shapes.outputs))
        for tensor in (gate.peephole, gate.bias, gate.norm):
            _require_shape(tensor, (cells,))
    given = {gate.peephole is None for name, gate in gates.items() if name != "cell"}
    if len(given) > 1:
        raise GraphError("peephole weights are given for some gates only; they are for all or none")


def _require_shape(tensor: Tensor | None, shape: tuple[int, ...]) -> None:
    if tensor is not None and tensor.shape != shape:
        raise GraphError(f"tensor '{tensor.name}' has shape {tensor.shape}, it needs {shape}")


INPUTS, OUTPUTS = 5, 4


def is_basic(node: Node) -> bool:
    """Whether an LSTM is the basic cell."""
    return node.attributes.text("kernel_type", "full") == "basic"


def require_basic(operands: Operands, types: Sequence[DType], results: Sequence[DType]) -> tuple[bool, bool]:
    """Check types and shapes; return whether last output and state are variables, which get their new values.

    Args:
        operands: Operands of the node.
        types: Types of the inputs.
        results: Types of the outputs.

    Raises:
        UnsupportedError: other types.
        GraphError: another number of operands, or shapes that contradict each other.
    """
    if len(operands.inputs) != INPUTS or len(operands.outputs) != OUTPUTS:
        raise GraphError(
            f"{len(operands.inputs)} inputs and {len(operands.outputs)} outputs; the basic cell has {INPUTS} and "
            f"{OUTPUTS}"
        )
    x, last, weights, bias, state = (operands.input(i) for i in range(INPUTS))
    for tensor, dtype in zip((*operands.inputs, *operands.outputs), (*types, *results), strict=True):
        if tensor is not None:
            require_type(tensor, (dtype,))
    units = last.shape[-1] if last.shape else 0
    if (
        len(x.shape) != 2
        or weights.shape != (4 * units, x.shape[1] + units)
        or bias.size != 4 * units
        or not last.shape == state.shape == (x.shape[0], units)
    ):
        raise GraphError(
            f"input {x.shape}, last output {last.shape}, weights {weights.shape}, bias {bias.shape} and state "
            f"{state.shape} do not fit"
        )
    return last.is_variable, state.is_variable


def basic_results(
    output: Array, state: Array, together: Array, gates: Array, keeps: tuple[bool, bool]
) -> tuple[Array, ...]:
    """Return the outputs, followed by the new values of the states that are variables."""
    kept = [value for value, keep in zip((output, state), keeps, strict=True) if keep]
    return (output, state, together, gates, *kept)
