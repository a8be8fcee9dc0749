"""The layers of Compass, family by family: every table here holds what the target knows of its layers."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters.aipu.descriptor import Layer
from tflq.converters.aipu.operators import boxes, functions, linear, moves, pairs, reductions

LAYERS: Mapping[str, Layer] = {
    **boxes.LAYERS,
    **functions.LAYERS,
    **linear.LAYERS,
    **moves.LAYERS,
    **pairs.LAYERS,
    **reductions.LAYERS,
}
"""Operator, the name of its kernel in arithmetic `aipu` -> its row."""

OPERATORS: Mapping[str, str] = {layer.type: operator for operator, layer in LAYERS.items()}
"""Type in the IR -> operator."""
