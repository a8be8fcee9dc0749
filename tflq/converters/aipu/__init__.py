"""Target `aipu`: Zhouyi's integers as the Compass Optimizer decides them, and Compass IR (docs/targets/aipu.md)."""

from __future__ import annotations

from tflq.converters.aipu.emit import network_of
from tflq.converters.aipu.ingest import graph_of, read_model
from tflq.converters.aipu.target import AIPU

__all__ = ["AIPU", "graph_of", "network_of", "read_model"]
