"""NNIE's specification as data: schemes, limits, keys of the mapper's cfg (docs/targets/nnie.md)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import cast

from tflq.schemas import Json, read_json


@dataclass(frozen=True)
class Limits:
    """What the mapper takes.

    Attributes:
        dimension: largest size of an axis.
        smallest_kernel: of a window, each way.
        largest_kernel: of a window, each way.
        largest_pad: rows or columns of padding.
        largest_group: groups of a convolution.
        upsampling: the one factor.
    """

    dimension: int
    smallest_kernel: int
    largest_kernel: int
    largest_pad: int
    largest_group: int
    upsampling: int


def specification() -> dict[str, Json]:
    """Return schemes, granularity, formulas, limits and cfg keys."""
    return read_json(__name__)


@cache
def limits() -> Limits:
    """Return the mapper's limits."""
    return Limits(**cast("dict[str, int]", specification()["limits"]))
