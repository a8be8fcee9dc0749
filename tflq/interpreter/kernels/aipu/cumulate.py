"""Cumulate: running sums or products along an axis, each with its own requantisation (docs/aipu.md, 5).

SUM: y_k = clamp(RNE(sum_{j<=k} (x_j + zp_x) * M * 2^-N) - zp_y), r = s_y / s_x in 15 bits. PROD: the running product is
halved, rounding down, until it fits 16 bits; step k has its own M and N, the k-th power of 1 / s_x times s_y.

Source: Compass Optimizer, ops/cumulate.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import WIDEST, Multiplier
from tflq.interpreter.kernels.aipu.products import product_limits, product_multipliers, running_products
from tflq.interpreter.kernels.aipu.scales import is_signed, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of, stated_multiplier
from tflq.interpreter.kernels.aipu.written import CURVED, Written, rescale_keys

METHODS = ("SUM", "PROD")


@dataclass(frozen=True, eq=False)
class CumulateParams:
    """The integers of one running sum or product.

    Attributes:
        method: SUM or PROD.
        axis: behind the sample axis.
        is_exclusive: whether step k leaves out element k.
        is_reversed: whether it runs from the end.
        input_offset: zp_x.
        limits: smallest and largest running product of 16 bits.
        rescale: M and N, of PROD one for each step.
        codes: of the output.
        written: for the IR.
    """

    method: str
    axis: int
    is_exclusive: bool
    is_reversed: bool
    input_offset: int
    limits: tuple[int, int]
    rescale: Multiplier
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> CumulateParams:
    """Decide M and N.

    Raises:
        UnsupportedError: another method.
    """
    x, output = operands.input(0), operands.output()
    method = node.attributes.text("method")
    if method not in METHODS:
        raise UnsupportedError(f"method={method}; allowed is {', '.join(METHODS)}")
    axis = node.attributes.integer("axis") % len(x.shape)
    is_exclusive = node.attributes.boolean("exclusive", False)
    if method == "SUM":
        found = multiplier_of(node, scale_of(output) / scale_of(x), WIDEST)
        written = Written(keys=rescale_keys(CURVED, found, "uint16"))
    else:
        found = stated_multiplier(node) or product_multipliers(operands, x.shape[axis], 0 if is_exclusive else 1)
        written = Written({"scale": found.m.astype(np.uint16), "shift": found.n.astype(np.int32)})
    limits = product_limits(is_signed(x))
    is_reversed = node.attributes.boolean("reverse", False)
    return CumulateParams(
        method, axis + 1, is_exclusive, is_reversed, offset_of(x), limits, found, codes_of(output), written
    )


def run(params: CumulateParams, x: Array) -> tuple[Array, ...]:
    """Run Cumulate: codes [S, ...] -> codes [S, ...]."""
    v = np.moveaxis(x.astype(np.int64) + params.input_offset, params.axis, -1)
    v = v[..., ::-1] if params.is_reversed else v
    if params.is_exclusive:
        neutral = 0 if params.method == "SUM" else 1
        v = np.concatenate([np.full_like(v[..., :1], neutral), v[..., :-1]], axis=-1)
    if params.method == "SUM":
        # The tool adds in float32: sums beyond 2^24 lose bits.
        codes = params.codes.requantise(np.cumsum(v, axis=-1, dtype=np.float32).astype(np.int64), params.rescale)
    else:
        products, halvings = running_products(v, params.limits)
        codes = params.codes.requantise(products, Multiplier(params.rescale.m, params.rescale.n - halvings))
    return (np.moveaxis(codes[..., ::-1] if params.is_reversed else codes, -1, params.axis),)
