"""Rewritten layers return TFLite's integers: against LiteRT's reference kernels, and in tflite-micro itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.converters.tflm.networks import INT8, NETWORKS, SAMPLES, Network, affine
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import model_to_bytes
from tflq.converters.tflm import TFLM
from tflq.converters.tflm.passes.pools import find_power
from tflq.graph import Array, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine
from tflq.oracle import Oracle
from tflq.oracle.package import MICRO, is_installed

NOT_IN_LITERT = ("exp_int8", "gelu_uint8")
"""Functions that BUILTIN_REF refuses; tflq's own kernel is the judge."""


def rewrite(graph: Graph, *settings: str) -> Graph:
    return TFLM.quantize(graph, parse_settings(TFLM.settings, settings))


def run_tflm(graph: Graph, samples: Sequence[Array]) -> Array:
    return Engine(graph, "tflm").run(samples)[graph.outputs[0]]


@pytest.fixture(scope="module")
def litert() -> Iterator[Oracle]:
    with Oracle("litert") as oracle:
        yield oracle


@pytest.fixture(scope="module")
def micro() -> Iterator[Oracle]:
    if not is_installed(MICRO):
        pytest.skip("tflite-micro is not installed")
    with Oracle(MICRO) as oracle:
        yield oracle


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_integers_are_tflites(network: Network, litert: Oracle) -> None:
    result = rewrite(network.graph)
    if network.operators:
        assert [
            node.operator for node in result.nodes if node.operator != "reshape" or "reshape" in network.operators
        ] == (network.operators)
    ours = run_tflm(result, network.samples)
    assert np.array_equal(ours, Engine(network.graph, "tflite").run(network.samples)[network.graph.outputs[0]])
    if network.name in NOT_IN_LITERT:
        return
    (theirs,) = litert.run(model_to_bytes(network.graph), network.samples, tensors="outputs").outputs
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_the_runtime_takes_the_file(network: Network, micro: Oracle) -> None:
    result = rewrite(network.graph)
    content = TFLM.emit(result, Model([network.graph]))["model.tflite"]
    (theirs,) = micro.run(content, network.samples, tensors="outputs").outputs
    np.testing.assert_array_equal(run_tflm(result, network.samples), theirs)


def _dense(rng: np.random.Generator, activation: str, depth: int = 40) -> Graph:
    b = GraphBuilder()
    x = b.input("x", (1, depth), INT8, affine(0.5, 3))
    w = b.constant("w", rng.integers(-127, 128, (9, depth)).astype(np.int8), affine(1 / 64))
    c = b.constant("b", rng.integers(-500, 500, 9).astype(np.int32), affine(1 / 128))
    options = {"fused_activation_function": activation, "keep_num_dims": False}
    return b.build([b.add("fully_connected", [x, w, c], (1, 9), INT8, affine(4.3, -5), version=4, **options)])


@pytest.mark.parametrize("activation", ["none", "relu", "relu6"])
def test_fully_connected_in_float(activation: str, litert: Oracle) -> None:
    rng = np.random.default_rng(5)
    graph = _dense(rng, activation)
    samples = [rng.integers(-128, 128, (4000, 1, 40)).astype(np.int8)]
    plain, exact = rewrite(graph), rewrite(graph, "fully_connected=float32")
    assert [node.operator for node in exact.nodes] == ["cast", "fully_connected", "mul", "quantize"]
    (theirs,) = litert.run(model_to_bytes(graph), samples, tensors="outputs").outputs
    np.testing.assert_array_equal(run_tflm(exact, samples), theirs)
    assert not TFLM.departures(Engine(exact, "tflm").graph)
    differing = np.count_nonzero(run_tflm(plain, samples) != theirs)
    (reason,) = TFLM.departures(Engine(plain, "tflm").graph).values()
    assert "at most 1 LSB" in reason
    assert differing or activation == "relu6"


def test_large_sums_stay_integers() -> None:
    graph = _dense(np.random.default_rng(6), "none", depth=4000)
    assert [node.operator for node in rewrite(graph, "fully_connected=float32").nodes] == ["fully_connected"]


def test_false_shapes_and_open_sizes_are_resolved() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 6), INT8, affine(0.5))
    y = b.add("relu", [x], (4, 6), INT8, affine(0.5))
    graph = b.build([y])
    graph.tensors[x] = replace(graph.tensors[x], shape_signature=(-1, 6))
    result = rewrite(graph)
    assert [(t.shape, t.shape_signature) for t in result.tensors] == [((1, 6), None), ((1, 6), None)]


def test_weights_of_pools() -> None:
    for count in (2, 4, 6, 16, 36, 64, 100):
        power = find_power(count)
        assert power is not None
        assert count << power < 1 << 24
    assert SAMPLES > 1


def test_every_operator_without_a_kernel_is_named() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 4, 4, 2), DType.INT16, affine(0.5))
    y = b.add("depth_to_space", [x], (1, 8, 8, 1), DType.INT16, affine(0.5), block_size=2)
    s = b.add("segment_sum", [y, b.constant("i", np.array([0], np.int32))], (1, 8, 8, 1), DType.INT16, affine(0.5))
    lines = TFLM.check(b.build([s]), parse_settings(TFLM.settings, ()))
    assert [line.split(":")[0] for line in lines] == [
        "operator 0 (depth_to_space 'DEPTH_TO_SPACE_0_0')",
        "operator 1 (segment_sum 'SEGMENT_SUM_0_1')",
    ]
    assert "no kernel for int16; allowed is float32, int8" in lines[0]


def test_the_header_registers_each_operator_once() -> None:
    result = rewrite(NETWORKS[0].graph)
    files = TFLM.emit(result, Model([NETWORKS[0].graph], source="a/my net-2.tflite"))
    (name,) = (name for name in files if name.endswith(".h"))
    text = files[name].decode()
    assert "MicroMutableOpResolver<3>" in text
    assert [line.split(".")[1].split("(")[0] for line in text.splitlines() if "(resolver." in line] == [
        "AddConcatenation",
        "AddConv2D",
        "AddQuantize",
    ]
