"""A tensor of NNIE's graph is compared as its readers see it: they saturate where the model's ReLU6 ends."""

from __future__ import annotations

import numpy as np

from tests.converters.nnie.networks import conv, start
from tests.support.nnie import calibrated
from tflq.benchmarks.all_targets import summarize
from tflq.converters.nnie import NNIE
from tflq.converters.settings import parse_settings
from tflq.diagnosis.similarity import similarities
from tflq.graph import Graph, Model
from tflq.interpreter import Engine
from tflq.parallel.executions import as_is, for_target
from tflq.sampling import GivenSamples


def saturating() -> Graph:
    """Two convolutions with a ReLU6 between them that most values exceed."""
    b, x = start(4, 4, 2)
    y = conv(b, x, (4, 4, 2), (4, 4, 3), (1, 1), activation="relu6")
    return b.build([conv(b, y, (4, 4, 3), (4, 4, 3), (1, 1))])


def test_a_relu6_is_compared_as_its_readers_see_it() -> None:
    graph = saturating()
    samples = 40 * np.random.default_rng(5).standard_normal((8, 1, 4, 4, 2), np.float32)
    ranged = Model([calibrated(graph, [samples])])
    execution = for_target(ranged.main, NNIE, parse_settings(NNIE.settings))
    first, second = execution.graph.nodes
    assert first.attributes.text("fused_activation_function") == "relu"
    t = first.outputs[0]
    ours = execution.engine.run([samples], [t])[t].astype(np.float64)
    clipping = second.attributes.real("activation_clipping")
    assert ours.max() > 2 * clipping > 11

    seen = np.clip(ours, -clipping, clipping)
    wanted = Engine(graph, "float").run([samples], [graph.nodes[0].outputs[0]])[graph.nodes[0].outputs[0]]
    wanted = wanted.astype(np.float64)
    cosine = np.vdot(seen, wanted) / np.sqrt(np.vdot(seen, seen) * np.vdot(wanted, wanted))
    (layer,) = [s for s in similarities(execution, ranged, GivenSamples([samples])).tensors if s.tensor == t]
    assert layer.cosine == cosine > 0.99

    row = summarize(as_is(Model([graph])), ranged, NNIE, GivenSamples([samples]), None)
    sqnr = 10 * np.log10(np.vdot(wanted, wanted) / np.vdot(seen - wanted, seen - wanted))
    assert row.worst_sqnr_db <= sqnr
    assert row.worst_sqnr_db > 20
