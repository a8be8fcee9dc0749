"""Arithmetic `power_of_two`: y = sat(half_even(acc + bias, f_x + f_w - f_y)), all zero points 0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.accumulate import accumulator_range
from tflq.interpreter.kernels.move.operators import MOVERS
from tflq.interpreter.layers.linear import Scheme, linear_kernels
from tflq.interpreter.layers.pooling import (
    MaxPool,
    lower_average_pool,
    lower_mean,
    run_average_pool,
    run_max_pool,
    run_mean,
)
from tflq.interpreter.numerics import transcendental
from tflq.interpreter.numerics.requantize import StepMaps, fit_step_map
from tflq.interpreter.operands.windows import pool_window
from tflq.interpreter.registry import Arithmetic, Kernel, register_arithmetic
from tflq.interpreter.samples import align
from tflq_power_of_two.primitives import shift_half_even

NAME = "power_of_two"
SOURCE = "docs/internals/extending.md"


def exponent_of(tensor: Tensor) -> int:
    """Return f of a tensor whose scale is 2^-f."""
    return -int(np.log2(tensor.affine.scale[0]))


def least_of(node: Node) -> int:
    """Return the smallest result: 0 behind a fused ReLU."""
    return 0 if node.attributes.text("fused_activation_function", "none") == "relu" else -128


@dataclass(frozen=True, eq=False)
class Filter(Scheme):
    """The params of one filter.

    Attributes:
        weights: int64[O, ...].
        bias: int64[O], in steps of 2^-(f_x + f_w).
        shift: f_x + f_w - f_y.
        minimum: smallest result.
        dtype: int8.
        step_map: proven map from accumulators to results.
    """

    weights: Integers
    bias: Integers
    shift: int
    minimum: int
    dtype: np.dtype[np.generic]
    step_map: StepMaps | None = None

    @property
    def pad_value(self) -> int:
        """Taps outside the image hold 0."""
        return 0

    def exact(self, accumulators: Integers) -> Integers:
        """The rule: accumulators without bias, int64[..., O] -> quantized values int64[..., O]."""
        return np.clip(shift_half_even(accumulators + self.bias, self.shift), self.minimum, 127)


def find_filter(node: Node, operands: Operands, channel_axis: int) -> Filter:
    """Decide the shift and find the proven map."""
    x, weights, output = operands.input(0), operands.input(1), operands.output()
    quantized = np.moveaxis(operands.constant(1), channel_axis, 0).astype(np.int64)
    bias = operands.constant(2).astype(np.int64)
    shift = exponent_of(x) + exponent_of(weights) - exponent_of(output)
    found = Filter(quantized, bias, shift, least_of(node), np.dtype(np.int8))
    lower, upper = accumulator_range(quantized, -128, 127)
    slope = np.full(bias.shape, 2.0**-shift)
    return replace(found, step_map=fit_step_map(found.exact, slope, bias, lower, upper, 0, found.minimum, 127))


@dataclass(frozen=True)
class Average:
    """y = sat(rint(sum / count * 2^-shift)), in float64; ties to even."""

    shift: int

    def apply(self, sums: Array, counts: Integers | int) -> Array:
        """Return quantized values of exact sums of `counts` elements."""
        real = sums.astype(np.float64) / counts * 2.0**-self.shift
        return np.clip(np.rint(real), -128, 127).astype(np.int8)


def find_average(node: Node, operands: Operands, taps: int, is_padded: bool) -> Average:
    """Decide the shift of an average."""
    return Average(exponent_of(operands.input(0)) - exponent_of(operands.output()))


@dataclass(frozen=True)
class Sum:
    """The params of ADD: both operands in steps of the finer one."""

    lefts: tuple[int, int]
    shift: int
    minimum: int


def lower_add(node: Node, operands: Operands) -> Sum:
    """Decide the shifts."""
    exponents = [exponent_of(operands.input(i)) for i in range(2)]
    finest = max(exponents)
    first, second = (finest - f for f in exponents)
    return Sum((first, second), finest - exponent_of(operands.output()), least_of(node))


def run_add(params: Sum, x: Array, y: Array) -> tuple[Array, ...]:
    """Run ADD: int8 [S or 1, *shape] twice -> int8 [S, *shape]."""
    first, second = align(*(a.astype(np.int64) << left for a, left in zip((x, y), params.lefts, strict=True)))
    return (np.clip(shift_half_even(first + second, params.shift), params.minimum, 127).astype(np.int8),)


def lower_max_pool(node: Node, operands: Operands) -> MaxPool:
    """Decide the window; input and output have one scale."""
    return MaxPool(pool_window(node, operands)[0], -128)


@dataclass(frozen=True)
class Softmax:
    """Exponents of input and output; the rest is float64."""

    input_exponent: int
    output_exponent: int


def lower_softmax(node: Node, operands: Operands) -> Softmax:
    """Read the exponents."""
    return Softmax(exponent_of(operands.input(0)), exponent_of(operands.output()))


def run_softmax(params: Softmax, x: Array) -> tuple[Array, ...]:
    """Run SOFTMAX over the last axis: int8 [S, *shape] -> int8 [S, *shape]; ties to even."""
    real = x.astype(np.float32) * np.float32(2.0**-params.input_exponent)
    powers = transcendental.exp(real - real.max(axis=-1, keepdims=True)).astype(np.float64)
    share = powers / powers.sum(axis=-1, keepdims=True)
    return (np.clip(np.rint(share * 2.0**params.output_exponent), -128, 127).astype(np.int8),)


KERNELS: dict[str, Kernel] = {
    **linear_kernels(find_filter, "y = sat(half_even(acc + bias, f_x + f_w - f_y))", SOURCE),
    "add": Kernel(lower_add, run_add, "y = sat(half_even(a + b, shift)), in steps of the finer operand", SOURCE),
    "average_pool_2d": Kernel(
        partial(lower_average_pool, find=find_average), run_average_pool, "y = sat(rint(mean * 2^-shift))", SOURCE
    ),
    "max_pool_2d": Kernel(lower_max_pool, run_max_pool, "the largest value inside the image", SOURCE),
    "mean": Kernel(partial(lower_mean, find=find_average), run_mean, "y = sat(rint(mean * 2^-shift))", SOURCE),
    "softmax": Kernel(lower_softmax, run_softmax, "exp(x - max) / sum in float64", SOURCE),
}


def register() -> None:
    """Add the arithmetic: tflq calls it where `power_of_two` is asked for."""
    register_arithmetic(Arithmetic(NAME, {**MOVERS, **KERNELS}))
