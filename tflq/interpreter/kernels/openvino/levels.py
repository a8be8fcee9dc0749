"""Levels as integers: code = level index + smallest quantized value.

And the step from exact reals back to quantized values (Requantize).

A tensor of quantized values has the affine quantisation of its output range. The node that writes it may state another
input range (attributes levels, input_low, input_high, output_low, output_high), as FakeQuantize can; without them it is
the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Doubles
from tflq.errors import GraphError
from tflq.graph import Affine, Array, DType, FakeQuantize, Node, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter.numerics.fixed_point import activation_bounds

CODES = (DType.INT8, DType.INT4, DType.INT16)
_BOUNDS = ("input_low", "input_high", "output_low", "output_high")
_NEAR = 1e-3
"""A zero point this close to a whole number is one: float32 bounds hold no better."""


@dataclass(frozen=True, eq=False)
class Levels:
    """How reals become codes: clip(round half even(real / scale + zero), 0, levels - 1) + first.

    The half is rounded to the even level index, not to the even code.

    Attributes:
        scale: float64[1] or [C], real distance of two levels.
        zero: float64[1] or [C], level index of real zero; whole in ranges that are nudged.
        levels: their number.
        first: code of level 0.
        dtype: storage of the quantized values.
    """

    scale: Doubles
    zero: Doubles
    levels: int
    first: int
    dtype: np.dtype[np.generic]

    def codes(self, real: Doubles) -> Array:
        """Return quantized values of float64[..., C]; NaN becomes level 0."""
        with np.errstate(invalid="ignore"):
            index = np.clip(np.rint(real / self.scale + self.zero), 0, self.levels - 1)
        return np.asarray((np.where(np.isnan(index), 0, index) + self.first).astype(self.dtype))


def levels_of(node: Node, output: Tensor) -> Levels | None:
    """Return how a node writes its output; None where that is real.

    Raises:
        GraphError: a range that is empty or inverted, or levels that do not fit the type.
    """
    if output.dtype.is_floating:
        return None
    rule, affine = input_rule(node, output), output.affine
    low, high = rule.input_low.astype(np.float64), rule.input_high.astype(np.float64)
    scale = np.atleast_1d((high - low) / (rule.levels - 1))
    zero = np.atleast_1d(-low / scale)
    whole = np.rint(zero)
    zero = np.where(np.abs(zero - whole) < _NEAR, whole, zero)
    return Levels(scale, zero, rule.levels, affine.minimum_code, output.dtype.storage)


def input_rule(node: Node, output: Tensor) -> FakeQuantize:
    """Return the FakeQuantize whose level indices a node writes: its attributes, or else the output's own range.

    Raises:
        GraphError: attributes that do not fit the output's quantized values.
    """
    own = rule_of(output.affine)
    if "levels" not in node.attributes:
        return own
    rule = stated_rule(node)
    if rule.levels != own.levels:
        raise GraphError(f"'{output.name}' has {own.levels} quantized values; levels is {rule.levels}")
    return rule


def rule_attributes(rule: FakeQuantize) -> dict[str, Attribute]:
    """Return a rule as attributes of the node that writes its levels."""
    bounds = {name: tuple(float(v) for v in getattr(rule, name).reshape(-1)) for name in _BOUNDS}
    return {"levels": rule.levels, **bounds}


def stated_rule(node: Node) -> FakeQuantize:
    """Return the rule that a node's attributes state.

    Raises:
        GraphError: an attribute is missing or no number.
    """
    bounds = []
    for name in _BOUNDS:
        value = node.attributes.get(name)
        if not isinstance(value, tuple):
            raise GraphError(f"attribute {name}: found {value!r}, allowed is a list of numbers")
        bounds.append(np.array(value, np.float32))
    return FakeQuantize(node.attributes.integer("levels"), *bounds)


def rule_of(affine: Affine) -> FakeQuantize:
    """Return the FakeQuantize that an affine quantisation is.

    Low = S * (smallest quantized value - Z), high = S * (largest - Z).

    Products in float64, bounds rounded to float32 once.
    """
    scale = affine.scale.astype(np.float64)
    low = (scale * (affine.minimum_code - affine.zero_point)).astype(np.float32)
    high = (scale * (affine.maximum_code - affine.zero_point)).astype(np.float32)
    return FakeQuantize(affine.maximum_code - affine.minimum_code + 1, low, high, low, high)


def affine_of(rule: FakeQuantize, axis: int | None = None) -> Affine | None:
    """Return the affine quantisation of a rule's outputs.

    None where zero is no level or there is no type of quantized values.

    S = (oh - ol) / (levels - 1) in float64; Z = round(-ol / S) + smallest quantized value. Known are 2^b and 2^b - 1
    levels.

    Args:
        rule: sound.
        axis: of the channels, where bounds are per channel.
    """
    low, high = (np.atleast_1d(bound.astype(np.float64)) for bound in (rule.output_low, rule.output_high))
    scale = (high - low) / (rule.levels - 1)
    bits = max(1, (rule.levels - 1).bit_length())
    if bits > 16 or rule.levels not in (1 << bits, (1 << bits) - 1) or not (scale > 0).all():
        return None
    zero = -low / scale
    whole = np.rint(zero)
    if (np.abs(zero - whole) >= _NEAR).any() or (whole < 0).any() or (whole > rule.levels - 1).any():
        return None
    narrow = rule.levels == (1 << bits) - 1
    first = -(1 << (bits - 1)) + narrow
    return Affine(scale, whole.astype(np.int64) + first, axis if scale.size > 1 else None, bits, True, narrow)


def same_input_and_output(rule: FakeQuantize) -> bool:
    """Whether a rule's outputs have the range of its inputs."""
    return np.array_equal(rule.input_low, rule.output_low) and np.array_equal(rule.input_high, rule.output_high)


def code_type(affine: Affine) -> DType:
    """Return the type of the codes: int8, int16, or int4 for four bits."""
    if affine.bits == 4:
        return DType.INT4
    return DType.INT8 if affine.bits <= 8 else DType.INT16


def real_values(codes: Array, affine: Affine) -> Doubles:
    """Return (code - Z) * S in float64: [S or 1, *shape] with the sample axis in front."""
    scale, zero_point = affine.along(codes.ndim - 1)
    return np.asarray((codes.astype(np.int64) - zero_point) * scale.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Stored:
    """How a layer's reals are stored: clamped by the fused activation, then as quantized values or float32.

    Attributes:
        minimum: lower bound of the fused activation, infinite where there is none.
        maximum: upper bound, likewise.
        levels: of the output; None for float32.
    """

    minimum: float
    maximum: float
    levels: Levels | None

    @staticmethod
    def of(node: Node, output: Tensor) -> Stored:
        """Return how a node stores its output; raises as `levels_of`."""
        low, high = activation_bounds(node.attributes.text("fused_activation_function", "none"))
        return Stored(-np.inf if low is None else low, np.inf if high is None else high, levels_of(node, output))

    def clamp(self, real: Doubles) -> Doubles:
        """Apply the fused activation's bounds."""
        if self.minimum == -np.inf and self.maximum == np.inf:
            return real
        return np.clip(real, self.minimum, self.maximum)

    def apply(self, real: Doubles) -> Array:
        """Return quantized values, or float32."""
        return finish(self.clamp(real), self.levels)


def finish(real: Doubles, levels: Levels | None) -> Array:
    """Return quantized values, or float32 where the output is not quantised."""
    return np.asarray(real.astype(np.float32)) if levels is None else levels.codes(real)
