"""Reads IR v10 and v11 with FakeQuantize as graphs."""

from __future__ import annotations

from tflq.converters.openvino.reader.model import model_from_bytes, read_model

__all__ = ["model_from_bytes", "read_model"]
