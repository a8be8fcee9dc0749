"""Where samples come from: files of several kinds, checked against the model's inputs, or drawn at random."""

from __future__ import annotations

from tflq.samples.given import given_arrays, given_inputs
from tflq.samples.legal import Legal, legal_values
from tflq.samples.samples import FileSamples, GivenSamples, Portion, RandomSamples, Samples

__all__ = [
    "FileSamples",
    "GivenSamples",
    "Legal",
    "Portion",
    "RandomSamples",
    "Samples",
    "given_arrays",
    "given_inputs",
    "legal_values",
]
