"""A linear layer of integers in parts: exact totals, and the epilogue with every step replaceable.

y = clip(round(total * M / 2^N) + zero_point, low, high), total = sum of products + bias with the zero points folded in.

From these follows the accumulator range that produces a given output of a device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, Node
from tflq.interpreter.accumulate import accumulate_in_order, accumulate_product
from tflq.interpreter.kernels.aipu.linear import FilterParams as AipuFilter
from tflq.interpreter.kernels.gap9.linear import FilterParams as Gap9Filter
from tflq.interpreter.kernels.tflite.rescale import Rounding
from tflq.interpreter.kernels.tflite.weighted import WeightedLayer
from tflq.interpreter.kernels.tpu_mlir.linear import FilterParams as TpuFilter
from tflq.interpreter.layers.linear import ConvolutionLayer, Scheme
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier

Round = Callable[[Integers, Integers, Integers], Integers]
"""(totals, M, N) -> round(total * M / 2^N)"""


@dataclass(frozen=True, eq=False)
class Steps:
    """An epilogue by its numbers.

    Attributes:
        multiplier: M, int64[1] or [O].
        shift: N, to the right; int64[1] or [O].
        zero_point: Zero point of the output; 0 if the bias includes it.
        low: least result.
        high: greatest.
    """

    multiplier: Integers
    shift: Integers
    zero_point: int
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear layer.

    Attributes:
        totals: sums with the folded bias, int64[S, ..., O].
        accumulate: sums without bias of other stored inputs and another padding value.
        exact: the layer's own epilogue of totals.
        steps: Numbers of the epilogue; None if it is not one multiplication.
        weights: int64[O, ...], zero point taken off.
        pad_value: Value of taps outside the image; None if there are none.
        x: stored inputs.
    """

    totals: Integers
    accumulate: Callable[[Array, int], Array]
    exact: Callable[[Integers], Integers]
    steps: Steps | None
    weights: Integers
    pad_value: int | None
    x: Array

    def result(self, totals: Integers) -> Integers:
        """Return the layer's own results of totals."""
        return self.exact(totals)

    def rounded(self, totals: Integers, how: Round, steps: Steps | None = None) -> Integers:
        """Return results with another rounding, or other numbers."""
        s = self.steps if steps is None else steps
        assert s is not None
        return np.clip(how(totals, s.multiplier, s.shift) + s.zero_point, s.low, s.high)

    def inside(self) -> Integers:
        """Return the sum of the weights over the taps inside the image, int64[1, ..., O]."""
        return self.accumulate(np.ones_like(self.x[:1]), 0).astype(np.int64)


def linear_of(params: object, x: Array) -> Linear | None:
    """Separate a layer into its parts.

    Args:
        params: Params of its kernel.
        x: stored inputs.
    """
    if isinstance(params, WeightedLayer):
        return _of_tflite(params, x)
    scheme = getattr(params, "filter", None)
    if not isinstance(scheme, Scheme) or not hasattr(params, "prepared") or scheme.channel_zero_points is not None:
        return None
    taken = _numbers(scheme)
    if taken is None:
        return None
    bias, steps = taken
    is_image = isinstance(params, ConvolutionLayer)
    prepared = getattr(params, "prepared", None)
    accumulate = _images(prepared) if is_image else _rows(prepared, scheme.weights)
    pad = scheme.pad_value if is_image else None
    totals = accumulate(x, pad or 0).astype(np.int64) + bias
    return Linear(totals, accumulate, lambda t: scheme.exact(t - bias), steps, scheme.weights, pad, x)


def _of_tflite(layer: Any, x: Array) -> Linear | None:  # noqa: ANN401 - has a rule and constants of several classes
    constants, rule = layer.constants, layer.rule
    if constants is None or x.dtype.itemsize > 1:
        return None
    is_image = hasattr(layer, "window")
    accumulate = _images(constants.prepared) if is_image else _rows(constants.prepared, constants.weights)
    pad = layer.input_zero_point if is_image else None
    totals = accumulate(x, pad or 0).astype(np.int64) + constants.rescale.bias
    steps = None
    if rule.rounding is not Rounding.SINGLE_64:
        steps = Steps(rule.multiplier, 31 - rule.shift, rule.zero_point, rule.minimum, rule.maximum)
    return Linear(totals, accumulate, rule.exact, steps, constants.weights.astype(np.int64), pad, x)


def _images(prepared: Any) -> Callable[[Array, int], Array]:  # noqa: ANN401 - of two classes
    return lambda x, pad: accumulate_in_order(prepared, x, pad)


def _rows(prepared: Any, weights: Array) -> Callable[[Array, int], Array]:  # noqa: ANN401 - as above
    return lambda x, _pad: accumulate_product(prepared, x.reshape(len(x), -1, weights.shape[1]))


def _numbers(scheme: Scheme) -> tuple[Integers, Steps | None] | None:
    """Return the bias on the accumulator, and the epilogue's numbers."""
    if isinstance(scheme, Gap9Filter):
        r = scheme.rescaling
        return r.bias, None if r.pre_normalization else Steps(r.mul_bias.multiplier, r.shift, 0, r.minimum, r.maximum)
    if isinstance(scheme, TpuFilter):
        m = scheme.rescale
        return scheme.bias, Steps(m.multiplier, m.shift, scheme.output_zero_point, scheme.minimum, scheme.maximum)
    if isinstance(scheme, AipuFilter) and scheme.remain_shift is None:
        codes, plain = scheme.codes, scheme.fused.kind == "NONE" or scheme.fused.is_monotone_line
        low = codes.minimum if scheme.fused.kind == "NONE" else max(codes.minimum, -codes.offset)
        steps = Steps(scheme.rescale.m, scheme.rescale.n, -codes.offset, low, codes.maximum) if plain else None
        return scheme.bias, steps
    return None


