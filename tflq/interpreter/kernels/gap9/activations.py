"""Activations and QUANTIZE in GAP9's arithmetic (docs/rules/gap9/types.md, docs/rules/gap9/operators.md).

After a 32-bit filter output a rule runs in blocks; a separate layer on 8 bits is a table. Of RELU and RELU6 the upper
clamp is the end of the type (1.4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.rounding import (
    Stored,
    dequantize,
    quantize,
    round_half_up,
    same_scales,
    shift_between,
    taken_for,
    wrapped_norm,
)
from tflq.interpreter.numerics.fixed_point import norm, wrap_int32
from tflq.interpreter.numerics.lookup_tables import Table, is_used, look_up, make_table
from tflq.interpreter.numerics.q15 import sigmoid_q15, tanh_q15
from tflq.interpreter.registry import Kernel

CurveRule = Callable[[Integers], Integers]
Q12, Q15 = 2.0**-12, 2.0**-15
ALONE_SHIFT = 8
"""An int8 input is shifted left by this and read as Q12: as x / 16, whatever its scale says."""
_BLOCK = 1 << 15
_LOWEST_SLOPE, _HIGHEST_SLOPE = -1.0, 0.996


@dataclass(frozen=True, eq=False)
class CurveParams:
    """The params of one sigmoid or tanh.

    Attributes:
        is_tanh: True for tanh, False for sigmoid.
        left_shift: Left shift of the input: 8 for int8, 0 for Q12.
        mul_bias: M, N about 2^-15 / S_y.
        zero_point: Zero point of the output.
        stored: smallest and largest quantized value, type of the output.
        table: Table for inputs of 8 bits.
    """

    is_tanh: bool
    left_shift: int
    mul_bias: MulBias
    zero_point: int
    stored: Stored
    table: Table | None = None

    def exact(self, x: Integers) -> Integers:
        """clip(norm(curve(x << left_shift) * M, N) + Z_y)."""
        q15 = (tanh_q15 if self.is_tanh else sigmoid_q15)(x << self.left_shift)
        return self.stored.clip(self.mul_bias.times(q15) + self.zero_point)


@dataclass(frozen=True, eq=False)
class HardCurveParams:
    """The params of one hard swish or hard sigmoid.

    Attributes:
        is_swish: True for hard swish, False for hard sigmoid.
        offset: rnd(3 / S_i), the code of 3; 0 for a hard sigmoid if the bias of its filter contains it.
        upper_bound: rnd(6 / S_i), the code of 6.
        mul_bias: M, N about S_i^2 / (6 * S_y), of a hard sigmoid S_i / (6 * S_y).
        zero_point: Zero point of the output.
        stored: smallest and largest quantized value, type of the output.
        wraps: whether products keep their low 32 bits, as NNTool's do.
        table: Table for inputs of 8 bits.
    """

    is_swish: bool
    offset: int
    upper_bound: int
    mul_bias: MulBias
    zero_point: int
    stored: Stored
    wraps: bool
    table: Table | None = None

    def exact(self, x: Integers) -> Integers:
        """clip(norm(x * clip(x + offset, 0, upper_bound) * M, N) + Z_y); a hard sigmoid without the first x."""
        product = np.clip(x + self.offset, 0, self.upper_bound)
        if self.is_swish:
            product = x * product
        if self.wraps:
            scaled = wrapped_norm(wrap_int32(product) * self.mul_bias.multiplier, self.mul_bias.shift)
            return self.stored.clip(scaled + self.zero_point)
        return self.stored.clip(self.mul_bias.times(product) + self.zero_point)


@dataclass(frozen=True, eq=False)
class LeakyReluParams:
    """The params of one leaky ReLU.

    Attributes:
        slope: L = trunc(0.5 + alpha * 128), Q7 in int8.
        zero_point: Zero point of the output; the input's is 0.
        stored: smallest and largest quantized value, type of the output.
        table: Table for inputs of 8 bits.
    """

    slope: int
    zero_point: int
    stored: Stored
    table: Table | None = None

    def exact(self, x: Integers) -> Integers:
        """clip((x > 0 ? x : norm(x * L, 7)) + Z_y); M = 1 and N = 0, the scales being equal."""
        y = np.where(x > 0, x, norm(x * self.slope, 7)) + self.zero_point
        return self.stored.clip(y)


@dataclass(frozen=True, eq=False)
class QuantizeParams:
    """QUANTIZE as a table: output quantized value for each raw quantized value of the input, 256 or 65536 entries."""

    table: Table


def lower_sigmoid_tanh(node: Node, operands: Operands, is_tanh: bool) -> CurveParams:  # noqa: ARG001
    """Decide the params of LOGISTIC or TANH.

    Raises:
        UnsupportedError: an input with a zero point; an input of 32 bits that is not Q12.
    """
    x, output = operands.input(0), operands.output()
    wide = x.affine.bits == 32
    if int(x.affine.zero_point[0]) or (wide and float(x.affine.scale[0]) != Q12):
        raise UnsupportedError(f"input '{x.name}' must be symmetric, and 2^-12 its scale where it has 32 bits")
    y = output.affine
    params = CurveParams(
        is_tanh,
        0 if wide else ALONE_SHIFT,
        mul_bias(Q15 / float(y.scale[0])),
        int(y.zero_point[0]),
        Stored.of_output(output),
    )
    return replace(params, table=curve_table(params.exact, x, output))


def lower_hard_curve(node: Node, operands: Operands, is_swish: bool) -> HardCurveParams:
    """Decide the params of HARD_SWISH or of a hard sigmoid with attribute `offset` 3 or 0.

    With numerics "nntool" products wrap, as a hard swish's do with 16 bits.

    Raises:
        UnsupportedError: an input with a zero point; a hard swish from 32 to 16 bits, but with numerics "nntool".
    """
    x, output = operands.input(0), operands.output()
    if int(x.affine.zero_point[0]):
        raise UnsupportedError(f"input '{x.name}' has zero point {x.affine.zero_point[0]}; {node.operator} takes 0")
    as_nntool = node.attributes.text("numerics", "exact") == "nntool"
    if is_swish and x.affine.bits == 32 and output.affine.bits == 16 and not as_nntool:
        raise UnsupportedError(
            f"output '{output.name}' has {output.affine.bits} bits; hard swish takes 8, NNTool's product overflows "
            "(numerics=nntool has its integers)"
        )
    s_i, y = float(x.affine.scale[0]), output.affine
    params = HardCurveParams(
        is_swish,
        int(round_half_up(node.attributes.real("offset", 3.0) / s_i)),
        int(round_half_up(6 / s_i)),
        mul_bias((s_i * s_i if is_swish else s_i) / (6 * float(y.scale[0]))),
        int(y.zero_point[0]),
        Stored.of_output(output),
        as_nntool,
    )
    return replace(params, table=curve_table(params.exact, x, output))


def lower_leaky_relu(node: Node, operands: Operands) -> LeakyReluParams:
    """Decide the params of LEAKY_RELU.

    Raises:
        UnsupportedError: alpha outside [-1, 0.996), which would wrap its 8 bits; an input with a zero point; other
            scales.
    """
    x, output = operands.input(0), operands.output()
    alpha = node.attributes.real("alpha")
    if not _LOWEST_SLOPE <= alpha < _HIGHEST_SLOPE:
        raise UnsupportedError(f"alpha is {alpha}; allowed is {_LOWEST_SLOPE} to below {_HIGHEST_SLOPE}")
    if int(x.affine.zero_point[0]) or not same_scales(x.affine.scale, output.affine.scale):
        raise UnsupportedError(f"input '{x.name}' must have zero point 0 and the scale of the output")
    slope = int(np.trunc(0.5 + alpha * 128))
    params = LeakyReluParams(slope, int(output.affine.zero_point[0]), Stored.of_output(output))
    return replace(params, table=curve_table(params.exact, x, output))


def run(params: CurveParams | HardCurveParams | LeakyReluParams, x: Array) -> tuple[Array, ...]:
    """Run any of them: int32 or int8 [S, *shape] -> quantized [S, *shape]."""
    return (run_curve(params.table, params.exact, x, params.stored.dtype),)


def curve_table(rule: CurveRule, source: Tensor, output: Tensor) -> Table | None:
    """Return rule(code) for each quantized value of an input of 8 or 16 bits, stored as the output.

    None for 32 bits.
    """
    return None if source.dtype is DType.INT32 else make_table(rule, source.dtype, output.dtype)


def run_curve(table: Table | None, rule: CurveRule, x: Array, dtype: np.dtype[np.generic]) -> Array:
    """Apply a table, or the rule in blocks that fit the cache: quantized [S, *shape] -> quantized [S, *shape]."""
    if is_used(table):
        return np.asarray(look_up(table, x))
    flat = x.reshape(-1)
    result = np.empty(flat.shape, dtype)
    for i in range(0, flat.size, _BLOCK):
        result[i : i + _BLOCK] = rule(flat[i : i + _BLOCK].astype(np.int64))
    return result.reshape(x.shape)


def lower_quantize(node: Node, operands: Operands) -> QuantizeParams:
    """Tabulate clip(rnd((x - Z_i) * S_i / S_o) + Z_o), evaluated in float64; as NNTool S_i / S_o may be a shift."""
    x, y = operands.input(0), operands.output()
    source, target = taken_for(node, x.affine), y.affine
    if node.attributes.text("numerics", "exact") == "nntool" and (bits := shift_between(source, target)):
        source, target = replace(source, scale=np.array([2.0**bits])), replace(target, scale=np.ones(1))
    return QuantizeParams(make_table(lambda q: quantize(dequantize(q, source), target), x.dtype, y.dtype))


def run_quantize(params: QuantizeParams, x: Array) -> tuple[Array, ...]:
    """Run QUANTIZE: quantized [S, *shape] -> quantized [S, *shape]."""
    return (np.asarray(look_up(params.table, x)),)


@dataclass(frozen=True, eq=False)
class ReluParams:
    """The clamp.

    Attributes:
        lower_bound: the input's code of 0.
        idle: whether nothing changes.
        mul_bias: M, N about S_i / S_o if the types differ; None if they are equal by NNTool's comparison.
        zero_point: Zero point of the output.
        stored: smallest and largest quantized value, type of the output.
        table: Table of all quantized values if the types differ.
    """

    lower_bound: int
    idle: bool
    mul_bias: MulBias | None
    zero_point: int
    stored: Stored
    table: Table | None = None

    def exact(self, x: Integers) -> Integers:
        """clip(norm((max(x, Z_i) - Z_i) * M, N) + Z_o); with equal types max(x, Z_i)."""
        y = np.maximum(x, self.lower_bound)
        if self.mul_bias is not None:
            y = self.mul_bias.times(y - self.lower_bound) + self.zero_point
        return self.stored.clip(y)


def lower_relu(node: Node, operands: Operands) -> ReluParams:  # noqa: ARG001
    """Decide the clamp, and M, N if input and output differ.

    Raises:
        UnsupportedError: types of other widths or signs, or a ratio of scales without M and N.
    """
    source, target = operands.input(0), operands.output()
    x, y = source.affine, target.affine
    if source.dtype is not target.dtype:
        raise UnsupportedError(
            f"input '{source.name}' is {source.dtype.value}, output '{target.name}' {target.dtype.value}; "
            "a ReLU keeps the integer type"
        )
    bound = int(x.zero_point[0])
    is_same = same_scales(x.scale, y.scale) and np.array_equal(x.zero_point, y.zero_point)
    ratio = None if is_same else mul_bias(float(x.scale[0]) / float(y.scale[0]))
    idle = ratio is None and bound <= y.minimum_code
    params = ReluParams(bound, idle, ratio, int(y.zero_point[0]), Stored.of_output(target))
    return params if ratio is None else replace(params, table=curve_table(params.exact, source, target))


def run_relu(params: ReluParams, x: Array) -> tuple[Array, ...]:
    """Run RELU: quantized [S, *shape] -> quantized [S, *shape]."""
    if params.mul_bias is not None:
        return (run_curve(params.table, params.exact, x, params.stored.dtype),)
    return (x if params.idle else np.maximum(x, x.dtype.type(params.lower_bound)),)


def samples_last(params: object, operands: Operands) -> float | None:
    """Return 0 if quantized values are compared with one bound, which is equally fast in any order; None for tables."""
    assert isinstance(params, ReluParams)
    return 0.0 if params.mul_bias is None and len(operands.input(0).shape) == 4 else None


_sigmoid, _tanh = (partial(lower_sigmoid_tanh, is_tanh=flag) for flag in (False, True))
_swish, _hard_sigmoid = (partial(lower_hard_curve, is_swish=flag) for flag in (True, False))
_SOURCE = "docs/rules/gap9/operators.md#activations"
_RELU = "y = clip(norm((max(x, Z_i) - Z_i) * M, N) + Z_o), with equal types max(x, Z_i)"
KERNELS = {
    "logistic": Kernel(_sigmoid, run, "y = clip(norm(sigmoid(x in Q12) * M, N) + Z_y)", _SOURCE),
    "tanh": Kernel(_tanh, run, "y = clip(norm(tanh(x in Q12) * M, N) + Z_y)", _SOURCE),
    "hard_swish": Kernel(_swish, run, "y = clip(norm(x * clip(x + 3, 0, 6) * M, N) + Z_y)", _SOURCE),
    "hard_sigmoid": Kernel(_hard_sigmoid, run, "y = clip(norm(clip(x + 3, 0, 6) * M, N) + Z_y)", _SOURCE),
    "leaky_relu": Kernel(lower_leaky_relu, run, "y = clip((x > 0 ? x : norm(x * L, 7)) + Z_y)", _SOURCE),
    "quantize": Kernel(
        lower_quantize, run_quantize, "y = clip(rnd((x - Z_i) * S_i / S_o) + Z_o)", "docs/rules/gap9/types.md#quantize"
    ),
    "relu": Kernel(lower_relu, run_relu, _RELU, _SOURCE, samples_last=samples_last),
    "relu6": Kernel(lower_relu, run_relu, f"{_RELU}, in a type that ends at 6", _SOURCE),
}
