"""The plan of a small network's memory, by hand."""

from __future__ import annotations

from tflq.graph import DType
from tflq.graph.arena import arena_of, tensor_bytes
from tflq.graph.builder import GraphBuilder


def test_a_plan_by_hand() -> None:
    """x 10, a 40, b 20, c 33 bytes: a at 0; c, alive with b only, at 0 too; b behind a at 48; x behind a at 48."""
    builder = GraphBuilder()
    x = builder.input("x", (10,), DType.INT8)
    a = builder.add("tile", [x], (40,), DType.INT8)
    b = builder.add("slice", [a], (20,), DType.INT8)
    c = builder.add("tile", [b], (33,), DType.INT8)
    arena = arena_of(builder.build([c]))
    assert [(buffer.tensor, buffer.first, buffer.last, buffer.size, buffer.offset) for buffer in arena.buffers] == [
        (x, -1, 0, 10, 48),
        (a, 0, 1, 40, 0),
        (b, 1, 2, 20, 48),
        (c, 2, 3, 33, 0),
    ]
    assert arena.live_bytes == (50, 60, 53)
    assert (arena.peak_bytes, arena.peak_operator, arena.planned_bytes) == (60, 1, 68)
    assert [buffer.tensor for buffer in arena.alive_at(1)] == [a, b]
    assert [buffer.tensor for buffer in arena.alive_at(2)] == [c, b]


def test_sizes_are_whole_bytes() -> None:
    builder = GraphBuilder()
    x = builder.input("x", (3,), DType.INT4)
    y = builder.add("cast", [x], (3,), DType.INT16)
    graph = builder.build([y])
    assert [tensor_bytes(graph.tensors[t]) for t in (x, y)] == [2, 6]
