"""BM1684X's specification as TPU-MLIR applies it, as data."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import cast

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


def specification() -> dict[str, Json]:
    """Return types, granularity, multiplier format, rounding, how ranges are unified, and limits."""
    return cast("dict[str, Json]", json.loads(_text()))


def operators_of(*keys: str) -> tuple[str, ...]:
    """Return a list of names in the specification, by the keys that lead to it."""
    found: Json = specification()
    for key in keys:
        found = cast("dict[str, Json]", found)[key]
    return tuple(str(name) for name in cast("list[Json]", found))


@cache
def _text() -> str:
    return files(__package__).joinpath("specification.json").read_text(encoding="utf-8")
