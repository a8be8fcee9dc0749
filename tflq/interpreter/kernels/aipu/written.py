"""What a kernel decided that stands in the quantised IR, so that the emitter derives nothing again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflq.graph import Array
from tflq.interpreter.kernels.aipu.multiplier import Multiplier

Scalar = bool | int | float | str
Value = Scalar | tuple["Value", ...]


@dataclass(frozen=True, eq=False)
class Written:
    """Keys of one layer of the quantised IR.

    Attributes:
        constants: computed tensors, in order.
        keys: computed keys, in order.
        changed: keys of the float IR with a new value; None for one that goes.
        added: keys that a rewrite of the graph gave the layer.
        real_offsets: outputs whose zero point the tool writes as 0.0.
    """

    constants: Mapping[str, Array] = field(default_factory=dict)
    keys: Mapping[str, Value] = field(default_factory=dict)
    changed: Mapping[str, Value | None] = field(default_factory=dict)
    added: Mapping[str, Value] = field(default_factory=dict)
    real_offsets: tuple[int, ...] = ()


NOTHING = Written()

LINEAR = ("scale_value", "shift_value", "shift_type", "scale_type")
ADDITIVE = ("scale_value", "shift_value", "scale_type", "shift_type")
CURVED = ("shift_value", "shift_type", "scale_value", "scale_type")


def rescale_keys(order: tuple[str, ...], found: Multiplier, scale_type: str) -> dict[str, Value]:
    """Return the four keys of one multiplier in a layer's order."""
    values: dict[str, Value] = {
        "scale_value": found.first_m,
        "shift_value": found.first_n,
        "scale_type": scale_type,
        "shift_type": "int8",
    }
    return {key: values[key] for key in order}
