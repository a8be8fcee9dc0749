"""Forms of layers in kernels.c: linear, pool, table of one or two operands, move, conversion to or from floats.

The params determine the form: weights and windows unchanged, the last step as a proven map (linear.py) or as a table
that the kernel itself fills by running on all quantized values. So no rule is written here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers, Singles
from tflq.graph import ABSENT, Array, DType, Graph, Tensor
from tflq.graph.operators import RESHAPES, Trait, with_traits
from tflq.interpreter.accumulate import window_counts
from tflq.interpreter.accumulate.products import FLOAT32_EXACT
from tflq.interpreter.compiled.pairs import AffinePair, RoundedPair, affine_pair, rounded_pair
from tflq.interpreter.compiled.reals import ByLine, ByThresholds, ToReals, by_thresholds, to_reals
from tflq.interpreter.execution.lowering import Step
from tflq.interpreter.kernels.tflite.softmax import Softmax
from tflq.interpreter.layers.linear import Linear
from tflq.interpreter.layers.pooling import Average, AveragePool, MaxPool, Mean
from tflq.interpreter.layers.reals import RealMap, RealSum
from tflq.interpreter.numerics.requantize import StepMaps
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.registry import kernel_name

Bytes = NDArray[np.uint8]
"""Quantized values less the least of their type."""

EIGHT_BITS = (DType.INT8, DType.UINT8)
UNARY = with_traits(Trait.UNARY | Trait.CONVERSION)
"""Operators whose results are functions of one quantized value: a table, where its kernel gives one."""
PAIRS = with_traits(Trait.SCALED)
"""Operators of two quantized values at the same place."""
MOVES = frozenset(RESHAPES)
"""Operators that leave elements in order."""
SHORTEST_REFUSED = 512
"""Values from which on a softmax may refuse a row."""
LARGEST_MAPPED = 1 << 30
LARGEST_FACTOR = 1e20
"""Of sums that become real numbers."""
LEAST_SCALE = 1e-20
"""Of what real numbers are added to: float32 computes with both it and its inverse."""
MOST_TABLE_BYTES = 1 << 22
"""Largest table of an average."""


@dataclass(frozen=True, eq=False)
class Pool:
    """An average or maximum over windows.

    Attributes:
        window: taps outside the image do not count.
        is_largest: whether it is a maximum.
        table: results by the number of taps and then their sum, or their maximum.
        table_at: Start of the results for each number of taps.
    """

    window: Window
    is_largest: bool
    table: Bytes
    table_at: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ByTable:
    """A function of one or two quantized values.

    Attributes:
        table: 256 or 65536 results.
        pair: the same as a sum of elements with factors, if two operands have one.
        clamp: the same as a clamp of one operand: smallest and largest quantized value.
    """

    table: Bytes
    pair: AffinePair | RoundedPair | None = None
    clamp: tuple[int, int] | None = None


@dataclass(frozen=True)
class Move:
    """The same elements in another shape."""


@dataclass(frozen=True, eq=False)
class ByExponentials:
    """TFLite's softmax of 8 bits over the last axis.

    Attributes:
        exponentials: int64[256]: of the differences 0, -1, ... to the largest value.
        addends: int64[256]: addends of the sum.
    """

    exponentials: Integers
    addends: Integers


OfQuantized: TypeAlias = Linear | Pool | ByTable | Move | ByExponentials | ToReals
Form: TypeAlias = OfQuantized | ByThresholds | ByLine | RealSum


def form_of(graph: Graph, step: Step, multiplies_bytes: bool) -> Form | None:
    """Return the form of a step in kernels.c, or None if it must run in numpy.

    Args:
        graph: Graph of the step.
        step: lowered.
        multiplies_bytes: whether dense sums are integers; else floating-point values, which are exact below 2^24.
    """
    node = step.node
    computed = [t for t in node.inputs if t != ABSENT and not graph.tensors[t].is_constant]
    if step.kernel is None or step.shapes is None or step.kernel.stateful or len(node.outputs) != 1:
        return None
    if getattr(node.params, "depends_on_place", False):  # a table of quantized values has no place
        return None
    tensors = [graph.tensors[t] for t in (*computed, *node.outputs)]
    if getattr(node.params, "never_falls", False) and len(tensors) == 2:
        return _thresholds(step, *tensors)
    if not computed or any(t.is_variable or 0 in t.shape for t in tensors):
        return None
    name = kernel_name(node)
    if any(t.dtype not in EIGHT_BITS for t in tensors):
        return _of_reals(step, name, tensors, multiplies_bytes) if len(computed) == len(tensors) - 1 else None
    if name in PAIRS and len(computed) == len(node.inputs) == 2:
        same = tensors[0].shape == tensors[1].shape == tensors[2].shape
        return _pair_table(step, tensors, multiplies_bytes) if same else None
    if len(computed) != 1 or computed[0] != node.inputs[0]:
        return None
    if name in MOVES:
        return Move() if tensors[0].dtype is tensors[1].dtype else None
    if name in UNARY and len(node.inputs) == 1:
        return _table(step, tensors[0], tensors[1])
    linear = getattr(node.params, "linear", None)
    if isinstance(linear, Linear):
        return linear if _is_taken(linear, tensors[0], multiplies_bytes) else None
    if isinstance(node.params, Softmax):
        is_taken = tensors[0].shape[-1] < SHORTEST_REFUSED and tensors[0].dtype is tensors[1].dtype
        return ByExponentials(node.params.exponentials, node.params.addends) if is_taken else None
    return _pool(node.params, *tensors)


def _pool(params: object, x: Tensor, y: Tensor) -> Form | None:
    if len(x.shape) != 4 or x.shape[0] != 1:
        return None
    image = (x.shape[1], x.shape[2])
    if isinstance(params, AveragePool) and params.window.dilation == (1, 1):
        counts = window_counts(params.window, image)[:, :, None]
        if np.array_equal(params.counts, counts):
            return _average(params.window, params.average, np.unique(counts), x, y)
        return None
    if isinstance(params, Mean) and params.reduction.axes == (1, 2):
        return _average(Window(image), params.average, np.array([image[0] * image[1]]), x, y)
    if isinstance(params, MaxPool) and params.window.dilation == (1, 1) and params.floor is None:
        return _largest(params, x, image) if x.dtype is y.dtype else None
    return None


def _is_taken(linear: Linear, x: Tensor, multiplies_bytes: bool) -> bool:
    """Whether it is dense, or depthwise with an output for each input channel, and weights are small enough."""
    if linear.window is not None and (len(x.shape) != 4 or x.shape[0] != 1):
        return False
    outputs, *_, depth = linear.weights.shape
    wide = linear.weights.astype(np.int64)
    if wide.size == 0 or wide.min() < -128 or wide.max() > 127:
        return False
    largest = 255 * int(np.abs(wide).reshape(outputs, -1).sum(axis=1).max())
    if isinstance(linear.maps, StepMaps) and not _is_bounded(linear.maps):
        return False
    if linear.groups == 1:
        return largest < (1 << 31 if multiplies_bytes else FLOAT32_EXACT)
    return depth == 1 and outputs == linear.groups == x.shape[3] and largest < FLOAT32_EXACT


def _is_bounded(maps: StepMaps) -> bool:
    """Whether there is a map, and one of float32 is unclamped within the values that can be rounded to int32."""
    found = maps.listed
    if found is None:
        return False
    if found.scale.dtype == np.float64:
        return True
    reach = np.maximum(np.abs(maps.lower), np.abs(maps.upper)) + np.abs(found.offset.astype(np.float64))
    return bool((reach * np.abs(found.scale.astype(np.float64)) < LARGEST_MAPPED).all())


def _results(found: Array, shape: tuple[int, ...], y: Tensor) -> Bytes | None:
    """Return results less the least value of their type; None if there is not one for each argument."""
    if found.shape != shape or found.dtype != y.dtype.storage:
        return None
    return (found.astype(np.int64) - y.dtype.minimum).astype(np.uint8).reshape(-1)


def _codes(tensor: Tensor) -> Array:
    return np.arange(tensor.dtype.minimum, tensor.dtype.maximum + 1).astype(tensor.dtype.storage)


def _table(step: Step, x: Tensor, y: Tensor) -> ByTable | None:
    assert step.kernel is not None
    shape = (256, *(1,) * len(x.shape))
    (found,) = step.kernel.run(step.node.params, _codes(x).reshape(shape))
    table = _results(found, shape, y)
    if table is None:
        return None
    values = table.astype(np.int64) + y.dtype.minimum
    low, high = int(values[0]), int(values[-1])
    is_clamp = x.dtype is y.dtype and np.array_equal(np.clip(_codes(x), low, high), values)
    return ByTable(table, clamp=(low, high) if is_clamp else None)


def _of_reals(step: Step, name: str, tensors: list[Tensor], multiplies_bytes: bool) -> Form | None:
    """Return the form of a layer that dequantizes values, or adds floating-point values to some."""
    params, y = step.node.params, tensors[-1]
    kinds = [t.dtype if t.dtype is DType.FLOAT32 else t.dtype in EIGHT_BITS for t in tensors]
    if kinds == [True, DType.FLOAT32]:
        if name == "dequantize":
            return _to_reals(step, tensors[0])
        linear = getattr(params, "linear", None)
        if not (isinstance(linear, Linear) and isinstance(linear.maps, RealMap) and linear.groups == 1):
            return None
        return linear if _is_small(linear.maps) and _is_taken(linear, tensors[0], multiplies_bytes) else None
    total = getattr(params, "real_sum", None) if name == "add" else None
    same = all(t.shape == y.shape for t in tensors)
    if kinds not in ([True, DType.FLOAT32, True], [DType.FLOAT32, True, True]) or not same or total is None:
        return None
    return total if LEAST_SCALE < total.scale < 1 / LEAST_SCALE else None


def _is_small(maps: RealMap) -> bool:
    """Whether any sum's floating-point value is finite in float32, and far from its largest."""
    return bool((np.abs(maps.multiplier) < LARGEST_FACTOR).all() and (np.abs(maps.bias) < LARGEST_FACTOR).all())


