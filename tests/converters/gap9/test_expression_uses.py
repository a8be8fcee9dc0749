"""Every operator of expressions, made here: files, explanations, settings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Net
from tests.support.gap9_read_back import read_graph
from tflq import convert, explain
from tflq.arrays import is_same
from tflq.converters.gap9.departures import departures_of
from tflq.converters.gap9.expressions.groups import NEEDING
from tflq.converters.passes.rewrite import with_attributes
from tflq.converters.targets import find_target
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import UnsupportedError
from tflq.graph import Affine, DType, Graph, GraphBuilder, Model, Range
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.gap9.rounding import code_type, dequantize, quantize
from tflq.schemas.gap9 import quantization_schema

SHAPE = (1, 3, 2, 4)
PAIRS = ("div", "maximum", "minimum", "squared_difference")


def network(operator: str) -> Model:
    """y = operator(x, z) * x, int8; a squared difference in float with ranges."""
    b = GraphBuilder("one")
    in_float = operator == "squared_difference"
    kind = DType.FLOAT32 if in_float else DType.INT8
    scale = None if in_float else Affine.per_tensor(np.float32(2 / 255), -128)
    x, z = b.input("x", SHAPE, kind, scale), b.input("z", (1, 1, 1, 4), kind, scale)
    operands = [x, z] if operator in PAIRS else [x]
    if operator == "pow":
        operands.append(b.constant("two", np.array([2], np.int8), Affine.per_tensor(np.float32(1), 0)))
    middle = b.add(operator, operands, SHAPE, kind, scale)
    y = b.add("mul", [middle, x if len(operands) > 1 and operator in PAIRS else z], SHAPE, kind, scale)
    graph = b.build([y])
    return Model([_ranged(graph) if in_float else graph])


def _ranged(graph: Graph) -> Graph:
    range_ = Range(np.array([0], np.float32), np.array([2], np.float32))
    graph.tensors = [replace(t, range=range_) for t in graph.tensors]
    graph.nodes[0] = with_attributes(graph.nodes[0], difference_range=(-2.0, 2.0))
    return graph


@pytest.mark.parametrize("operator", sorted(NEEDING))
@pytest.mark.parametrize("target", ["gap9-ne16", "gap9-sq8"])
def test_one_operator_and_a_product_are_one_node(operator: str, target: str) -> None:
    model = network(operator)
    graph = lower(quantized(model, target), "gap9")
    assert [node.operator for node in graph.nodes] == ["expression"]
    assert f"{operator.upper()} need it" in graph.nodes[0].attributes.text("engine_reason")
    files = find_target(target).emit(graph, model)
    content = json.loads(files["quantization.json"])
    jsonschema.validate(content, quantization_schema())
    assert content["nodes"][0]["integers"]["steps"][-1]["operation"] == "clip"
    assert b'fusions("expression_matcher")' in files["nntool.py"]
    view = model_from_bytes(files["model.tflite"]).main
    assert {operator, "mul", "dequantize", "quantize"} >= {n.operator for n in view.nodes} - {"sub", "relu"}
    again = lower(read_graph(files), "gap9")
    rng = np.random.default_rng(0)
    feeds = [rng.integers(-128, 128, (5, *graph.tensors[t].shape)).astype(np.int8) for t in graph.inputs]
    (one,), (other,) = Engine(graph).run(feeds).values(), Engine(again).run(feeds).values()
    assert np.array_equal(one, other)
    assert is_same(graph.nodes[0].attributes, again.nodes[0].attributes)


@pytest.mark.parametrize("operator", sorted(NEEDING - {"squared_difference"}))
def test_explained_step_by_step(tmp_path: Path, operator: str) -> None:
    path = tmp_path / "one.tflite"
    path.write_bytes(model_to_bytes(network(operator)))
    found = explain(str(path), "expr_0", (0, 1, 1, 2), target="gap9-sq8")
    labels = [step.label for part in found.explanation.parts for step in part.steps]
    assert labels[-1] == "stored value"
    assert len(labels) > 4


def test_the_matcher_changes_single_products_and_differences() -> None:
    b = GraphBuilder("two")
    scale = Affine.per_tensor(np.float32(0.05))
    x, z = b.input("x", SHAPE, DType.INT8, scale), b.input("z", SHAPE, DType.INT8, scale)
    model = Model([b.build([b.add("mul", [x, z], SHAPE, DType.INT8, scale)])])
    for setting, operator in (("auto", "mul"), ("false", "mul"), ("true", "expression")):
        graph = quantized(model, "gap9-sq8", [f"expressions={setting}"])
        assert [node.operator for node in graph.nodes] == [operator]
    with pytest.raises(UnsupportedError, match="expressions=auto or true"):
        quantized(network("exp"), "gap9-sq8", ["expressions=false"])


def test_written_files_run_in_tflite(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="no ai-edge-litert")
    path = tmp_path / "one.tflite"
    path.write_bytes(model_to_bytes(network("exp")))
    found = convert(str(path), "gap9-ne16", tmp_path / "out")
    assert found.compared is not None
    assert not isinstance(found.compared, str)
    assert found.compared.output.largest_lsb <= 3


@pytest.mark.parametrize("form", ["comes back", "asked above", "behind a move", "beside"])
def test_quantize_nodes_that_the_matcher_may_take_in_another_way(form: str) -> None:
    """NNTool, run on the four networks: the first differs, as does a drawn one (92502_48) of the second's form."""
    graph = lower(quantized(beside_a_hard_swish(form), "gap9-sq8", ["expressions=true"], []), "gap9")
    found = departures_of(graph)
    assert any("in another way (22)" in text for text in found.values()) is (form in ("comes back", "asked above")), (
        found
    )


