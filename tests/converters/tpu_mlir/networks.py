"""Small float networks with ranges, for what the golden runs do not hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.settings import parse_settings
from tflq.converters.tpu_mlir import TPU_MLIR
from tflq.graph import Array, DType, Graph, GraphBuilder, Range
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter import Engine

FLOAT = DType.FLOAT32
WINDOW = {"padding": "valid", "stride_h": 1, "stride_w": 1}
IMAGE = (1, 4, 4, 2)


def ranged(graph: Graph, ranges: dict[str, tuple[float, float]]) -> Graph:
    """Return the graph with ranges on the tensors of these names."""
    result = graph.copy()
    for t, tensor in enumerate(graph.tensors):
        if tensor.name in ranges:
            low, high = ranges[tensor.name]
            found = Range(np.array([low], np.float32), np.array([high], np.float32))
            result.tensors[t] = replace(tensor, range=found)
    return result


def rewritten(graph: Graph, rule: Callable[[GraphEditor], None]) -> Graph:
    """Return the graph after one rewrite."""
    editor = GraphEditor(graph)
    rule(editor)
    return editor.graph()


def binary(operator: str, ranges: dict[str, tuple[float, float]], activation: str = "none") -> Graph:
    """Return y = operator(a, b), ranges by name."""
    b = GraphBuilder(operator)
    inputs = [b.input(name, IMAGE, FLOAT) for name in ("a", "b")]
    y = b.tensor("y", IMAGE, FLOAT)
    b.node(operator, inputs, [y], fused_activation_function=activation)
    return ranged(b.build([y]), ranges)


def unary(operator: str, ranges: dict[str, tuple[float, float]], *constants: Array, **options: object) -> Graph:
    """Return y = operator(x, constants...), ranges by name."""
    b = GraphBuilder(operator)
    inputs = [b.input("x", IMAGE, FLOAT), *(b.constant(f"c{i}", c) for i, c in enumerate(constants))]
    y = b.tensor("y", IMAGE, FLOAT)
    b.node(operator, inputs, [y], **options)
    return ranged(b.build([y]), ranges)


def quantized(graph: Graph, sets: Sequence[str] = (), layers: Sequence[str] = ()) -> Graph:
    return TPU_MLIR.quantize(graph, parse_settings(TPU_MLIR.settings, sets, layers))


def run(graph: Graph, inputs: Sequence[Array]) -> dict[str, Array]:
    """Run a quantized graph; every computed tensor by its name."""
    engine = Engine(graph, "tpu_mlir")
    keep = [t for node in graph.nodes for t in node.outputs]
    found = engine.run(list(inputs), keep)
    return {engine.graph.tensors[t].name: found[t] for t in keep}
