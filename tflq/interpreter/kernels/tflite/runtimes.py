"""The runtimes of a .tflite file as tables: runtime -> operator -> arguments of that operator's `lower`.

Arithmetic `tflite` is TFLite's BUILTIN_REF. A runtime is that table with the rows below replaced; the kernels are the
same and get the rule as arguments.

Source: docs/runtimes.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from tflq.interpreter.kernels.tflite.operators import KERNELS
from tflq.interpreter.kernels.tflite.rescale import Rounding
from tflq.interpreter.registry import Arithmetic

Arguments = Mapping[str, object]

LITERT_OPTIMIZED: Mapping[str, Arguments] = {
    "conv_2d": {"rounding": Rounding.UP},
    "depthwise_conv_2d": {"rounding": Rounding.UP_BY_EIGHT},
    "fully_connected": {"rounding": Rounding.UP},
}
XNNPACK: Mapping[str, Arguments] = {
    **{
        operator: {"rounding": Rounding.FLOAT32}
        for operator in ("conv_2d", "depthwise_conv_2d", "fully_connected", "transpose_conv", "add", "sub", "mul", "mean")
    },
    "resize_bilinear": {"fixed_point": True},
}
TFLM: Mapping[str, Arguments] = {
    "fully_connected": {"rounding": Rounding.DOUBLE},
    "leaky_relu": {"wide_scales": True},
}
CMSIS_NN_SINGLE: Mapping[str, Arguments] = {
    **TFLM,
    **{operator: {"rounding": Rounding.SINGLE} for operator in ("conv_2d", "depthwise_conv_2d", "fully_connected")},
}
RULES: Mapping[str, Mapping[str, Arguments]] = {
    "litert-optimized": LITERT_OPTIMIZED,
    "xnnpack": XNNPACK,
    "tflm": TFLM,
    "cmsis-nn": TFLM,
    "cmsis-nn-single": CMSIS_NN_SINGLE,
    "tosa": TFLM,
}


def _arithmetic(name: str) -> Arithmetic:
    kernels = dict(KERNELS)
    for operator, arguments in RULES[name].items():
        kernels[operator] = replace(KERNELS[operator], lower=partial(KERNELS[operator].lower, **arguments))
    return Arithmetic(name, kernels, floating="float")


ARITHMETICS = {name: _arithmetic(name) for name in RULES}
