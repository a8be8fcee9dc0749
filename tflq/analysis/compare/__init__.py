"""Compares any two of: a model under an arithmetic or target, and the tensor dump of a board or simulator."""

from __future__ import annotations

from tflq.analysis.compare.comparison import ComparedTensor, Comparison, compare_sides
from tflq.analysis.compare.dumps import Dump, read_dump
from tflq.analysis.compare.matching import match, nearest, require_known
from tflq.analysis.compare.sides import Column, ConvertedSamples, Running, Side

__all__ = [
    "Column",
    "ComparedTensor",
    "Comparison",
    "ConvertedSamples",
    "Dump",
    "Running",
    "Side",
    "compare_sides",
    "match",
    "nearest",
    "read_dump",
    "require_known",
]
