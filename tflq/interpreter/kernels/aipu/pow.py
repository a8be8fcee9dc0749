"""Pow: by one table where the exponent is one constant, else exp(p * log|x|) by two tables (docs/aipu.md, 5).

L = RNE(s_L * log|x|), int16; q = clamp(RNE(L * (p + zp_p) * M * 2^-N)), int16, r = s_v / (s_p * s_L);
y = t_exp(q) * sign(x + zp_x)^(p + zp_p). The scales of logarithm and product are symmetric, of the layer's
intermediates. The table of one exponent stands under lut_log.

Source: Compass Optimizer, ops/pow.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.boxes import hidden_tensor
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import is_stated, multiplier_of
from tflq.interpreter.kernels.aipu.tables import Single, Table, table_bits, table_of
from tflq.interpreter.kernels.aipu.written import CURVED, Written, rescale_keys
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.samples import align

EXPONENT = "exponent"


@dataclass(frozen=True, eq=False)
class PowParams:
    """The integers of one power.

    Attributes:
        first: of |x|'s logarithm; of the power itself where the exponent is one constant.
        second: of the exponential; None where the exponent is one constant.
        offsets: zp of base and exponent.
        rescale: M and N between the tables.
        codes: of the output.
        written: for the IR.
    """

    first: Table
    second: Table | None
    offsets: tuple[int, int]
    rescale: Multiplier
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> PowParams:
    """Decide the tables, M and N."""
    return _by_constant(node, operands) if EXPONENT in node.attributes else _by_logarithm(node, operands)


def run(params: PowParams, x: Array, p: Array) -> tuple[Array, ...]:
    """Run Pow: codes [S, ...] and [S, ...] -> codes [S, ...]."""
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

    def power(v: Single) -> Array:
        return np.power(v.astype(np.float64), exponent).astype(np.float32)

    table = table_of(node, x, output, power, "lut_log", repeats=False)
    one = find_multiplier(1.0, 8)
    written = Written(
        {"lut_log": table.entries.astype(output.dtype.storage)},
        rescale_keys(CURVED, one, type_of_multiplier(8)),
        added={EXPONENT: exponent},
    )
    return PowParams(table, None, (0, 0), one, codes_of(output), written)


def _by_logarithm(node: Node, operands: Operands) -> PowParams:
    x, p, output = operands.input(0), operands.input(1), operands.output()
    of_log, of_product = (_inner(node, operands, i) for i in range(2))
    bits = table_bits(node, x)
    first = table_of(node, x, of_log, lambda v: np.log(np.abs(v.astype(np.float64))), "lut_log", bits, repeats=False)
    second = table_of(node, of_product, output, lambda v: np.exp(v.astype(np.float64)), "lut_exp", bits, repeats=False)
    ratio = scale_of(of_product) / np.float32(scale_of(p) * scale_of(of_log))
    found = multiplier_of(node, ratio, bits_of(output))
    written = Written(
        {"lut_log": first.entries.astype(np.int16), "lut_exp": second.entries.astype(output.dtype.storage)},
        rescale_keys(CURVED, found, type_of_multiplier(bits_of(output))),
    )
    return PowParams(first, second, (offset_of(x), offset_of(p)), found, codes_of(output), written)


def _inner(node: Node, operands: Operands, position: int) -> Tensor:
    """Return the type of what stands between the tables; of a quantised IR only that it is int16."""
    return Tensor("", (), DType.INT16) if is_stated(node) else hidden_tensor(operands, position)


def _sign_powers(signs: Integers, exponents: Integers) -> Integers:
    """Return sign^exponent of whole numbers: 0^0 = 1, 0 to any other power 0."""
    odd = np.where(exponents % 2 == 0, np.abs(signs), signs)
    found: Integers = np.where(exponents == 0, 1, odd)
    return found
