"""Two runtimes' results of one layer, over every input of the layer.

A layer with constant weights is decided by its accumulators: thresholds of each rule follow from the rule itself
(numerics/thresholds.py). At the border of an image a tap outside reads the zero point, an input like any other. A
function of one element is run on all its values, one of two elements of 8 bits on all pairs. Any other layer is equal
if both runtimes lower it to the same numbers, else it is not decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Array, Doubles, Integers, same
from tflq.errors import TflqError
from tflq.graph import Node, Operands, Tensor
from tflq.graph.operators import Trait, has_trait
from tflq.interpreter.kernels.tflite.transpose_conv import TransposeConv
from tflq.interpreter.kernels.tflite.weighted import WeightedLayer
from tflq.interpreter.numerics.reachable_sums import ReachableSums
from tflq.interpreter.numerics.requantize import StepMaps
from tflq.interpreter.numerics.step_difference import Counterexample, StepDifference, compare_steps
from tflq.interpreter.registry import kernel

BY_PLACE: Mapping[str, tuple[str, ...]] = {
    "litert-optimized": ("add", "quantize", "dequantize"),
    "xnnpack": ("add", "quantize", "dequantize"),
}
"""Runtime -> operators whose kernel computes an element by its place in a vector, here or where XNNPACK refuses it."""
_LARGEST_VALUES = 1 << 17


@dataclass(frozen=True)
class Runtimes:
    """Two arithmetics of one layer."""

    first: str
    second: str

    def compare(self, node: Node, operands: Operands) -> StepDifference | str:
        """Compare the results of a layer; return the reason if they cannot be compared.

        Args:
            node: Node of a stored graph with true shapes.
            operands: Its tensors.
        """
        try:
            params = [kernel(name, node.operator).lower(node, operands) for name in (self.first, self.second)]
            if same(*params):
                return StepDifference(0, 0, 0, None)
            if isinstance(params[0], WeightedLayer):
                return compare_rules(*params)
            if any(node.operator in BY_PLACE.get(name, ()) for name in (self.first, self.second)):
                return "the result of an element depends on its place in a vector"
            return self._compare_elements(node, operands)
        except TflqError as error:
            return str(error)

    def _compare_elements(self, node: Node, operands: Operands) -> StepDifference | str:
        """Run a function of one or two elements on all values."""
        tensors = [tensor for tensor in operands.inputs if tensor is not None]
        is_function = has_trait(node, Trait.UNARY) or (has_trait(node, Trait.PAIR) and len(tensors) == 2)
        if not is_function or len(tensors) != len(operands.inputs):
            return "sums of several elements"
        values = [_list_values(tensor) for tensor in tensors]
        if any(v is None for v in values) or np.prod([v.size for v in values if v is not None]) > _LARGEST_VALUES:
            return "too many values"
        grid = np.meshgrid(*(v for v in values if v is not None), indexing="ij")
        inputs = [g.reshape(-1) for g in grid]
        size = inputs[0].size
        stated = [replace(t, shape=(size,), data=None, shape_signature=None) for t in tensors]
        result = replace(operands.output(), shape=(size,))
        results = []
        for name in (self.first, self.second):
            row = kernel(name, node.operator)
            params = row.lower(node, Operands(tuple(stated), (result,), operands.where))
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
