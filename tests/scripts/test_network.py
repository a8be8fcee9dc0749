"""The network in tensorflow and as a graph of tflq: one description, the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from detector.graphs import GraphLayers
from detector.network import POOLED, PYRAMID, box_head

from tflq import Engine


@pytest.fixture
def tf():
    return pytest.importorskip("tensorflow", reason="tensorflow is not installed (tflq[tensorflow])")


def test_the_box_head_of_the_graph_is_the_trained_one(tf) -> None:
    from detector.tensorflow_layers import TensorflowLayers

    x = np.random.default_rng(1).normal(size=(3, POOLED, POOLED, PYRAMID)).astype(np.float32)
    trained = TensorflowLayers(1)
    logits, deltas = box_head(trained, tf.constant(x))
    weights = {name: values.astype(np.float32) for name, values in trained.export().items()}
    layers = GraphLayers(weights, "head")
    part = layers.part([*box_head(layers, layers.input(x.shape))])
    found = Engine(part.model.main, "float").run([x[None]])
    wanted = tf.nn.softmax(logits).numpy(), deltas.numpy()
    for t, values in zip(part.model.main.outputs, wanted, strict=True):
        assert np.allclose(found[t][0], values, atol=5e-3)  # weights are stored with 11 bits


def test_normalization_is_folded_into_the_weights(tf) -> None:
    from detector.tensorflow_layers import TensorflowLayers

    x = np.random.default_rng(2).normal(size=(4, 8, 8, 3)).astype(np.float32)
    layers = TensorflowLayers(2)
    wanted = layers.conv("c", tf.constant(x), 5, relu=False, norm=True).numpy()
    plain = tf.nn.conv2d(x, layers.variables["c/weights"], 1, "SAME").numpy()
    layers.variables["c/mean"].assign(plain.mean(axis=(0, 1, 2)))
    layers.variables["c/variance"].assign(plain.var(axis=(0, 1, 2)))
    weights = {name: values.astype(np.float32) for name, values in layers.export().items()}
    graph = GraphLayers(weights, "c")
    part = graph.part([graph.conv("c", graph.input(x.shape), 5, relu=False, norm=True)])
    found = Engine(part.model.main, "float").run([x[None]])[part.model.main.outputs[0]][0]
    assert np.allclose(found, wanted, atol=1e-2)
