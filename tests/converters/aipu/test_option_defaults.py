"""Options that a TFLite operator leaves out have TFLite's defaults in its layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.float_networks import Network
from tflq.converters.aipu import graph_of
from tflq.converters.aipu.emit import float_network_of
from tflq.converters.aipu.translate import translate
from tflq.interpreter import Engine, lower
from tflq.schemas.aipu import write_network

Shape = tuple[int, ...]
ROWS = (3, 4, 5)
IMAGE = (1, 4, 4, 6)
CASES: list[tuple[str, Shape, list[Any], Shape, dict[str, Any]]] = [
    ("cumsum", ROWS, [np.int32(1)], ROWS, {"exclusive": False, "reverse": False}),
    ("cumsum", ROWS, [np.int32(-1)], ROWS, {"exclusive": False}),
    ("gather", ROWS, [np.array([2, 0], np.int32)], (2, 4, 5), {"axis": 0, "batch_dims": 0}),
    ("local_response_normalization", IMAGE, [], IMAGE, {"radius": 0}),
    ("local_response_normalization", IMAGE, [], IMAGE, {"alpha": 0.0}),
    ("local_response_normalization", IMAGE, [], IMAGE, {"beta": 0.0}),
    ("local_response_normalization", IMAGE, [], IMAGE, {"bias": 0.0}),
    ("resize_bilinear", IMAGE, [np.array([6, 7], np.int32)], (1, 6, 7, 6), {"align_corners": False}),
    ("resize_bilinear", IMAGE, [np.array([6, 7], np.int32)], (1, 6, 7, 6), {"half_pixel_centers": False}),
    ("resize_nearest_neighbor", IMAGE, [np.array([6, 7], np.int32)], (1, 6, 7, 6), {"half_pixel_centers": False}),
    ("gelu", ROWS, [], ROWS, {"approximate": False}),
    ("softmax", ROWS, [], ROWS, {"beta": 1.0}),
    ("strided_slice", ROWS, [np.array(v, np.int32) for v in ((1, 0, 2), (3, 4, 4), (1, 2, 1))], (2, 2, 2), {}),
]
OTHERS: dict[str, dict[str, Any]] = {
    "local_response_normalization": {"radius": 2, "alpha": 0.5, "beta": 0.75, "bias": 1.5},
}
"""What the options beside those that are left out are."""


@pytest.mark.parametrize(("operator", "shape", "constants", "new", "defaults"), CASES)
def test_an_option_that_is_left_out(
    operator: str, shape: Shape, constants: list[Any], new: Shape, defaults: dict[str, Any]
) -> None:
    b = Network()
    x = b.real("x", shape)
    others = {key: value for key, value in OTHERS.get(operator, {}).items() if key not in defaults}
    graph = b.build([b.do(operator, x, *(b.given(np.asarray(c)) for c in constants), shape=new, **others)])
    stated = graph.copy()
    stated.nodes[0] = type(graph.nodes[0])(
        operator, graph.nodes[0].inputs, graph.nodes[0].outputs, graph.nodes[0].attributes.updated(**defaults)
    )
    made, wanted = (float_network_of(translate(one, "model"), "model") for one in (graph, stated))
    assert write_network(made) == write_network(wanted)
    if operator == "local_response_normalization":  # TFLite's kernel leaves out the last channel of its radius
        return
    samples = [np.random.default_rng(5).uniform(0.5, 2, (2, *shape)).astype(np.float32)]
    values, layers = Engine(lower(stated, "float")).run(samples)[stated.outputs[0]], graph_of(made)
    np.testing.assert_allclose(Engine(layers).run(samples)[layers.outputs[0]], values, rtol=1e-5, atol=1e-6)
