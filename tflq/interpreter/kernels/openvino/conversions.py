"""FakeQuantize of real numbers, whole and in halves, in float32 as OpenVINO's CPU plug-in computes them.

index = 0 where x <= min(il, ih), levels - 1 where x > max(il, ih), else round half even(f32(f32(x * a) + b)) with
a = f32(f32(levels - 1) / f32(ih - il)) and b = f32(-il * a); value = index / (levels - 1) * (oh - ol) + ol.
The published formula divides by ih - il for each x instead; indices then differ where x lies within a few units in the
last place of a half (docs/openvino.md, 2).

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
from tflq.interpreter.kernels.openvino.levels import CODES, Levels, input_rule, levels_of, real_values
from tflq.interpreter.layers.reals import RealLine
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.registry import Kernel


def require_sound(rule: FakeQuantize, where: str) -> None:
    """Refuse what the runtime takes and computes nonsense from.

    Raises:
        GraphError: levels below 2; bounds that are not finite; an input range that is empty (the CPU plug-in then
            gives NaN) or inverted (it flips signs); an output range that is empty (a scale of zero).
    """
    if rule.levels < 2:
        raise GraphError(f"{where}: levels is {rule.levels}; at least 2 are needed")
    for side, low, high in (
        ("input", rule.input_low, rule.input_high),
        ("output", rule.output_low, rule.output_high),
    ):
        pair = np.broadcast_arrays(low, high)
        values = np.stack([np.asarray(v, np.float32).reshape(-1) for v in pair])
        if not np.isfinite(values).all():
            raise GraphError(f"{where}: {side} range has {values[~np.isfinite(values)][0]}; bounds are finite")
        equal, inverted = values[0] == values[1], values[0] > values[1]
        if equal.any():
            at = values[0][equal][0]
            raise GraphError(f"{where}: {side}_low and {side}_high are both {at:g}, a scale of zero; they must differ")
        if side == "input" and inverted.any():
            first = int(np.argmax(inverted))
            raise GraphError(
                f"{where}: input_low {values[0][first]:g} is above input_high {values[1][first]:g}; swap them"
            )


def line_of(rule: FakeQuantize) -> tuple[Singles, Singles]:
    """Return a and b of an index, float32 as the bounds are."""
    low, high = rule.input_low.astype(np.float32), rule.input_high.astype(np.float32)
    with np.errstate(all="ignore"):
        scale = np.float32(rule.levels - 1) / (high - low)
        return scale, -low * scale


def level_indices(x: Singles, rule: FakeQuantize) -> Singles:
    """Return indices 0..levels-1 as float32[..., C]; bounds are scalars or [C] along the last axis. NaN gives 0.

    Ranges are taken literally, inverted ones included; `require_sound` refuses them.
    """
    low, high = rule.input_low.astype(np.float32), rule.input_high.astype(np.float32)
    top = np.float32(rule.levels - 1)
    scale, shift = line_of(rule)
    with np.errstate(all="ignore"):
        smallest, largest = np.minimum(low, high), np.maximum(low, high)
        index = np.rint(np.clip(x, smallest, largest) * scale + shift)
        # NaN is not above the lower bound.
        found = np.where(x > largest, top, np.where(x > smallest, np.clip(index, 0, top), np.float32(0)))
    return np.asarray(found, np.float32)


def level_values(index: Singles, rule: FakeQuantize) -> Singles:
    """Return index / (levels - 1) * (oh - ol) + ol, float32[..., C], each operation rounded."""
    low, high = rule.output_low.astype(np.float32), rule.output_high.astype(np.float32)
    return np.asarray(index / np.float32(rule.levels - 1) * (high - low) + low, np.float32)


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
