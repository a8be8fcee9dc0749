"""The conditions of known differences: on a node of a graph, or on single elements of its output."""

from __future__ import annotations

import platform

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.known_differences.row import Place
from tflq.graph import ABSENT, Array, Blockwise, Graph, Node, Tensor
from tflq.graph.model import sparse_block
from tflq.interpreter.operands.lstm import is_basic
from tflq.schemas.tflite.flexbuffer import decode_flexbuffer

_LONG = 2048
_SPLIT = 504
_REGISTER = 4


def _operands(graph: Graph, node: Node) -> list[Tensor]:
    return [graph.tensors[t] for t in node.inputs if t != ABSENT]


def has_no_elements(graph: Graph, node: Node) -> bool:
    """The data has an axis of size 0."""
    return 0 in graph.tensors[node.inputs[0]].shape


def has_sparse_constant(graph: Graph, node: Node) -> bool:
    """A constant is stored sparsely in the file."""
    return any(sparse_block(tensor) is not None for tensor in _operands(graph, node))


def has_weights_in_blocks(graph: Graph, node: Node) -> bool:
    """The weights have a scale for each block."""
    return any(isinstance(tensor.quantisation, Blockwise) for tensor in _operands(graph, node))


def has_computed_weights(graph: Graph, node: Node) -> bool:
    """Hybrid and asymmetric, with a right matrix that is no constant: it changes from one invocation to the next."""
    return _is_asymmetric(node) and not graph.tensors[node.inputs[1]].is_constant


def has_long_rows(graph: Graph, node: Node) -> bool:
    """Hybrid and asymmetric, with rows of more than 2048 weights: sums of an eighth of a row may leave int16."""
    weights = [t for t in _operands(graph, node)[1:] if t.dtype.is_integer and len(t.shape) > 1]
    return _is_asymmetric(node) and any(t.shape[-1] > _LONG for t in weights)


def has_float_results(graph: Graph, node: Node) -> bool:
    """Whether a result is of real numbers."""
    return any(graph.tensors[t].dtype.is_floating for t in node.outputs)


def _is_asymmetric(node: Node) -> bool:
    return bool(node.attributes.get("asymmetric_quantize_inputs", False))


def searches_last_axis(graph: Graph, node: Node) -> bool:
    """The axis is a constant and the last one."""
    data, axis = (graph.tensors[t] for t in node.inputs[:2])
    return axis.data is not None and int(axis.data.reshape(-1)[0]) % max(len(data.shape), 1) == len(data.shape) - 1


def host_has_new_tanh(_graph: Graph, node: Node) -> bool:
    """12 intermediates, on a host whose C library is glibc 2.41 or later, which has another tanhf."""
    library, version = platform.libc_ver()
    numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
    return len(node.intermediates or ()) == 12 and library == "glibc" and numbers >= (2, 41)


def leaves_registers(graph: Graph, node: Node) -> bool:
    """A gate's number of cells is no multiple of four, or sequences side by side meet rows of more than 504 weights.

    The forget gate's weights, [cells, inputs], are operand 2 (and 19 backwards); the basic cell has [4 * cells, ...].
    """
    places = (2, 19) if node.operator == "bidirectional_sequence_lstm" else (2,)
    rows = [graph.tensors[node.inputs[p]].shape[0] for p in places]
    cells = [n // _REGISTER if is_basic(node) else n for n in rows]
    data = graph.tensors[node.inputs[0]].shape
    side_by_side = len(data) == 2 or node.attributes.boolean("time_major", False)
    is_split = side_by_side and data[-2] > 1 and any(n > _SPLIT for n in _depths(graph, node))
    return is_split or any(n % _REGISTER for n in cells)


def _depths(graph: Graph, node: Node) -> list[int]:
    """Lengths of the rows of all matrices."""
    return [t.shape[-1] for t in _operands(graph, node)[1:] if len(t.shape) == 2 and t.is_constant]


def rows_with_nan(place: Place) -> NDArray[np.bool_]:
    """Places whose row of the data, along the last axis, holds a NaN."""
    found = np.isnan(_given(place.inputs[0])).any(axis=-1)
    return np.broadcast_to(found, place.outputs[place.number].shape)


def suppresses_fast(graph: Graph, node: Node) -> bool:
    """The custom options ask for no regular suppression."""
    options = decode_flexbuffer(node.custom_options or b"", graph.name)
    return isinstance(options, dict) and not options.get("use_regular_nms", False)


def slots_behind_the_last_box(place: Place) -> NDArray[np.bool_]:
    """Elements of boxes, classes and scores from slot `number of boxes` on."""
    result = place.outputs[place.number]
    if place.number > 2 or len(place.outputs) < 4:
        return np.zeros(result.shape, np.bool_)
    boxes = place.outputs[3].astype(np.int64).reshape(-1, 1)
    behind = np.arange(result.shape[2])[None] >= boxes
    return np.broadcast_to(behind.reshape(len(boxes), 1, -1, *[1] * (result.ndim - 3)), result.shape)


def results_that_nothing_reads(place: Place) -> NDArray[np.bool_]:
    """All elements, where neither a node nor the graph's outputs take them."""
    return np.full(place.outputs[place.number].shape, not place.is_read)


def floats_that_do_not_fit(place: Place) -> NDArray[np.bool_]:
    """CAST of floats that are NaN or, cut toward zero, no number of the integer type."""
    source, result = _given(place.inputs[0]), place.outputs[place.number]
    if source.dtype.kind != "f" or result.dtype.kind not in "iu":
        return np.zeros(result.shape, np.bool_)
    ends = np.iinfo(result.dtype.name)
    whole = np.trunc(source.astype(np.float64))
    fits = (whole >= float(ends.min)) & (whole < float(ends.max) + 1)
    return np.broadcast_to(~fits, result.shape)


def _given(array: Array | None) -> Array:
    if array is None:
        raise ValueError("the first operand is absent")
    return array
