"""What linear layers share: y = clamp(RNE((acc + bias) * M * 2^-N) - zp_y) (docs/aipu.md, 3).

acc = sum x * w with raw codes, padding holding -zp_x; the bias holds zp_x * sum(w) already, as Compass stores it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.accumulate import accumulator_range
from tflq.interpreter.kernels.aipu.activation import Fused, lower_fused
from tflq.interpreter.kernels.aipu.imported import imported_multiplier, imported_numbers, multiplier_bits
from tflq.interpreter.kernels.aipu.multiplier import (
    Multiplier,
    OutputCodes,
    codes_of,
    find_multipliers,
    unify_shifts,
)
from tflq.interpreter.kernels.aipu.scales import (
    Single,
    constant_named,
    offset_of,
    reciprocal,
    scale_of,
)
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN, Integers
from tflq.interpreter.numerics.requantise import StepMap, fit_step_map, requantise

REMAIN_SHIFT = "remain_shift"
"""Key of layers whose sums give up bits before the bias, for hardware that takes 32 of them."""


@dataclass(frozen=True, eq=False)
class FilterParams:
    """The integers of a linear layer, but for its window.

    Attributes:
        weights: int64[O, ...].
        bias: int64[O], zp_x folded in.
        rescale: M and N, one for each output channel or one for all.
        fused: the activation on the accumulator.
        pad: the code outside the image, -zp_x.
        codes: how the output is stored.
        remain_shift: bits of N that are left behind the bias, where sums have more than 32 bits; None where all are.
        step_map: proven map from accumulators to codes; None where the rule itself runs.
    """

    weights: Integers
    bias: Integers
    rescale: Multiplier
    fused: Fused
    pad: int
    codes: OutputCodes
    remain_shift: int | None = None
    step_map: StepMap | None = None

    def exact(self, accumulators: Integers) -> Integers:
        """The rule itself: accumulators without bias, int64[..., O] -> codes int64[..., O]."""
        total, rescale = self._shifted(accumulators)
        rounded = self.fused.apply(total, rescale)
        stored: Integers = np.clip(rounded - self.codes.offset, self.codes.minimum, self.codes.maximum).astype(np.int64)
        return stored

    def _shifted(self, accumulators: Integers) -> tuple[Integers, Multiplier]:
        """Return sums with bias, and what is left of M and N.

        With remain_shift r: d = max(N - r, 0); clamp32(RNE(acc * 2^-d)) + clamp32(bias >> d), N := N - d. Source:
        Compass Optimizer, utils/quant_tool_utils.py, aiff_ahead_shift_bias.
        """
        if self.remain_shift is None:
            return accumulators + self.bias, self.rescale
        early = max(int(self.rescale.n[0]) - self.remain_shift, 0)
        sums = np.clip(np.rint(accumulators * 2.0**-early), INT32_MIN, INT32_MAX).astype(np.int64)
        bias = np.clip(self.bias >> early, INT32_MIN, INT32_MAX) if early else self.bias
        return sums + bias, Multiplier(self.rescale.m, self.rescale.n - early)

    def finish(self, accumulators: Array) -> Array:
        """Return codes for exact accumulators [..., O] in float32, float64 or int64."""
        return requantise(self.step_map, self.exact, accumulators, self.codes.dtype)


def lower_filter(node: Node, operands: Operands) -> FilterParams:
    """Decide M and N for r = s_y / (s_x * s_w), in float32.

    Args:
        node: with the key with_activation.
        operands: input, constants weights and biases, output.

    Raises:
        UnsupportedError: another fused activation; no constant weights; a ratio of scales without multiplier.
    """
    x, output = operands.input(0), operands.output()
    fused = lower_fused(node, operands)
    weights, biases = _constants(operands)
    values, bias = (np.asarray(t.data, np.int64) for t in (weights, biases))
    rescale, codes = _rescale(node, x, weights, output), codes_of(output)
    # Sums of 8-bit products fit 32 bits: the hardware keeps them whole.
    is_wide = weights.dtype.bits > 8 or x.dtype.bits > 8
    shift = requested_shift(node) if is_wide else None
    found = FilterParams(values, bias, rescale, fused, -offset_of(x), codes, shift)
    if found.remain_shift is not None or not fused.is_monotone_line:
        return found
    lower, upper = accumulator_range(values, x.dtype.minimum, x.dtype.maximum)
    slope = np.broadcast_to(rescale.m * np.exp2(-rescale.n.astype(np.float64)), bias.shape)
    start = bias - codes.offset / slope
    step_map = fit_step_map(found.exact, slope, start, lower, upper, -codes.offset, codes.minimum, codes.maximum)
    return replace(found, step_map=step_map)


def filter_ratios(x: Tensor, weights: Tensor, output: Tensor) -> Single:
    """Return r = s_y / (s_x * s_w), float32[1] or [O]."""
    product = (scale_of(x) * reciprocal(weights.affine)).astype(np.float32)
    ratios: Single = (scale_of(output) / product).astype(np.float32)
    return ratios


def requested_shift(node: Node) -> int | None:
    """Return the remain_shift that the settings request or a quantised file has."""
    given = imported_numbers(node, REMAIN_SHIFT)
    if given is not None:
        return int(given[0])
    return node.attributes.integer(REMAIN_SHIFT) if node.attributes.get(REMAIN_SHIFT) is not None else None


def _constants(operands: Operands) -> tuple[Tensor, Tensor]:
    weights, biases = constant_named(operands, "weights"), constant_named(operands, "biases")
    if weights is None or biases is None:
        raise UnsupportedError("weights or biases are not constant; a linear layer needs both as constants")
    return weights, biases


def _rescale(node: Node, x: Tensor, weights: Tensor, output: Tensor) -> Multiplier:
    """Return M and N: one for all channels, or one each with one shift for all."""
    bits = multiplier_bits(node, output)
    given = imported_multiplier(node)
    found = given or find_multipliers(filter_ratios(x, weights, output), bits)
    if found.m.size == 1 and not weights.affine.is_per_axis:
        return found
    return given or unify_shifts(found)
