"""Tells known differences from TFLite from others, where a model as it is meets a dump, which may be TFLite's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflq.analysis.compare.dumps import Dump
from tflq.analysis.compare.matching import Match
from tflq.analysis.compare.sides import Running
from tflq.analysis.executions import AS_IS
from tflq.analysis.known_differences import Blame
from tflq.graph import Array, Model


def blame_of(model: Running | None, dump: Dump | None) -> Blame | None:
    """Return what explains differences of a model and a dump; None for others than a model as it is and a dump."""
    if model is not None and model.execution.name == AS_IS and dump is not None:
        return Blame(Model([model.execution.graph]))
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
        matches: every tensor that both sides have whole, the model's column first.
        inputs: of the model.
        ours: the model's values by column name.
        theirs: the dump's.
    """
    mine = {m.first.index: ours[m.first.name] for m in matches}
    blame.add(inputs, mine, {m.first.index: theirs[m.second.name].reshape(mine[m.first.index].shape) for m in matches})
