"""What OpenVINO's IR and its CPU plug-in ask for, as data."""

from __future__ import annotations

from functools import cache
from typing import cast

from tflq.schemas import Json, read_json


def specification() -> dict[str, Json]:
    """Return levels, granularity, formats of weights, operators with their opset, and what runs in int8."""
    return read_json(__name__)


@cache
def opset_of(layer_type: str) -> str:
    """Return the opset in which a layer type is written."""
    return cast("dict[str, str]", specification()["layers"]).get(layer_type, "opset1")


@cache
def int8_levels() -> tuple[int, ...]:
    """Return the numbers of activation levels that the CPU plug-in executes in int8."""
    activations = cast("dict[str, Json]", specification()["activations"])
    return tuple(cast("list[int]", activations["levels_in_int8"]))
