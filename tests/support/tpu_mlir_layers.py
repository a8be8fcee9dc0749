"""Graphs of one layer of TPU-MLIR, codes for them, and the roundings of docs/targets/tpu_mlir.md in rational
numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from tests.support.types import INT8, UINT8
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.tpu_mlir.multiplier import find_multiplier

Type = tuple[DType, Affine | None]
F32 = np.float32
FLOAT16 = DType.FLOAT16
KINDS = [(INT8, 0, INT8, 0), (UINT8, 0, UINT8, 0), (INT8, 0, UINT8, 0), (INT8, -7, INT8, 9), (UINT8, 0, INT8, -20)]
"""Type and zero point of an input and of an output."""


def rha(real: Fraction | float) -> int:
    size = floor(abs(Fraction(real)) + Fraction(1, 2))
    return size if real >= 0 else -size


def up(x: int, s: int) -> int:
    return floor(Fraction(x) / Fraction(2) ** s + Fraction(1, 2))


def sat(x: int, dtype: DType) -> int:
    return min(max(x, dtype.minimum), dtype.maximum)


def searched(real: float, bits: int) -> tuple[int, int]:
    """m and s (test_numbers.py has the search)."""
    found = find_multiplier(real, bits)
    return int(found.multiplier[0]), int(found.shift[0])


def drawn(shape: Sequence[int], dtype: DType, seed: int = 0) -> Array:
    """Two samples; the ends of an integer type are among them."""
    random = np.random.default_rng([seed, *shape])
    if dtype.is_floating:
        return (random.normal(size=(2, *shape)) * 3).astype(dtype.storage)
    x = random.integers(dtype.minimum, dtype.maximum, (2, *shape), endpoint=True)
    x.reshape(-1)[:2] = dtype.minimum, dtype.maximum
    return x.astype(dtype.storage)


def one(operator: str, inputs: Sequence[tuple[Sequence[int], Type]], y: tuple[Sequence[int], Type],
        constants: Sequence[Array] = (), **options: Any) -> Graph:  # fmt: skip
    b = GraphBuilder(operator)
    tensors = [b.input(f"x{i}", tuple(shape), *kind) for i, (shape, kind) in enumerate(inputs)]
    tensors += [b.constant(f"c{i}", c) for i, c in enumerate(constants)]
    return b.build([b.add(operator, tensors, tuple(y[0]), *y[1], **options)])


def run(graph: Graph, *arrays: Array) -> Array:
    found: Array = Engine(lower(graph, "tpu_mlir")).run(list(arrays))[graph.outputs[0]]
    return found