def beside_a_hard_swish(form: str) -> Model:
    """A hard swish and a MINIMUM read one input from 0 on."""
    net = Net((0.0, 2.0))
    x = net.join([net.x, net.x], (0.0, 2.0)) if form in ("behind a move", "asked above") else net.x
    above = [net.unary("hard_swish", net.x, (0.0, 1.7))] if form == "asked above" else []
    curve = net.unary("hard_swish", x, (0.0, 1.7))
    if form == "comes back":
        return net.model(net.add("minimum", [curve, x], net.shapes[x], (0.0, 1.7)))
    other = net.builder.constant("c", np.full(net.shapes[x], 40, np.int8), Affine.per_tensor(np.float32(0.01), 0))
    return net.model(*above, net.add("minimum", [x, other], net.shapes[x], (0.0, 0.5)), curve)


HANDED_ON = {
    "an input from 0 on": True,
    "an input": False,
    "a filter": True,
    "a filter with ReLU and pool": True,
    "a move of a filter": True,
    "a move of an input": False,
    "a mean": False,
}


@pytest.mark.parametrize("curve", ["softmax", "hard_swish"])
@pytest.mark.parametrize("source", HANDED_ON)
@pytest.mark.parametrize("other", ["minimum", "exp", "max_pool_2d"])
def test_asymmetric_tensors_that_an_expression_hands_on(curve: str, source: str, other: str) -> None:
    """docs/rules/gap9/expressions.md: softmax and hard swish read an output of the expression beside them, where Z is
    not 0."""
    net = Net((0.0, 2.0) if source.endswith("on") else (-1.0, 2.0))
    x, limits = net.x, (0.0, 2.0) if source.endswith("on") else (-1.0, 2.0)
    if "filter" in source:
        x = net.conv(x, (0.0, 2.0) if "ReLU" in source else limits, activation="relu" if "ReLU" in source else "none")
    if "pool" in source:
        x = net.pool(x, (0.0, 2.0))
    if "move" in source:
        x = _reshaped(net, x, (1, 4, 16, 4), limits)
    if "mean" in source:
        axes = net.builder.constant("axes", np.array([1, 2], np.int32))
        x = net.add("mean", [x, axes], (1, 1, 1, 4), limits, keep_dims=True)
    curved = net.unary(curve, x, (0.0, 1.0), **({"beta": 1.0} if curve == "softmax" else {}))
    if other == "minimum":
        limit = net.builder.constant("c", np.full((1, 1, 1, 4), 40, np.int8), Affine.per_tensor(np.float32(0.01), 0))
        beside = net.add("minimum", [x, limit], net.shapes[x], (-1.0, 0.4))
    else:
        beside = net.pool(x, limits, size=1) if other == "max_pool_2d" else net.unary("exp", x, (0.0, 7.5))
    graph = quantized(net.model(curved, beside), "gap9-sq8", ["expressions=true"])
    reader = next(node for node in graph.nodes if node.operator == curve)
    written = {t: node.operator for node in graph.nodes for t in node.outputs}
    writer = written.get(reader.inputs[0], "")
    if writer == "quantize":
        writer = written.get(next(n.inputs[0] for n in graph.nodes if reader.inputs[0] in n.outputs), "")
    assert (writer == "expression") == (HANDED_ON[source] and other != "max_pool_2d")


