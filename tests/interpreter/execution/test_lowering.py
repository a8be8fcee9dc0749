"""Lowering: integers in every node, constants folded, all missing operators named at once."""

from __future__ import annotations

import re
from dataclasses import is_dataclass

import numpy as np
import pytest

from tests.interpreter.kernels_for_tests import NAME, Calls, calls  # noqa: F401
from tests.support.data import data_files, data_path
from tests.support.draw import affine
from tflq.converters.tflite import read_model
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder, validate
from tflq.interpreter import lower

INT32 = DType.INT32
MODELS = data_files("models")


def chain(*operators: str, constant: bool = False) -> Graph:
    b = GraphBuilder()
    t = b.constant("x", np.arange(3, dtype=np.int32)) if constant else b.input("x", (3,), INT32)
    for operator in operators:
        t = b.add(operator, [t, t] if operator == "add" else [t], (3,), INT32)
    return b.build([t])


def test_all_that_kernels_refuse_is_listed_at_once(calls: Calls) -> None:  # noqa: F811
    with pytest.raises(UnsupportedError) as caught:
        lower(chain("refuse", "double", "refuse"), NAME)
    assert re.findall(r"operator (\d+) \(refuse", str(caught.value)) == ["0", "2"]


def test_every_node_gets_its_arithmetic_and_integers(calls: Calls) -> None:  # noqa: F811
    graph = chain("add", "double")
    lowered = lower(graph, NAME)
    assert [(n.arithmetic, n.params) for n in lowered.nodes] == [(NAME, 2), (NAME, 2)]
    assert [(n.arithmetic, n.params) for n in graph.nodes] == [(None, None), (None, None)]
    assert calls.run == ["double"], "the shape of an operator that has no rule is that of its result for zeros"


def test_constants_are_folded(calls: Calls) -> None:  # noqa: F811
    graph = chain("add", "double", constant=True)
    lowered = lower(graph, NAME)
    folded = lowered.tensors[lowered.outputs[0]]
    assert folded.data.tolist() == [0, 4, 8]
    assert graph.tensors[graph.outputs[0]].data is None
    with pytest.raises(ValueError, match="read-only"):
        folded.data[0] = 1


def test_what_depends_on_an_input_is_not_folded(calls: Calls) -> None:  # noqa: F811
    b = GraphBuilder()
    x, c = b.input("x", (3,), INT32), b.constant("c", np.ones(3, np.int32))
    half = b.add("double", [c], (3,), INT32)
    lowered = lower(b.build([b.add("add", [x, half], (3,), INT32)]), NAME)
    assert lowered.tensors[half].is_constant
    assert not lowered.tensors[lowered.outputs[0]].is_constant
    assert calls.run == ["double"]


def test_all_missing_operators_are_named_at_once(calls: Calls) -> None:  # noqa: F811
    graph = chain("add", "svdf", "double", "lstm", "svdf")
    with pytest.raises(UnsupportedError) as caught:
        lower(graph, NAME)
    assert str(caught.value) == (
        "no kernel for svdf in arithmetic 'tests' (operator 1, 4); lstm in arithmetic 'tests' (operator 3); "
        "arithmetic 'tests' has add, double, refuse (docs/internals/extending.md: how to add one)"
    )
    assert calls.lowered == []


def test_custom_operators_are_named_by_their_code(calls: Calls) -> None:  # noqa: F811
    graph = chain("custom")
    node = graph.nodes[0]
    graph.nodes[0] = type(node)(**{**vars(node), "custom_code": "Mine"})
    with pytest.raises(UnsupportedError, match=r"no kernel for custom Mine in arithmetic 'tests' \(operator 0\)"):
        lower(graph, NAME)


def test_refusals_of_a_kernel_name_the_operator(calls: Calls) -> None:  # noqa: F811
    with pytest.raises(UnsupportedError) as caught:
        lower(chain("add", "refuse"), NAME)
    assert str(caught.value) == "operator 1 (refuse 'REFUSE_0_1'): tensor 'add_0' is not to my taste"


def test_attributes_of_another_type_name_the_operator(calls: Calls) -> None:  # noqa: F811
    graph = chain("double")
    node = graph.nodes[0]
    graph.nodes[0] = type(node)(**{**vars(node), "attributes": node.attributes.updated(factor="two")})
    with pytest.raises(GraphError, match=r"^operator 0 \(double 'DOUBLE_0_0'\): attribute factor: found 'two'"):
        lower(graph, NAME)


def test_missing_operands_name_the_operator() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 3), DType.INT8, affine(DType.INT8, 0.5))
    graph = b.build([b.add("fully_connected", [x], (1, 3), DType.INT8, affine(DType.INT8, 0.5))])
    with pytest.raises(GraphError, match=r"^operator 0 \(fully_connected 'FULLY_CONNECTED_0_0'\): input 1 is missing"):
        lower(graph)


def test_a_node_that_names_its_arithmetic_keeps_it(calls: Calls) -> None:  # noqa: F811
    b = GraphBuilder()
    x = b.input("x", (3,), DType.FLOAT32)
    graph = b.build([b.add("relu", [b.add("add", [x, x], (3,), DType.FLOAT32)], (3,), DType.FLOAT32)])
    first = graph.nodes[0]
    graph.nodes[0] = type(first)(**{**vars(first), "arithmetic": NAME})
    assert [n.arithmetic for n in lower(graph).nodes] == [NAME, "float"]


@pytest.mark.parametrize("path", MODELS or [None], ids=[path.stem for path in MODELS] or ["no data"])
def test_reference_models_carry_dataclasses(path) -> None:
    lowered = lower(read_model(path or data_path("models")).main)
    validate(lowered)
    assert all(is_dataclass(node.params) for node in lowered.nodes)
    assert all(type(node.params).__dataclass_params__.frozen for node in lowered.nodes)


@pytest.mark.parametrize("is_called", [False, True])
def test_shapes_of_a_graph_that_others_run_are_not_taken_from_the_file(is_called: bool) -> None:
    b = GraphBuilder()
    x = b.input("x", (2, 3), DType.FLOAT32)
    lowered = lower(b.build([b.add("shape", [x], (2,), INT32, out_type="int32")]), is_called=is_called)
    assert lowered.tensors[lowered.outputs[0]].is_constant is not is_called