def _power(n: Integers) -> Integers:
    return np.asarray(np.int64(1) << np.maximum(n, 0), np.int64)


def half_up(t: Integers, m: Integers, n: Integers) -> Integers:
    """The nearest to t * M / 2^N, half up."""
    return np.asarray((t * m * _power(-n) + (_power(n) >> 1)) >> np.maximum(n, 0), np.int64)


def floor(t: Integers, m: Integers, n: Integers) -> Integers:
    """The whole part of t * M / 2^N, downwards."""
    return np.asarray((t * m * _power(-n)) >> np.maximum(n, 0), np.int64)


def toward_zero(t: Integers, m: Integers, n: Integers) -> Integers:
    """trunc(t * M / 2^N)."""
    p = t * m * _power(-n)
    return np.asarray(np.sign(p) * (np.abs(p) >> np.maximum(n, 0)), np.int64)


def half_away(t: Integers, m: Integers, n: Integers) -> Integers:
    """T * M / 2^N, half away from 0."""
    p = t * m * _power(-n)
    return np.asarray(np.sign(p) * ((np.abs(p) + (_power(n) >> 1)) >> np.maximum(n, 0)), np.int64)


def half_even(t: Integers, m: Integers, n: Integers) -> Integers:
    """T * M / 2^N, half to even."""
    p = t * m * _power(-n)
    low = p >> np.maximum(n, 0)
    rest, half = p - low * _power(n), _power(n) >> 1
    up = (rest > half) | ((rest == half) & (n > 0) & (low % 2 == 1))
    return np.asarray(low + up, np.int64)


def twice(t: Integers, m: Integers, n: Integers) -> Integers:
    """TFLite's two roundings: by 2^31 half up, then by the rest half away from 0; M brought to 31 bits."""
    bits = 31 - np.ceil(np.log2(np.maximum(m, 1) + 0.5)).astype(np.int64)
    return multiply_by_quantized_multiplier(t, m << bits, 31 - n - bits)


def twice_half_up(t: Integers, m: Integers, n: Integers) -> Integers:
    """Round by 2^31, then by the rest, both half up; M brought to 31 bits (measured on LiteRT's optimized kernels)."""
    bits = 31 - np.ceil(np.log2(np.maximum(m, 1) + 0.5)).astype(np.int64)
    left, right = np.maximum(31 - n - bits, 0), np.maximum(n + bits - 31, 0)
    high = ((t << left) * (m << bits) + (1 << 30)) >> 31
    return np.asarray((high + (_power(right) >> 1)) >> right, np.int64)


def single_precision(t: Integers, m: Integers, n: Integers) -> Integers:
    """rint(float32(t) * float32(M / 2^N))."""
    scale = (m * np.exp2(-n.astype(np.float64))).astype(np.float32)
    return np.asarray(np.rint(t.astype(np.float32) * scale), np.int64)


ROUNDINGS: dict[str, Round] = {
    "one rounding, half up": half_up,
    "floor, no rounding": floor,
    "cut toward 0, no rounding": toward_zero,
    "one rounding, half away from 0": half_away,
    "one rounding, half to even": half_even,
    "two roundings, as gemmlowp's": twice,
    "two roundings, both half up, as in LiteRT's optimized kernels": twice_half_up,
    "a product in float32": single_precision,
}


_REACH = 1 << 31


@dataclass(frozen=True)
class Needed:
    """Accumulators that produce another result of a linear layer.

    Attributes:
        accumulator: Sum of the layer, including bias and folded zero points.
        lowest: Smallest sum that produces the device's number; None if no sum does.
        highest: greatest one.
    """

    accumulator: int
    lowest: int | None
    highest: int | None

    @property
    def words(self) -> str:
        """Text for a report."""
        if self.lowest is None or self.highest is None:
            return f"the accumulator is {self.accumulator}; none produces the device's number: its epilogue differs"
        near = self.lowest if self.accumulator < self.lowest else self.highest
        return (
            f"the accumulator is {self.accumulator}; {self.lowest}..{self.highest} would produce the device's number, "
            f"{near - self.accumulator:+d} at least: in the bias, or in the products"
        )


def needed(node: Node, x: Array, place: tuple[int, ...], wanted: int) -> Needed | None:
    """Compute the range of sums that produce a number.

    Args:
        node: lowered.
        x: Input of the node for one sample, dtype[*shape].
        place: Position of the element in the node's output.
        wanted: the device's number.

    Returns:
        None if the node is not a linear layer of integers that can be separated.
    """
    linear = linear_of(node.params, x[None])
    if linear is None:
        return None
    outputs = linear.totals.shape[-1]
    channel = place[-1]
    row = linear.totals.reshape(-1, outputs)[_row(place, linear.totals.shape)]

    def result(total: int) -> int:
        totals = row.copy()
        totals[channel] = total
        return int(linear.result(totals[None])[0, channel])

    lowest = _first(lambda t: result(t) >= wanted)
    highest = _first(lambda t: result(t) > wanted) - 1
    own = int(row[channel])
    return Needed(own, lowest, highest) if result(lowest) == wanted and lowest <= highest else Needed(own, None, None)


def _first(holds: object) -> int:
    """Return the smallest 32-bit sum that meets a condition; all larger sums must meet it, too."""
    assert callable(holds)
    low, high = -_REACH, _REACH - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _row(place: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the row of an element among the totals [S, ..., O], S of one."""
    inner = shape[1:-1]
    index = place[len(place) - 1 - len(inner) : -1]
    return int(np.ravel_multi_index(index, inner)) if len(index) == len(inner) and inner else 0
