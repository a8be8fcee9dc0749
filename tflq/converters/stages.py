"""How a target's layers are raised from the back of a network (docs/search.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tflq.converters.targets import Target, find_target
from tflq.errors import OptionError


@dataclass(frozen=True)
class Stage:
    """How layers are raised.

    Attributes:
        name: in words.
        values: `key=value,...` of each such layer.
    """

    name: str
    values: str


@runtime_checkable
class Raisable(Target, Protocol):
    """A target whose layers can be raised from the back."""

    @property
    def stages(self) -> Sequence[Stage]:
        """How, the cheapest first."""


def find_raisable(name: str) -> Raisable:
    """Return a target whose layers can be raised.

    Raises:
        OptionError: there is no such target, or it has no stages.
    """
    target = find_target(name)
    if not isinstance(target, Raisable):
        raise OptionError(f"target {name}: its layers cannot be raised from the back; allowed is aipu")
    return target