def _to_reals(step: Step, x: Tensor) -> ToReals | None:
    assert step.kernel is not None
    (found,) = step.kernel.run(step.node.params, _codes(x).reshape(256, *(1,) * len(x.shape)))
    return to_reals(found.astype(np.float32).reshape(-1)) if found.shape == (256, *(1,) * len(x.shape)) else None


def _thresholds(step: Step, x: Tensor, y: Tensor) -> ByThresholds | ByLine | None:
    if x.dtype is not DType.FLOAT32 or y.dtype not in EIGHT_BITS or 0 in x.shape or x.is_variable or y.is_variable:
        return None

    def rule(numbers: Singles) -> Integers:
        assert step.kernel is not None
        (found,) = step.kernel.run(step.node.params, numbers.reshape(-1, *(1,) * len(x.shape)))
        return found.astype(np.int64).reshape(-1) - y.dtype.minimum

    line = getattr(step.node.params, "line", None)
    return by_thresholds(rule, line and replace(line, zero=line.zero - y.dtype.minimum))


def _pair_table(step: Step, tensors: list[Tensor], multiplies_bytes: bool) -> ByTable | None:
    assert step.kernel is not None
    first, second, y = tensors
    shape = (65536, *(1,) * len(y.shape))
    operands = np.repeat(_codes(first), 256).reshape(shape), np.tile(_codes(second), 256).reshape(shape)
    (found,) = step.kernel.run(step.node.params, *operands)
    table = _results(found, shape, y)
    if table is None:
        return None
    x_1, x_2, least = (0 if multiplies_bytes else t.dtype.minimum for t in tensors)  # as elements are stored
    elements, values = np.arange(256.0), table.reshape(256, 256).astype(np.float64) + least
    rule = getattr(step.node.params, "terms", None)
    terms = None if rule is None else rule(_codes(first).astype(np.int64), _codes(second).astype(np.int64))
    pair: AffinePair | RoundedPair | None = None
    if terms is not None:
        a, b = (term.astype(np.float64) for term in terms)
        pair = rounded_pair(values, elements + x_1, elements + x_2, (a, b))
    return ByTable(table, pair or affine_pair(values, elements + x_1, elements + x_2))


def _average(window: Window, average: Average, counts: Array, x: Tensor, y: Tensor) -> Pool | None:
    if 255 * int(counts.max()) > FLOAT32_EXACT or int(255 * counts.sum()) > MOST_TABLE_BYTES or counts.min() < 1:
        return None
    table_at, tables, at = np.zeros(window.taps + 1, np.int32), [], 0
    for count in map(int, counts):
        sums = np.arange(255 * count + 1).reshape(-1, 1, 1, 1) + count * x.dtype.minimum
        found = _results(average.apply(sums, count), sums.shape, y)
        if found is None:
            return None
        table_at[count] = at
        tables.append(found)
        at += found.size
    return Pool(window, False, np.concatenate(tables), table_at)


def _largest(params: MaxPool, x: Tensor, image: tuple[int, int]) -> Pool | None:
    if params.minimum != x.dtype.minimum or int(window_counts(params.window, image).min()) < 1:
        return None
    low, high = params.bounds or (x.dtype.minimum, x.dtype.maximum)
    table = np.clip(np.arange(256) + x.dtype.minimum, low, high) - x.dtype.minimum
    return Pool(params.window, True, table.astype(np.uint8), np.zeros(params.window.taps + 1, np.int32))
