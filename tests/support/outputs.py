"""Compares the outputs of a graph only, for graphs with tensors that TFLite does not show (bfloat16, int4)."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.single_op import assert_same_bits
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.graph import Array, Graph
from tflq.interpreter import Engine
from tflq.oracle import Oracle


def check_outputs(oracle: Oracle, graph: Graph, inputs: Sequence[Array]) -> None:
    """Assert that tflq's outputs equal TFLite's, bit for bit."""
    content = model_to_bytes(graph)
    judged = oracle.run(content, inputs, tensors="outputs")
    for t, ours in Engine(model_from_bytes(content, "graph").main).run(inputs).items():
        assert_same_bits(ours, judged.tensors[t], f"output {t}")
