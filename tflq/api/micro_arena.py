"""The arena that a converted file needs in TensorFlow Lite Micro: tflq's plan, and the package's own figure."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.errors import MissingExtraError, OracleError
from tflq.graph import Graph
from tflq.graph.arena import arena_of
from tflq.oracle.micro_arena import measure_arena

_ARITHMETIC = "tflm"


def describe_arena(arithmetic: str, graph: Graph, artifacts: Mapping[str, bytes]) -> str:
    """Return a sentence on the arena; empty if another runtime runs the file.

    Args:
        arithmetic: Arithmetic of the target.
        graph: Graph of the target.
        artifacts: Its files.
    """
    if arithmetic != _ARITHMETIC:
        return ""
    plan = f"arena: {arena_of(graph).planned_bytes} bytes of activations by tflq's plan"
    try:
        arena = measure_arena(next(data for name, data in artifacts.items() if name.endswith(".tflite")))
    except (MissingExtraError, OracleError) as error:
        return f"{plan}; the whole arena was not measured: {error}"
    parts = f"{arena.head} of activations, {arena.tail} of tensors, nodes and kernels' buffers"
    return f"{plan}; tflite-micro {arena.version} uses {arena.total} bytes: {parts} (pointers of 8 bytes)"
