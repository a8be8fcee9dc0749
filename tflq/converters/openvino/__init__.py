"""The target `openvino`: FakeQuantize, as OpenVINO's CPU plug-in executes it in int8 (docs/openvino.md)."""

from __future__ import annotations

from tflq.converters.openvino.target import OPENVINO

__all__ = ["OPENVINO"]
