"""The runtimes of a .tflite file as tables: runtime -> operator -> arguments of that operator's `lower`.

Arithmetic `tflite` is TFLite's BUILTIN_REF. A runtime is that table with the rows below replaced; the kernels are the
same and get the rule as arguments. delegation.py states which nodes XNNPACK takes; any other
node runs as `litert-optimized`.

Source: docs/guides/runtimes.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from tflq.interpreter.kernels.tflite.delegation import leave_to_optimized
from tflq.interpreter.kernels.tflite.operators import KERNELS
from tflq.interpreter.kernels.tflite.rescale import Rounding
from tflq.interpreter.registry import Arithmetic

Arguments = Mapping[str, object]


def _set_rounding(rounding: Rounding, *operators: str) -> dict[str, Arguments]:
    return {operator: {"rounding": rounding} for operator in operators}


LITERT_OPTIMIZED: Mapping[str, Arguments] = {
    **_set_rounding(Rounding.UP, "conv_2d", "fully_connected", "add", "mean", "sum", "quantize"),
    **_set_rounding(Rounding.UP_BY_EIGHT, "depthwise_conv_2d", "transpose_conv"),
    "dequantize": {"in_vectors": True},
    "softmax": {"in_float": True},
    "resize_bilinear": {"rounds_weights": True},
}
XNNPACK: Mapping[str, Arguments] = {
    **_set_rounding(Rounding.FLOAT32, "conv_2d", "depthwise_conv_2d", "fully_connected", "transpose_conv"),
    **_set_rounding(Rounding.FLOAT32, "add", "sub", "mul", "mean", "sum", "leaky_relu", "quantize"),
    "resize_bilinear": {"fixed_point": True},
}
_TFLM_AND_TOSA: Mapping[str, Arguments] = {
    **_set_rounding(Rounding.DOUBLE, "fully_connected"),
    **{operator: {"wide_scales": True} for operator in ("leaky_relu", "mul", "prelu", "softmax")},
}
TOSA: Mapping[str, Arguments] = {**_TFLM_AND_TOSA, "quantize": {"by_reciprocal": True}}
TFLM: Mapping[str, Arguments] = {**_TFLM_AND_TOSA, "relu6": {"keeps_values": True}}
CMSIS_NN_SINGLE: Mapping[str, Arguments] = {
    **TFLM,
    **_set_rounding(Rounding.SINGLE, "conv_2d", "depthwise_conv_2d", "fully_connected"),
}
RULES: Mapping[str, Mapping[str, Arguments]] = {
    "litert-optimized": LITERT_OPTIMIZED,
    "xnnpack": XNNPACK,
    "tflm": TFLM,
    "cmsis-nn": TFLM,
    "cmsis-nn-single": CMSIS_NN_SINGLE,
    "tosa": TOSA,
}


def _build_arithmetic(name: str) -> Arithmetic:
    kernels = dict(KERNELS)
    for operator, arguments in RULES[name].items():
        kernels[operator] = replace(KERNELS[operator], lower=partial(KERNELS[operator].lower, **arguments))
    leave = leave_to_optimized if name == "xnnpack" else None
    return Arithmetic(name, kernels, floating="float", leave=leave)


ARITHMETICS = {name: _build_arithmetic(name) for name in RULES}
