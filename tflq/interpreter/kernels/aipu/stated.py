"""Integers that a quantised IR states: they run as they stand, nothing is derived in their place (docs/aipu.md, 6).

A node of a quantised IR keeps the computed keys and constants of its layer in `extra`, as `Written`. Its attributes
hold what the Optimizer wrote in place of the float values (limits of CLIP, slope of LEAKYRELU, constant of Pad).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Node, Tensor
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of
from tflq.interpreter.kernels.aipu.written import Written
from tflq.interpreter.numerics.fixed_point import Integers

LARGEST_SHIFT = 63
MULTIPLIER_BITS = "multiplier_bits"
"""Own key of a layer whose multipliers have another width than its output."""


def stated(node: Node) -> Written | None:
    """Return the keys and constants that a quantised IR states for a layer; None for a layer that is to be decided."""
    return node.extra if isinstance(node.extra, Written) else None


def is_stated(node: Node) -> bool:
    """Whether a layer comes from a quantised IR."""
    return stated(node) is not None


def stated_table(node: Node, key: str) -> Integers | None:
    """Return a table of integers, int64[n]; None where the layer is to be decided or has none."""
    found = stated(node)
    if found is None or key not in found.constants:
        return None
    return found.constants[key].astype(np.int64)


def stated_shift(node: Node, table: Integers, bits: int) -> int:
    """Return the bits of a code below the index of a stated table.

    Raises:
        UnsupportedError: a table whose length is no power of two, or more entries than the code has values.
    """
    entries = table.size.bit_length() - 1
    if table.size != 1 << entries or entries > bits:
        raise UnsupportedError(
            f"layer '{node.name}': a table of {table.size} entries; allowed is a power of two up to {1 << bits}"
        )
    return bits - entries


def stated_numbers(node: Node, key: str) -> Integers | None:
    """Return a computed key, one number or several, as int64[n]; None where the layer is to be decided or has none.

    Raises:
        UnsupportedError: the key holds something else than whole numbers.
    """
    found = stated(node)
    if found is None or key not in found.keys:
        return None
    value = found.keys[key]
    is_flat = not isinstance(value, tuple) or not any(isinstance(item, tuple) for item in value)
    values = np.atleast_1d(np.asarray(value if is_flat else ""))
    if values.dtype.kind not in "iu":
        raise UnsupportedError(f"layer '{node.name}': {key}={value}: allowed are whole numbers")
    return values.astype(np.int64)


def number_of(node: Node, key: str, decide: Callable[[], int]) -> int:
    """Return the number that a quantised IR states under a computed key, else the decided one."""
    found = stated_numbers(node, key)
    return decide() if found is None else int(found[0])


def multipliers_of(node: Node, prefix: str, decide: Callable[[], Sequence[Multiplier]]) -> list[Multiplier]:
    """Return the list of M and N that a quantised IR states, else the decided ones.

    Args:
        node: the layer.
        prefix: of the keys, such as "box_"; M stand under <prefix>scale_value, N under <prefix>shift_value.
        decide: gives them where nothing is stated.
    """
    found = stated_multiplier(node, prefix)
    if found is None:
        return list(decide())
    return [Multiplier(found.m[i : i + 1], found.n[i : i + 1]) for i in range(found.m.size)]


def stated_multiplier(node: Node, prefix: str = "") -> Multiplier | None:
    """Return M and N of a quantised IR: the constants scale and shift, else the keys scale_value and shift_value.

    Args:
        node: the layer.
        prefix: of the keys, such as "var_".

    Raises:
        UnsupportedError: numbers of another form, or a shift beyond 63.
    """
    m, n = stated_table(node, f"{prefix}scale"), stated_table(node, f"{prefix}shift")
    if m is None or n is None:
        m, n = stated_numbers(node, f"{prefix}scale_value"), stated_numbers(node, f"{prefix}shift_value")
    if m is None or n is None:
        return None
    if n.size not in (1, m.size):
        raise UnsupportedError(f"layer '{node.name}': {m.size} multipliers, {n.size} shifts; allowed is one for each")
    if np.abs(n).max(initial=0) > LARGEST_SHIFT:
        raise UnsupportedError(
            f"layer '{node.name}': a shift of {n[np.argmax(np.abs(n))]}; allowed is +-{LARGEST_SHIFT}"
        )
    return Multiplier(m, n)


def multiplier_bits(node: Node, output: Tensor) -> int:
    """Return the width of a layer's multipliers: what was asked of it, else that of its output."""
    return node.attributes.integer(MULTIPLIER_BITS, bits_of(output))


def multiplier_of(node: Node, ratio: np.float32 | float, bits: int, prefix: str = "") -> Multiplier:
    """Return the M and N that a quantised IR states, else those of the ratio; raises as `find_multiplier`."""
    return stated_multiplier(node, prefix) or find_multiplier(ratio, bits)
