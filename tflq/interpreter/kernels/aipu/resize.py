"""Resize NEAREST: a gather of codes, passing the input's type (docs/aipu.md, 5).

Source: Compass Optimizer, ops/interp.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.fixed_point import Integers
from tflq.interpreter.kernels.aipu.written import Written

Doubles = NDArray[np.float64]
_KEYS = Written(keys={"interp_shift_value": 0, "interp_shift_type": "int8"})
MODES = (
    "HALF_PIXEL",
    "PYTORCH_HALF_PIXEL",
    "TF_HALF_PIXEL_FOR_NN",
    "ALIGN_CORNERS",
    "ASYMMETRIC",
)
ROUNDINGS = ("FLOOR", "CEIL", "ROUND_PREFER_CEIL", "ROUND_PREFER_FLOOR", "SIMPLE")


@dataclass(frozen=True, eq=False)
class ResizeIntegers:
    """The rows and columns to take."""

    rows: Integers
    columns: Integers
    written: Written = _KEYS


def lower(node: Node, operands: Operands) -> ResizeIntegers:
    """Decide the coordinates, in float64.

    Raises:
        UnsupportedError: another method, mode or rounding.
    """
    method, mode = node.attributes.text("method"), node.attributes.text("mode")
    rounding = node.attributes.text("nearest_mode", "ROUND_PREFER_FLOOR")
    if method != "NEAREST" or mode not in MODES or rounding not in ROUNDINGS:
        raise UnsupportedError(
            f"method={method}, mode={mode}, nearest_mode={rounding}; allowed are NEAREST, {', '.join(MODES)}, "
            f"{', '.join(ROUNDINGS)}"
        )
    sizes = zip(operands.input(0).shape[1:3], operands.output().shape[1:3], strict=True)
    rows, columns = (_places(old, new, mode, rounding) for old, new in sizes)
    return ResizeIntegers(rows, columns)


def run(integers: ResizeIntegers, x: Array) -> tuple[Array, ...]:
    """Run Resize: codes [S, N, H, W, C] -> codes [S, N, OH, OW, C]."""
    return (x[:, :, integers.rows][:, :, :, integers.columns],)


def _places(old: int, new: int, mode: str, rounding: str) -> Integers:
    i = np.arange(new, dtype=np.float64)
    v = i * old / new
    if mode in ("HALF_PIXEL", "PYTORCH_HALF_PIXEL"):
        v = (i + 0.5) * old / new - 0.5
    if mode == "TF_HALF_PIXEL_FOR_NN":
        v = (i + 0.5) * old / new
    if mode == "ALIGN_CORNERS":
        v = i * (old - 1) / max(new - 1, 1)
    if new == 1 and mode in ("ALIGN_CORNERS", "PYTORCH_HALF_PIXEL"):
        v = np.zeros(1)
    places: Integers = np.clip(_rounded(v, rounding, new < old), 0, old - 1).astype(np.int64)
    return places


def _rounded(v: Doubles, rounding: str, shrinks: bool) -> Doubles:
    found: Doubles = np.where(v == np.trunc(v) + 0.5, np.floor(v), np.rint(v))
    if rounding == "FLOOR":
        found = np.floor(v)
    elif rounding == "CEIL":
        found = np.ceil(v)
    elif rounding == "ROUND_PREFER_CEIL":
        found = np.floor(v + 0.5)
    elif rounding == "SIMPLE":
        found = np.ceil(v) if shrinks else np.trunc(v)
    return found
