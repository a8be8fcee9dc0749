"""Two runtimes' results of one layer, over every input of the layer.

A layer with constant weights is decided by its accumulators: thresholds of each rule follow from the rule itself
(numerics/thresholds.py). A window that reaches beyond the image reads the zero point there, an input like any other; if
no window lies inside the image, and in a transposed convolution, the sums of all taps are only an upper bound: equality
is proven, a difference is not decided. A function of one element is run on all its values, one of two elements of 8
bits on all pairs. Any other layer is equal if both runtimes lower it to the same numbers, else it is not decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.arrays import Array, Doubles, Integers, is_same
from tflq.errors import TflqError
from tflq.graph import Node, Operands, Tensor
from tflq.graph.operators import Trait, has_trait
from tflq.interpreter.kernels.tflite.quantized_convolution import QuantizedConvolution
from tflq.interpreter.kernels.tflite.transpose_conv import TransposeConv
from tflq.interpreter.kernels.tflite.weighted import WeightedLayer
from tflq.interpreter.numerics.reachable_sums import ReachableSums
from tflq.interpreter.numerics.requantize import StepMaps
from tflq.interpreter.numerics.step_difference import Counterexample, StepDifference, compare_steps
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.registry import kernel

BY_PLACE: Mapping[str, tuple[str, ...]] = {"litert-optimized": ("add", "quantize", "dequantize")}
"""Arithmetic -> operators with kernels that compute an element by its place in a vector."""
_LARGEST_VALUES = 1 << 17


def compare_layers(nodes: tuple[Node, Node], operands: Operands) -> StepDifference | str:
    """Compare the results of a layer; return the reason if they cannot be compared.

    Args:
        nodes: The lowered layer in each runtime, with its arithmetic.
        operands: Its tensors, with true shapes.
    """
    first, second = nodes
    try:
        if is_same(first.params, second.params):
            return StepDifference(0, 0, 0, None)
        if isinstance(first.params, WeightedLayer):
            return _compare_weighted(nodes, operands)
        if any(node.operator in BY_PLACE.get(node.arithmetic or "", ()) for node in nodes):
            return "the result of an element depends on its place in a vector"
        return _compare_elements(nodes, operands)
    except TflqError as error:
        return str(error)


def _compare_weighted(nodes: tuple[Node, Node], operands: Operands) -> StepDifference | str:
    layers = [node.params for node in nodes]
    difference = compare_rules(*layers)
    if isinstance(difference, str) or not difference.differing:
        return difference
    layer = layers[0]
    if isinstance(layer, TransposeConv):
        return "each output reads a part of the taps"
    if isinstance(layer, QuantizedConvolution) and find_position(layer.window, operands.input(0).shape) is None:
        return "no window lies inside the image"
    return difference


def find_position(window: Window, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Return row and column of an output with all taps inside the image; None if there is none.

    Args:
        window: Window of a convolution.
        shape: Shape of its input, [N, H, W, C].
    """
    places = []
    rows, columns = window.output_size((shape[1], shape[2]))
    for axis, (count, before) in enumerate(((rows, window.top), (columns, window.left))):
        place = -(-before // window.stride[axis])
        if place >= count or place * window.stride[axis] - before + window.extent[axis] > shape[1 + axis]:
            return None
        places.append(place)
    return places[0], places[1]


def _compare_elements(nodes: tuple[Node, Node], operands: Operands) -> StepDifference | str:
    """Run a function of one or two elements on all values."""
    node = nodes[0]
    tensors = [tensor for tensor in operands.inputs if tensor is not None]
    is_function = has_trait(node, Trait.UNARY) or (has_trait(node, Trait.PAIR) and len(tensors) == 2)
    if not is_function or len(tensors) != len(operands.inputs):
        return "sums of several elements"
    values = [v for v in map(_list_values, tensors) if v is not None]
    if len(values) != len(tensors) or np.prod([v.size for v in values]) > _LARGEST_VALUES:
        return "too many values"
    inputs = [g.reshape(-1) for g in np.meshgrid(*values, indexing="ij")]
    stated = tuple(replace(t, shape=inputs[0].shape, data=None, shape_signature=None) for t in tensors)
    result = replace(operands.output(), shape=inputs[0].shape)
    results = []
    for each in nodes:
        row = kernel(each.arithmetic or "", each.operator)
        params = row.lower(replace(each, params=None), Operands(stated, (result,), operands.where))
        results.append(row.run(params, *(x[None] for x in inputs))[0].reshape(-1).astype(np.float64))
    return _describe_values(inputs, results)


def compare_rules(first: object, second: object) -> StepDifference | str:
    """Compare two lowered layers; return the reason if they cannot be compared.

    Args:
        first: Params of the layer in one runtime.
        second: Params of the same layer in another; its weights and its input's zero point are equal.

    Raises:
        LimitError: A filter with too many sums.
    """
    maps = []
    for params in (first, second):
        step_map = _find_maps(params)
        if isinstance(step_map, str):
            return step_map
        maps.append(step_map)
    assert isinstance(first, WeightedLayer)
    assert first.constants is not None
    a, b = (step_map.steps() for step_map in maps)
    weights = first.constants.weights.astype(np.int64)
    ends = _find_bounds(first)
    sums = [ReachableSums(row, *ends) for row in weights.reshape(weights.shape[0], -1)]
    return compare_steps(sums, a.thresholds, b.thresholds, a.minimum)


def _find_maps(params: object) -> StepMaps | str:
    if not isinstance(params, WeightedLayer):
        return "the layer has no integer accumulators"
    if params.constants is None:
        return "weights or bias are computed at run time"
    maps = params.constants.rescale.step_map
    return "accumulators can wrap, or the output has more than 8 bits" if maps is None else maps


def _find_bounds(layer: WeightedLayer[object]) -> tuple[int, int]:
    """Return the smallest and the largest x that is multiplied."""
    if isinstance(layer, TransposeConv):
        return layer.input_bounds
    dtype = layer.input_dtype  # type: ignore[attr-defined]
    return dtype.minimum, dtype.maximum


def _list_values(tensor: Tensor) -> Array | None:
    if tensor.data is not None:
        return np.unique(tensor.data)
    if tensor.dtype.is_floating or not tensor.dtype.is_integer or tensor.dtype.storage.itemsize > 2:
        return None
    return np.arange(tensor.dtype.minimum, tensor.dtype.maximum + 1).astype(tensor.dtype.storage)


def _describe_values(inputs: Sequence[Array], results: Sequence[Doubles]) -> StepDifference:
    distances = np.abs(results[0] - results[1])
    differing = int(np.count_nonzero(distances))
    if not differing:
        return StepDifference(distances.size, 0, 0, None)
    place = int(distances.argmax())
    taps: Integers = np.array([int(x[place]) for x in inputs], np.int64)
    values = (int(results[0][place]), int(results[1][place]))
    return StepDifference(distances.size, differing, int(distances[place]), Counterexample(0, 0, *values, taps))
