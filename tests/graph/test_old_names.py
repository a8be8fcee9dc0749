"""Old spellings of public names are the new objects."""

from __future__ import annotations

from tests.support.draw import affine
from tflq import graph
from tflq.graph import DType, Tensor


def test_old_names() -> None:
    tensor = Tensor("x", (1,), DType.INT8, affine(DType.INT8, 0.5, 3))
    assert tensor.quantisation is tensor.quantization
    assert (tensor.quantisation.scale.tolist(), tensor.quantisation.zero_point.tolist()) == ([0.5], [3])
    assert (graph.Quantisation, graph.dequantise) == (graph.Quantization, graph.dequantize)
    assert not hasattr(graph, "Quantises")
