"""GAP9's specification and the schema of the file that its targets write, as data."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import cast

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


def specification() -> dict[str, Json]:
    """Return bits, symmetry, granularity, multiplier format, rounding and limits."""
    return _read("specification.json")


def quantization_schema() -> dict[str, Json]:
    """Return the JSON schema (draft 2020-12) of quantization.json."""
    return _read("quantization.schema.json")


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _read(name: str) -> dict[str, Json]:
    return cast("dict[str, Json]", json.loads(_text(name)))
