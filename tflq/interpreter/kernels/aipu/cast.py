"""Cast: integers stay; real numbers become y = clamp(RNE((x + zp_x) * M * 2^-N)) at scale 1 (docs/aipu.md, 5).

r = 1 / s_x in 15 bits.

Source: Compass Optimizer, ops/cast.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import WIDEST, Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import is_plain, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of
from tflq.interpreter.kernels.aipu.written import LINEAR, Written, rescale_keys


@dataclass(frozen=True, eq=False)
class CastParams:
    """The integers of one conversion: zp_x, M and N (None where codes are copied), the output's codes."""

    input_offset: int
    rescale: Multiplier | None
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> CastParams:
    """Decide M and N of 1 / s_x; none for an input that holds integers already."""
    x, output = operands.input(0), operands.output()
    name = output.dtype.value
    if is_plain(x):
        return CastParams(0, None, codes_of(output), Written(changed={"to_dtype": name}))
    found = multiplier_of(node, np.float32(1) / scale_of(x), WIDEST + 1)
    written = Written(
        keys=rescale_keys(LINEAR, found, type_of_multiplier(WIDEST + 1)),
        changed={"ignore_scale_zp": abs(float(scale_of(x)) - 1) <= np.finfo(np.float32).eps, "clip_mode": "SATURATION"},
    )
    return CastParams(offset_of(x), found, codes_of(output), written)


def run(params: CastParams, x: Array) -> tuple[Array, ...]:
    """Run Cast: codes [S, ...] -> whole numbers [S, ...]."""
    if params.rescale is None:
        return (x.astype(params.codes.dtype),)
    return (params.codes.requantise(x.astype(np.int64) + params.input_offset, params.rescale),)
