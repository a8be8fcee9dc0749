"""Drawn chains compute after the Parser's rewrites what they computed before (drawn_networks.py)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.aipu.drawn_networks import CHAINS
from tests.converters.aipu.networks import built
from tflq.converters.aipu import graph_of
from tflq.converters.aipu.emit import float_network_of
from tflq.converters.aipu.translate import translate
from tflq.interpreter import Engine, lower
from tflq.schemas.aipu import read_network, write_network


@pytest.mark.parametrize("name", CHAINS)
def test_the_float_ir_computes_what_the_model_does(name: str) -> None:
    graph, samples = built(name)
    given = [x[:3] for x in samples]
    wanted = Engine(lower(graph, "float")).run(given)[graph.outputs[0]]
    layers = graph_of(read_network(*write_network(float_network_of(translate(graph, "model"), "model"))))
    found = Engine(layers).run(given)[layers.outputs[0]]
    size = max(1.0, float(np.abs(wanted).max()))
    np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), rtol=1e-4, atol=2e-5 * size)


@pytest.mark.parametrize("name", CHAINS)
def test_moves_have_met(name: str) -> None:
    """No Reshape behind one that nothing else reads, no Transpose behind a Transpose."""
    layers = graph_of(float_network_of(translate(built(name)[0], "model"), "model"))
    writers, readers = layers.producers(), layers.consumers()
    for node in layers.nodes:
        before = layers.nodes[writers[node.inputs[0]]] if node.inputs and node.inputs[0] in writers else node
        pair = (before.operator, node.operator)
        is_alone = len(readers[node.inputs[0]]) == 1 and node.inputs[0] not in layers.outputs if node.inputs else False
        assert before is node or pair != ("transpose", "transpose")
        assert before is node or not is_alone or pair != ("reshape", "reshape")
