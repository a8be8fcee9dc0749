"""The formats as data: the TFLite schema as typed tables, and the targets' specifications."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import cast

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


def read_json(package: str, name: str = "specification.json") -> dict[str, Json]:
    """Return an object that lies as a file of JSON in a package; the caller may change it."""
    return cast("dict[str, Json]", json.loads(_text(package, name)))


@cache
def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")
