"""Samples from folders of images and WAV files, prepared by a small JSON description (docs/guides/data.md)."""

from __future__ import annotations

from tflq.sampling.described.description import Audio, Description, Images, read_description
from tflq.sampling.described.images import nearest, taken_part
from tflq.sampling.described.samples import described_array

__all__ = ["Audio", "Description", "Images", "described_array", "nearest", "read_description", "taken_part"]
