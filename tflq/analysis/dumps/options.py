"""What a caller may say of a dump; plain data, so that a command line fills it quickly."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import OptionError

LAYOUTS = ("nhwc", "nchw")
OPERATORS, FROM_ONE, TENSORS = "operators", "operators-from-1", "tensors"
NUMBERINGS = (OPERATORS, FROM_ONE, TENSORS)
QUANTIZED, REAL = "quantized", "real"
VALUES = (QUANTIZED, REAL)
TYPES = ("int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float32", "float64")


@dataclass(frozen=True)
class DumpOptions:
    """What the caller knows of a dump; nothing of it is needed where the dump tells.

    Attributes:
        map_path: JSON that says where the tensors lie in raw bytes (docs/dumps.md).
        layout: "nhwc" or "nchw": order of the axes where shapes do not tell.
        numbers: what numbers in names count: "operators", "operators-from-1" or "tensors".
        values: "quantized" or "real": what whole numbers in floating point are.
        dtype: of raw bytes: "int8", "float32" and others.
    """

    map_path: str | None = None
    layout: str | None = None
    numbers: str | None = None
    values: str | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        allowed = {"layout": LAYOUTS, "numbers": NUMBERINGS, "values": VALUES, "dtype": TYPES}
        for name, choices in allowed.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise OptionError(f"{name} '{value}' of a dump; allowed are {', '.join(choices)}")
