"""GAP9's graphs of networks made for a question, and the types of their tensors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Net
from tflq.graph import Affine, Graph
from tflq.interpreter import Engine, lower


def convert(
    net: Net, output: int, target: str, layers: list[str] | None = None, sets: list[str] | None = None
) -> Graph:
    """Quantize, lower, and run a sample, so that every type has a kernel."""
    graph = lower(quantized(net.model(output), target, sets or [], layers or []), "gap9")
    tensor = graph.tensors[graph.inputs[0]]
    codes = np.random.default_rng(1).integers(tensor.dtype.minimum, tensor.dtype.maximum + 1, (3, *tensor.shape))
    Engine(graph).run([codes.astype(tensor.dtype.storage)])
    return graph


def output_of(graph: Graph, name: str) -> Affine:
    node = next(n for n in graph.nodes if n.name == name)
    return graph.tensors[node.outputs[0]].affine


def shown(affine: Affine) -> tuple[str, float, int]:
    return f"{'int' if affine.signed else 'uint'}{affine.bits}", float(affine.scale[0]), int(affine.zero_point[0])


def check(graph: Graph, name: str, kind: str, scale: float, zero_point: int) -> None:
    check_type(output_of(graph, name), kind, scale, zero_point, name)


def check_type(affine: Affine, kind: str, scale: float, zero_point: int, name: str = "") -> None:
    found = shown(affine)
    assert (found[0], found[2]) == (kind, zero_point), (name, found)
    assert found[1] == pytest.approx(scale, rel=1e-6), (name, found)


def names(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes]
