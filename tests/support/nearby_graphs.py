"""Graphs one step away from another one, and what they compute in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.graph import DType, Graph, Node

EPSILON = 0.01
"""Of normalizations."""


def rows(x: Any) -> Any:
    """Normalized along the last axis."""
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered * centered).mean(-1, keepdims=True) + EPSILON)


REAL: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "abs": np.abs, "exp": np.exp,
    "pow": lambda x, p: (np.abs(x) + 1e-12) ** p,
    "div": np.divide, "logistic": lambda x: 1 / (1 + np.exp(-x)), "silu": lambda x: x / (1 + np.exp(-x)),
    "softsign": lambda x: x / (1 + np.abs(x)), "tanh": np.tanh, "fully_connected": lambda x, w, b=0.0: x @ w.T + b,
    "conv_2d": lambda x, w, b=0.0: x @ w.reshape(len(w), -1).T + b, "depthwise_conv_2d": lambda x, w, b=0.0: x * w + b,
    "relu": lambda x: np.maximum(x, 0), "rsqrt": lambda x: 1 / np.sqrt(np.abs(x) + 1e-12), "maximum": np.maximum,
    "squared_difference": lambda a, b: (a - b) ** 2, "mean": lambda x, axis: x.mean(tuple(axis), keepdims=True),
    "prelu": lambda x, slopes: np.where(x < 0, x * slopes, x),
    "layer_normalization": lambda x, gamma, beta: rows(x) * gamma + beta,
}  # fmt: skip


def outputs_of(graph: Graph, seed: int = 3) -> list[Any]:
    """Compute a graph; convolutions are of one pixel."""
    random = np.random.default_rng(seed)
    values = {
        t: x.data.astype(np.float64 if x.dtype is DType.FLOAT32 else int)
        for t, x in enumerate(graph.tensors)
        if x.data is not None
    }
    values |= {t: random.normal(size=graph.tensors[t].shape) for t in graph.inputs}
    for node in graph.nodes:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = REAL[node.operator](*(values[t] for t in node.inputs if t >= 0))
        is_rectified = node.attributes.text("fused_activation_function", "none") == "relu"
        values[node.outputs[0]] = np.maximum(found, 0) if is_rectified else found
    return [values[t] for t in graph.outputs]


def nearby(graph: Graph) -> Iterator[Graph]:
    """Every graph one step away."""
    for index, node in enumerate(graph.nodes[:-1]):
        result = graph.copy()
        t = result.add_tensor(replace(graph.tensors[node.outputs[0]], name="read inside"))
        result.nodes.append(Node("abs", node.outputs, (t,), name="inside"))
        yield replace(result, outputs=(*graph.outputs, t))
        yield replace(graph, outputs=(*graph.outputs, *node.outputs))
        for changed in changes(node):
            other = graph.copy()
            other.nodes[index] = changed
            yield other


def changes(node: Node) -> Iterator[Node]:
    if len(node.inputs) == 2 and node.operator != "mean":
        yield replace(node, inputs=node.inputs[::-1])
        yield replace(node, attributes=node.attributes.updated(fused_activation_function="relu"))
        yield from (replace(node, operator=o) for o in ("add", "sub", "mul", "maximum") if o != node.operator)
    elif len(node.inputs) == 1:
        yield from (replace(node, operator=o) for o in ("neg", "relu", "rsqrt", "abs") if o != node.operator)
