"""HiSilicon NNIE: logarithmic codes, and a Caffe package for its mapper (docs/nnie.md)."""

from __future__ import annotations

from tflq.converters.nnie.target import NNIE

__all__ = ["NNIE"]
