"""A few damaged files in scripts/test; scripts/fuzz_models makes thousands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.hostile.campaign import trials
from tests.hostile.mutate import mutation
from tests.hostile.report import line, table
from tests.support.draw import affine, with_constants
from tests.support.single_op import check_against_oracle
from tests.support.tracked import ROOT
from tests.support.types import INT8
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import GraphError, OptionError, OracleError, UnsupportedError
from tflq.graph import ABSENT, DType, GraphBuilder
from tflq.interpreter import Engine
from tflq.limits import Limits

DIGITS = (ROOT / "tflq" / "data" / "digits.tflite").read_bytes()
Q = affine(INT8, 0.5)


@pytest.mark.parametrize("part", range(4))
def test_damaged_files_are_refused_in_one_line_or_run(oracle, part):
    found = list(trials([("digits", DIGITS)], range(part * 30, part * 30 + 30)))
    assert not [line(t) for t in found if t.failure]
    assert f"| {len(found)} |" in table(found)


def test_mutations_are_always_the_same():
    assert [mutation(DIGITS, DIGITS, n) for n in range(20)] == [mutation(DIGITS, DIGITS, n) for n in range(20)]


def test_shapes_that_the_file_states_wrongly_are_computed(oracle):
    """As in TFLite, which does not read the shapes of intermediate tensors."""
    b = GraphBuilder()
    x = b.input("x", (2, 6), INT8, Q)
    wrong = b.add("transpose", [x, b.constant("order", np.array([1, 0], np.int32))], (6, 4), INT8, Q)
    whole = b.add("reshape", [wrong, b.constant("shape", np.array([-1, 4], np.int32))], (6, 4), INT8, Q)
    graph = b.build([whole])
    check_against_oracle(oracle, graph, [np.arange(24, dtype=np.int8).reshape(2, 2, 6)])


def refused_by_both(oracle, graph, message):
    content = model_to_bytes(graph)
    with pytest.raises(OracleError):
        oracle.run(content, [np.zeros((1, 1, 4, 4, 1), np.int8)])
    with pytest.raises(GraphError, match=message):
        model_from_bytes(content)


@pytest.mark.parametrize(
    ("operator", "inputs", "message"),
    [
        ("conv_2d", (0, 1), "found 2 inputs; conv_2d has 3"),
        ("conv_2d", (0, 1, 2, 2), "found 4 inputs"),
        ("conv_2d", (0, 1, ABSENT), "input 2 is absent"),
        ("depthwise_conv_2d", (0, 1, ABSENT), "input 2 is absent"),
    ],
)
def test_numbers_of_operands(oracle, operator, inputs, message):
    b = GraphBuilder()
    x = b.input("x", (1, 4, 4, 1), INT8, Q)
    weights = b.constant("w", np.ones((1, 1, 1, 1), np.int8), Q)
    bias = b.constant("b", np.zeros(1, np.int32), affine(DType.INT32, 0.25))
    options = {"padding": "valid", "stride_h": 1, "stride_w": 1}
    graph = b.build([b.add(operator, [x, weights, bias], (1, 4, 4, 1), INT8, Q, **options)])
    graph.nodes[0] = replace(graph.nodes[0], inputs=inputs)
    refused_by_both(oracle, graph, message)


def test_a_bias_whose_scale_is_far_off(oracle):
    b = GraphBuilder()
    x, weights = b.input("x", (1, 4), INT8, Q), b.constant("w", np.ones((2, 4), np.int8), Q)
    bias = b.constant("b", np.zeros(2, np.int32), affine(DType.INT32, 0.5))
    graph = b.build([b.add("fully_connected", [x, weights, bias], (1, 2), INT8, Q)])
    with pytest.raises(OracleError, match="scale_diff"):
        oracle.run(model_to_bytes(graph), [np.zeros((1, 1, 4), np.int8)])
    with pytest.raises(UnsupportedError, match=r"the bias 'b' has scale 0\.5"):
        Engine(graph)


def test_a_limit_of_memory_and_its_option(monkeypatch):
    graph = with_constants("reshape", (1000,), (10, 100), [np.array([10, 100], np.int32)], INT8, Q)
    Engine(graph, limits=Limits(max_bytes=1000))
    with pytest.raises(UnsupportedError, match="found 1000, 999 are allowed; raise the limit with limits bytes=N"):
        Engine(graph, limits=Limits(max_bytes=999))
    monkeypatch.setenv("TFLQ_MAX_BYTES", "10")
    with pytest.raises(UnsupportedError, match="10 are allowed"):
        Engine(graph)
    monkeypatch.setenv("TFLQ_MAX_BYTES", "much")
    with pytest.raises(OptionError, match="TFLQ_MAX_BYTES is 'much'"):
        Engine(graph)


def test_subgraphs_that_run_each_other_are_refused():
    b = GraphBuilder()
    condition, x = b.input("condition", (1,), DType.BOOL), b.input("x", (4,), INT8, Q)
    graph = b.build([b.add("if", [condition, x], (4,), INT8, Q, then_subgraph_index=0, else_subgraph_index=0)])
    with pytest.raises(GraphError, match="0 -> 0; such a model never ends"):
        Engine(graph, graphs=[graph])


def test_a_subgraph_with_other_inputs_than_it_is_given():
    called = with_constants("reshape", (4,), (2, 2), [np.array([2, 2], np.int32)], INT8, Q)
    for inputs, message in (
        (("c",), "has 1 inputs, its caller gives 0"),
        (("c", "f"), "input 'x' is int8, got float32"),
    ):
        b = GraphBuilder()
        kinds = {"c": ((1,), DType.BOOL), "f": ((4,), DType.FLOAT32)}
        given = [b.input(name, *kinds[name]) for name in inputs]
        y = b.add("if", given, (2, 2), INT8, Q, then_subgraph_index=1, else_subgraph_index=1)
        main = b.build([y])
        values = [np.zeros((1, *shape), dtype.storage) for shape, dtype in (kinds[name] for name in inputs)]
        with pytest.raises(GraphError, match=message):
            Engine(main, graphs=[main, called]).run(values)


def test_strides_of_a_convolution(oracle):
    b = GraphBuilder()
    x, weights = b.input("x", (1, 4, 4, 1), INT8, Q), b.constant("w", np.ones((1, 1, 1, 1), np.int8), Q)
    bias = b.constant("b", np.zeros(1, np.int32), affine(DType.INT32, 0.25))
    options = {"padding": "valid", "stride_h": 1 << 15, "stride_w": 1}
    graph = b.build([b.add("conv_2d", [x, weights, bias], (1, 1, 4, 1), INT8, Q, **options)])
    with pytest.raises(OracleError):
        oracle.run(model_to_bytes(graph), [np.zeros((1, 1, 4, 4, 1), np.int8)])
    with pytest.raises(UnsupportedError, match="takes up to 32767"):
        Engine(graph)
