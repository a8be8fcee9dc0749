"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL against TFLite, as streams."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.single_op import assert_same_bits, check_stream
from tflq.converters.tflite import model_to_bytes
from tflq.diagnosis.difference import distance_in_units
from tflq.errors import GraphError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import Engine, lower

SEEDS = [(1, 0), (123, 456), (-5, 1 << 40)]


def numbers(operator, shape, seeds, computed=False):
    """The numbers plus an input, so that there are samples."""
    b = GraphBuilder(operator)
    x = b.input("x", (1,), DType.FLOAT32)
    sizes = b.input("sizes", (len(shape),), DType.INT32) if computed else b.constant("s", np.array(shape, np.int32))
    drawn = b.add(operator, [sizes], shape, DType.FLOAT32, seed=seeds[0], seed2=seeds[1])
    return b.build([b.add("add", [drawn, x], shape, DType.FLOAT32, fused_activation_function="none")])


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("shape", [(4,), (3, 7), (1,), (5, 4, 9)])
def test_uniform(oracle, seeds, shape):
    check_stream(oracle, numbers("random_uniform", shape, seeds), [np.zeros((4, 1), np.float32)])


def test_a_shape_that_is_computed(oracle):
    graph = numbers("random_uniform", (2, 3), (7, 8), computed=True)
    inputs = [np.zeros((3, 1), np.float32), np.tile(np.array([2, 3], np.int32), (3, 1))]
    check_stream(oracle, graph, inputs)


@pytest.mark.parametrize("seeds", SEEDS)
def test_standard_normal(oracle, seeds):
    graph = numbers("random_standard_normal", (6, 10), seeds)
    x = np.zeros((5, 1), np.float32)
    ours = Engine(graph, state="stream").run([x])[graph.outputs[0]]
    theirs = oracle.run(model_to_bytes(graph), [x], tensors="outputs", state="stream").tensors[graph.outputs[0]]
    assert distance_in_units(ours, theirs, np.spacing(np.maximum(np.abs(theirs), np.float32(1)))).max() <= 2


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64])
@pytest.mark.parametrize("count", [1, 5, 8])
def test_multinomial(oracle, seeds, dtype, count):
    b = GraphBuilder("multinomial")
    logits = b.input("logits", (3, 6), DType.FLOAT32)
    samples = b.constant("n", np.array(count, np.int32))
    graph = b.build([b.add("multinomial", [logits, samples], (3, count), dtype, seed=seeds[0], seed2=seeds[1])])
    check_stream(oracle, graph, [np.random.default_rng(0).normal(size=(5, 3, 6)).astype(np.float32)])


def test_two_seeds_of_zero_are_new_ones():
    graph = numbers("random_uniform", (100,), (0, 0))
    x = [np.zeros((1, 1), np.float32)]
    first, second = (Engine(graph).run(x)[graph.outputs[0]] for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_seed_gives_the_same_again():
    graph = numbers("random_uniform", (100,), (3, 0))
    engine = Engine(graph, state="stream")
    x = [np.zeros((2, 1), np.float32)]
    first = engine.run(x)[graph.outputs[0]]
    engine.reset()
    assert_same_bits(engine.run(x)[graph.outputs[0]], first, "after reset")


def test_a_negative_size():
    b = GraphBuilder()
    shape = b.constant("s", np.array([2, -3], np.int32))
    graph = b.build([b.add("random_uniform", [shape], (2, 3), DType.FLOAT32, seed=1, seed2=0)])
    with pytest.raises(GraphError, match="sizes of 0 or more"):
        lower(graph)
