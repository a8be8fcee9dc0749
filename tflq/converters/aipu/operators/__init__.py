"""The layers of Compass, family by family: what the target knows of each layer, and of each operator of TFLite."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters.aipu.descriptor import Layer, Row
from tflq.converters.aipu.operators import (
    boxes,
    functions,
    indices,
    linear,
    moves,
    norms,
    pairs,
    recurrent,
    reductions,
    rows,
    windows,
)

LAYERS: Mapping[str, Layer] = {
    **boxes.LAYERS,
    **functions.LAYERS,
    **indices.LAYERS,
    **linear.LAYERS,
    **moves.LAYERS,
    **norms.LAYERS,
    **pairs.LAYERS,
    **recurrent.LAYERS,
    **reductions.LAYERS,
    **rows.LAYERS,
    **windows.LAYERS,
}
"""Operator, the name of its kernel in arithmetic `aipu` -> its row."""

OPERATORS: Mapping[str, str] = {layer.type: operator for operator, layer in LAYERS.items()}
"""Type in the IR -> operator."""

DOCS: tuple[Row, ...] = (
    *boxes.DOCS,
    *functions.DOCS,
    *indices.DOCS,
    *linear.DOCS,
    *moves.DOCS,
    *norms.DOCS,
    *pairs.DOCS,
    *recurrent.DOCS,
    *reductions.DOCS,
    *rows.DOCS,
    *windows.DOCS,
)
"""The rows of the page, family by family."""
