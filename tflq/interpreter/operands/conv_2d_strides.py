"""The strides that TFLite's CONV_2D takes: they fit int16. Other operators with windows have no such limit."""

from __future__ import annotations

from tflq.errors import UnsupportedError
from tflq.graph import Node

_LARGEST = (1 << 15) - 1


def require_strides(node: Node) -> None:
    """Check the strides of CONV_2D.

    Raises:
        UnsupportedError: one is larger than 32767.
    """
    strides = (node.attributes.integer("stride_h"), node.attributes.integer("stride_w"))
    if max(strides) > _LARGEST:
        raise UnsupportedError(f"strides {strides}; conv_2d takes up to {_LARGEST}")
