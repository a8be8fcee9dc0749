"""Weights of LSTM layers in GAP9's types (docs/gap9.md, 13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.arrays import Reals
from tflq.converters.gap9.operators import layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.converters.gap9.passes.constants import quantise_filter, real_constant
from tflq.converters.passes.rewrite import constant, with_attributes
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Affine, Graph, Node, Tensor
from tflq.interpreter.kernels.gap9.rounding import round_half_up

LSTM = "unidirectional_sequence_lstm"
INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES = (1, 2, 3, 4), (5, 6, 7, 8), (12, 13, 14, 15)
CELL_STATE = 19
_LARGEST_CELL = 64.0


def requantise_recurrent(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with the weights of LSTM layers as quantized values; biases become float32, states disappear.

    NE16: per output channel and gate, uint8 with zero point 2^(bits-1). SQ8: per tensor and gate, int8.

    Raises:
        UnsupportedError: no range of the cell; or on SQ8 scales so close that NNTool would merge them.
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        if node.operator == LSTM:
            _layer(result, index, options[layer_of(node)])
    return result


def cell_maximum(graph: Graph, node: Node) -> float:
    """Return the largest |c|: cell_clip where it is not 0, else the cell's statistics (NE16: at least 1); at most 64.

    Raises:
        UnsupportedError: neither is there.
    """
    clip = node.attributes.real("cell_clip", 0.0)
    if clip:
        return min(clip, _LARGEST_CELL)
    state = graph.tensors[node.inputs[CELL_STATE]]
    if state.range is None:
        raise UnsupportedError(f"the cell state '{state.name}' has no range: calibrate the model or give a cell_clip")
    largest = max(abs(float(state.range.minimum.min())), abs(float(state.range.maximum.max())))
    on_ne16 = node.attributes.text("engine") == NE16
    return min(max(largest, 1.0) if on_ne16 else largest, _LARGEST_CELL)


def _layer(graph: Graph, index: int, options: LayerOptions) -> None:
    node = graph.nodes[index]
    on_ne16 = node.attributes.text("engine") == NE16
    bits = options.weight_bits
    inputs = list(node.inputs)
    for position in (*INPUT_WEIGHTS, *RECURRENT_WEIGHTS):
        inputs[position] = graph.add_tensor(_weights(graph.tensors[inputs[position]], bits, on_ne16))
    units = graph.tensors[inputs[RECURRENT_WEIGHTS[0]]].shape[0]
    for position in BIASES:
        inputs[position] = graph.add_tensor(_bias(graph, node, inputs[position], position, units))
    if not on_ne16:
        _refuse_merging(graph, index, inputs)
    changed = with_attributes(node, cell_max=cell_maximum(graph, node))
    graph.nodes[index] = replace(changed, inputs=tuple(inputs[: BIASES[-1] + 1]))


def _weights(tensor: Tensor, bits: int, on_ne16: bool) -> Tensor:
    real = real_constant(tensor)
    if on_ne16:
        made = quantise_filter(real, None, np.ones(1, real.dtype), 0, bits, True)
        codes, affine = made.codes, made.weights
    else:
        half = (1 << (bits - 1)) - 1
        scale = np.atleast_1d(np.abs(real).max() / real.dtype.type(half))
        affine = Affine(scale, np.zeros(1, np.int64), None, bits, True, narrow_range=True)
        codes = np.clip(round_half_up(real / scale), -half, half).astype(np.int8)
    return constant(tensor.name, codes, affine)


def _bias(graph: Graph, node: Node, tensor: int, position: int, units: int) -> Tensor:
    given = graph.tensors[tensor] if tensor != ABSENT else None
    real: Reals = np.zeros(units, np.float32) if given is None else real_constant(given).astype(np.float32)
    return constant(given.name if given else f"{node.name}_bias{position}", real)


def _refuse_merging(graph: Graph, index: int, inputs: list[int]) -> None:
    """Refuse what NNTool treats in a way that nobody has run: all of S_x and S_h, S_w and S_r nearly equal."""
    node = graph.nodes[index]
    s_x, s_h = (graph.tensors[t].affine.scale[0] for t in (node.inputs[0], node.outputs[0]))
    pairs = [
        (graph.tensors[inputs[w]].affine.scale[0], graph.tensors[inputs[r]].affine.scale[0])
        for w, r in zip(INPUT_WEIGHTS, RECURRENT_WEIGHTS, strict=True)
    ]
    if abs(1 - s_x / s_h) < 0.1 and all(abs(1 - w / r) < 0.2 for w, r in pairs):
        raise UnsupportedError(
            f"{graph.where(index)}: input and output scales ({s_x:.4g}, {s_h:.4g}) and all weight scales are so close "
            f"that GAP9's tool merges them on SQ8, for which there is no reference; run this layer on NE16"
        )
