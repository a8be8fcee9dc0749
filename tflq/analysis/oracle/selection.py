"""Which tensors to ask TFLite for, and which it cannot give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from tflq.analysis.oracle.results import OracleModel, OracleTensor

Tensors = Literal["all", "outputs"] | Iterable[int]

UNDESCRIBED = "TFLite knows no such tensor, or its Python interface has no name for the type"
_DELEGATED = "kernels AUTO: the XNNPACK delegate does not write intermediate tensors"


def select(
    model: OracleModel, details: Mapping[int, OracleTensor], wanted: str | tuple[int, ...], *, delegated: bool
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Return the indices to ask for, ascending, and those that need not be asked for, with the reason.

    Args:
        model: the loaded model.
        details: its tensors, as far as TFLite describes them.
        wanted: "all" but constants that are no outputs, "outputs", or indices.
        delegated: whether a delegate runs the graph; its intermediate tensors are then never written.
    """
    if wanted == "outputs":
        asked = set(model.outputs)
    elif isinstance(wanted, str):
        asked = {*range(max(details, default=-1) + 1)} - model.constants | {*model.outputs}
    else:
        asked = set(wanted)
    refused = dict.fromkeys(sorted(asked - set(details)), UNDESCRIBED)
    if delegated:
        visible = {*model.inputs, *model.outputs, *model.constants, *refused}
        refused |= dict.fromkeys(sorted(asked - visible), _DELEGATED)
    return tuple(sorted(asked - set(refused))), refused
