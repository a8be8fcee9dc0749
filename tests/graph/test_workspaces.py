"""Files that cannot run: a custom operator with memory that no operator writes, as Vela writes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tflq
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder, Model, Node, Tensor, validate
from tflq.graph.graph import find_workspaces
from tflq.interpreter.registry import Kernel, arithmetic, register_kernel


def compiled(code: str | None = "ethos-u") -> Graph:
    """Return a graph of one custom operator with a scratch tensor."""
    b = GraphBuilder()
    x = b.input("x", (1, 4), DType.INT8)
    graph = b.build([b.add("relu", [x], (1, 4), DType.INT8)])
    scratch = graph.add_tensor(Tensor("scratch", (64,), DType.INT8))
    node = graph.nodes[0]
    operator = node.operator if code is None else "custom"
    graph.nodes[0] = replace(node, operator=operator, inputs=(x, scratch), custom_code=code)
    return graph


def test_a_custom_operator_reads_memory_of_the_device() -> None:
    graph = compiled()
    validate(graph)
    assert find_workspaces(graph) == {2}
    with pytest.raises(GraphError, match="reads tensor 2 'scratch', which is neither"):
        validate(compiled(None))
    y = graph.add_tensor(Tensor("y", (64,), DType.INT8))
    with_reader = replace(graph, nodes=[*graph.nodes, Node("relu", (2,), (y,), name="RELU_0_1")])
    with pytest.raises(GraphError, match="reads tensor 2 'scratch', which is neither"):
        validate(with_reader)


def test_the_file_is_shown_and_not_run(tmp_path: Path) -> None:
    path = tmp_path / "vela.tflite"
    tflq.write_model(Model([compiled()]), path)
    assert "ethos-u" in str(tflq.inspect(path).to_dict())
    assert tflq.diff(path, path).is_equal
    part = tflq.cut(path, output=tmp_path / "part.tflite")
    assert [tensor.name for tensor in part.model.main.tensors] == ["x", "relu_0", "scratch"]
    assert tflq.diff(path, tmp_path / "part.tflite").is_equal
    with pytest.raises(UnsupportedError, match="no kernel for custom ethos-u in arithmetic 'tflite'"):
        tflq.run(path, tflq.SampleOptions(count=1))


def test_a_kernel_does_not_run_without_the_memory() -> None:
    graph = compiled("needs-memory")
    register_kernel("tflite", "needs-memory", Kernel(lambda *_: None, lambda _params, x, _scratch: (x,)))
    register_kernel("float", "needs-memory", Kernel(lambda *_: None, lambda _params, x, _scratch: (x,)))
    try:
        with pytest.raises(UnsupportedError, match="tensor 'scratch' is memory of a device"):
            tflq.Engine(graph)
    finally:
        del arithmetic("tflite").kernels["needs-memory"], arithmetic("float").kernels["needs-memory"]
