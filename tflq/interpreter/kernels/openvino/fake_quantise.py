"""FakeQuantize of real numbers: level index and value, in float32 as OpenVINO's CPU plug-in computes them.

index = 0 where x <= min(il, ih), levels - 1 where x > max(il, ih), else round half even(f32(f32(x * a) + b)) with
a = f32(f32(levels - 1) / f32(ih - il)) and b = f32(-il * a); value = index / (levels - 1) * (oh - ol) + ol.
The published formula divides by ih - il for each x instead; indices then differ where x lies within a few units in the
last place of a half (docs/openvino.md, 2).
"""

from __future__ import annotations

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError
from tflq.graph import FakeQuantize


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
