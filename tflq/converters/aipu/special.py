"""Outputs whose type neither passes nor comes from a range and a sign: Constant, Negative, Reduce MIN and MAX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.ranges import range_of, type_of_range
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, DType, Node, Tensor
from tflq.interpreter.kernels.aipu.scales import affine_of, bits_of, encode, offset_of, reciprocal

_PLAIN = (DType.UINT8, DType.UINT16, DType.INT8, DType.INT16, DType.INT32)


def passes(node: Node) -> bool:
    """Whether a layer passes the type of its input because of its method."""
    return node.operator == "reduce" and node.attributes.text("method") in ("MIN", "MAX")


def is_truth(node: Node) -> bool:
    """Whether a layer's outputs are truth values because of its method."""
    return node.operator == "reduce" and node.attributes.text("method") in ("ANY", "ALL")


def whole_type(output: Tensor, inputs: Sequence[Tensor], signed: bool) -> Affine:
    """Return the type of whole numbers made of whole numbers: s = 1, as many bits as the range or an input needs.

    Source: Compass Optimizer, ops/eltwise.py, where both inputs are quantisation-invariant.
    """
    low, high = range_of(output)
    needed = next((b for b in (8, 16) if _fits(low, high, b, signed)), 32)
    return affine_of(np.float32(1), 0, max(needed, *(bits_of(t) for t in inputs)), signed)


def _fits(low: float, high: float, bits: int, signed: bool) -> bool:
    lowest, highest = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return lowest <= low and high <= highest


def negative_type(x: Tensor) -> Affine:
    """Return the type of -x: s_y = s_x; zp_y = 1 - zp_x, for unsigned codes -zp_x - (2^(bits - 1) - 1), always signed.

    Source: Compass Optimizer, ops/neg.py.
    """
    highest = (1 << (x.affine.bits - 1)) - 1
    zp = 1 - offset_of(x) if x.affine.signed else -offset_of(x) - highest
    return affine_of(reciprocal(x.affine), zp, x.affine.bits, True)


def constant_type(tensor: Tensor, data: Array, asked: LayerOptions) -> tuple[Affine, DType]:
    """Return the type of a Constant: whole numbers as they are (s = 1), others as an input.

    Source: Compass Optimizer, ops/constant.py; dtype_utils.py, range_to_dtype.
    """
    values = np.asarray(data, np.float64)
    if np.array_equal(values, np.rint(values)):
        low, high = values.min(initial=0), values.max(initial=0)
        kinds = [d for d in _PLAIN if d.minimum <= low and high <= d.maximum]
        if not kinds:
            raise UnsupportedError(f"constant '{tensor.name}' holds {low:g}..{high:g}; allowed is int32")
        return affine_of(np.float32(1), 0, kinds[0].bits, kinds[0].is_signed), kinds[0]
    low, high = (values.min(), values.max()) if tensor.range is None else range_of(tensor)
    affine = type_of_range(low, high, asked.activation_bits, bool(low < 0), asked.is_symmetric, asked.restricted)
    return affine, DType(f"{'int' if affine.signed else 'uint'}{8 if affine.bits <= 8 else 16}")


def quantise_constant(top: Tensor, weights: Tensor, asked: LayerOptions) -> tuple[Tensor, Tensor]:
    """Return the output of a Constant and its weights, both in the same type."""
    assert weights.data is not None
    affine, dtype = constant_type(top, weights.data, asked)
    data = encode(weights.data, affine).astype(dtype.storage)
    data.setflags(write=False)
    return (
        replace(top, dtype=dtype, quantisation=affine),
        replace(weights, dtype=dtype, quantisation=affine, data=data, range=None),
    )
