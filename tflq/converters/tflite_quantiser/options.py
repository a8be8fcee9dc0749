"""The keys of the target `tflite`."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.converters.settings import key

KINDS = ("int8", "int16x8", "weights", "hybrid", "float")
_ENDS = ("integer", "float")
_TYPE = (
    "int8, or 16-bit activations with int8 weights; weights: int8, dequantised at load; hybrid: int8 weights, "
    "activations quantised at run time; float: leave as it is"
)


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer."""

    kind: str = key("int8", _TYPE, choices=KINDS, name="type")
    per_channel: bool = key(True, "a scale for each output channel of the weights; false is one for each tensor")
    symmetric: bool = key(False, "zero points of int8 activations are 0", per_layer=False)
    inputs: str = key("integer", "type of the graph's inputs; float inserts QUANTIZE", _ENDS, per_layer=False)
    outputs: str = key("integer", "type of the graph's outputs; float inserts DEQUANTIZE", _ENDS, per_layer=False)
