"""Reduce: SUM and MEAN by one multiplier, MIN and MAX of raw codes (docs/aipu.md, 5).

Source: Compass Optimizer, ops/reduce.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of
from tflq.interpreter.kernels.aipu.written import CURVED, NOTHING, Written, rescale_keys

METHODS = ("SUM", "MEAN", "MIN", "MAX")


@dataclass(frozen=True, eq=False)
class ReduceIntegers:
    """The integers of one reduction.

    Attributes:
        method: SUM, MEAN, MIN or MAX.
        axes: behind the sample axis.
        input_offset: zp_x.
        rescale: M and N; None for MIN and MAX.
        offset: zp_y.
        minimum: smallest code.
        maximum: largest code.
        dtype: of the output.
        written: for the IR.
    """

    method: str
    axes: tuple[int, ...]
    input_offset: int
    rescale: Multiplier | None
    offset: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    written: Written


def lower(node: Node, operands: Operands) -> ReduceIntegers:
    """Decide M, N of s_y / s_x, for MEAN of s_y / (s_x * n).

    Raises:
        UnsupportedError: another method.
    """
    x, output = operands.input(0), operands.output()
    method = node.attributes.text("method")
    if method not in METHODS:
        raise UnsupportedError(f"method={method}; allowed is {', '.join(METHODS)}")
    rank = len(x.shape)
    axes = tuple(axis % rank for axis in node.attributes.integers("axis"))
    rescale, written = None, NOTHING
    if method in ("SUM", "MEAN"):
        count = int(np.prod([x.shape[a] for a in axes])) if method == "MEAN" else 1
        ratio = scale_of(output) / np.float32(scale_of(x) * np.float32(count))
        rescale = multiplier_of(node, ratio, bits_of(output))
        written = Written(keys=rescale_keys(CURVED, rescale, type_of_multiplier(bits_of(output))))
    places = tuple(a + 1 for a in axes)
    low, high = code_limits(output)
    return ReduceIntegers(
        method, places, offset_of(x), rescale, offset_of(output), low, high, output.dtype.storage, written
    )


def run(integers: ReduceIntegers, x: Array) -> tuple[Array, ...]:
    """Run Reduce: codes [S, ...] -> codes [S, ...] with axes of length 1."""
    if integers.rescale is None:
        reduce = np.min if integers.method == "MIN" else np.max
        return (np.asarray(reduce(x, axis=integers.axes, keepdims=True)),)
    total = (x.astype(np.int64) + integers.input_offset).sum(axis=integers.axes, keepdims=True)
    codes = np.clip(integers.rescale.apply(total) - integers.offset, integers.minimum, integers.maximum)
    return (codes.astype(integers.dtype),)
