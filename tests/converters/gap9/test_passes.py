"""Single passes of the converter on the smallest graph that shows their rule (docs/targets/gap9.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.converters.estimate import Grade
from tflq.converters.gap9.cluster_cycles import cluster_cycles
from tflq.converters.gap9.emit.tflite_view import _channels_last_pools
from tflq.converters.gap9.passes.constants import requantize_operands
from tflq.graph import Affine, DType, GraphBuilder, Range
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter import Engine

FLOAT, IMAGE = DType.FLOAT32, (1, 4, 4, 2)


@pytest.mark.parametrize(("limits", "largest"), [(None, 3.0), ((-4.0, 4.0), 4.0), ((-5.0, 1.0), 5.0)])
def test_a_constant_operand_has_its_range_or_that_of_its_values(
    limits: tuple[float, float] | None, largest: float
) -> None:
    b = GraphBuilder("add")
    x = b.input("x", (3,), DType.INT8, Affine.per_tensor(np.float32(0.1), 0, 8))
    c = b.constant("c", np.array([-1, 0.5, 3], np.float32))
    graph = b.build([b.add("add", [x, c], (3,), DType.INT8, Affine.per_tensor(np.float32(0.1), 0, 8))])
    if limits is not None:
        found = Range(*(np.array([limit], np.float32) for limit in limits))
        graph.tensors[c] = replace(graph.tensors[c], range=found)
    editor = GraphEditor(graph)
    requantize_operands(editor, editor.nodes[0])
    made = editor.tensors[editor.nodes[0].inputs[1]]
    assert made.data is not None
    scale = float(made.affine.scale[0])
    assert largest / 128 <= scale <= largest / 127 * (1 + 1e-6)
    assert made.data.tolist() == [min(round(v / scale), 127) for v in (-1, 0.5, 3)]


def test_a_change_of_type_that_no_log_shows_has_no_cycles() -> None:
    """Only the one behind the first convolution is part of what the published figures hold."""
    b = GraphBuilder("change")
    types = [Affine.per_tensor(np.float32(0.1), z, 8) for z in (0, 5)]
    x = b.input("x", IMAGE, DType.INT8, types[0])
    graph = b.build([b.add("quantize", [x], IMAGE, DType.INT8, types[1])])
    found = cluster_cycles(graph, 0)
    assert found.value is None
    assert found.grade is Grade.NOT_OFFERED


def test_a_global_pool_reads_the_image_as_the_file_has_it() -> None:
    b = GraphBuilder("pool")
    x = b.input("x", (1, 4, 6, 3), FLOAT)
    turned = b.add("transpose", [x, b.constant("order", np.array([0, 3, 1, 2], np.int32))], (1, 3, 4, 6), FLOAT)
    axes = b.constant("axes", np.array([2, 3], np.int32))
    graph = b.build([b.add("mean", [turned, axes], (1, 3), FLOAT, keep_dims=False)])
    _channels_last_pools(graph)
    assert graph.nodes[-1].inputs[0] == x
    data = np.random.default_rng(9).integers(-50, 50, (5, 1, 4, 6, 3)).astype(np.float32)
    found = Engine(graph, "float").run([data])[graph.outputs[0]]
    assert np.allclose(found, data.mean(axis=(2, 3)), atol=1e-5)
