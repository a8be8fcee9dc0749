"""CRELU: the rectified input beside the rectified negative: y = clamp(RNE(max(+-(x + zp_x), 0) * M * 2^-N) - zp_y).

Source: Compass Optimizer, ops/crelu.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of
from tflq.interpreter.kernels.aipu.written import CURVED, Written, rescale_keys


@dataclass(frozen=True, eq=False)
class CreluParams:
    """The integers of one CRELU: the axis behind the sample axis, zp_x, M and N, how codes are stored."""

    axis: int
    input_offset: int
    rescale: Multiplier
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> CreluParams:
    """Decide M and N of s_y / s_x. Input [..., C]; output [..., 2C] on the axis, 0 unless the node names one."""
    x, output = operands.input(0), operands.output()
    found = multiplier_of(node, scale_of(output) / scale_of(x), bits_of(output))
    axis = node.attributes.integer("axis", 0) % len(x.shape) + 1
    written = Written(keys=rescale_keys(CURVED, found, type_of_multiplier(bits_of(output))))
    return CreluParams(axis, offset_of(x), found, codes_of(output), written)


def run(params: CreluParams, x: Array) -> tuple[Array, ...]:
    """Run CRELU: codes [S, ...] -> codes [S, ...]."""
    v = x.astype(np.int64) + params.input_offset
    total = np.concatenate([np.maximum(v, 0), np.maximum(-v, 0)], axis=params.axis)
    return (params.codes.requantise(total, params.rescale),)
