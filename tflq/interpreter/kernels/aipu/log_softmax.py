"""LogSoftmax by a table of exponentials in float32 (docs/aipu.md, 5).

t[i] = exp((i - (2^b - 1)) / s_x); y = clamp(RNE(f32((x - max) * q0 - q1 * ln(sum_j t[2^b - 1 + x_j - max]))) - zp),
q0 = s_y / s_x, q1 = s_y; the output's range is -16..0. Multiplier and shift of the IR are 1 and 0.

Source: Compass Optimizer, ops/logsoftmax.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, scale_of
from tflq.interpreter.kernels.aipu.stated import stated
from tflq.interpreter.kernels.aipu.tables import table_bits
from tflq.interpreter.kernels.aipu.written import Value, Written

Single = NDArray[np.float32]
LOWEST = -16.0


@dataclass(frozen=True, eq=False)
class LogSoftmaxParams:
    """What one layer needs.

    Attributes:
        table: float32[n], a power of two.
        shift: bits of an index below the table's.
        axis: behind the sample axis.
        factors: q0 and q1.
        codes: of the output.
        written: for the IR.
    """

    table: Single
    shift: int
    axis: int
    factors: tuple[np.float32, np.float32]
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> LogSoftmaxParams:
    """Compute the table and q0, q1."""
    x, output = operands.input(0), operands.output()
    table = _table(node, x)
    factors = _factors(node, x, output)
    kind = type_of_multiplier(bits_of(output))
    keys: dict[str, Value] = {
        "quantize_scale": (float(factors[0]), float(factors[1])),
        "shift_value": 0,
        "shift_type": "int8",
        "scale_value": 1,
        "scale_type": kind,
    }
    shift = bits_of(x) - (table.size.bit_length() - 1)
    axis = node.attributes.integer("axis") % len(x.shape) + 1
    return LogSoftmaxParams(table, shift, axis, factors, codes_of(output), Written({"lut_exp": table}, keys))


def run(params: LogSoftmaxParams, x: Array) -> tuple[Array, ...]:
    """Run LogSoftmax: codes [S, ...] -> codes [S, ...]."""
    below = x.astype(np.int64) - x.astype(np.int64).max(axis=params.axis, keepdims=True)
    index = below + (params.table.size << params.shift) - 1
    place, rest = index >> params.shift, index & ((1 << params.shift) - 1)
    above = np.append(params.table[1:], params.table[-1])
    base = params.table[place]
    between = (above[place] - base) * rest.astype(np.float32) / np.float32(1 << params.shift)
    total = (base + between).sum(axis=params.axis, keepdims=True, dtype=np.float32)
    q0, q1 = params.factors
    value = below.astype(np.float32) * q0 - np.log(total.astype(np.float64)).astype(np.float32) * q1
    return (params.codes.store(np.rint(value).astype(np.int64)),)


def _table(node: Node, x: Tensor) -> Single:
    found = stated(node)
    if found is not None and "lut_exp" in found.constants:
        return np.asarray(found.constants["lut_exp"], np.float32)
    span = (1 << bits_of(x)) - 1
    steps = np.linspace(0, span, 1 << table_bits(node, x), dtype=np.float32)
    inverse = np.float32(1) / -scale_of(x)
    values: Single = np.exp((steps * inverse).astype(np.float64)).astype(np.float32)[::-1]
    return np.ascontiguousarray(values)


def _factors(node: Node, x: Tensor, output: Tensor) -> tuple[np.float32, np.float32]:
    found = stated(node)
    given = found.keys.get("quantize_scale") if found is not None else None
    if isinstance(given, tuple):
        q0, q1 = np.asarray(given, np.float32)
        return q0, q1
    return np.float32(scale_of(output) / scale_of(x)), scale_of(output)
