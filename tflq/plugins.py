"""Entry points: the objects that other installed packages add to tflq (docs/internals/extending.md)."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints


def find_entry_points(group: str) -> EntryPoints:
    """Return the entry points of a group; the installed packages are scanned once per search path."""
    return _scan_packages(group, tuple(sys.path))


@cache
def _scan_packages(group: str, _path: tuple[str, ...]) -> EntryPoints:
    from importlib.metadata import entry_points  # 15 ms that a command without plug-ins does not pay

    return entry_points(group=group)