def _reshaped(net: Net, x: int, shape: tuple[int, ...], limits: tuple[float, float]) -> int:
    sizes = net.builder.constant("shape", np.array(shape, np.int32))
    return net.add("reshape", [x, sizes], shape, limits)


def test_results_of_different_ranks() -> None:
    """An expression's result that only inputs of a low rank reach has that rank, as what reads it expects."""
    b = GraphBuilder("ranks")
    scale = Affine.per_tensor(np.float32(0.02), -128)
    x = b.input("x", (1, 1, 1, 4), DType.INT8, scale)
    shape = b.constant("shape", np.array([1, 4], np.int32))
    flat = b.add("reshape", [x, shape], (1, 4), DType.INT8, scale)
    small = b.add("abs", [flat], (1, 4), DType.INT8, scale)
    large = b.add("maximum", [small, x], (1, 1, 1, 4), DType.INT8, scale)
    joined = b.add("concatenation", [small, flat], (1, 8), DType.INT8, scale, axis=1)
    outputs = [small, large, joined]
    codes = np.random.default_rng(3).integers(-128, 128, (5, 1, 1, 1, 4)).astype(np.int8)
    for target in ("gap9-ne16", "gap9-sq8"):
        lowered = lower(quantized(Model([b.build(outputs)]), target), "gap9")
        assert [n.operator for n in lowered.nodes].count("expression") == 1
        into = lowered.tensors[lowered.inputs[0]].affine
        feed = quantize(dequantize(codes, scale), into).astype(code_type(into).storage)
        found = Engine(lowered).run([feed])
        real = [dequantize(found[t], lowered.tensors[t].affine) for t in lowered.outputs]
        values = dequantize(codes, scale).reshape(5, 1, 4)
        assert [r.shape for r in real] == [(5, 1, 4), (5, 1, 1, 1, 4), (5, 1, 8)]
        assert np.abs(real[0] - values).max() <= 0.02
        assert np.abs(real[1].reshape(5, 1, 4) - values).max() <= 0.02
        assert np.array_equal(real[2], np.concatenate([real[0], real[2][..., 4:]], axis=-1))


IN_FRONT = {
    "a filter": ["conv_2d", "expression"],
    "a filter and its pool": ["conv_2d", "max_pool_2d", "expression"],
    "a filter with ReLU": [],
    "a filter that another reads": [],
    "a pool": [],
    "a sum": [],
    "a pooled sum": [],
}


@pytest.mark.parametrize("source", IN_FRONT)
def test_expressions_join_the_filter_in_front(source: str) -> None:
    """docs/rules/gap9/expressions.md: of one input and one output of equal shape, alone behind a filter, or its
    pool."""
    limits = (0.0, 2.0) if "ReLU" in source else (-1.0, 2.0)
    net = Net(limits)
    x = net.x
    if "filter" in source:
        x = net.conv(x, limits, activation="relu" if "ReLU" in source else "none")
    if "sum" in source:
        x = net.binary("add", x, net.input(limits, net.shapes[x]), limits)
    if "pool" in source:
        x = net.pool(x, limits)
    others = [net.conv(x, (-1.0, 1.0))] if "another" in source else []
    graph = quantized(net.model(net.unary("exp", x, (0.0, 7.5)), *others), "gap9-sq8", ["expressions=true"])
    (found,) = (node for node in graph.nodes if node.operator == "expression")
    fusion = found.attributes.text("fusion", "")
    together = [n.operator for n in graph.nodes if fusion and n.attributes.text("fusion", "") == fusion]
    assert together == IN_FRONT[source]
