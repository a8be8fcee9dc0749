"""A cut graph, fed with the whole's tensors, computes the whole's tensors; what cannot be cut is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.single_op import assert_same_bits
from tests.support.tracked import ROOT
from tflq.converters.tflite import model_from_bytes, model_to_bytes, read_model
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder, cut, find_tensor
from tflq.interpreter import Engine
from tflq.oracle import Oracle
from tflq.sampling import RandomSamples

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
FLOAT = DType.FLOAT32


def check_every_cut(graph: Graph, oracle: Oracle, ends: list[tuple[int, int]]) -> None:
    samples = list(RandomSamples(graph, 3, 1).take(0, 3))
    computed = list(dict.fromkeys([*graph.inputs, *(t for node in graph.nodes for t in node.outputs)]))
    whole = {**Engine(graph).run(samples, computed), **dict(zip(graph.inputs, samples, strict=True))}
    for source, target in ends:
        part = cut(graph, [source], [target])
        content = model_to_bytes(part)
        read = model_from_bytes(content, "part").main
        assert [read.tensors[t].name for t in (*read.inputs, *read.outputs)] == [
            graph.tensors[t].name for t in (source, target)
        ]
        (ours,) = Engine(read).run([whole[source]]).values()
        assert_same_bits(ours, whole[target], f"{source} to {target}")
        (theirs,) = oracle.run(content, [whole[source]], tensors="outputs").tensors.values()
        assert_same_bits(theirs, whole[target], f"{source} to {target} in TFLite")


def test_digits_between_any_two_layers(oracle: Oracle) -> None:
    graph = read_model(DIGITS).main
    line = [graph.inputs[0], *(node.outputs[0] for node in graph.nodes)]
    check_every_cut(graph, oracle, [(a, b) for i, a in enumerate(line) for b in line[i + 1 :: 2]])


def test_keywords_in_the_middle(oracle: Oracle) -> None:
    graph = read_model(data_path("models", "kws_ref_model.tflite")).main
    line = [node.outputs[0] for node in graph.nodes]
    check_every_cut(graph, oracle, [(line[2], line[5]), (line[0], line[-1])])


def test_residual_needs_both_sources() -> None:
    graph = read_model(data_path("models", "pretrainedResnet_quant.tflite")).main
    add = next(node for node in graph.nodes if node.operator == "add")
    part = cut(graph, add.inputs, add.outputs)
    assert [node.operator for node in part.nodes] == ["add"]
    with pytest.raises(OptionError, match="the part also needs input"):
        cut(graph, add.inputs[1:], add.outputs)


def test_without_ends_the_whole_stays() -> None:
    graph = read_model(DIGITS).main
    part = cut(graph, [], [])
    assert [node.operator for node in part.nodes] == [node.operator for node in graph.nodes]
    assert len(part.tensors) <= len(graph.tensors)


def _branches() -> Graph:
    b = GraphBuilder("branches")
    x = b.input("x", (1, 4), FLOAT)
    c = b.constant("c", np.ones(4, np.float32))
    y = b.add("add", [x, c], (1, 4), FLOAT, fused_activation_function="none")
    left = b.add("relu", [y], (1, 4), FLOAT)
    right = b.add("tanh", [y], (1, 4), FLOAT)
    return b.build([left, right])


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        (["c"], ["add_0"], r"tensor 'c' \(1\) is a constant"),
        (["relu_1"], ["tanh_2"], r"also needs input 'x'"),
        (["x", "add_0"], ["relu_1"], r"source 'x' \(0\) leads to none of 'relu_1' \(3\), or only by way of another"),
        (["x"], ["x"], r"there is no operator between 'x' \(0\) and 'x' \(0\)"),
        (["tanh_9"], [], r"no tensor is called 'tanh_9'; nearest are 'tanh_2'"),
        (["5"], [], r"tensor 5 is out of range; the graph has 0\.\.4"),
    ],
)
def test_refusals(sources: list[str], targets: list[str], message: str) -> None:
    graph = _branches()
    with pytest.raises(OptionError, match=message):
        cut(graph, [find_tensor(graph, s) for s in sources], [find_tensor(graph, t) for t in targets])


def test_names_that_several_tensors_have() -> None:
    graph = _branches()
    graph.tensors = [type(t)("same", t.shape, t.dtype, data=t.data) for t in graph.tensors]
    with pytest.raises(OptionError, match="5 tensors are called 'same'; give an index: 0, 1, 2, 3, 4"):
        find_tensor(graph, "same")
    assert find_tensor(graph, "3") == 3


def test_state_is_refused() -> None:
    b = GraphBuilder("state")
    handle = b.add("var_handle", [], (), DType.RESOURCE, container="", shared_name="v")
    value = b.add("read_variable", [handle], (1, 4), FLOAT)
    y = b.add("relu", [value], (1, 4), FLOAT)
    graph = b.build([y])
    with pytest.raises(UnsupportedError, match=r"operator 1 .*cut behind it"):
        cut(graph, [], [y])
    assert [node.operator for node in cut(graph, [value], [y]).nodes] == ["relu"]
