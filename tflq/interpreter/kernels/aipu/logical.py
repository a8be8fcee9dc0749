"""Logical: comparisons of (x + zp) on an integer ratio of scales; AND, OR, XOR, NOT of quantized values.

Source: docs/aipu.md, 5.

Source: Compass Optimizer, ops/logical.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.imported import imported_numbers
from tflq.interpreter.kernels.aipu.multiplier import LARGEST
from tflq.interpreter.kernels.aipu.scales import is_plain, offset_of, scale_of
from tflq.interpreter.samples import align

BASE = 8192
COMPARE = {
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
}
COMBINE = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}


@dataclass(frozen=True, eq=False)
class LogicalParams:
    """The params of one comparison or combination.

    Attributes:
        method: as in the IR.
        offsets: zp of each input.
        factors: k of each input; 1 where quantized values are compared as they are.
    """

    method: str
    offsets: tuple[int, ...]
    factors: tuple[int, ...]


def lower(node: Node, operands: Operands) -> LogicalParams:
    """Decide k_a and k_b: int(m / s * f), m the larger scale (of exactly one plain operand: its own), f up to 8192.

    Raises:
        UnsupportedError: another method.
    """
    method = node.attributes.text("method")
    if method in COMBINE or method == "NOT":
        return LogicalParams(method, (), ())
    if method not in COMPARE:
        raise UnsupportedError(f"method={method}; allowed is {', '.join((*COMPARE, *COMBINE, 'NOT'))}")
    a, b = operands.input(0), operands.input(1)
    given = imported_numbers(node, "factors")
    factors = _factors(a, b) if given is None else (int(given[0]), int(given[1]))
    return LogicalParams(method, (offset_of(a), offset_of(b)), factors)


def run(params: LogicalParams, *inputs: Array) -> tuple[Array, ...]:
    """Run Logical: quantized [S, ...] -> uint8 0 or 1."""
    if params.method == "NOT":
        return (np.equal(inputs[0], 0).astype(np.uint8),)
    a, b = align(*inputs)
    if params.method in COMBINE:
        return (COMBINE[params.method](a != 0, b != 0).astype(np.uint8),)
    left, right = (
        (x.astype(np.int64) + zp) * k for x, zp, k in zip((a, b), params.offsets, params.factors, strict=True)
    )
    return (COMPARE[params.method](left, right).astype(np.uint8),)


def _factors(a: Tensor, b: Tensor) -> tuple[int, int]:
    s_a, s_b = scale_of(a), scale_of(b)
    plain = (is_plain(a), is_plain(b))
    if all(plain):
        return 1, 1
    larger = max(s_a, s_b) if not any(plain) else (s_a if plain[0] else s_b)
    other = min(s_a, s_b) if not any(plain) else (s_b if plain[0] else s_a)
    ratio = np.float32(larger / other)
    factor = np.float32(BASE) if BASE * ratio <= LARGEST else np.float32(LARGEST) * (np.float32(1) / ratio)
    k_a, k_b = (max(1, int(np.float32(np.float32(larger / s) * factor))) for s in (s_a, s_b))
    return k_a, k_b
