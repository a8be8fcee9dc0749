"""The keys of the target `tflite`."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.converters.settings import key

KINDS = ("int8", "int16x8", "weights", "hybrid", "float16", "float")
_ENDS = ("integer", "uint8", "float")
_TYPE = (
    "int8, or 16-bit activations with int8 weights; weights: int8, dequantized at load; hybrid: int8 weights, "
    "activations quantized at run time; float16: constants as float16, widened at load; float: leave as it is"
)

_RECIPE = (
    "name of a recipe of ai-edge-quantizer, such as dynamic_wi8_afp32, or its file (.json); `type` and "
    "`weight_bits` of a layer override it; needs tflq[recipes]"
)


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer."""

    kind: str = key("int8", _TYPE, choices=KINDS, name="type")
    weight_bits: int = key(8, "of weights; 4 where TFLite has a kernel", choices=(8, 4))
    recipe: str = key("", _RECIPE, per_layer=False)
    least_weights: int = key(
        0, "weights of fewer elements stay float32 (hybrid, weights); TFLiteConverter: 1024", minimum=0
    )
    asymmetric_inputs: bool = key(
        False, "hybrid products quantize their rows with a zero point, as TFLiteConverter states it"
    )
    per_channel: bool = key(True, "a scale for each output channel of the weights; false is one for each tensor")
    symmetric: bool = key(False, "zero points of int8 activations are 0", per_layer=False)
    inputs: str = key(
        "integer", "type of the graph's inputs; uint8 (of int8) and float insert QUANTIZE", _ENDS, per_layer=False
    )
    outputs: str = key(
        "integer",
        "type of the graph's outputs; uint8 (of int8) inserts QUANTIZE, float DEQUANTIZE",
        _ENDS,
        per_layer=False,
    )
