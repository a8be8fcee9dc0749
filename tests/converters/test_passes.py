"""The passes that targets share: what each changes, and where it must leave a graph alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.rewriting import float_results, graph_text, node_lines, rewrite_text
from tflq.converters.passes.conversions import Conversions, remove_conversions
from tflq.converters.passes.merge_equal import merge_equal
from tflq.converters.passes.patterns import (
    axis_first,
    computed_inputs,
    constant_operand,
    only_reader,
    order_first,
    shape_first,
)
from tflq.converters.passes.requirements import collect_problems, refuse, refuse_custom, refuse_missing_ranges
from tflq.converters.passes.rewrite import channel_maxima, constant
from tflq.converters.passes.take_in import fold_padding, fuse_activations
from tflq.errors import UnsupportedError
from tflq.graph import Affine, DType, Graph, GraphBuilder, Node
from tflq.graph.parsing import parse_graph
from tflq.graph.rewriting import GraphEditor

REAL = DType.FLOAT32


IMAGE = """
  input %x: float32[1,4,4,1]
  const %p: int32[4,2] = [[0, 0], [1, 2], [0, 1], [0, 0]]
  const %v: float32[1] = [0]
  const %w: float32[1,2,2,1] = random(1)
"""
VALID = 'padding="valid", stride_h=1, stride_w=1, fused_activation_function="none"'
PADDED = f"""
  %t: float32[1,7,5,1] = padv2(%x, %p, %v)
  %y: float32[1,6,4,1] = conv_2d(%t, %w) {{{VALID}}}
