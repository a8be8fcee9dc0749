"""Pairs that tables compute: Div, Pow (docs/rules/aipu/operators.md).

Div by a table of reciprocals: y = RNE(sign(b') * a' * t(|b'|) * M * 2^-N) - zp_y, x' = x + zp. t[i] = RNE(65535 / i),
t[0] = 0: dividing by zero returns 0. Divisors of 16 bits read between the entries, which are few units large there: a
quotient of 16 bits is no better than the entries are. r = s_y * s_b / (s_a * 65535).

Pow: by one table if the exponent is one constant, else exp(p * log|x|) by two tables. L = RNE(s_L * log|x|), int16; q =
clamp(RNE(L * (p + zp_p) * M * 2^-N)), int16, r = s_v / (s_p * s_L); y = t_exp(q) * sign(x + zp_x)^(p + zp_p). The
scales of logarithm and product are symmetric, of the layer's intermediates. The table of a constant exponent is stored
as lut_log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.boxes import internal_tensor
from tflq.interpreter.kernels.aipu.imported import imported_numbers, is_imported, multiplier_of
from tflq.interpreter.kernels.aipu.multiplier import (
    Multiplier,
    OutputCodes,
    codes_of,
    find_multiplier,
)
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of
from tflq.interpreter.kernels.aipu.tables import Table, even_steps, table_bits, table_of, table_shift
from tflq.interpreter.kernels.aipu.vector_functions import power
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

NUMERATOR = 65535


@dataclass(frozen=True, eq=False)
class DivParams:
    """The params of one division: the table, zp of the inputs, the largest divisor, M and N.

    The output's quantized values.
    """

    table: Table
    input_offsets: tuple[int, int]
    largest: int
    rescale: Multiplier
    codes: OutputCodes


def lower_div(node: Node, operands: Operands) -> DivParams:
    """Decide the table, M and N."""
    a, b, output = operands.input(0), operands.input(1), operands.output()
    given = imported_numbers(node)
    entries = _reciprocals(bits_of(b), table_bits(node, b)) if given is None else given
    table = Table(entries, 0, table_shift(node, entries, bits_of(b)), 0, NUMERATOR)
    bits = bits_of(output)
    ratio = np.float32(scale_of(output) * scale_of(b)) / np.float32(scale_of(a) * np.float32(NUMERATOR))
    multiplier = multiplier_of(node, ratio, bits)
    offsets = (offset_of(a), offset_of(b))
    return DivParams(table, offsets, (1 << bits_of(b)) - 1, multiplier, codes_of(output))


def _reciprocals(bits: int, entries: int) -> Integers:
    """Return RNE(65535 / v) at 2^entries even steps v of 0..2^bits - 1, in float32; 0 at v = 0."""
    steps = even_steps(0, (1 << bits) - 1, 1 << entries)
    quotients = np.rint(np.float32(NUMERATOR) / np.maximum(steps, np.float32(1)))
    table: Integers = quotients.astype(np.int64) * (steps > 0)
    return table


def run_div(params: DivParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run Div: quantized [S, ...] and [S, ...] -> quantized [S, ...]."""
    left, right = (x.astype(np.int64) + zp for x, zp in zip(align(a, b), params.input_offsets, strict=True))
    reciprocal = params.table.lookup(np.minimum(np.abs(right), params.largest))
    return (params.codes.requantize(np.sign(right) * left * reciprocal, params.rescale),)


EXPONENT = "exponent"


@dataclass(frozen=True, eq=False)
class PowParams:
    """The params of one power.

    Attributes:
        first: Table of |x|'s logarithm; table of the power itself if the exponent is one constant.
        second: Table of the exponential; None if the exponent is one constant.
        offsets: zp of base and exponent.
        rescale: M and N between the tables.
        codes: Quantized values of the output.
    """

    first: Table
    second: Table | None
    offsets: tuple[int, int]
    rescale: Multiplier
    codes: OutputCodes


def lower_pow(node: Node, operands: Operands) -> PowParams:
    """Decide the tables, M and N."""
    return _by_constant(node, operands) if EXPONENT in node.attributes else _by_logarithm(node, operands)


def run_pow(params: PowParams, x: Array, p: Array) -> tuple[Array, ...]:
    """Run Pow: quantized [S, ...] and [S, ...] -> quantized [S, ...]."""
    first, second = params.first, params.second
    if second is None:
        return (first.lookup(x).astype(params.codes.dtype),)
    base, exponent = (v.astype(np.int64) + zp for v, zp in zip(align(x, p), (0, params.offsets[1]), strict=True))
    product = params.rescale.apply(first.lookup(base) * exponent)
    powers = second.lookup(np.clip(product, DType.INT16.minimum, DType.INT16.maximum).astype(np.int64))
    signs = _sign_powers(np.sign(base + params.offsets[0]), exponent)
    codes = np.clip(powers * signs, params.codes.minimum, params.codes.maximum)
    return (codes.astype(params.codes.dtype),)


def _by_constant(node: Node, operands: Operands) -> PowParams:
    x, output = operands.input(0), operands.output()
    exponent = node.attributes.real(EXPONENT)

    table = table_of(node, x, output, lambda v: power(v, exponent), "first", repeats=False)
    one = find_multiplier(1.0, 8)
    return PowParams(table, None, (0, 0), one, codes_of(output))


def _by_logarithm(node: Node, operands: Operands) -> PowParams:
    x, p, output = operands.input(0), operands.input(1), operands.output()
    of_log, of_product = (_inner(node, operands, i) for i in range(2))
    bits = table_bits(node, x)
    first = table_of(node, x, of_log, lambda v: np.log(np.abs(v.astype(np.float64))), "first", bits, repeats=False)
    second = table_of(node, of_product, output, lambda v: np.exp(v.astype(np.float64)), "second", bits, repeats=False)
    ratio = scale_of(of_product) / np.float32(scale_of(p) * scale_of(of_log))
    multiplier = multiplier_of(node, ratio, bits_of(output))
    return PowParams(first, second, (offset_of(x), offset_of(p)), multiplier, codes_of(output))


def _inner(node: Node, operands: Operands, position: int) -> Tensor:
    """Return the type of the values between the tables; for a quantized IR only int16 is known."""
    return Tensor("", (), DType.INT16) if is_imported(node) else internal_tensor(operands, position)


def _sign_powers(signs: Integers, exponents: Integers) -> Integers:
    """Return sign^exponent of integers: 0^0 = 1, 0 to any other power 0."""
    odd = np.where(exponents % 2 == 0, np.abs(signs), signs)
    powers: Integers = np.where(exponents == 0, 1, odd)
    return powers


KERNELS = {
    "div": Kernel(lower_div, run_div,
        "RNE(sign(b') * a' * t(|b'|) * M * 2^-N) - zp_y", "Compass Optimizer, ops/div.py; "
            "docs/rules/aipu/operators.md"),
    "pow": Kernel(lower_pow, run_pow,
        "one table, or t_exp(RNE(t_log(x) * (p + zp_p) * M * 2^-N)) with its sign",
        "Compass Optimizer, ops/pow.py; docs/rules/aipu/operators.md"),
}  # fmt: skip
