"""UpsampleByIndex: codes put where indices say, -zp elsewhere; the later of two wins (docs/aipu.md, 5).

Source: Compass Optimizer, ops/upsamplebyindex.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import together
from tflq.interpreter.kernels.aipu.max_pooling_with_arg_max import FLATTENED
from tflq.interpreter.kernels.aipu.scales import offset_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written
from tflq.interpreter.numerics.fixed_point import Integers

_CHANNELS_FIRST = ("HW", "NCHW")


@dataclass(frozen=True, eq=False)
class UpsampleParams:
    """What one layer does: which axes an index counts, zp, the output's shape [N, H, W, C]."""

    flatten: str
    offset: int
    shape: tuple[int, ...]
    written: Written = NOTHING


def lower(node: Node, operands: Operands) -> UpsampleParams:
    """Take the axes. Inputs: values and indices [N, IH, IW, C]; indices count in the output's shape.

    Raises:
        UnsupportedError: flatten_dim is none of HW, HWC, NHWC, NCHW.
    """
    flatten = node.attributes.text("flatten_dim", "HWC")
    if flatten not in FLATTENED:
        raise UnsupportedError(f"flatten_dim={flatten}; allowed is {', '.join(FLATTENED)}")
    return UpsampleParams(flatten, offset_of(operands.input(0)), operands.output().shape)


def run(params: UpsampleParams, values: Array, indices: Array) -> tuple[Array, ...]:
    """Run the layer: codes [S, N, IH, IW, C], [S, N, IH, IW, C] -> codes [S, N, H, W, C].

    Indices at or behind the end of the output are left out.
    """
    values, indices = together(values, indices)
    images, height, width, channels = params.shape
    places: Integers = indices.astype(np.int64)
    if params.flatten in ("HW", "HWC"):
        places = places + np.arange(images)[:, None, None, None] * (height * width * channels)
    if params.flatten == "HW":
        places = places + np.arange(channels) * (height * width)
    first = params.flatten in _CHANNELS_FIRST
    if first:
        values, places = values.transpose(0, 1, 4, 2, 3), places.transpose(0, 1, 4, 2, 3)
    found = np.full((len(values), images * height * width * channels), -params.offset, values.dtype)
    for s, flat in enumerate(found):
        where = places[s].reshape(-1)
        inside = where < flat.size
        flat[where[inside]] = values[s].reshape(-1)[inside]
    if first:
        return (found.reshape(-1, images, channels, height, width).transpose(0, 1, 3, 4, 2),)
    return (found.reshape(-1, *params.shape),)
