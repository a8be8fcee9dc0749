"""Concat: every branch on the scale of the output by its own M / 2^N, where they are not near (docs/aipu.md, 5).

Source: Compass Optimizer, ops/concat.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import is_stated, multiplier_bits, stated_multiplier
from tflq.interpreter.kernels.aipu.written import NOTHING, Written

NEAR = 1.05
"""Branches whose scales differ by less are joined as they are. Source: unify_scales_for_concat_threshold."""


@dataclass(frozen=True, eq=False)
class ConcatParams:
    """The integers of one concatenation.

    Attributes:
        axis: behind the sample axis.
        input_offsets: zp of each branch.
        rescales: M and N of each branch; empty where their scales are near enough to the output's.
        offset: zp_y.
        minimum: smallest code.
        maximum: largest code.
        dtype: of the output.
        written: for the IR.
    """

    axis: int
    input_offsets: tuple[int, ...]
    rescales: tuple[Multiplier, ...]
    offset: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    written: Written


def lower(node: Node, operands: Operands) -> ConcatParams:
    """Decide M, N of s_y / s_i for each branch."""
    output = operands.output()
    branches = [t for t in operands.inputs if t is not None]
    bits = multiplier_bits(node, output)
    given = stated_multiplier(node)
    if is_stated(node):
        found = given.split() if given is not None else ()
    elif _are_near((*branches, output)):
        found = ()
    else:
        found = tuple(find_multiplier(scale_of(output) / scale_of(t), bits) for t in branches)
    written = NOTHING
    if found:
        written = Written(
            keys={
                "scale_value": tuple(f.first_m for f in found),
                "shift_value": tuple(f.first_n for f in found),
                "scale_type": (type_of_multiplier(bits),) * len(found),
                "shift_type": ("int8",) * len(found),
            }
        )
    axis = node.attributes.integer("axis") % len(output.shape) + 1
    low, high = code_limits(output)
    offsets = tuple(offset_of(t) for t in branches)
    return ConcatParams(axis, offsets, found, offset_of(output), low, high, output.dtype.storage, written)


def _are_near(tensors: Sequence[Tensor]) -> bool:
    """Whether zero points are equal and the largest scale is at most 1.05 times the smallest."""
    scales, offsets = [float(scale_of(t)) for t in tensors], {offset_of(t) for t in tensors}
    return len(offsets) == 1 and max(scales) / (min(scales) + float(np.finfo(np.float32).eps)) <= NEAR


def run(params: ConcatParams, *branches: Array) -> tuple[Array, ...]:
    """Run Concat: codes [S, ...] of each branch -> codes [S, ...]."""
    samples = max(b.shape[0] for b in branches)
    parts = [np.broadcast_to(b, (samples, *b.shape[1:])) for b in branches]
    if params.rescales:
        parts = [
            np.clip(m.apply(p.astype(np.int64) + zp) - params.offset, params.minimum, params.maximum)
            for p, zp, m in zip(parts, params.input_offsets, params.rescales, strict=True)
        ]
    elif any(p.dtype != params.dtype for p in parts):
        parts = [np.clip(p.astype(np.int64), params.minimum, params.maximum) for p in parts]
    return (np.concatenate(parts, axis=params.axis).astype(params.dtype),)
