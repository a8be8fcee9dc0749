"""Recurrent layers over a sequence: LSTM and RNN, [B, T, I] -> [B, T, C], or time first.

ONNX and OpenVINO begin each run with a state of zeros; TFLite keeps it until the variables are reset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.arrays import Singles
from tflq.converters.exchange.emitter import FLOAT32, Emitter, ExchangeAttribute, Value
from tflq.errors import UnsupportedError
from tflq.interpreter.operands.lstm import GateTensors, LstmTensors, lstm_tensors

_ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu"}
_OF_ONNX, _OF_OPENVINO = ("input", "output", "forget", "cell"), ("forget", "input", "cell", "output")


def lstm(e: Emitter) -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM: LSTM; a coupled input gate 1 - forget has the forget gate's weights negated.

    Raises:
        UnsupportedError: normalized gates, projections, clipped cells, other activations; peepholes in OpenVINO.
    """
    found = lstm_tensors(e.node, e.operands)
    gates, shapes = found.gates, found.shapes
    _require_plain(e, found)
    order = _OF_OPENVINO if e.has("LSTMSequence") else _OF_ONNX
    weights, recurrent, biases = (np.concatenate([_of_gate(e, gates, g, part) for g in order]) for part in range(3))
    options: dict[str, ExchangeAttribute] = {"activations": ("Sigmoid", *2 * (_activation(e),))}
    peepholes = None
    if gates["forget"].peephole is not None:
        if e.has("LSTMSequence"):
            raise UnsupportedError("an LSTM with peepholes; OpenVINO's LSTMSequence has none")
        peepholes = np.concatenate([_of_gate(e, gates, g, 3) for g in ("input", "output", "forget")])
    _sequence(e, "LSTM", shapes.time_major, (weights, recurrent, biases, peepholes), options)


def rnn(e: Emitter) -> None:
    """UNIDIRECTIONAL_SEQUENCE_RNN: RNN, h = act(W x + R h + b); raises as `lstm`."""
    weights, recurrent, bias = (_constant(e, e.operands.input(p).name, p) for p in (1, 2, 3))
    options: dict[str, ExchangeAttribute] = {"activations": (_activation(e),)}
    time_major = e.node.attributes.boolean("time_major", False)
    _sequence(e, "RNN", time_major, (weights, recurrent, bias, None), options)


def _sequence(
    e: Emitter,
    kind: str,
    time_major: bool,
    arrays: tuple[Singles, Singles, Singles, Singles | None],
    options: Mapping[str, ExchangeAttribute],
) -> None:
    """Write the layer; axes as each format has them."""
    weights, recurrent, bias, peepholes = arrays
    x, cells, own = e.plain(0), recurrent.shape[-1], e.has("LSTMSequence")
    x = x if time_major != own else e.transposed(x, (1, 0, 2))
    first, second = x.shape[:2]
    named = [e.number("weights", weights[None]), e.number("recurrent", recurrent[None])]
    both = {**options, "hidden_size": cells}
    if own:
        lengths = e.number("lengths", np.full(first, second, np.int32))
        zeros = e.number("state", np.zeros((first, 1, cells), np.float32))
        states = [zeros] * (2 if kind == "LSTM" else 1)
        inputs: Sequence[Value | None] = [x, *states, lengths, *named, e.number("bias", bias[None])]
        last = [((first, 1, cells), FLOAT32)] * len(states)
        y = e.add_multi(f"{kind}Sequence", inputs, [((first, 1, second, cells), FLOAT32), *last], x.is_first, **both)[0]
    else:
        pair = np.concatenate([bias, np.zeros_like(bias)])[None]  # ONNX has one bias for the input, one for the state
        inputs = [x, *named, e.number("bias", pair)]
        if peepholes is not None:
            inputs = [*inputs, None, None, None, e.number("peepholes", peepholes[None])]
        y = e.add_multi(kind, inputs, [((first, 1, second, cells), FLOAT32)], x.is_first, **both)[0]
    y = e.reshaped(y, (first, second, cells))
    e.set_tensor(e.node.outputs[0], y if time_major != own else e.transposed(y, (1, 0, 2)))


def _activation(e: Emitter) -> str:
    name = e.node.attributes.text("fused_activation_function", "none")
    if name not in _ACTIVATIONS:
        raise UnsupportedError(f"activation {name} of a recurrent layer; known are {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[name]


def _require_plain(e: Emitter, found: LstmTensors) -> None:
    options = e.node.attributes
    what = {
        "layer normalization": found.gates["forget"].norm is not None,
        "a projection": found.projection is not None,
        "clipped cells": options.real("cell_clip", 0.0) > 0,
    }
    for words, is_there in what.items():
        if is_there:
            raise UnsupportedError(f"an LSTM with {words}, which no operator of the format has")


def _of_gate(e: Emitter, gates: Mapping[str, GateTensors], name: str, part: int) -> Singles:
    """Return weights [C, I], recurrent weights [C, C], bias [C] or peephole [C] of a gate."""
    gate = gates.get(name, gates["forget"])
    tensor = (gate.weights, gate.recurrent, gate.bias, gate.peephole)[part]
    assert tensor is not None
    array = _constant(e, tensor.name, gate.positions[(0, 1, 3, 2)[part]])
    array = np.diag(array) if part == 1 and array.ndim == 1 else array
    return array if name in gates else -array  # 1 - logistic(z) = logistic(-z)


def _constant(e: Emitter, name: str, position: int) -> Singles:
    array = e.constant_at(position)
    if array.dtype != np.float32:
        raise UnsupportedError(f"'{name}' is {array.dtype}; recurrent layers are written in float32: set form=float")
    return np.asarray(array, np.float32)
