"""Compass IR of the Zhouyi AIPU (text and binary file), and the target's specification, as data."""

from __future__ import annotations

from tflq.schemas import Json, read_json
from tflq.schemas.aipu.model import STORAGE, Constant, Edge, Entry, Layer, Network, Value
from tflq.schemas.aipu.text import read_network, write_network


def specification() -> dict[str, Json]:
    """Return types, granularity, multiplier format, tables, rounding and limits."""
    return read_json(__name__)


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
