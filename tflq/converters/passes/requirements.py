"""What quantisers ask of a graph before they begin, and how they refuse: all reasons at once."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.converters.calibration import ranges_from_quantisation
from tflq.errors import UnsupportedError
from tflq.graph import Graph, float_view


def float_network(graph: Graph) -> Graph:
    """Return the float view, with the ranges that a calibration or the file's quantisation gives."""
    return float_view(ranges_from_quantisation(graph))


def refuse(problems: Sequence[str]) -> None:
    """Refuse a graph for all its problems; without any nothing happens.

    Raises:
        UnsupportedError: they stand in one message.
    """
    if problems:
        raise UnsupportedError("; ".join(problems))


def refuse_missing_ranges(missing: Sequence[str], total: int, way_out: str) -> None:
    """Refuse a graph of which tensors have no range.

    Args:
        missing: names of those tensors.
        total: how many need one.
        way_out: what the user can do.

    Raises:
        UnsupportedError: some are missing.
    """
    if missing:
        raise UnsupportedError(f"{len(missing)} of {total} tensors have no range (first '{missing[0]}'): {way_out}")
