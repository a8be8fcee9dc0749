"""Imported params: params of a quantized file are used unchanged, not derived again.

Source: docs/rules/aipu/compass_ir.md.

A node that was read from a quantized file keeps them in `extra`, each under the name of the kernel's own param. Its
attributes then contain the quantized values that the Optimizer wrote in place of the real values (limits of CLIP, slope
of LEAKYRELU, constant of Pad).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, Node, Tensor
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of

MULTIPLIER_BITS = "multiplier_bits"
"""Requested option of a layer whose multipliers have another width than its output."""


@dataclass(frozen=True, eq=False)
class Imported:
    """The imported params of one layer: name of a param -> its multipliers, or its numbers."""

    values: Mapping[str, Multiplier | Array]


def is_imported(node: Node) -> bool:
    """Whether a layer was read from a quantized file."""
    return isinstance(node.extra, Imported)


def imported_array(node: Node, name: str) -> Array | None:
    """Return an imported param as stored in the file; None if the layer is still to be quantized or has none."""
    value = node.extra.values.get(name) if isinstance(node.extra, Imported) else None
    return value if isinstance(value, np.ndarray) else None


def imported_numbers(node: Node, name: str = "table") -> Integers | None:
    """Return imported integers, int64[n]; None as `imported_array`."""
    array = imported_array(node, name)
    return None if array is None else array.astype(np.int64)


def imported_multiplier(node: Node, name: str = "rescale") -> Multiplier | None:
    """Return imported M and N, one or several; None as `imported_array`."""
    value = node.extra.values.get(name) if isinstance(node.extra, Imported) else None
    return value if isinstance(value, Multiplier) else None


def number_of(node: Node, name: str, decide: Callable[[], int]) -> int:
    """Return an imported number, else the decided one."""
    numbers = imported_numbers(node, name)
    return decide() if numbers is None else int(numbers[0])


def multiplier_bits(node: Node, output: Tensor) -> int:
    """Return the width of a layer's multipliers: the requested one, else that of its output."""
    return node.attributes.integer(MULTIPLIER_BITS, bits_of(output))


def multiplier_of(node: Node, ratio: np.float32 | float, bits: int) -> Multiplier:
    """Return the imported M and N, else M and N of the ratio; raises as `find_multiplier`."""
    return imported_multiplier(node) or find_multiplier(ratio, bits)
