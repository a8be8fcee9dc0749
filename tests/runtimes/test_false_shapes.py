"""`tflq inspect` warns of a stored size that TensorFlow Lite Micro would trust."""

from __future__ import annotations

from dataclasses import replace

import tflq
from tests.runtimes.cases import CASES
from tflq.graph import Model


def test_a_false_stored_shape() -> None:
    graph = next(case.graph for case in CASES if case.name == "conv_2d_int8_8_tensor")
    output = graph.outputs[0]
    assert tflq.inspect(Model([graph])).graphs[0].false_shapes == {}
    tensors = list(graph.tensors)
    tensors[output] = replace(tensors[output], shape=(1, 3, 2, 8))
    result = tflq.inspect(Model([replace(graph, tensors=tensors)]))
    assert result.graphs[0].false_shapes == {tensors[output].name: ((1, 3, 2, 8), (1, 3, 3, 8))}
    (note,) = [note for table in result.tables() for note in table.notes if note.startswith("false stored shape: ")]
    assert f"'{tensors[output].name}' [1, 3, 2, 8], computed [1, 3, 3, 8]" in note
