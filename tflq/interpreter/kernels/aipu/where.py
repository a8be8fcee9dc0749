"""Where: of two inputs the one that a condition chooses, each on the scale of the output by its own M / 2^N.

y = clamp(RNE((x_i + zp_i) * M_i * 2^-N_i) - zp_y), r_i = s_y / s_i; where exactly one input is plain integers its
ratio is 1, and two plain ones are not rescaled (docs/aipu.md, 5).

Source: Compass Optimizer, ops/select.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, is_plain, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import stated_multiplier
from tflq.interpreter.kernels.aipu.written import Value, Written
from tflq.interpreter.samples import align


@dataclass(frozen=True, eq=False)
class WhereParams:
    """The integers of one choice.

    Attributes:
        offsets: zp of the condition and of both inputs.
        rescales: M and N of both inputs.
        codes: of the output.
        written: for the IR.
    """

    offsets: tuple[int, ...]
    rescales: tuple[Multiplier, ...]
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> WhereParams:
    """Decide M and N of each input."""
    branches, output = (operands.input(1), operands.input(2)), operands.output()
    bits = bits_of(output)
    given = stated_multiplier(node)
    each = given.split() if given else tuple(find_multiplier(_ratio(t, output), bits) for t in branches)
    keys: dict[str, Value] = {
        "shift_value": tuple(m.first_n for m in each),
        "shift_type": ("int8", "int8"),
        "scale_value": tuple(m.first_m for m in each),
        "scale_type": (type_of_multiplier(bits),) * 2,
    }
    offsets = tuple(offset_of(t) for t in (operands.input(0), *branches))
    return WhereParams(offsets, each, codes_of(output), Written(keys=keys))


def run(params: WhereParams, condition: Array, a: Array, b: Array) -> tuple[Array, ...]:
    """Run Where: truth values and codes [S, ...] that broadcast -> codes [S, ...]."""
    chosen, left, right = align(condition, a, b)
    sides = [
        params.codes.requantise(x.astype(np.int64) + zp, m)
        for x, zp, m in zip((left, right), params.offsets[1:], params.rescales, strict=True)
    ]
    return (np.where(chosen.astype(np.int64) + params.offsets[0] != 0, sides[0], sides[1]),)


def _ratio(branch: Tensor, output: Tensor) -> float:
    return 1.0 if is_plain(branch) else float(scale_of(output) / scale_of(branch))
