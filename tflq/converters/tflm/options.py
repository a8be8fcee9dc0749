"""The keys of the target `tflm`."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.converters.settings import key

KEEP, INT8 = "keep", "int8"


@dataclass(frozen=True)
class TflmOptions:
    """Values of the keys."""

    kind: str = key(
        KEEP,
        "keep: types of the file; int8, int16x8: quantize first, as the target tflite",
        (KEEP, "int8", "int16x8"),
        name="type",
        per_layer=False,
    )
    fully_connected: str = key(
        INT8,
        "int8: the runtime's kernel, which rounds twice; float32: operators on float32 that return TFLite's integers, "
        "with weights of four times the size",
        (INT8, "float32"),
        per_layer=False,
    )
