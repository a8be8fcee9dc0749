"""SOFTMAX over the last axis in GAP9's arithmetic: integer exponentials in Q15; TFLite's beta is ignored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.gap9.rounding import Stored
from tflq.interpreter.numerics.fixed_point import norm
from tflq.interpreter.numerics.q15 import exp_q15
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class SoftmaxParams:
    """The params of one softmax.

    Attributes:
        exponentials: exp_q15 of each distance 0..255 below the largest quantized value, Q15; None for 16-bit input,
            which is computed in float64.
        shift: Right shift: 15 for an output of 16 bits, 23 for 8.
        input_scale: S_i, a power of 2.
        stored: smallest and largest quantized value, type of the output.
    """

    exponentials: Integers | None
    shift: int
    input_scale: float
    stored: Stored


def lower(node: Node, operands: Operands) -> SoftmaxParams:  # noqa: ARG001
    """Decide the params of SOFTMAX.

    Raises:
        UnsupportedError: the input is not symmetric with a power of 2 as its scale, of 2^-15 or more in 8 bits.
    """
    x, output = operands.input(0).affine, operands.output()
    mantissa, exponent = np.frexp(float(x.scale[0]))
    if mantissa != 0.5 or not x.signed or x.zero_point[0] != 0 or (x.bits == 8 and exponent + 14 < 0):
        raise UnsupportedError(
            f"input '{operands.input(0).name}' has scale {float(x.scale[0]):.6g} and zero point {x.zero_point[0]}; "
            "softmax takes a signed symmetric type whose scale is a power of 2, 2^-15 or more"
        )
    table = None
    if x.bits == 8:
        table = exp_q15(-(np.arange(256, dtype=np.int64) << (14 + int(exponent))))
    shift = 15 if output.affine.bits == 16 else 23
    return SoftmaxParams(table, shift, float(x.scale[0]), Stored.of_output(output))


def run(params: SoftmaxParams, x: Array) -> tuple[Array, ...]:
    """Run SOFTMAX: int8[S, ..., C] -> int16[S, ..., C] (or int8).

    y = clip(|norm(e * inv, shift)|), inv = (32767 << 15) // sum(e), e = exp_q15 of (x - max) * S_i.
    """
    codes = x.astype(np.int64)
    below = codes.max(axis=-1, keepdims=True) - codes
    if params.exponentials is None:
        return (_in_float(params, below),)
    e = params.exponentials[below]
    inverse = (32767 << 15) // e.sum(axis=-1, keepdims=True)
    y = np.abs(norm(e * inverse, params.shift))
    return (params.stored.clip(y).astype(params.stored.dtype),)


def _in_float(params: SoftmaxParams, below: Integers) -> Array:
    e = np.exp(-below * params.input_scale)
    share = e / e.sum(axis=-1, keepdims=True)
    steps = 1 << (15 if params.shift == 15 else 7)
    return params.stored.clip(np.floor(share * steps + 0.5)).astype(params.stored.dtype)


KERNELS = {
    "softmax": Kernel(lower, run,
        "SOFTMAX over the last axis in GAP9's arithmetic: integer exponentials in Q15; TFLite's beta is ignored",
        "docs/rules/gap9/operators.md#activations"),
}  # fmt: skip
