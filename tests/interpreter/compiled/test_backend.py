"""Engine(backend="c") gives what numpy gives, in every tensor: random networks, and one model in all targets."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import c_compiler
from tests.support.integer_networks import integer_network
from tests.support.tracked import ROOT
from tflq.analysis.executions import for_target
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.graph import Array, Graph
from tflq.interpreter import Engine

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
TARGETS = ("tflite", "gap9-ne16", "gap9-sq8", "aipu", "tpu-mlir", "openvino")
SAMPLES = 21


@pytest.fixture(autouse=True)
def _compiler() -> None:
    c_compiler.compiler()


def samples_of(graph: Graph, count: int, seed: int) -> list[Array]:
    """Any quantized values; one sample holds the least of them, one the largest."""
    rng, found = np.random.default_rng(seed), []
    for t in graph.inputs:
        tensor = graph.tensors[t]
        shape, dtype = (count, *tensor.shape), tensor.dtype
        if dtype.storage.kind == "f":
            found.append(rng.normal(size=shape).astype(dtype.storage))
            continue
        x = rng.integers(dtype.minimum, dtype.maximum + 1, shape).astype(dtype.storage)
        x[0], x[-1] = dtype.minimum, dtype.maximum
        found.append(x)
    return found


def require_equal(graph: Graph, seed: int) -> Engine:
    """Compare every tensor, outputs alone, and one sample; return the compiled engine."""
    plain, compiled = Engine(graph), Engine(graph, backend="c")
    assert compiled.backend == "c"
    inputs = samples_of(plain.graph, SAMPLES, seed)
    keep = [t for node in plain.graph.nodes for t in node.outputs]
    expected = plain.run(inputs, keep)
    for label, found in (
        ("all", compiled.run(inputs, keep)),
        ("outputs", compiled.run(inputs)),
        ("chunks", compiled.run(inputs, keep, chunk_size=4)),
        ("one", compiled.run([x[:1] for x in inputs], keep)),
    ):
        for t, values in found.items():
            name = plain.graph.tensors[t].name
            assert values.dtype == expected[t].dtype, (label, name)
            assert np.array_equal(values, expected[t][: len(values)]), (label, name)
    return compiled


@pytest.mark.parametrize("target", TARGETS)
def test_the_model_in_the_package_in_every_arithmetic(target: str) -> None:
    graph = read_model(DIGITS).main
    if target != "tflite":
        found = find_target(target)
        graph = for_target(graph, found, parse_settings(found.settings, ())).graph
    compiled = require_equal(graph, 1)
    assert len(compiled.in_numpy()) <= 3  # the softmax, and what goes to real numbers and back


@pytest.mark.parametrize("seed", range(40))
def test_random_networks(seed: int) -> None:
    compiled = require_equal(integer_network(seed), seed)
    assert len(compiled.in_numpy()) < len(compiled.graph.nodes)
