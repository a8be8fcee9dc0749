"""The runtimes of a .tflite file by name: arithmetic, and the rows in which it differs (docs/guides/runtimes.md).

`ref` is TFLite's BUILTIN_REF, arithmetic `tflite`. kernels/tflite/runtimes.py has the rules, this table their
descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from tflq.errors import OptionError

RuntimeName = Literal["ref", "xnnpack", "litert-optimized", "tflm", "cmsis-nn", "cmsis-nn-single", "tosa"]
RUNTIME_NAMES: tuple[RuntimeName, ...] = get_args(RuntimeName)
REFERENCE: RuntimeName = "ref"


@dataclass(frozen=True)
class Runtime:
    """One runtime.

    Attributes:
        name: Name in options.
        runs_in: Programs that use it.
        rules: Descriptions by operator, for operators that differ from `ref`.
        not_modelled: Parts without a known rule.
        oracle: Package or program that tests compare with.
        to_get_reference: Setting of the program that selects the integers of `ref`, or the reason why none does.
    """

    name: RuntimeName
    runs_in: str
    rules: Mapping[str, str]
    not_modelled: tuple[str, ...]
    oracle: str
    to_get_reference: str = "no setting of TensorFlow Lite Micro does"

    @property
    def arithmetic(self) -> str:
        """Name of the arithmetic that runs its nodes."""
        return "tflite" if self.name == REFERENCE else self.name


DOUBLE = "31-bit multiplier, rounded twice: high product, then half away from zero"
UP = "as ref, ties of the second rounding up"
SINGLE = "31-bit multiplier, rounded once, half up"
FLOAT32 = "half_to_even(float32(total) * float32(si * sw / so))"
WIDE = "multiplier of scales in float64"
_FLOATS = "floating-point layers: sums in another order, other functions"
_TOSA = {
    "fully_connected": f"{DOUBLE}; int16: 15-bit multiplier, rounded once",
    "leaky_relu": WIDE,
    "mul": WIDE,
    "prelu": WIDE,
    "softmax": f"int16: {WIDE}, tables in float32",
}
_TFLM = {**_TOSA, "relu6": "clamped without rescaling, by the input's scale"}
_TFLM_OPEN = (_FLOATS, "UNIDIRECTIONAL_SEQUENCE_LSTM of int8", "false stored shapes: the runtime trusts them")
_OPTIMIZED = {
    "conv_2d": f"{UP}; grouped: as ref",
    "depthwise_conv_2d": f"int8: {UP} in the first 8 * floor(C / 8) channels",
    "transpose_conv": f"int8: {UP} in the first 8 * floor(C / 8) channels",
    "fully_connected": UP,
    "add": "equal shapes: whole vectors (16 elements, uint8 8) scale inputs with one rounding",
    "mean": "height and width kept: zero points added at the end, ties of whole vectors of 16 channels up",
    "sum": "float32: half_away(sum * r - z_i r n) + z_o",
    "quantize": "whole vectors of 8 elements: half_to_even(x * float32(1 / s)); the rest in float64",
    "dequantize": "whole vectors of 8 elements: float32(s x) + float32(-z s)",
    "softmax": "8 bits: exponentials and sum in float32",
    "resize_bilinear": "uint8: weights of corners rounded to float32",
}
RUNTIMES: Mapping[str, Runtime] = {
    runtime.name: runtime
    for runtime in (
        Runtime("ref", "LiteRT and TFLite with BUILTIN_REF", {}, (), "ai-edge-litert BUILTIN_REF"),
        Runtime(
            "xnnpack",
            "LiteRT and TFLite by default (Python, Android, iOS) on x86-64",
            {
                **dict.fromkeys(("conv_2d", "depthwise_conv_2d", "fully_connected", "transpose_conv"), FLOAT32),
                "add": "((x - z1) M1 + (y - z2) M2 + 2^(k-1)) >> k, weights of 21 bits",
                "sub": "as add, second weight negative",
                "mul": "half_to_even(float32(product) * float32(s1 * s2 / so))",
                "mean": "half_to_even(float32(sum) * r + o) in float32",
                "sum": "half_to_even(float32(sum) * r + o) in float32",
                "leaky_relu": "multipliers of 8 fraction bits, half up",
                "quantize": "half_to_even(x * float32(1 / s)); between 8 bits a multiplier of 8 fraction bits",
                "resize_bilinear": "weights of 11 bits",
            },
            (_FLOATS, "float inputs with integer weights", "kernels of Arm processors"),
            "ai-edge-litert with its delegate",
            "Interpreter(experimental_op_resolver_type=OpResolverType.BUILTIN_REF)",
        ),
        Runtime(
            "litert-optimized",
            "LiteRT and TFLite without a delegate on x86-64",
            _OPTIMIZED,
            (_FLOATS, "eightfold RESIZE_BILINEAR and some DEPTHWISE_CONV_2D of uint8", "kernels of Arm processors"),
            "ai-edge-litert without delegate",
            "Interpreter(experimental_op_resolver_type=OpResolverType.BUILTIN_REF)",
        ),
        Runtime(
            "tflm",
            "TensorFlow Lite Micro with reference kernels",
            _TFLM,
            _TFLM_OPEN,
            "tflite-micro",
        ),
        Runtime(
            "cmsis-nn",
            "TensorFlow Lite Micro with CMSIS-NN, default flags",
            _TFLM,
            (*_TFLM_OPEN, "int4; the DSP and Helium paths are not run"),
            "CMSIS-NN compiled from source",
        ),
        Runtime(
            "cmsis-nn-single",
            "CMSIS-NN with CMSIS_NN_USE_SINGLE_ROUNDING",
            {**_TFLM, **dict.fromkeys(("conv_2d", "depthwise_conv_2d", "fully_connected"), SINGLE)},
            (*_TFLM_OPEN, "other operators than the three, which follow cmsis-nn"),
            "CMSIS-NN compiled from source",
        ),
        Runtime(
            "tosa",
            "Arm's TOSA reference model; Ethos-U compiles from it",
            {**_TOSA, "quantize": "from float32: half_to_even(x * float32(1 / s))"},
            (_FLOATS, "RESIZE_BILINEAR", "SOFTMAX of int16", "CONV_3D", "inner tensors: only outputs were compared"),
            "tosa-converter-for-tflite and tosa_reference_model",
        ),
    )
}


def find_runtime(name: str) -> Runtime:
    """Return a runtime by name.

    Raises:
        OptionError: there is none of that name.
    """
    if name not in RUNTIMES:
        raise OptionError(f"no runtime is called '{name}'; there are {', '.join(RUNTIME_NAMES)}")
    return RUNTIMES[name]


_REFERENCE_RULES = {
    **dict.fromkeys(("conv_2d", "depthwise_conv_2d", "transpose_conv", "mean"), DOUBLE),
    "fully_connected": "half_away(float64(total) * (si * sw / so))",
    "mul": f"{DOUBLE}; multiplier of scales in float32",
    "leaky_relu": f"{DOUBLE}; multiplier of scales in float32",
    "prelu": f"{DOUBLE}; multiplier of scales in float32",
    "add": f"both operands: {DOUBLE}",
    "sub": f"both operands: {DOUBLE}",
}
"""Rules of the reference kernels, for the operators that differ in most runtimes."""


def rule_of(runtime: str, operator: str) -> str:
    """Return the rule of an operator in words, TFLite's reference kernel if it does not differ."""
    reference = _REFERENCE_RULES.get(operator, "TFLite's reference kernel")
    return RUNTIMES[runtime].rules.get(operator, reference)
