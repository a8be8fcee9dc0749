"""BM1684X's specification as TPU-MLIR applies it, as data."""

from __future__ import annotations

from typing import cast

from tflq.schemas import Json, read_json


def specification() -> dict[str, Json]:
    """Return types, granularity, multiplier format, rounding, how ranges are unified, and limits."""
    return read_json(__name__)


def operators_of(*keys: str) -> tuple[str, ...]:
    """Return a list of names in the specification, by the keys that lead to it."""
    found: Json = specification()
    for key in keys:
        found = cast("dict[str, Json]", found)[key]
    return tuple(str(name) for name in cast("list[Json]", found))
