"""Vectors as Verilog's $readmemh reads them."""

from __future__ import annotations

import numpy as np

from tflq.analysis.vectors.collect import Vector


def hex_text(vector: Vector) -> str:
    """Return one word a line, the last axis fastest: two's complement, or the IEEE bits of floating-point numbers.

    A word has as many digits as the element has half bytes; the first line is a comment with type and shape.
    """
    values = np.ascontiguousarray(vector.values).reshape(-1)
    size_bytes = values.dtype.itemsize
    words = values.view(f"u{size_bytes}")
    head = f"// {vector.role} {vector.name}: {values.dtype}{list(vector.values.shape)}"
    return "\n".join([head, *(f"{int(word):0{2 * size_bytes}x}" for word in words), ""])
