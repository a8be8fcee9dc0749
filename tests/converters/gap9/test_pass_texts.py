"""Passes of GAP9 as text: the nodes of a graph before and after; a float graph computes the same values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.rewriting import float_results, graph_text, node_lines, rewrite_text
from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.external_bias import fold_biases
from tflq.converters.gap9.passes.global_pools import arrange_layout, name_global_pools
from tflq.converters.gap9.passes.hard_sigmoid import find_hard_sigmoids
from tflq.converters.gap9.passes.move_up import raise_activations, raise_pools, remove_undone_reshapes
from tflq.converters.gap9.passes.separate_activations import separate_activations
from tflq.converters.gap9.passes.slices import split_slices
from tflq.converters.passes.take_in import fold_padding
from tflq.graph import Graph
from tflq.graph.parsing import parse_graph
from tflq.graph.rewriting import GraphEditor

IMAGE = """
  input %x: float32[1,4,4,2]
  const %w: float32[2,1,1,2] = random(1)
  const %b: float32[2] = random(2)
  const %k: float32[2] = random(3)
"""
PLAIN = 'padding="valid", stride_h=1, stride_w=1, fused_activation_function="none"'
POOL = 'padding="valid", stride_h=2, stride_w=2, filter_height=2, filter_width=2'
WHOLE = 'filter_height=4, filter_width=4, padding="valid", stride_h=1, stride_w=1'


def rewrite(run: Callable[[Gap9Editor], None], text: str) -> Graph:
    def convert(editor: GraphEditor) -> None:
        graph = editor.graph()
        network = Gap9Editor(graph, {node.name: LayerOptions() for node in graph.nodes})
        run(network)
        editor.load(network.graph())

    return rewrite_text(convert, text)


def check(run: Callable[[Gap9Editor], None], inputs: str, nodes: str, *after: str) -> None:
    text = graph_text(inputs, nodes)
    graph = rewrite(run, text)
    assert node_lines(graph) == list(after)
    for ours, theirs in zip(float_results(graph), float_results(parse_graph(text)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * max(np.abs(theirs).max(), 1))


def test_a_fused_activation_becomes_a_node() -> None:
    nodes = f"%y: float32[1,4,4,2] = conv_2d(%x, %w, %b) {{{PLAIN}}}".replace('"none"', '"relu6"')
    check(
        separate_activations,
        IMAGE,
        nodes,
        f"%CONV_2D_0_0 = conv_2d(%x, %w, %b) {{{PLAIN}}}",
        '%y = relu6(%CONV_2D_0_0) {layer="CONV_2D_0_0"}',
    )


@pytest.mark.parametrize("bias", ["", ", %b"])
def test_a_constant_joins_the_bias_of_its_filter(bias: str) -> None:
    nodes = f"%f: float32[1,4,4,2] = conv_2d(%x, %w{bias}) {{{PLAIN}}}\n%y: float32[1,4,4,2] = add(%k, %f)"
    name = "%b" if bias else "%CONV_2D_0_0_bias"
    check(fold_biases, IMAGE, nodes, f"%y = conv_2d(%x, %w, {name}) {{{PLAIN}}}")


def test_a_sum_that_broadcasts_the_filter_stays() -> None:
    nodes = f"""
      %f: float32[1,4,4,2] = conv_2d(%x, %w, %b) {{{PLAIN}}}
      %y: float32[2,4,4,2] = add(%f, %wide)
    """
    wide = "const %wide: float32[2,1,1,2] = random(4)\n"
    check(fold_biases, IMAGE + wide, nodes, f"%f = conv_2d(%x, %w, %b) {{{PLAIN}}}", "%y = add(%f, %wide)")


@pytest.mark.parametrize(
    ("off", "three", "after"),
    [
        (0, None, ["hard_sigmoid(%x) offset 0"]),
        (1 / 127.4, 3.0, ["hard_sigmoid(%x) offset 3"]),
        (-1 / 127.4, 3.0, ["hard_sigmoid(%x) offset 3"]),
        (1 / 126.6, None, ["relu6(%x)", "mul(%r, %factor)"]),
        (-1 / 126.6, 3.0, ["add(%x, %three)", "relu6(%s)", "mul(%r, %factor)"]),
        (0, 3 + 1 / 127.4, ["hard_sigmoid(%x) offset 3"]),
        (0, 3 + 1 / 126.6, ["add(%x, %three)", "hard_sigmoid(%s) offset 0"]),
    ],
)
def test_relu6_times_about_a_sixth_is_a_hard_sigmoid(off: float, three: float | None, after: list[str]) -> None:
    """Constants are less than 1/127 off; an addition of 3 belongs to it (docs/rules/gap9/operators.md#activations)."""
    constants = f"const %factor: float32[1] = [{1 / 6 + off}]\nconst %three: float32[1] = [{three or 0.0}]\n"
    source = "%x" if three is None else "%s"
    addition = "" if three is None else "%s: float32[1,4,4,2] = add(%x, %three)\n"
    nodes = f"{addition}%r: float32[1,4,4,2] = relu6({source})\n%y: float32[1,4,4,2] = mul(%r, %factor)"
    graph = rewrite(find_hard_sigmoids, graph_text(IMAGE + constants, nodes))
    lines = [line.partition(" = ")[2] for line in node_lines(graph)]
    offsets = [f" offset {n.attributes.real('offset'):g}" if "offset" in n.attributes else "" for n in graph.nodes]
    assert [line.partition(" {")[0] + offset for line, offset in zip(lines, offsets, strict=True)] == after


@pytest.mark.parametrize(
    ("operators", "after"),
    [
        (("relu6", "relu6"), ["hard_sigmoid"]),
        (("relu6", "relu6", "relu6"), ["hard_sigmoid"]),
        (("relu", "relu6"), ["relu", "hard_sigmoid"]),
    ],
)
def test_a_second_relu6_is_removed_with_the_first(operators: tuple[str, ...], after: list[str]) -> None:
    """As NNTool has a filter of range [0, 6] in front of a RELU6 and the product: the filter and the hard sigmoid."""
    names = ["x", *(f"r{i}" for i in range(len(operators)))]
    chain = [f"%{names[i + 1]}: float32[1,4,4,2] = {o}(%{names[i]})" for i, o in enumerate(operators)]
    nodes = "\n".join([*chain, f"%y: float32[1,4,4,2] = mul(%{names[-1]}, %factor)"])
    constants = f"const %factor: float32[1] = [{1 / 6}]\n"
    graph = rewrite(find_hard_sigmoids, graph_text(IMAGE + constants, nodes))
    assert [node.operator for node in graph.nodes] == after


def test_an_activation_moves_upstream_of_a_reshape() -> None:
    nodes = f"""
      %p: float32[1,2,2,2] = average_pool_2d(%x) {{{POOL}}}
      %r: float32[1,8] = reshape(%p, %eight)
      %y: float32[1,8] = tanh(%r)
    """
    check(
        raise_activations,
        IMAGE + "const %eight: int32[2] = [1, 8]\n",
        nodes,
        f"%p = average_pool_2d(%x) {{{POOL}}}",
        '%TANH_0_2 = tanh(%p) {layer="TANH_0_2"}',
        "%y = reshape(%TANH_0_2, %eight)",
    )


def test_an_activation_enters_the_branches_of_a_concatenation() -> None:
    nodes = """
      %p: float32[1,4,4,2] = add(%x, %k)
      %q: float32[1,4,4,2] = mul(%x, %k)
      %r: float32[1,4,4,4] = concatenation(%p, %q) {axis=3}
      %y: float32[1,4,4,4] = tanh(%r)
    """
    check(
        raise_activations,
        IMAGE,
        nodes,
        "%p = add(%x, %k)",
        "%q = mul(%x, %k)",
        '%TANH_0_3_0 = tanh(%p) {layer="TANH_0_3"}',
        '%TANH_0_3_1 = tanh(%q) {layer="TANH_0_3"}',
        "%y = concatenation(%TANH_0_3_0, %TANH_0_3_1) {axis=3}",
    )


def test_a_max_pool_moves_upstream_of_a_concatenation_and_relus() -> None:
    nodes = f"""
      %f: float32[1,4,4,2] = conv_2d(%x, %w, %b) {{{PLAIN}}}
      %r: float32[1,4,4,2] = relu(%f)
      %g: float32[1,4,4,2] = conv_2d(%x, %w, %k) {{{PLAIN}}}
      %c: float32[1,4,4,4] = concatenation(%r, %g) {{axis=3}}
      %y: float32[1,2,2,4] = max_pool_2d(%c) {{{POOL}}}
    """
    check(
        raise_pools,
        IMAGE,
        nodes,
        f"%f = conv_2d(%x, %w, %b) {{{PLAIN}}}",
        f'%MAX_POOL_2D_0_4#9 = max_pool_2d(%f) {{{POOL}, layer="MAX_POOL_2D_0_4"}}',
        f"%g = conv_2d(%x, %w, %k) {{{PLAIN}}}",
        "%MAX_POOL_2D_0_4#7 = relu(%MAX_POOL_2D_0_4#9)",
        f'%MAX_POOL_2D_0_4_1 = max_pool_2d(%g) {{{POOL}, layer="MAX_POOL_2D_0_4"}}',
        "%y = concatenation(%MAX_POOL_2D_0_4#7, %MAX_POOL_2D_0_4_1) {axis=3}",
    )


def test_a_reshape_that_restores_the_shape_is_removed() -> None:
    nodes = """
      %r: float32[1,32] = reshape(%x, %flat)
      %s: float32[1,4,4,2] = reshape(%r, %back)
      %y: float32[1,4,4,2] = abs(%s)
    """
    back = "const %flat: int32[2] = [1, 32]\nconst %back: int32[4] = [1, 4, 4, 2]\n"
    check(remove_undone_reshapes, IMAGE + back, nodes, "%y = abs(%x)")


def test_a_pool_over_the_whole_map_becomes_a_mean_that_reads_channels_first() -> None:
    def run(editor: Gap9Editor) -> None:
        name_global_pools(editor)
        arrange_layout(editor)

    attributes = 'layer="AVERAGE_POOL_2D_0_0", engine="", engine_reason="moves data: channels first"'
    check(
        run,
        IMAGE,
        f"%y: float32[1,1,1,2] = average_pool_2d(%x) {{{WHOLE}}}",
        "%AVERAGE_POOL_2D_0_0_trans = transpose(%x, %AVERAGE_POOL_2D_0_0_trans_order) {" + attributes + "}",
        "%AVERAGE_POOL_2D_0_0_pixel = mean(%AVERAGE_POOL_2D_0_0_trans, %AVERAGE_POOL_2D_0_0_axes) {keep_dims=False}",
        "%y = reshape(%AVERAGE_POOL_2D_0_0_pixel, %AVERAGE_POOL_2D_0_0_shape) {" + attributes + "}",
    )


def test_a_slice_becomes_a_split_with_unread_pieces() -> None:
    nodes = "%y: float32[1,2,4,2] = slice(%x, %begin, %size)"
    slices = "const %begin: int32[4] = [0, 1, 0, 0]\nconst %size: int32[4] = [1, 2, 4, 2]\n"
    graph = rewrite(split_slices, graph_text(IMAGE + slices, nodes))
    (node,) = graph.nodes
    assert (node.operator, node.attributes.integers("unused_pieces", ())) == ("split_v", (0, 2))
    assert [graph.tensors[t].shape for t in node.outputs] == [(1, 1, 4, 2), (1, 2, 4, 2), (1, 1, 4, 2)]
    assert graph.outputs == node.outputs[1:2]


def test_a_pad_is_folded_into_a_max_pool_as_nntool_does() -> None:
    """NNTool, run on two ResNet stems on both engines: equal; the pool keeps its ReLU, as a PAD hides the sign."""
    nodes = f"""
      %p: float32[1,6,6,2] = pad(%x, %pads)
      %y: float32[1,3,3,2] = max_pool_2d(%p) {{{POOL}}}
    """
    pads = "const %pads: int32[4,2] = [[0, 0], [1, 1], [1, 1], [0, 0]]\n"
    graph = rewrite(lambda editor: fold_padding(editor, ("max_pool_2d",)), graph_text(IMAGE + pads, nodes))
    (node,) = graph.nodes
    assert (node.operator, node.attributes.integers("explicit_padding", ())) == ("max_pool_2d", (1, 1, 1, 1))


SIX = """
  input %x: float32[1,2,2,6]
  const %s: int32[4] = [1, 1, 1, 1]
  const %b0: int32[4] = [0, 0, 0, 0]
  const %b2: int32[4] = [0, 0, 0, 2]
  const %e2: int32[4] = [1, 2, 2, 2]
  const %e3: int32[4] = [1, 2, 2, 3]
  const %e6: int32[4] = [1, 2, 2, 6]
"""


def test_slices_that_partition_an_axis_become_one_split_in_order_of_position() -> None:
    """Of the equal slices %p and %q the second is removed; the name is that of the slice at 0, operator 1."""
    nodes = """
      %p: float32[1,2,2,4] = strided_slice(%x, %b2, %e6, %s)
      %r: float32[1,2,2,2] = strided_slice(%x, %b0, %e2, %s)
      %q: float32[1,2,2,4] = strided_slice(%x, %b2, %e6, %s)
      %y: float32[1,2,2,10] = concatenation(%p, %r, %q) {axis=3}
    """
    facts = '{layer="STRIDED_SLICE_0_1", num_splits=2}'
    split, axis = "%STRIDED_SLICE_0_1_split_sizes", "%STRIDED_SLICE_0_1_split_axis"
    joined = "%y = concatenation(%p, %r, %p) {axis=3}"
    check(split_slices, SIX, nodes, f"%r, %p = split_v(%x, {split}, {axis}) {facts}", joined)


def test_slices_that_overlap_stay() -> None:
    nodes = """
      %p: float32[1,2,2,4] = strided_slice(%x, %b2, %e6, %s)
      %r: float32[1,2,2,3] = strided_slice(%x, %b0, %e3, %s)
      %y: float32[1,2,2,7] = concatenation(%p, %r) {axis=3}
    """
    slices = "%p = strided_slice(%x, %b2, %e6, %s)", "%r = strided_slice(%x, %b0, %e3, %s)"
    check(split_slices, SIX, nodes, *slices, "%y = concatenation(%p, %r) {axis=3}")


def test_two_means_of_one_tensor_read_transposes_of_the_same_name() -> None:
    """As NNTool names them; emitted files list the name once."""
    nodes = f"""
      %f: float32[1,4,4,2] = conv_2d(%x, %w, %b) {{{PLAIN}}}
      %p: float32[1,2] = mean(%f, %axes) {{keep_dims=False}}
      %q: float32[1,2] = reduce_max(%f, %axes) {{keep_dims=False}}
      %y: float32[1,2] = add(%p, %q)
    """
    text = graph_text(IMAGE + "const %axes: int32[2] = [1, 2]\n", nodes)
    turned = [node.name for node in rewrite_text(arrange_layout, text).nodes if node.operator == "transpose"]
    assert turned == ["CONV_2D_0_0_trans_out0"] * 2
