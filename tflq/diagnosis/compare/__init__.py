"""Compares any two of: a model under an arithmetic or target, and the tensor dump of a board or simulator."""

from __future__ import annotations

from tflq.diagnosis.compare.comparison import compare_sides
from tflq.diagnosis.compare.dumps import Dump, dump_as_it_is, dump_of
from tflq.diagnosis.compare.matching import match, nearest, require_known
from tflq.diagnosis.compare.result import ComparedTensor, Comparison
from tflq.diagnosis.compare.sides import Column, ConvertedSamples, Running, Side

__all__ = [
    "Column",
    "ComparedTensor",
    "Comparison",
    "ConvertedSamples",
    "Dump",
    "Running",
    "Side",
    "compare_sides",
    "dump_as_it_is",
    "dump_of",
    "match",
    "nearest",
    "require_known",
]
