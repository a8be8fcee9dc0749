"""One operator each, for batch=dynamic: what takes any number of samples, and what holds the batch of the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflq.graph import DType, Graph, GraphBuilder

FLOAT = DType.FLOAT32
IMAGE = (2, 4, 3, 2)
Make = Callable[[GraphBuilder, int], int]


def of_numbers(operator: str, shape: tuple[int, ...], *numbers: object, **options: Any) -> Make:
    """Return what adds a node with constants of int32 behind its data."""

    def make(b: GraphBuilder, x: int) -> int:
        given = [b.constant("c", np.array(n, np.int32)) for n in numbers]
        return b.add(operator, [x, *given], shape, FLOAT, **options)

    return make


def filtered(b: GraphBuilder, x: int) -> int:
    w = b.constant("w", np.random.default_rng(1).normal(size=(5, 3, 2, 2)).astype(np.float32))
    return b.add("conv_2d", [x, w], (2, 4, 3, 5), FLOAT, padding="same", stride_h=1, stride_w=1)


def multiplied(b: GraphBuilder, x: int) -> int:
    flat = b.add("reshape", [x, b.constant("s", np.array((2, 24), np.int32))], (2, 24), FLOAT, new_shape=(2, 24))
    w = b.constant("w", np.random.default_rng(2).normal(size=(3, 24)).astype(np.float32))
    return b.add("fully_connected", [flat, w], (2, 3), FLOAT, keep_num_dims=False)


def with_constant(*shape: int) -> Make:
    return lambda b, x: b.add("add", [x, b.constant("c", np.ones(shape, np.float32))], IMAGE, FLOAT)


def joined(b: GraphBuilder, x: int) -> int:
    return b.add("concatenation", [x, x], (2, 4, 3, 4), FLOAT, axis=3)


TAKEN: dict[str, Make] = {
    "relu": of_numbers("relu", IMAGE),
    "filter": filtered,
    "product": multiplied,
    "flat": of_numbers("reshape", (2, 24), (2, 24), new_shape=(2, 24)),
    "flat, the batch follows": of_numbers("reshape", (2, 24), (-1, 24), new_shape=(-1, 24)),
    "joined rows": of_numbers("reshape", (8, 6), (8, 6), new_shape=(8, 6)),
    "image to image": of_numbers("reshape", (2, 3, 4, 2), (2, 3, 4, 2), new_shape=(2, 3, 4, 2)),
    "mean": of_numbers("mean", (2, 2), (1, 2), keep_dims=False),
    "transposed": of_numbers("transpose", (2, 3, 4, 2), (0, 2, 1, 3)),
    "padded": of_numbers("pad", (2, 5, 5, 2), ((0, 0), (1, 0), (0, 2), (0, 0))),
    "slice": of_numbers("slice", (2, 2, 3, 2), (0, 1, 0, 0), (-1, 2, 3, 2)),
    "with channels": with_constant(2),
    "with one image": with_constant(1, 4, 3, 2),
    "joined channels": joined,
    "tiled": of_numbers("tile", (2, 4, 6, 2), (1, 1, 2, 1)),
}
REFUSED: dict[str, Make] = {
    "spread": of_numbers("broadcast_to", IMAGE, IMAGE),
    "with as many images": with_constant(*IMAGE),
    "one of the batch": of_numbers("slice", (1, 4, 3, 2), (1, 0, 0, 0), (1, 4, 3, 2)),
    "mean of the batch": of_numbers("mean", (4, 3, 2), (0,), keep_dims=False),
    "places in the batch": of_numbers("gather", (3, 4, 3, 2), (0, 1, 0), axis=0, batch_dims=0),
    "batch last": of_numbers("transpose", (4, 3, 2, 2), (1, 2, 3, 0)),
    "padded batch": of_numbers("pad", (3, 4, 3, 2), ((0, 1), (0, 0), (0, 0), (0, 0))),
    "the other way round": of_numbers("reverse_v2", IMAGE, (0,)),
}
"""What makes of two samples something else than of each alone, or states how many they are."""


def open_graph(make: Make) -> Graph:
    """Return the graph of one case."""
    b = GraphBuilder("open")
    return b.build([make(b, b.input("x", IMAGE, FLOAT))])


def samples() -> np.ndarray:
    """Return three times the batch of the file."""
    return np.random.default_rng(5).normal(size=(3, *IMAGE)).astype(np.float32)
