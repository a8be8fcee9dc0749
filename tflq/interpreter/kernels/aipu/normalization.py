"""Normalization L2: y = x / sqrt(sum of x^2), by a table of reciprocal roots (docs/aipu.md, 5).

Q = sum of (x + zp_x)^2, G = isqrt(Q) in 15 bits, 2^31 / sqrt(Q) but for its shift g;
y = clamp(RNE(clamp32(clamp16((x + zp_x) * M >> p) * G) * 2^-(N + 31 - p - g)) - zp_y), (M, N) of s_y, p the bits of
(x + zp_x) * M beyond 16.

Source: Compass Optimizer, ops/lpnormalization.py; utils/math_utils.py, calculate_inverse_sqrt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.roots import ROOT_TABLE, reciprocal_root
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of, signed_width
from tflq.interpreter.kernels.aipu.stated import multiplier_of, stated_numbers
from tflq.interpreter.kernels.aipu.written import Value, Written
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN, Integers

ROOT_BITS = 15
PRODUCT_BITS = 16


@dataclass(frozen=True, eq=False)
class NormalizationParams:
    """The integers of one normalisation.

    Attributes:
        axes: behind the sample axis.
        input_offset: zp_x.
        rescale: M and N of s_y.
        shift: p.
        codes: of the output.
        written: for the IR.
    """

    axes: tuple[int, ...]
    input_offset: int
    rescale: Multiplier
    shift: int
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> NormalizationParams:
    """Decide M, N and p.

    Raises:
        UnsupportedError: another method than L2.
    """
    x, output = operands.input(0), operands.output()
    method = node.attributes.text("method")
    if method != "L2":
        raise UnsupportedError(f"method={method}; allowed is L2")
    found = multiplier_of(node, scale_of(output), bits_of(output))
    given = stated_numbers(node, "reciprocal_shift_value")
    width = signed_width(x) + int(np.ceil(np.log2(found.first_m)))
    shift = max(0, width - PRODUCT_BITS) if given is None else int(given[0])
    keys: dict[str, Value] = {
        "scale_value": found.first_m,
        "scale_type": type_of_multiplier(bits_of(output)),
        "shift_value": found.first_n,
        "shift_type": "int8",
        "reciprocal_shift_value": shift,
        "reciprocal_shift_type": "int8",
    }
    axes = np.atleast_1d(np.asarray(node.attributes["axis"], np.int64))
    places = tuple(int(a) % len(x.shape) + 1 for a in axes)
    written = Written({"lut": ROOT_TABLE.astype(np.int16)}, keys)
    return NormalizationParams(places, offset_of(x), found, shift, codes_of(output), written)


def run(params: NormalizationParams, x: Array) -> tuple[Array, ...]:
    """Run Normalization: codes [S, ...] -> codes [S, ...]."""
    v = x.astype(np.int64) + params.input_offset
    root, root_shift = _root(np.square(v).sum(axis=params.axes, keepdims=True))
    product = np.clip(v * params.rescale.m, INT32_MIN, INT32_MAX) >> params.shift
    scaled = np.clip(np.clip(product, DType.INT16.minimum, DType.INT16.maximum) * root, INT32_MIN, INT32_MAX)
    shifts = params.rescale.n + 31 - params.shift - root_shift
    return (params.codes.requantise(scaled, Multiplier(np.ones(1, np.int64), shifts)),)


def _root(total: Integers) -> tuple[Integers, Integers]:
    """Return 2^31 / sqrt(total) in 15 bits, and what it is shifted by."""
    beyond = np.maximum(_bit_length(total) - 31, 0)
    beyond += beyond % 2
    root = reciprocal_root(total >> beyond)
    bits = np.ceil(np.log2(root.astype(np.float32))).astype(np.int64)
    shift = np.maximum(bits - ROOT_BITS, 0)
    return np.clip(root >> shift, 0, (1 << ROOT_BITS) - 1), shift - beyond // 2


def _bit_length(values: Integers) -> Integers:
    lengths: Integers = np.frexp(values.astype(np.float64))[1].astype(np.int64)
    return lengths
