"""Tells known differences from TFLite from others, where a model as it is meets a dump, which may be TFLite's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflq.analysis.compare.dumps import Dump
from tflq.analysis.compare.matching import Match
from tflq.analysis.compare.sides import Running, Side
from tflq.analysis.executions import AS_IS
from tflq.analysis.known_differences import Blame
from tflq.graph import Array, Model


def blame_of(first: Side, second: Side) -> Blame | None:
    """Return what explains differences of these sides; None for others than a model as it is and a dump."""
    if isinstance(first, Running) and first.execution.name == AS_IS and isinstance(second, Dump):
        return Blame(Model([first.execution.graph]))
    return None


def explain(
    blame: Blame,
    matches: Sequence[Match],
    inputs: list[Array],
    ours: Mapping[str, Array],
    theirs: Mapping[str, Array],
) -> None:
    """Add a chunk.

    Args:
        blame: as `blame_of` made it.
        matches: every tensor that both sides have.
        inputs: of the model.
        ours: the first side's values by column name.
        theirs: the second side's.
    """
    mine = {m.first.index: ours[m.first.name] for m in matches}
    blame.add(inputs, mine, {m.first.index: theirs[m.second.name].reshape(mine[m.first.index].shape) for m in matches})
