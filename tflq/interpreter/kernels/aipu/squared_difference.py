"""SquaredDifference: both inputs on the smaller scale with 15 bits, then the square (docs/aipu.md, 5).

x_i = RNE((q_i + zp_i) * M_i * 2^-N_i), r_i = s / s_i * 2^L, s the smaller scale, L as many bits as both leave free
below 15; y = clamp(RNE(clamp32((x_0 - x_1)^2) * M * 2^-N) - zp_y), r = s_y / s^2 / 4^L; all M in 15 bits. Where an
input needs b > 15 bits, s is divided by 2 (b - 15).

Source: Compass Optimizer, ops/squared_difference.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import WIDEST, Multiplier, find_multiplier
from tflq.interpreter.kernels.aipu.scales import is_plain, offset_of, scale_of, signed_width
from tflq.interpreter.kernels.aipu.stated import stated_multiplier
from tflq.interpreter.kernels.aipu.written import Value, Written
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN
from tflq.interpreter.samples import align


@dataclass(frozen=True, eq=False)
class SquaredDifferenceParams:
    """The integers of one layer: zp of the inputs; M and N of the output and of both inputs."""

    input_offsets: tuple[int, int]
    rescales: tuple[Multiplier, ...]
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> SquaredDifferenceParams:
    """Decide three M and N; whole numbers at scale 1 keep 1 and 0."""
    inputs, output = (operands.input(0), operands.input(1)), operands.output()
    given = stated_multiplier(node)
    each = given.split() if given else tuple(find_multiplier(r, WIDEST + 1) for r in _ratios(inputs, output))
    keys: dict[str, Value] = {
        "shift_value": tuple(m.first_n for m in each),
        "shift_type": ("int8",) * 3,
        "scale_value": tuple(m.first_m for m in each),
        "scale_type": ("uint16",) * 3,
    }
    offsets = (offset_of(inputs[0]), offset_of(inputs[1]))
    return SquaredDifferenceParams(offsets, each, codes_of(output), Written(keys=keys))


def run(params: SquaredDifferenceParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run SquaredDifference: codes [S, ...] and [S, ...] -> codes [S, ...]."""
    of_output, *of_inputs = params.rescales
    left, right = (
        np.clip(m.apply(x.astype(np.int64) + zp), INT32_MIN, INT32_MAX).astype(np.int64)
        for x, zp, m in zip(align(a, b), params.input_offsets, of_inputs, strict=True)
    )
    squares = np.clip(np.square(left - right), INT32_MIN, INT32_MAX)
    return (params.codes.requantise(squares, of_output),)


def _ratios(inputs: tuple[Tensor, Tensor], output: Tensor) -> tuple[np.float32, ...]:
    """Return the ratios of the output and of both inputs, in float32."""
    if all(is_plain(t) for t in inputs):
        return (np.float32(1),) * 3
    widths = [signed_width(t) for t in inputs]
    free = min(max(0, WIDEST - b) for b in widths)
    scales = [scale_of(t) for t in inputs]
    smaller = np.float32(min(scales) / np.float32(max(2 * (max(widths) - WIDEST), 1)))
    of_inputs = (np.float32(np.float32(smaller / s) * np.float32(1 << free)) for s in scales)
    of_output = np.float32(np.float32(scale_of(output) / np.float32(smaller * smaller)) / np.float32(1 << 2 * free))
    return (of_output, *of_inputs)
