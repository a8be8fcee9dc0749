"""Which kernels one function explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tflq.analysis.explain.steps import Explain


@dataclass(frozen=True)
class Family:
    """Kernels that one function explains.

    Attributes:
        operators: for messages: "conv_2d, depthwise_conv_2d".
        arithmetic: whose they are.
        explain: the function.
        source: the public source and the page of docs/ where the formula stands.
    """

    operators: str
    arithmetic: str
    explain: Explain
    source: str


Families = dict[type, Family]
"""By the class of the integers that a kernel's `lower` decides."""


def families_of(arithmetic: str, page: str) -> Callable[[str, Explain, str], Family]:
    """Return a maker of families: operators, function, section of the page."""
    return lambda operators, explain, section: Family(operators, arithmetic, explain, f"{page}, {section}")
