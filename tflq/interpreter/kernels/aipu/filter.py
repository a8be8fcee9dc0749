"""What linear layers share: y = clamp(RNE((acc + bias) * M * 2^-N) - zp_y) (docs/aipu.md, 3).

acc = sum x * w with raw codes, padding holding -zp_x; the bias holds zp_x * sum(w) already, as Compass stores it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.accumulate import accumulator_range
from tflq.interpreter.fixed_point import Integers
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multipliers, type_of_multiplier, unify_shifts
from tflq.interpreter.kernels.aipu.scales import (
    Single,
    bits_of,
    code_limits,
    constant_named,
    offset_of,
    reciprocal,
    scale_of,
)
from tflq.interpreter.kernels.aipu.stated import stated_multiplier
from tflq.interpreter.kernels.aipu.written import LINEAR, Written, rescale_keys
from tflq.interpreter.requantise import StepMap, fit_step_map, requantise

NONE, RELU, RELU6 = "NONE", "RELU", "RELU6"
ACTIVATIONS = (NONE, RELU, RELU6)


@dataclass(frozen=True, eq=False)
class FilterIntegers:
    """The integers of a linear layer, but for its window.

    Attributes:
        weights: int64[O, ...].
        bias: int64[O], zp_x folded in.
        rescale: M and N, one for each output channel or one for all.
        activation: NONE, RELU or RELU6, on the accumulator.
        pad: the code outside the image, -zp_x.
        offset: zp_y.
        minimum: smallest code of the output.
        maximum: largest code.
        dtype: storage of the codes.
        written: for the IR.
        step_map: proven map from accumulators to codes; None where the rule itself runs.
    """

    weights: Integers
    bias: Integers
    rescale: Multiplier
    activation: str
    pad: int
    offset: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    written: Written
    step_map: StepMap | None = None

    def exact(self, accumulators: Integers) -> Integers:
        """The rule itself: accumulators without bias, int64[..., O] -> codes int64[..., O]."""
        total = accumulators + self.bias
        if self.activation != NONE:
            total = np.maximum(total, 0)
        if self.activation == RELU:
            # The tool's RELU works on float32: accumulators beyond 2^24 lose bits there.
            total = total.astype(np.float32).astype(np.int64)
        codes: Integers = np.clip(self.rescale.apply(total) - self.offset, self.minimum, self.maximum).astype(np.int64)
        return codes

    def finish(self, accumulators: Array) -> Array:
        """Return codes for exact accumulators [..., O] in float32, float64 or int64."""
        return requantise(self.step_map, self.exact, accumulators, self.dtype)


def lower_filter(node: Node, operands: Operands) -> FilterIntegers:
    """Decide M and N for r = s_y / (s_x * s_w), in float32.

    Args:
        node: with the key with_activation.
        operands: input, constants weights and biases, output.

    Raises:
        UnsupportedError: another fused activation; no constant weights; a ratio of scales without multiplier.
    """
    x, output = operands.input(0), operands.output()
    activation = node.attributes.text("with_activation", NONE)
    if activation not in ACTIVATIONS:
        raise UnsupportedError(f"with_activation={activation}; allowed is {', '.join(ACTIVATIONS)}")
    weights, biases = _constants(operands)
    codes = np.asarray(weights.data, np.int64)
    bias = np.asarray(biases.data, np.int64)
    rescale, written = _rescale(node, x, weights, output)
    minimum, maximum = code_limits(output)
    found = FilterIntegers(
        codes,
        bias,
        rescale,
        activation,
        -offset_of(x),
        offset_of(output),
        minimum,
        maximum,
        output.dtype.storage,
        written,
    )
    lower, upper = accumulator_range(codes, x.dtype.minimum, x.dtype.maximum)
    slope = np.broadcast_to(rescale.m * np.exp2(-rescale.n.astype(np.float64)), bias.shape)
    start = bias - found.offset / slope
    step_map = fit_step_map(found.exact, slope, start, lower, upper, -found.offset, minimum, maximum)
    return replace(found, step_map=step_map)


def filter_ratios(x: Tensor, weights: Tensor, output: Tensor) -> Single:
    """Return r = s_y / (s_x * s_w), float32[1] or [O]."""
    product = (scale_of(x) * reciprocal(weights.affine)).astype(np.float32)
    ratios: Single = (scale_of(output) / product).astype(np.float32)
    return ratios


def _constants(operands: Operands) -> tuple[Tensor, Tensor]:
    weights, biases = constant_named(operands, "weights"), constant_named(operands, "biases")
    if weights is None or biases is None:
        raise UnsupportedError("weights or biases are not constant; a linear layer needs both as constants")
    return weights, biases


def _rescale(node: Node, x: Tensor, weights: Tensor, output: Tensor) -> tuple[Multiplier, Written]:
    bits = bits_of(output)
    given = stated_multiplier(node)
    found = given or find_multipliers(filter_ratios(x, weights, output), bits)
    if found.m.size == 1 and not weights.affine.is_per_axis:
        return found, Written(keys=rescale_keys(LINEAR, found, type_of_multiplier(bits)))
    found = given or unify_shifts(found)
    return found, Written({"scale": found.m.astype(np.uint16), "shift": found.n.astype(np.int8)})
