"""Reads .tflite files into models of neutral graphs, and writes such models as .tflite files."""

from __future__ import annotations

from tflq.converters.tflite.reader import model_from_bytes, read_model
from tflq.converters.tflite.writer import model_to_bytes, write_model

__all__ = ["model_from_bytes", "model_to_bytes", "read_model", "write_model"]
