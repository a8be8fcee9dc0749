"""Parts shared by Proposal, DetectionOutput and BoundingBox: tables of box deltas, and rows that pass a threshold.

Source: Compass Optimizer, ops/proposal.py, detectionoutput.py, multibox_transform_Loc.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.arrays import Integers, Singles
from tflq.errors import GraphError
from tflq.graph import Affine, Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.imported import imported_numbers, is_imported
from tflq.interpreter.kernels.aipu.scales import affine_of, bits_of, encode, offset_of, scale_of
from tflq.interpreter.kernels.aipu.tables import Table, even_steps, table_bits, table_shift

INT16 = (-(1 << 15), (1 << 15) - 1)
Function = Callable[[Array], Array]


def identity(x: Array) -> Array:
    """Return the deltas of a center unchanged."""
    return x


def exponential(x: Array) -> Array:
    """Return e^x, computed in float64."""
    return np.exp(x.astype(np.float64))


def delta_table(
    node: Node,
    key: str,
    deltas: Tensor,
    function: Function,
    deviation: float,
    s: np.float32 | float,
    scale: float | None = None,
) -> Table:
    """Return the int16 table clamp(RNE(s * f((q + zp_d) / s_d / deviation))), or the imported one.

    Its points are evenly spaced over the element type of the deltas, both ends included. All in float32, the function
    itself in float64.

    Args:
        node: lut_items_in_bits limits the number of entries.
        key: Key of the table among the imported params.
        deltas: the type of the quantized values that the table is read with.
        function: `identity` or `exponential`.
        deviation: Divisor of the deltas.
        s: scale of the entries.
        scale: s_d, if it is not the scale of the deltas.
    """
    given = imported_numbers(node, key)
    if given is not None:
        return Table(given, deltas.dtype.minimum, table_shift(node, given, bits_of(deltas)), *INT16)
    bits = table_bits(node, deltas)
    grid = even_steps(deltas.dtype.minimum, deltas.dtype.maximum, 1 << bits)
    inverse = np.float32(1) / np.float32(scale_of(deltas) if scale is None else scale)
    real: Singles = ((grid + np.float32(offset_of(deltas))) * inverse).astype(np.float32)
    value = function((real / np.float32(deviation)).astype(np.float32))
    entries = encode(value, affine_of(np.float32(s), 0, 16))
    return Table(entries, deltas.dtype.minimum, bits_of(deltas) - bits, *INT16)


def internal_tensor(operands: Operands, position: int) -> Tensor:
    """Return the typed tensor of an internal result of a layer.

    Raises:
        GraphError: the node has no such intermediate, or one without type.
    """
    internal = operands.intermediates[position] if position < len(operands.intermediates) else None
    if internal is None or not isinstance(internal.quantization, Affine):
        raise GraphError(f"{operands.where}: intermediate {position} has no type; give its tensor a range and quantize")
    return internal


def internal_scale(operands: Operands, position: int) -> np.float32:
    """Return s of an internal result of a layer; raises as `internal_tensor`."""
    return scale_of(internal_tensor(operands, position))


def score_threshold(node: Node, scores: Tensor) -> int:
    """Return clamp(RNE(f32(s * threshold) - zp)) in the unsigned range of the scores' width, also for signed scores.

    A quantized file contains the code: as an imported param, or in place of the threshold.
    """
    given = imported_numbers(node, "threshold")
    if given is not None:
        return int(given[0])
    real = node.attributes.real("score_threshold")
    if is_imported(node):
        return int(real)
    code = np.rint(np.float32(real) * scale_of(scores) - np.float32(offset_of(scores)))
    return int(np.clip(code, 0, (1 << bits_of(scores)) - 1))


def together(*arrays: Array) -> tuple[Array, ...]:
    """Repeat arrays that all samples share: each [S or 1, ...] -> [S, ...]."""
    samples = max(len(a) for a in arrays)
    return tuple(np.broadcast_to(a, (samples, *a.shape[1:])) for a in arrays)


def first_rows(kept: Array, limit: int) -> tuple[Integers, Integers]:
    """Return the positions of the first kept rows, and their number.

    Args:
        kept: bool[..., K].
        limit: Largest number of rows.

    Returns:
        int64[..., limit], with arbitrary positions after the count; int64[...], at most `limit`.
    """
    order = np.argsort(np.logical_not(kept), axis=-1, kind="stable")[..., :limit]
    missing = limit - order.shape[-1]
    padded = np.pad(order, [(0, 0)] * (order.ndim - 1) + [(0, max(0, missing))])
    return padded, np.minimum(kept.sum(axis=-1), limit)


def take_rows(values: Array, order: Integers, count: Integers) -> Array:
    """Return the rows at `order`, with 0 after the count: values [..., K, *rest] -> [..., limit, *rest]."""
    extra = values.ndim - order.ndim
    places = order.reshape(order.shape + (1,) * extra)
    used = np.arange(order.shape[-1]) < count[..., None]
    rows = np.take_along_axis(values, places, axis=order.ndim - 1)
    return np.where(used.reshape(used.shape + (1,) * extra), rows, 0)
