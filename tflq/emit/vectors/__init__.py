"""Test vectors: what each layer reads, holds and must write, for firmware and RTL test benches.

Source: docs/reference/conventions.md.
"""

from __future__ import annotations

from tflq.emit.vectors.collect import LayerVectors, Vector, collect, selected_layers
from tflq.emit.vectors.files import FORMATS, files_of

__all__ = ["FORMATS", "LayerVectors", "Vector", "collect", "files_of", "selected_layers"]
