"""PAD and PADV2: more elements before and after, along each axis, as input 1 (an array [rank, 2]) says.

PAD's are the output's zero point where integers stand for real numbers, else 0. PADV2's are the value in input 2, which
must share the output's scale and zero point; without it PADV2 is PAD.

PAD: more elements before and after, along each axis: the output's zero point, or 0; input 2 where there is one. Source:
TFLite kernels/pad.cc.
PADV2: as PAD, with a value of its own in input 2. Source: TFLite kernels/pad.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import EIGHT_BITS, constant_integers, is_quantised, per_tensor, require_same_type
from tflq.interpreter.operands.movable import require_movable
from tflq.interpreter.operands.result_size import require_result
from tflq.interpreter.registry import Kernel

MAXIMUM_RANK = 5
"""TFLite's kernel stops at this rank (internal/reference/pad.h)."""
TYPES = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2,
    DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.BOOL,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Pad:
    """How much and what.

    Attributes:
        paddings: (before, after) for each of the model's own axes.
        value: T[1]: what to pad with.
    """

    paddings: tuple[tuple[int, int], ...]
    value: Array


def _lower_pad(node: Node, operands: Operands) -> Pad:
    """Decide amounts and value.

    Raises:
        GraphError: amounts of another shape, negative, or computed at run time; a zero point outside the type.
        UnsupportedError: too many axes, or other types.
    """
    output = operands.output()
    paddings = _paddings(node, operands)
    zero = 0
    if is_quantised(output) and output.dtype in (*EIGHT_BITS, DType.INT16):
        _, zero = per_tensor(output)
    return Pad(paddings, np.array([zero]).astype(output.dtype.storage))


def _lower_with_value(node: Node, operands: Operands) -> Pad:
    """Decide amounts and value; PAD, too, takes a value where the file gives one.

    Raises:
        GraphError: amounts of another shape, negative or computed at run time; a value that is no single constant.
        UnsupportedError: too many axes, other types, or a value quantised otherwise than the output.
    """
    value, output = operands.optional(2), operands.output()
    if value is None:
        return _lower_pad(node, operands)
    paddings = _paddings(node, operands)
    require_same_type(output, value)
    if value.size != 1:
        raise GraphError(f"input 2 has {value.size} elements; the value is one")
    quantised = is_quantised(output) and output.dtype in (*EIGHT_BITS, DType.INT16)
    if quantised and per_tensor(value) != per_tensor(output):
        raise UnsupportedError(
            f"the value '{value.name}' and the output '{output.name}' differ in scale or zero point; they must be equal"
        )
    return Pad(paddings, operands.constant(2).reshape(1))


def _run(params: Pad, x: Array, *_operands: Array) -> tuple[Array, ...]:
    """Run PAD or PADV2: T[S, *shape] -> T[S, *padded shape]."""
    sizes = [sum(pair) + size for pair, size in zip(params.paddings, x.shape[1:], strict=True)]
    result = np.full((x.shape[0], *sizes), params.value[0], x.dtype)
    inside = [slice(before, before + size) for (before, _), size in zip(params.paddings, x.shape[1:], strict=True)]
    where = (slice(None), *inside)
    result[where] = x
    return (result,)


def _paddings(node: Node, operands: Operands) -> tuple[tuple[int, int], ...]:
    """Read the amounts from input 1; errors as `_lower_pad`."""
    source, rank = operands.input(0), len(operands.input(0).shape)
    require_movable(node, source, operands.output(), TYPES)
    if rank > MAXIMUM_RANK:
        raise UnsupportedError(f"the input has {rank} axes; TFLite pads up to {MAXIMUM_RANK}")
    amounts = constant_integers(operands, 1)
    if amounts.shape != (rank, 2):
        raise GraphError(f"input 1 has shape {amounts.shape}; an input of {rank} axes needs ({rank}, 2)")
    paddings = tuple((int(before), int(after)) for before, after in amounts)
    if any(amount < 0 for pair in paddings for amount in pair):
        raise GraphError(f"input 1 is {paddings}; amounts are 0 or more")
    require_result([n + sum(pair) for n, pair in zip(source.shape, paddings, strict=True)], source.dtype)
    return paddings


KERNELS = {
    "pad": Kernel(_lower_with_value, _run),
    "padv2": Kernel(_lower_with_value, _run),
}
