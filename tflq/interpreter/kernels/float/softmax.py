"""SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION of float32 over the last axis, sums in the order of the elements.

SOFTMAX: exp is computed in float64 and rounded once, TFLite's is the host's expf, off by 1 ULP in about one of 1700
results. Each of the C additions can pass that on and add a unit, so C + 2 units bound the difference; the tests find 4
at most over rows of 10. float16 is widened; e is rounded to float16 before the quotient, not before the sum.

LOG_SOFTMAX: exp and ln are computed in float64 and rounded once; within 2 ULP of TFLite's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.kernels.tflite.l2_normalization import require_normalizable
from tflq.interpreter.numerics import transcendental
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Softmax:
    """What SOFTMAX needs: beta, as float32."""

    beta: np.float32


def _lower_softmax(node: Node, operands: Operands) -> Softmax:
    """Read beta.

    Raises:
        UnsupportedError: another type.
        GraphError: a scalar input.
    """
    require_type(operands.input(0), (DType.FLOAT32, DType.FLOAT16))
    require_same_type(operands.input(0), operands.output())
    if not operands.input(0).shape:
        raise GraphError("the input is a scalar; softmax takes one axis or more")
    return Softmax(np.float32(node.attributes.real("beta", 0.0)))


def _run_softmax(params: Softmax, x: Array) -> tuple[Array, ...]:
    """Run SOFTMAX: T[S, ..., C] -> T[S, ..., C]."""
    wide = x.astype(np.float32, copy=False)
    with np.errstate(all="ignore"):
        below = (wide - wide.max(-1, keepdims=True)) * params.beta
        e = np.exp(below.astype(np.float64)).astype(np.float32)
        total = np.add.accumulate(e, -1)[..., -1:]
        kept = e.astype(x.dtype, copy=False).astype(np.float32, copy=False)
        return (np.asarray((kept / total).astype(x.dtype, copy=False)),)


def _lower_log_softmax(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands.

    Raises:
        UnsupportedError: another type.
        GraphError: a scalar.
    """
    if not operands.input(0).shape:
        raise GraphError("the input is a scalar; log_softmax takes one axis or more")
    return lower_unary(operands, (DType.FLOAT32,))


def _run_log_softmax(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run LOG_SOFTMAX: float32[S, ..., C] -> float32[S, ..., C]."""
    if x.size == 0:
        return (x,)
    with np.errstate(all="ignore"):
        below = np.asarray(np.subtract(x, np.max(x, -1, keepdims=True)), np.float32)
        total = np.add.accumulate(transcendental.exp(below), -1)[..., -1:]
        return (np.asarray(below - transcendental.log(total)),)


EPSILON = np.float32(1e-6)


def _lower_l2_normalization(node: Node, operands: Operands) -> Elementwise:
    """Check the operands.

    Raises:
        UnsupportedError: another type, or a fused activation.
        GraphError: a scalar.
    """
    require_normalizable(node, operands)
    return lower_unary(operands, (DType.FLOAT32,))


def _run_l2_normalization(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run L2_NORMALIZATION: float32[S, ..., C] -> float32[S, ..., C]."""
    with np.errstate(all="ignore"):
        squares = np.multiply(x, x)
        total = np.add.accumulate(squares, -1)[..., -1:] if x.shape[-1] else np.zeros((*x.shape[:-1], 1), np.float32)
        norm = np.sqrt(total)
        return (np.asarray(np.divide(x, np.where(np.less(norm, EPSILON), EPSILON, norm))),)


KERNELS = {
    "softmax": Kernel(_lower_softmax, _run_softmax,
        "SOFTMAX of float32 and float16 over the last axis: e = exp(f32(f32(x - max) * beta)); y = f32(e / sum of e "
        "in order)", "TFLite kernels/internal/reference/softmax.h"),
    "log_softmax": Kernel(_lower_log_softmax, _run_log_softmax,
        "LOG_SOFTMAX of float32 over the last axis: f32(f32(x - max) - ln(sum of exp(x - max) in order))",
        "TFLite kernels/internal/reference/log_softmax.h"),
    "l2_normalization": Kernel(_lower_l2_normalization, _run_l2_normalization,
        "L2_NORMALIZATION of float32 over the last axis: x / max(sqrt(sum of x^2 in order), 1e-6). Equal to TFLite",
        "TFLite kernels/internal/reference/l2normalization.h"),
}  # fmt: skip
