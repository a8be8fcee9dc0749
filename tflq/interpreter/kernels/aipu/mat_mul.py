"""MatMul of two computed matrices: z = (x + zp_x) @ (y + zp_y), r = s_z / (s_x * s_y) (docs/aipu.md, 5).

Source: Compass Optimizer, ops/matmul.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import exact_dtype
from tflq.interpreter.kernels.aipu.imported import multiplier_bits, multiplier_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.scales import magnitude_of, offset_of, scale_of


@dataclass(frozen=True, eq=False)
class MatMulParams:
    """The integers of one product.

    Attributes:
        transposed: whether each input's last two axes change places.
        input_offsets: zp_x and zp_y.
        accumulator: a type in which every sum is exact.
        rescale: M and N.
        codes: how the output is stored.
    """

    transposed: tuple[bool, bool]
    input_offsets: tuple[int, int]
    accumulator: np.dtype[np.generic]
    rescale: Multiplier
    codes: OutputCodes


def lower(node: Node, operands: Operands) -> MatMulParams:
    """Decide M and N."""
    a, b, output = operands.input(0), operands.input(1), operands.output()
    transposed = (node.attributes.boolean("trans_a", False), node.attributes.boolean("trans_b", False))
    bits = multiplier_bits(node, output)
    found = multiplier_of(node, scale_of(output) / np.float32(scale_of(a) * scale_of(b)), bits)
    depth = a.shape[-2 if transposed[0] else -1]
    offsets = (offset_of(a), offset_of(b))
    largest = [magnitude_of(t) + abs(zp) for t, zp in zip((a, b), offsets, strict=True)]
    return MatMulParams(
        transposed,
        offsets,
        exact_dtype(depth * largest[0] * largest[1]),
        found,
        codes_of(output),
    )


def run(params: MatMulParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run MatMul: codes [S, ..., I, K] and [S, ..., K, J] -> codes [S, ..., I, J]."""
    sides = []
    for x, zp, is_transposed in zip((a, b), params.input_offsets, params.transposed, strict=True):
        real = x.astype(params.accumulator) + params.accumulator.type(zp)
        sides.append(np.swapaxes(real, -1, -2) if is_transposed else real)
    total = np.matmul(sides[0], sides[1]).astype(np.int64)
    return (params.codes.requantise(total, params.rescale),)
