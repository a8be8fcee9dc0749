"""Several inputs, each on the scale of the output by its own M / 2^N: Concat, Where (docs/rules/aipu/operators.md).

Concat: every branch on the scale of the output by its own M / 2^N, unless the scales are nearly equal.

Where: of two inputs the one that a condition chooses, each on the scale of the output by its own M / 2^N. y =
clamp(RNE((x_i + zp_i) * M_i * 2^-N_i) - zp_y), r_i = s_y / s_i; if exactly one input is plain integers its ratio is 1,
and two plain ones are not rescaled (docs/rules/aipu/operators.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.imported import imported_multiplier, is_imported, multiplier_bits
from tflq.interpreter.kernels.aipu.multiplier import (
    Multiplier,
    OutputCodes,
    codes_of,
    find_multiplier,
)
from tflq.interpreter.kernels.aipu.scales import bits_of, is_plain, offset_of, scale_of
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

NEAR = 1.05
"""Branches whose scales differ by less are joined as they are. Source: unify_scales_for_concat_threshold."""


@dataclass(frozen=True, eq=False)
class ConcatParams:
    """The params of one concatenation.

    Attributes:
        axis: Concatenation axis, after the sample axis.
        input_offsets: zp of each branch.
        rescales: M and N of each branch; empty if their scales are near enough to the output's.
        codes: Quantized values of the output.
    """

    axis: int
    input_offsets: tuple[int, ...]
    rescales: tuple[Multiplier, ...]
    codes: OutputCodes


def lower_concat(node: Node, operands: Operands) -> ConcatParams:
    """Decide M, N of s_y / s_i for each branch."""
    output = operands.output()
    branches = [t for t in operands.inputs if t is not None]
    bits = multiplier_bits(node, output)
    given = imported_multiplier(node, "rescales")
    if is_imported(node):
        rescales = given.split() if given is not None else ()
    elif _are_near((*branches, output)):
        rescales = ()
    else:
        rescales = tuple(find_multiplier(scale_of(output) / scale_of(t), bits) for t in branches)
    axis = node.attributes.integer("axis") % len(output.shape) + 1
    offsets = tuple(offset_of(t) for t in branches)
    return ConcatParams(axis, offsets, rescales, codes_of(output))


def _are_near(tensors: Sequence[Tensor]) -> bool:
    """Whether zero points are equal and the largest scale is at most 1.05 times the smallest."""
    scales, offsets = [float(scale_of(t)) for t in tensors], {offset_of(t) for t in tensors}
    return len(offsets) == 1 and max(scales) / (min(scales) + float(np.finfo(np.float32).eps)) <= NEAR


def run_concat(params: ConcatParams, *branches: Array) -> tuple[Array, ...]:
    """Run Concat: quantized [S, ...] of each branch -> quantized [S, ...]."""
    samples = max(b.shape[0] for b in branches)
    parts = [np.broadcast_to(b, (samples, *b.shape[1:])) for b in branches]
    if params.rescales:
        parts = [
            params.codes.requantize(p.astype(np.int64) + zp, m)
            for p, zp, m in zip(parts, params.input_offsets, params.rescales, strict=True)
        ]
    elif any(p.dtype != params.codes.dtype for p in parts):
        parts = [np.clip(p.astype(np.int64), params.codes.minimum, params.codes.maximum) for p in parts]
    return (np.concatenate(parts, axis=params.axis).astype(params.codes.dtype),)


@dataclass(frozen=True, eq=False)
class WhereParams:
    """The params of one choice.

    Attributes:
        offsets: zp of the condition and of both inputs.
        rescales: M and N of both inputs.
        codes: Quantized values of the output.
    """

    offsets: tuple[int, ...]
    rescales: tuple[Multiplier, ...]
    codes: OutputCodes


def lower_where(node: Node, operands: Operands) -> WhereParams:
    """Decide M and N of each input."""
    branches, output = (operands.input(1), operands.input(2)), operands.output()
    bits = bits_of(output)
    given = imported_multiplier(node, "rescales")
    each = given.split() if given else tuple(find_multiplier(_ratio(t, output), bits) for t in branches)
    offsets = tuple(offset_of(t) for t in (operands.input(0), *branches))
    return WhereParams(offsets, each, codes_of(output))


def run_where(params: WhereParams, condition: Array, a: Array, b: Array) -> tuple[Array, ...]:
    """Run Where: truth values and quantized [S, ...] that broadcast -> quantized [S, ...]."""
    chosen, left, right = align(condition, a, b)
    sides = [
        params.codes.requantize(x.astype(np.int64) + zp, m)
        for x, zp, m in zip((left, right), params.offsets[1:], params.rescales, strict=True)
    ]
    return (np.where(chosen.astype(np.int64) + params.offsets[0] != 0, sides[0], sides[1]),)


def _ratio(branch: Tensor, output: Tensor) -> float:
    return 1.0 if is_plain(branch) else float(scale_of(output) / scale_of(branch))


KERNELS = {
    "concat": Kernel(lower_concat, run_concat,
        "each branch RNE((x + zp_i) * M_i * 2^-N_i) - zp_y", "Compass Optimizer, ops/concat.py; "
            "docs/rules/aipu/operators.md"),
    "where": Kernel(lower_where, run_where,
        "of two inputs the chosen one, RNE((x_i + zp_i) * M_i * 2^-N_i) - zp_y",
        "Compass Optimizer, ops/select.py; docs/rules/aipu/operators.md"),
}  # fmt: skip
