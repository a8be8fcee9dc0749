"""The first half of FakeQuantize: reals to codes; or codes to the codes of another range (Requantize alone).

Reals take the runtime's float32 formula (fake_quantise.py). Codes: S * (q - Z) in float64, then the output's levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Affine, Array, DType, FakeQuantize, Node, Operands
from tflq.interpreter.kernels.openvino.fake_quantise import level_indices, require_sound
from tflq.interpreter.kernels.openvino.levels import CODES, Levels, input_rule, levels_of, real_values
from tflq.interpreter.operands.checks import require_type


@dataclass(frozen=True, eq=False)
class QuantizeParams:
    """The numbers of one quantisation.

    Attributes:
        rule: levels and bounds.
        levels: how exact reals become codes.
        source: of codes that come in; None for reals.
    """

    rule: FakeQuantize
    levels: Levels
    source: Affine | None


def lower(node: Node, operands: Operands) -> QuantizeParams:
    """Decide the numbers.

    Raises:
        UnsupportedError: other types than float32 or codes.
        GraphError: as `require_sound`.
    """
    source, output = operands.input(0), operands.output()
    require_type(source, (DType.FLOAT32, *CODES))
    require_type(output, CODES)
    rule = input_rule(node, output)
    require_sound(rule, f"'{output.name}'")
    levels = levels_of(node, output)
    assert levels is not None  # the output has codes
    return QuantizeParams(rule, levels, source.affine if source.dtype.is_integer else None)


def run(params: QuantizeParams, x: Array) -> tuple[Array, ...]:
    """Run it: float32 or codes [S, ..., C] -> codes [S, ..., C]."""
    if params.source is not None:
        return (params.levels.codes(real_values(x, params.source)),)
    index = level_indices(np.asarray(x, np.float32), params.rule)
    return ((index + np.float32(params.levels.first)).astype(params.levels.dtype),)
