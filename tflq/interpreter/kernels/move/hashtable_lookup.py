"""HASHTABLE_LOOKUP: the value of each key that the sorted keys hold; zeros (an empty string) where they do not.

The second output says which keys were found. The search halves the interval as C's bsearch does, so that equal or
unsorted keys give the same places.

Source: TFLite kernels/hashtable_lookup.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.operands.indexing import equal_samples


@dataclass(frozen=True)
class HashtableLookup:
    """Number of keys in the table."""

    rows: int


def lower(node: Node, operands: Operands) -> HashtableLookup:  # noqa: ARG001
    """Check the table.

    Raises:
        GraphError: keys and values that do not fit each other, or none at all.
        UnsupportedError: keys that are not int32, values of another type than the output, found that is not uint8.
    """
    wanted, keys, table = (operands.input(i) for i in range(3))
    for tensor in (wanted, keys):
        require_type(tensor, (DType.INT32,))
    require_type(operands.output(1), (DType.UINT8,))
    require_same_type(table, operands.output())
    if len(wanted.shape) != 1 or len(keys.shape) != 1 or not table.shape or table.shape[0] != keys.shape[0]:
        raise GraphError(f"keys {keys.shape}, values {table.shape} and lookups {wanted.shape} do not fit each other")
    if not keys.size or (table.dtype is DType.STRING and len(table.shape) != 1):
        raise GraphError(f"a table of shape {table.shape} cannot be looked up: it is empty, or has strings in rows")
    return HashtableLookup(keys.shape[0])


def run(params: HashtableLookup, wanted: Array, keys: Array, table: Array) -> tuple[Array, ...]:
    """Run HASHTABLE_LOOKUP: int32[S or 1, n], int32[S or 1, rows], T[S or 1, rows, *row] -> T[S, n, *row], uint8[S, n].

    The third array may be shared or sampled, as the others.
    """
    wanted, keys, table = equal_samples(wanted, keys, table)
    sample = np.arange(wanted.shape[0])[:, None]
    low, high = np.zeros(wanted.shape, np.int64), np.full(wanted.shape, params.rows)
    place = np.full(wanted.shape, -1)
    while (searching := (low < high) & (place < 0)).any():
        middle = (low + high) // 2
        order = wanted - keys[sample, np.minimum(middle, params.rows - 1)]  # wraps, as the kernel's difference does
        place = np.where(searching & (order == 0), middle, place)
        high = np.where(searching & (order < 0), middle, high)
        low = np.where(searching & (order > 0), middle + 1, low)
    found = place >= 0
    result = table[sample, np.maximum(place, 0)]
    result[~found] = b"" if table.dtype == object else np.zeros((), table.dtype)
    return result, found.astype(np.uint8)
