"""ADD, SUB and MUL in GAP9's arithmetic (docs/rules/gap9/operators.md#add-mul-pools).

Of a sum, the operand of larger scale is brought to the other's. A product takes symmetric types. Two inputs of 8 bits
run as a table of all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Node, Operands, Tensor
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.rounding import Stored
from tflq.interpreter.numerics.fixed_point import wrap_int16
from tflq.interpreter.numerics.lookup_tables import make_pairs, run_pairs
from tflq.interpreter.operands.checks import EIGHT_BITS
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

_LARGEST_BIAS = 32767


@dataclass(frozen=True, eq=False)
class SumParams:
    """The params of one addition or subtraction.

    Attributes:
        sign: +1, or -1 for Sub.
        scaled: index of the operand of larger scale, which is multiplied first; 0 if they are equal.
        input_mul_bias: M1, N1 about S_scaled / S_other.
        mul_bias: M2, N2 about S_other / S_y.
        bias: added at the end, from the zero points.
        stored: smallest and largest quantized value, type of the output.
        wraps: whether the bias is cut to its low 16 bits, as NNTool stores it.
        table: all pairs of 8-bit quantized values, None for wider ones.
    """

    sign: int
    scaled: int
    input_mul_bias: MulBias
    mul_bias: MulBias
    bias: int
    stored: Stored
    wraps: bool = False
    table: Array | None = None

    def terms(self, first: Integers, second: Integers) -> tuple[Integers, Integers]:
        """x_o and norm(x_s * M1, N1), the sign going with the second operand."""
        operands = [first, second]
        operands[self.scaled] = self.input_mul_bias.times(operands[self.scaled])
        return operands[0], self.sign * operands[1]

    def exact(self, first: Integers, second: Integers) -> Integers:
        """clip(norm((x_o + norm(x_s * M1, N1)) * M2, N2) + bias)."""
        a, b = self.terms(first, second)
        return self.stored.clip(self.mul_bias.times(a + b) + self.bias)


@dataclass(frozen=True, eq=False)
class ProductOfTensors:
    """The params of one product.

    Attributes:
        mul_bias: M, N about S_a * S_b / S_y.
        stored: smallest and largest quantized value, type of the output.
        table: all pairs of 8-bit quantized values.
    """

    mul_bias: MulBias
    stored: Stored
    table: Array | None = None

    def exact(self, first: Integers, second: Integers) -> Integers:
        """clip(norm(a * b * M, N))."""
        return self.stored.clip(self.mul_bias.times(first * second))


def lower_sum(node: Node, operands: Operands, sign: int) -> SumParams:
    """Decide the params of ADD or SUB.

    bias = round(Z_y - (S_o / S_y) * (+-Z_o +- (S_s / S_o) * Z_s)), each sign that of its operand; round half to even.

    Args:
        node: ADD or SUB; its attribute `sub` is "exact" (default), or "nntool": + stays on both zero points of a Sub,
            as the vendor's tool does it (wrong for unsigned types). With `numerics` "nntool" the bias wraps in 16 bits.
        operands: two inputs and the output, in GAP9's types.
        sign: Sign of the second operand.

    Raises:
        UnsupportedError: a bias beyond 16 bits that does not wrap, or a ratio of scales without M and N.
    """
    tensors = (operands.input(0), operands.input(1))
    types = tuple(t.affine for t in tensors)
    output = operands.output()
    y = output.affine
    scales = [float(t.scale[0]) for t in types]
    scaled = 1 if scales[1] > scales[0] else 0
    s_s, s_o, s_y = scales[scaled], scales[1 - scaled], float(y.scale[0])
    bias = _bias(types, y, scaled, 1 if node.attributes.text("sub", "exact") == "nntool" else sign)
    stored_bias = int(wrap_int16(np.asarray(bias)))
    if stored_bias != bias and node.attributes.text("numerics", "exact") != "nntool":
        raise UnsupportedError(
            f"the zero points add up to a bias of {bias}, 16 bits end at {_LARGEST_BIAS}: the scales of the "
            f"operands and the output differ too much ({s_s / s_o:.4g}, {s_o / s_y:.4g}); widen the range of the output"
        )
    ratios = mul_bias(s_s / s_o), mul_bias(s_o / s_y)
    params = SumParams(sign, scaled, *ratios, stored_bias, Stored.of_output(output), stored_bias != bias)
    return replace(params, table=_table(params, *tensors, output))


def lower_product(node: Node, operands: Operands) -> ProductOfTensors:  # noqa: ARG001
    """Decide the params of MUL.

    Raises:
        UnsupportedError: a zero point other than 0, or a ratio of scales without M and N.
    """
    tensors, output = (operands.input(0), operands.input(1)), operands.output()
    for tensor in (*tensors, output):
        if int(tensor.affine.zero_point[0]):
            raise UnsupportedError(f"'{tensor.name}' has zero point {tensor.affine.zero_point[0]}; a product takes 0")
    a, b, y = (float(t.affine.scale[0]) for t in (*tensors, output))
    params = ProductOfTensors(mul_bias(a * b / y), Stored.of_output(output))
    return replace(params, table=_table(params, *tensors, output))


def run_pair(params: PairParams, first: Array, second: Array) -> tuple[Array, ...]:
    """Run ADD, SUB or MUL: quantized [S or 1, *shape] twice, shapes broadcast -> quantized [S, *shape]."""
    if params.table is not None:
        return (run_pairs(params.table, first, second),)
    x, y = align(first, second)
    return (params.exact(x.astype(np.int64), y.astype(np.int64)).astype(params.stored.dtype),)


def _table(params: PairParams, first: Tensor, second: Tensor, output: Tensor) -> Array | None:
    """Return all pairs; None if an input is wider than a byte."""
    if first.dtype not in EIGHT_BITS or second.dtype not in EIGHT_BITS:
        return None
    return make_pairs(params.exact, first.dtype, second.dtype, output.dtype)


def _bias(types: tuple[Affine, ...], y: Affine, scaled: int, sign: int) -> int:
    zero_points = [int(t.zero_point[0]) for t in types]
    signs = (1, sign)
    other = 1 - scaled
    s_s, s_o, s_y = (float(a.scale[0]) for a in (types[scaled], types[other], y))
    shifted = signs[other] * zero_points[other] + (s_s / s_o) * (signs[scaled] * zero_points[scaled])
    return int(np.round(int(y.zero_point[0]) - (s_o / s_y) * shifted))


PairParams = SumParams | ProductOfTensors
_SUM, _SOURCE = (
    "y = clip(norm((x_o {} norm(x_s * M1, N1)) * M2, N2) + bias)",
    "docs/rules/gap9/operators.md#add-mul-pools",
)
KERNELS = {
    "add": Kernel(partial(lower_sum, sign=1), run_pair, _SUM.format("+"), _SOURCE),
    "sub": Kernel(partial(lower_sum, sign=-1), run_pair, _SUM.format("-"), _SOURCE),
    "mul": Kernel(lower_product, run_pair, "y = clip(norm(a * b * M, N))", _SOURCE),
}
