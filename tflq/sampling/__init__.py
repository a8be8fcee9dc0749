"""Samples: files of several kinds, checked against the model's inputs, or random values."""

from __future__ import annotations

from tflq.sampling.given import given_arrays, given_inputs
from tflq.sampling.legal import Legal, legal_values
from tflq.sampling.samples import FileSamples, GivenSamples, Portion, RandomSamples, Samples

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
