"""Engine(backend="c") gives what numpy gives, in every tensor: random networks, and one model in all targets."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import c_compiler
from tests.support.integer_networks import depthwise_network, integer_network
from tests.support.tracked import ROOT
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.errors import InputError, UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine
from tflq.parallel.executions import for_target

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
    assert len(compiled.in_numpy()) <= (0 if target == "tflite" else 3)  # a softmax, what goes to real numbers and back


@pytest.mark.parametrize("seed", range(40))
def test_random_networks(seed: int) -> None:
    compiled = require_equal(integer_network(seed), seed)
    assert len(compiled.in_numpy()) < len(compiled.graph.nodes)


@pytest.mark.parametrize("seed", range(40))
def test_depthwise_layers(seed: int) -> None:
    require_equal(depthwise_network(seed), seed)


@pytest.mark.parametrize("strides", [(1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("channels", [8, 16, 32, 64])
def test_depthwise_layers_whose_neighbors_fill_a_vector(channels: int, strides: tuple[int, int]) -> None:
    for seed in range(4):
        require_equal(depthwise_network(seed, (5, 16, channels), strides), seed)


@pytest.mark.parametrize("seed", range(8))
def test_softmax_of_any_scale_and_length(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = (DType.INT8, DType.UINT8)[seed % 2]
    length = int(rng.choice([1, 2, 10, 90, 511]))
    shape = ((1, length), (3, length), (1, 2, 2, length), (length,))[seed % 4]
    builder = GraphBuilder("softmax")
    scale = np.float32(2.0 ** rng.uniform(-12, 1))
    x = builder.input("x", shape, dtype, Affine.per_tensor(scale, 3, 8, dtype.is_signed))
    affine = Affine.per_tensor(np.float32(1 / 256), dtype.minimum, 8, dtype.is_signed)
    y = builder.add("softmax", [x], shape, dtype, affine, beta=float(rng.uniform(0.5, 2)))
    compiled = require_equal(builder.build([y]), seed)
    assert not compiled.in_numpy()


def test_a_softmax_that_may_refuse_a_row_stays_in_numpy() -> None:
    builder = GraphBuilder("softmax")
    x = builder.input("x", (1, 512), DType.INT8, Affine.per_tensor(np.float32(0.1), 0, 8, True))
    affine = Affine.per_tensor(np.float32(1 / 256), -128, 8, True)
    y = builder.add("softmax", [x], (1, 512), DType.INT8, affine, beta=1.0)
    engine = Engine(builder.build([y]), backend="c")
    assert len(engine.in_numpy()) == 1
    with pytest.raises(UnsupportedError, match="sum up to 512 or more"):
        engine.run([np.zeros((1, 1, 512), np.int8)])


def test_inputs_are_checked_and_copied_as_ever() -> None:
    graph = integer_network(3)
    engine, plain = Engine(graph, backend="c"), Engine(graph)
    (x,) = samples_of(engine.graph, 4, 1)
    (y,) = engine.graph.outputs
    expected = plain.run([x])[y]
    for given in (x, list(x), np.asfortranarray(x), np.repeat(x, 2, 0)[::2]):
        assert np.array_equal(engine.run([given])[y], expected)
    for wrong in ([], [x, x], [x[:0]], [x[0]], [x.astype(np.int32)]):
        with pytest.raises(InputError):
            engine.run(wrong)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("arithmetic", ["gap9", "tpu_mlir"])
def test_sums_that_round_their_operands_and_a_rectifier_behind(arithmetic: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, is_gap9 = (1, *(int(n) for n in rng.integers(1, 9, 3))), arithmetic == "gap9"
    builder = GraphBuilder("sum")

    def affine(largest: float) -> Affine:
        zero_point = 0 if is_gap9 else int(rng.integers(-20, 20))
        return Affine.per_tensor(np.float32(2.0 ** rng.uniform(-6, largest)), zero_point, 8, True)

    operands = [builder.input(name, shape, DType.INT8, affine(-2)) for name in ("a", "b")]
    sum_affine = affine(0)
    total = builder.add("add", operands, shape, DType.INT8, sum_affine, fused_activation_function="none")
    y = builder.add("relu", [total], shape, DType.INT8, sum_affine)
    compiled = require_equal(Engine(builder.build([y]), arithmetic).graph, seed)
    assert not compiled.in_numpy()
