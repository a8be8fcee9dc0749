"""ADD, SUB and MUL of two operands, each with its own range (non-unified): reals in float64, then levels.

An operand is quantized values, per tensor or per channel, or floating-point values (a constant: ScaleShift).
CONCATENATION brings each to the levels of the output (docs/rules/openvino.md#levels-as-integers).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.arrays import Doubles
from tflq.graph import Affine, Array, DType, Node, Operands
from tflq.interpreter.kernels.move.parts import Concatenation, check_shapes, concatenate
from tflq.interpreter.kernels.openvino.levels import (
    CODES,
    Levels,
    Stored,
    finish,
    input_rule,
    levels_of,
    real_values,
    same_input_and_output,
)
from tflq.interpreter.layers.reals import RealSum
from tflq.interpreter.operands.checks import require_broadcast, require_type
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

Rule = Callable[[Doubles, Doubles], Doubles]


@dataclass(frozen=True, eq=False)
class PairParams:
    """The params of one elementwise operator.

    Attributes:
        sources: Quantization of each operand; None for reals.
        stored: Rule from reals to the output.
    """

    sources: tuple[Affine | None, Affine | None]
    stored: Stored

    @property
    def real_sum(self) -> RealSum | None:
        """ADD as a sum of floating-point values; None if a range differs by channel, or the result is real."""
        levels, affines = self.stored.levels, [affine for affine in self.sources if affine is not None]
        if levels is None or levels.scale.size > 1 or any(affine.is_per_axis for affine in affines):
            return None
        ends = finish(np.array([self.stored.minimum, self.stored.maximum]), levels).astype(np.int64) - levels.first
        first, second = (
            None if affine is None else (float(affine.scale[0]), int(affine.zero_point[0])) for affine in self.sources
        )
        scale, zero = float(levels.scale[0]), float(levels.zero[0])
        return RealSum((first, second), scale, zero, int(ends[0]), int(ends[1]), levels.first)


def lower_pair(node: Node, operands: Operands) -> PairParams:
    """Decide the params.

    Raises:
        UnsupportedError: other types than quantized values and float32.
        GraphError: shapes that do not broadcast.
    """
    tensors = (operands.input(0), operands.input(1))
    for tensor in tensors:
        require_type(tensor, (*CODES, DType.FLOAT32))
    require_broadcast(*tensors)
    first, second = (t.affine if t.dtype.is_integer else None for t in tensors)
    return PairParams((first, second), Stored.of_output(node, operands.output()))


def run_pair(numbers: PairParams, first: Array, second: Array, *, rule: Rule) -> tuple[Array, ...]:
    """Run it: [S or 1, *shape] twice, shapes broadcast -> quantized values or float32 [S, *shape]."""
    x, y = align(*(_dequantize(z, affine) for z, affine in zip((first, second), numbers.sources, strict=True)))
    real = rule(x.astype(np.float64, copy=False), y.astype(np.float64, copy=False))
    return (numbers.stored.apply(real),)


def _dequantize(x: Array, affine: Affine | None) -> Array:
    return x.astype(np.float64) if affine is None else real_values(x, affine)


def _row(rule: Rule, sign: str) -> Kernel:
    return Kernel(
        lower_pair,
        partial(run_pair, rule=rule),
        f"level(a {sign} b), in float64",
        "docs/rules/openvino.md#levels-as-integers",
    )


@dataclass(frozen=True, eq=False)
class ConcatenationParams:
    """The params of one concatenation.

    Attributes:
        place: the axis.
        sources: Quantization of each input; None for reals.
        kept: whether an input has the output's quantized values already.
        levels: Levels of the output; None for float32.
    """

    place: Concatenation
    sources: tuple[Affine | None, ...]
    kept: tuple[bool, ...]
    levels: Levels | None


def _lower_concatenation(node: Node, operands: Operands) -> ConcatenationParams:
    """Decide the params of CONCATENATION.

    Raises:
        UnsupportedError: other types than quantized values and float32.
        GraphError: shapes that do not fit.
    """
    tensors = [operands.input(i) for i in range(len(operands.inputs))]
    for tensor in tensors:
        require_type(tensor, (*CODES, DType.FLOAT32))
    place, output = check_shapes(node, operands), operands.output()
    sources = tuple(t.affine if t.dtype.is_integer else None for t in tensors)
    unified = output.dtype.is_floating or same_input_and_output(input_rule(node, output))
    kept = tuple(unified and t.dtype.is_integer and t.quantization == output.quantization for t in tensors)
    return ConcatenationParams(place, sources, kept, levels_of(node, output))


def _run_concatenation(params: ConcatenationParams, *arrays: Array) -> tuple[Array, ...]:
    """Run CONCATENATION: quantized values or reals [S or 1, *shape_i] -> quantized values or float32 [S, *shape]."""
    parts = []
    for x, affine, kept in zip(arrays, params.sources, params.kept, strict=True):
        real = x.astype(np.float64) if affine is None else real_values(x, affine)
        parts.append(x if kept else finish(real, params.levels))
    return (concatenate(params.place, parts),)


KERNELS = {
    "add": _row(np.add, "+"),
    "sub": _row(np.subtract, "-"),
    "mul": _row(np.multiply, "*"),
    "concatenation": Kernel(
        _lower_concatenation, _run_concatenation, "level of each value", "docs/rules/openvino.md#levels-as-integers"
    ),
}
