"""FakeQuantize, whole and in halves (fake_quantise.py).

QUANTIZE is the first half, reals to quantized values by the runtime's float32 formula; or Requantize alone, quantized
values to the quantized values of another range: S * (q - Z) in float64, then the output's levels. DEQUANTIZE is the
second half, quantized values to reals: f32((q - Z) * S), the product in float64. FAKE_QUANTIZE takes reals to the
values of their levels in one piece.

QUANTIZE: the level of a real, in float32. Source: docs/openvino.md, 1 to 3.
DEQUANTIZE: f32((q - Z) * S). Source: docs/openvino.md, 3.
FAKE_QUANTIZE: value of a real's level. Source: docs/openvino.md, 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError
from tflq.graph import Affine, Array, DType, FakeQuantize, Node, Operands
from tflq.interpreter.kernels.openvino.fake_quantise import level_indices, level_values, line_of, require_sound
from tflq.interpreter.kernels.openvino.levels import CODES, Levels, input_rule, levels_of, real_values
from tflq.interpreter.layers.reals import RealLine
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.registry import Kernel

_LEAST_RANGE = 1e-30
"""Of real numbers, above which levels - 1 over it is a finite float32."""


@dataclass(frozen=True, eq=False)
class QuantizeParams:
    """The params of one quantisation.

    Attributes:
        rule: levels and bounds.
        levels: how exact reals become quantized values.
        source: of quantized values that come in; None for reals.
    """

    rule: FakeQuantize
    levels: Levels
    source: Affine | None

    @property
    def never_falls(self) -> bool:
        """Whether results never fall while reals rise: products, roundings, sums and clips of one range do not."""
        low, high = self.rule.input_low, self.rule.input_high
        return self.source is None and low.size == high.size == 1 and high.item() - low.item() > _LEAST_RANGE

    @property
    def line(self) -> RealLine:
        """The rule but for its bounds, where it `never_falls`."""
        scale, shift = line_of(self.rule)
        return RealLine(scale.item(), shift.item(), self.levels.first, is_away=False)


def lower_quantize(node: Node, operands: Operands) -> QuantizeParams:
    """Decide the params of QUANTIZE.

    Raises:
        UnsupportedError: other types than float32 or quantized values.
        GraphError: as `require_sound`.
    """
    source, output = operands.input(0), operands.output()
    require_type(source, (DType.FLOAT32, *CODES))
    require_type(output, CODES)
    rule = input_rule(node, output)
    require_sound(rule, f"'{output.name}'")
    levels = levels_of(node, output)
    assert levels is not None  # the output has quantized values
    return QuantizeParams(rule, levels, source.affine if source.dtype.is_integer else None)


def run_quantize(params: QuantizeParams, x: Array) -> tuple[Array, ...]:
    """Run QUANTIZE: float32 or quantized [S, ..., C] -> quantized [S, ..., C]."""
    if params.source is not None:
        return (params.levels.codes(real_values(x, params.source)),)
    index = level_indices(np.asarray(x, np.float32), params.rule)
    return ((index + np.float32(params.levels.first)).astype(params.levels.dtype),)


def lower_dequantize(node: Node, operands: Operands) -> Affine:  # noqa: ARG001
    """Return the scale and zero point.

    Raises:
        UnsupportedError: other types.
        GraphError: quantized values without a scale.
    """
    require_type(operands.input(0), CODES)
    require_type(operands.output(), (DType.FLOAT32,))
    return operands.input(0).affine


def run_dequantize(params: Affine, x: Array) -> tuple[Array, ...]:
    """Run DEQUANTIZE: quantized [S, ..., C] -> float32[S, ..., C]."""
    return (real_values(x, params).astype("float32"),)


def lower_fake_quantize(node: Node, operands: Operands) -> FakeQuantize:  # noqa: ARG001
    """Return the rule that the output carries.

    Raises:
        UnsupportedError: another type than float32.
        GraphError: an output without a rule, or one that `require_sound` refuses.
    """
    output = operands.output()
    for tensor in (operands.input(0), output):
        require_type(tensor, (DType.FLOAT32,))
    rule = output.quantisation
    if not isinstance(rule, FakeQuantize):
        raise GraphError(f"'{output.name}' states no levels and ranges")
    require_sound(rule, f"'{output.name}'")
    return rule


def run_fake_quantize(params: FakeQuantize, x: Singles) -> tuple[Array, ...]:
    """Run FAKE_QUANTIZE: float32[S, ..., C] -> float32[S, ..., C]."""
    return (level_values(level_indices(x, params), params),)


KERNELS = {
    "quantize": Kernel(lower_quantize, run_quantize),
    "dequantize": Kernel(lower_dequantize, run_dequantize),
    "fake_quantize": Kernel(lower_fake_quantize, run_fake_quantize),
}
