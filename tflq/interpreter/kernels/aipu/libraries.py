"""The float libraries of the Optimizer's forward (MKL, oneDNN): their code depends on the processor.

Source: docs/aipu.md, 4.
"""

from __future__ import annotations

from tflq.graph import Node

FLOAT_LIBRARY = "float_library"
"""Requested option: on whose processors with AVX-512 the Optimizer made its tables and sums."""
INTEL, AMD = "intel", "amd"


def library_of(node: Node) -> str:
    """Return INTEL or AMD."""
    return node.attributes.text(FLOAT_LIBRARY, INTEL)
