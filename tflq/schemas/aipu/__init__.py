"""Compass IR of the Zhouyi AIPU (text and binary file), and the target's specification, as data."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import cast

from tflq.schemas.aipu.model import STORAGE, Constant, Edge, Entry, Layer, Network, Value
from tflq.schemas.aipu.reader import read_network
from tflq.schemas.aipu.writer import write_network

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


def specification() -> dict[str, Json]:
    """Return types, granularity, multiplier format, tables, rounding and limits."""
    return cast("dict[str, Json]", json.loads(_text()))


@cache
def _text() -> str:
    return files(__package__).joinpath("specification.json").read_text(encoding="utf-8")


__all__ = [
    "STORAGE",
    "Constant",
    "Edge",
    "Entry",
    "Layer",
    "Network",
    "Value",
    "read_network",
    "specification",
    "write_network",
]
