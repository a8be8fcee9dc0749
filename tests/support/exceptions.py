"""Where TFLite's reference kernels are no measure: (operator, types, reason, what is checked instead)."""

from __future__ import annotations

EXCEPTIONS = (
    (
        "sum",
        ("int8", "int16"),
        "the reference kernel reads the data as uint8: int8 with the wrong sign, int16 half of the bytes",
        "the reference kernel itself on uint8, where codes and zero points are 128 higher (int8) or fit uint8 (int16)",
    ),
    (
        "not_equal",
        ("int16 without quantisation",),
        "the kernel does not write its output",
        "the definition: x != y",
    ),
    (
        "arg_max, arg_min",
        ("float32 with NaN along a last axis",),
        "the vectorised search leaves the result open",
        "the kernel itself along other axes, which passes NaN over",
    ),
    (
        "cast",
        ("floats to integers that do not hold them",),
        "TensorFlow 2.21 leaves them to the compiler; LiteRT 2.3 clamps",
        "LiteRT",
    ),
    (
        "div",
        ("a divisor of 0",),
        "TensorFlow 2.21 refuses the code 0, LiteRT 2.3 the zero point",
        "LiteRT",
    ),
)
