"""Target `tflite`: a float or quantised network as a .tflite of integers (docs/tflite_target.md)."""

from __future__ import annotations

from tflq.converters.tflite_quantiser.target import TFLITE

__all__ = ["TFLITE"]