"""
ROW = "input %x: float32[1,4]\nconst %c: float32[4] = random(1)\n"


def _chain(*operators: str) -> Graph:
    """Return x and operators one after the other; sums add a constant."""
    b = GraphBuilder()
    t = b.input("x", (1, 4), REAL)
    for operator in operators:
        inputs = [t, b.constant("c", np.ones(4, np.float32))] if operator == "add" else [t]
        t = b.add(operator, inputs, (1, 4), REAL, fused_activation_function="none")
    return b.build([t])


def _fuse(editor: GraphEditor) -> None:
    fuse_activations(editor, ("add",), ("relu", "relu6"))


def test_an_activation_is_fused_into_the_layer_upstream() -> None:
    sums = '%a: float32[1,4] = add(%x, %c) {fused_activation_function="none"}\n%r: float32[1,4] = relu6(%a)\n'
    graph = rewrite_text(_fuse, graph_text(ROW, sums + "%y: float32[1,4] = softmax(%r)"))
    assert node_lines(graph) == ['%r = add(%x, %c) {fused_activation_function="relu6"}', "%y = softmax(%r)"]


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        ("%a: float32[1,4] = add(%x, %c) {F}; %y: float32[1,4] = relu(%a); %z: float32[1,4] = relu(%a)", "%y %z"),
        ("%a: float32[1,4] = add(%x, %c) {F}; %y: float32[1,4] = relu(%a)", "%y %a"),
        ('%a: float32[1,4] = add(%x, %c) {fused_activation_function="relu6"}; %y: float32[1,4] = relu(%a)', "%y"),
        ("%a: float32[1,4] = mul(%x, %c) {F}; %y: float32[1,4] = relu(%a)", "%y"),
        ("%a: float32[1,4] = add(%x, %c) {F}; %y: float32[1,4] = tanh(%a)", "%y"),
    ],
    ids=["two readers", "an output", "fused already", "another layer", "another activation"],
)
def test_other_activations_stay(nodes: str, outputs: str) -> None:
    lines = nodes.replace("{F}", '{fused_activation_function="none"}').replace("; ", "\n")
    text = graph_text(ROW, lines, outputs)
    assert node_lines(rewrite_text(_fuse, text)) == node_lines(parse_graph(text))


def test_a_pad_of_zeros_becomes_padding_of_the_convolution() -> None:
    graph = rewrite_text(fold_padding, graph_text(IMAGE, PADDED))
    assert node_lines(graph) == [f"%y = conv_2d(%x, %w) {{{VALID}, explicit_padding=(1, 2, 0, 1)}}"]
    before, after = (float_results(g)[0] for g in (parse_graph(graph_text(IMAGE, PADDED)), graph))
    assert np.array_equal(before, after)


def test_own_padding_is_added() -> None:
    text = graph_text(IMAGE, PADDED.replace('"valid"', '"same"').replace("[1,6,4,1]", "[1,7,5,1]"))
    graph = rewrite_text(fold_padding, text)
    assert graph.nodes[0].attributes.integers("explicit_padding") == (1, 3, 0, 2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[0]", "[1]"),
        ("[0, 1], [0, 0]]", "[0, 1], [1, 0]]"),
        ("const %p: int32[4,2] = [[0, 0], [1, 2], [0, 1], [0, 0]]", "input %p: int32[4,2]"),
    ],
    ids=["of ones", "of channels", "computed"],
)
def test_other_pads_stay(old: str, new: str) -> None:
    text = graph_text(IMAGE, PADDED).replace(old, new)
    assert [node.operator for node in rewrite_text(fold_padding, text).nodes] == ["padv2", "conv_2d"]


def test_a_pad_of_two_convolutions_stays() -> None:
    nodes = f"{PADDED}\n%z: float32[1,6,4,1] = conv_2d(%t, %w) {{{VALID}}}"
    graph = rewrite_text(fold_padding, graph_text(IMAGE, nodes, "%y %z"))
    assert [node.operator for node in graph.nodes] == ["padv2", "conv_2d", "conv_2d"]


def test_equal_nodes_become_one() -> None:
    nodes = """
      %a: float32[1,4] = tanh(%x)
      %b: float32[1,4] = tanh(%x)
      %d: float32[1,4] = abs(%b)
      %e: float32[1,4] = abs(%a)
      %f: float32[1,4] = sub(%d, %a)
      %g: float32[1,4] = sub(%b, %e)
      %h: float32[1,4] = add(%d, %b)
      %i: float32[1,4] = add(%a, %e)
    """
    text = graph_text(ROW, nodes, "%f %g %h")
    first = ["%a = tanh(%x)", "%d = abs(%a)", "%f = sub(%d, %a)", "%g = sub(%a, %d)", "%h = add(%d, %a)"]
    assert node_lines(rewrite_text(lambda editor: merge_equal(editor, ("add",)), text)) == first
    both = rewrite_text(merge_equal, text.replace("output %h", "output %h\noutput %i"))
    assert node_lines(both) == [*first, "%i = add(%a, %d)"]
    outputs = rewrite_text(merge_equal, graph_text(ROW, nodes, "%a %b"))
    assert node_lines(outputs) == ["%a = tanh(%x)", "%b = tanh(%x)"]


def test_conversions_of_a_file_are_removed() -> None:
    text = """graph g {
      input %x: float32[1,4]
      %q: int8[1,4] q(0.5, 0) = quantize(%x)
      %y: int8[4] q(0.5, 0) = reshape(%q)
      output %y
    }"""
    graph = rewrite_text(lambda editor: remove_conversions(editor, lambda t: t.quantization is not None), text)
    assert node_lines(graph) == ["%y q(0.5, 0) = reshape(%x)"]
    assert graph.tensors[graph.inputs[0]].quantization == Affine.per_tensor(np.float32(0.5))


def test_conversions_are_made_once_for_each_type() -> None:
    graph = _chain("relu")
    graph.nodes = []
    conversions = Conversions(graph)
    half, third = (
        replace(graph.tensors[0], name=name, dtype=DType.INT8, quantization=Affine.per_tensor(np.float32(scale)))
        for name, scale in (("half", 0.5), ("third", 0.3))
    )
    made = [conversions.convert(0, tensor, Node("quantize", (), ())) for tensor in (half, third, half)]
    assert made[0] == made[2] != made[1]
    assert [(node.inputs, node.outputs) for node in graph.nodes] == [((0,), (made[0],)), ((0,), (made[1],))]


def test_patterns() -> None:
    graph = _chain("add", "relu", "reshape", "tanh")
    add, relu = graph.nodes[0], graph.nodes[1]
    assert only_reader(graph, add.outputs[0], graph.consumers()) == 1
    assert only_reader(graph, graph.outputs[0], graph.consumers()) is None
    assert constant_operand(graph, add) == 1
    assert constant_operand(graph, relu) is None
    assert computed_inputs(graph, add) == [(0, add.inputs[0])]


def test_refusals_come_all_at_once() -> None:
    graph = _chain("add", "relu", "add")
    found = collect_problems(graph, lambda index, node: f"no {index}" if node.operator == "add" else "")
    assert found == ("operator 0 (add 'ADD_0_0'): no 0", "operator 2 (add 'ADD_0_2'): no 2")
    with pytest.raises(UnsupportedError, match=r"no 0; operator 2"):
        refuse(found)
    refuse(())
    with pytest.raises(UnsupportedError, match=r"^2 of 5 tensors have no range \(first 'a'\): calibrate$"):
        refuse_missing_ranges(["a", "b"], 5, "calibrate")
    refuse_missing_ranges([], 5, "calibrate")
    assert "'Mine' has no mapping" in refuse_custom(replace(graph.nodes[0], custom_code="Mine"))
    assert not refuse_custom(graph.nodes[0])


def test_constants_are_read_only_and_know_their_type() -> None:
    made = constant("c", np.arange(3, dtype=np.int8), dtype=DType.INT4)
    assert (made.shape, made.dtype, constant("d", np.zeros(2, np.int32)).dtype) == ((3,), DType.INT4, DType.INT32)
    assert made.data is not None
    assert not made.data.flags.writeable


def test_largest_magnitudes_of_channels() -> None:
    values = np.array([[1.0, -4.0], [-3.0, 2.0]], np.float32)
    assert channel_maxima(values, 0).tolist() == [4, 3]
    assert channel_maxima(values, 1).tolist() == [3, 4]
    assert channel_maxima(values, None).tolist() == [4]
    assert channel_maxima(np.zeros((2, 0), np.float32), 0).tolist() == [0, 0]


def test_channels_first() -> None:
    assert shape_first((1, 2, 3, 4)) == (1, 4, 2, 3)
    assert shape_first((5, 6)) == (5, 6)
    assert [axis_first(axis, 4) for axis in (0, 1, 2, -1)] == [0, 2, 3, 1]
    assert axis_first(-1, 3) == 2
    x = np.arange(24).reshape(1, 2, 3, 4)
    order = (0, 2, 1, 3)
    turned = x.transpose(0, 3, 1, 2).transpose(order_first(order))
    assert np.array_equal(turned, x.transpose(order).transpose(0, 3, 1, 2))
