"""OneHot: the on-value at the index along a new axis, the off-value elsewhere; codes of both values (docs/aipu.md, 5).

An index outside the depth gives the off-value everywhere.

Source: Compass Optimizer, ops/onehot.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.scales import encode, is_plain
from tflq.interpreter.kernels.aipu.stated import is_stated
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class OneHotParams:
    """The new axis behind the sample axis, its length, and the codes [off, on]."""

    axis: int
    depth: int
    codes: Array
    written: Written


def lower(node: Node, operands: Operands) -> OneHotParams:
    """Decide the codes.

    Raises:
        UnsupportedError: indices that are quantised numbers.
    """
    x, output = operands.input(0), operands.output()
    if not is_plain(x):
        raise UnsupportedError(f"{operands.where}: its indices are quantised numbers; allowed are integers")
    values = np.asarray(node.attributes["values"], np.float32)
    written = NOTHING
    codes = values if is_stated(node) else encode(values, output.affine)
    if not is_plain(output):
        written = Written(changed={"values": tuple(int(c) for c in codes)})
    axis = node.attributes.integer("axis") % len(output.shape) + 1
    return OneHotParams(axis, node.attributes.integer("depth"), codes.astype(output.dtype.storage), written)


def run(params: OneHotParams, indices: Array) -> tuple[Array, ...]:
    """Run OneHot: indices [S, ...] -> codes with an axis of `depth`."""
    is_on = np.expand_dims(indices, -1) == np.arange(params.depth)
    return (params.codes[np.moveaxis(is_on, -1, params.axis).astype(np.int64)],)
