"""Target `onnx`: float models, and models with QuantizeLinear and DequantizeLinear (docs/onnx.md)."""

from __future__ import annotations

from tflq.converters.onnx.serialise import model_bytes
from tflq.converters.onnx.target import ONNX
from tflq.converters.onnx.translate import supported_operators, translate, unsupported
from tflq.converters.onnx.values import OnnxGraph, OnnxNode

__all__ = ["ONNX", "OnnxGraph", "OnnxNode", "model_bytes", "supported_operators", "translate", "unsupported"]
