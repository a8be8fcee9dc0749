"""LSTM with float32 activations and states, and int8 or uint8 weights, over a sequence (docs/rules/tflite/index.md).

The sums of float/lstm_sequence.py, but each vector is quantized (hybrid.py) and each product is f32(f32(total) *
f32(sw * scale of the vector)); peephole weights become f32(w * scale); a normalization and a diagonal are float32.

Source: TFLite kernels/lstm_eval.cc (EvalHybrid, LstmStepHybrid).
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.float.lstm import constant
from tflq.interpreter.kernels.float.lstm_sequence import FloatGate, FloatLstm, cell_activation, clip_of
from tflq.interpreter.kernels.tflite.hybrid import (
    HybridMatrix,
    prepare_hybrid,
    signed_weights,
)
from tflq.interpreter.operands.checks import per_tensor, require_same_type, require_type
from tflq.interpreter.operands.lstm import PROJECTION, PROJECTION_BIAS, GateTensors, LstmTensors, lstm_tensors


def lower_hybrid(node: Node, operands: Operands, sequence: bool) -> FloatLstm:
    """Gather the constants of a hybrid LSTM.

    Args:
        node: Layer with clips, activation and asymmetric_quantize_inputs.
        operands: Operands as in operands/lstm.py.
        sequence: whether the input has an axis of time.

    Raises:
        UnsupportedError: types that the kernel does not take.
        GraphError: shapes that contradict each other.
    """
    tensors = lstm_tensors(node, operands, sequence)
    check_types(tensors, operands.output())
    asymmetric = node.attributes.boolean("asymmetric_quantize_inputs", False)
    projection = tensors.projection
    return FloatLstm(
        tensors.shapes,
        {name: _gate(gate, operands, asymmetric) for name, gate in tensors.gates.items()},
        cell_activation(node),
        clip_of(node, "cell_clip"),
        None if projection is None else hybrid_matrix(projection, operands.constant(PROJECTION), asymmetric),
        constant(operands, PROJECTION_BIAS if tensors.projection_bias is not None else -1),
        clip_of(node, "proj_clip"),
    )


def hybrid_matrix(tensor: Tensor, data: Array, asymmetric: bool) -> HybridMatrix:
    """Make integer weights ready; raises as `per_tensor`."""
    return HybridMatrix(prepare_hybrid(signed_weights(data)), per_tensor(tensor)[0], asymmetric)


def check_types(tensors: LstmTensors, output: Tensor) -> None:
    """Check the types of a hybrid LSTM's tensors.

    Raises:
        UnsupportedError: one differs from the types that the kernel takes.
    """
    for tensor in (tensors.x, output, tensors.output_state, tensors.cell_state):
        require_type(tensor, (DType.FLOAT32,))
    for gate in tensors.gates.values():
        require_type(gate.weights, (DType.INT8, DType.UINT8))
        for held in (gate.bias, gate.norm):
            if held is not None:
                require_type(held, (DType.FLOAT32,))
        if gate.peephole is not None:
            require_same_type(gate.weights, gate.peephole)
        if gate.recurrent.shape == (tensors.shapes.cells,):
            require_type(gate.recurrent, (DType.FLOAT32,))
        else:
            require_same_type(gate.weights, gate.recurrent)
    if tensors.projection is not None:
        require_type(tensors.projection, (DType.INT8, DType.UINT8))
    if tensors.projection_bias is not None:
        require_type(tensors.projection_bias, (DType.FLOAT32,))


def _gate(gate: GateTensors, operands: Operands, asymmetric: bool) -> FloatGate:
    weights, recurrent, peephole, bias, norm = gate.positions
    back = operands.constant(recurrent)
    held = None
    if gate.peephole is not None:
        held = per_tensor(gate.peephole)[0] * signed_weights(operands.constant(peephole)).astype(np.float32)
    return FloatGate(
        hybrid_matrix(gate.weights, operands.constant(weights), asymmetric),
        back.astype(np.float32) if back.ndim == 1 else hybrid_matrix(gate.recurrent, back, asymmetric),
        operands.constant(bias).astype(np.float32),
        None,
        held,
        constant(operands, norm if gate.norm is not None else -1),
    )
