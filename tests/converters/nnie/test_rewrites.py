"""The passes of NNIE: nodes before and after; the float network computes the same values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.rewriting import float_results, graph_text, node_lines, rewrite_text
from tflq.converters.nnie.rewrites import PASSES
from tflq.graph.parsing import parse_graph

RUN = {step.name: step.run for step in PASSES}
PLAIN = 'padding="valid", stride_h=1, stride_w=1, fused_activation_function="none"'
ROWS = """
  input %x: float32[1,8,4]
  const %p: int32[3,2] = [[0, 0], [1, 1], [0, 0]]
  const %b: int32[1] = [2]
  const %q: int32[1,2] = [[2, 2]]
  const %s: int32[4] = [1, 1, 10, 4]
"""
IMAGE = """
  input %x: float32[1,3,4,6]
  const %c: float32[6] = random(1)
  const %one: float32[1] = [0.5]
  const %w: float32[6,1,1,6] = random(2)
  const %v: float32[1,3,3,6] = random(3)
"""


def check(name: str, text: str, *after: str) -> None:
    graph = rewrite_text(RUN[name], text)
    assert node_lines(graph) == list(after)
    before = parse_graph(text)
    for ours, theirs in zip(float_results(graph), float_results(before), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * np.abs(theirs).max())


def test_a_view_moves_upstream_of_padded_rows() -> None:
    nodes = "%r: float32[1,10,4] = pad(%x, %p)\n %y: float32[1,1,10,4] = reshape(%r, %s)"
    check(
        "hoist_views",
        graph_text(ROWS, nodes),
        "%x/image = reshape(%x, %RESHAPE_0_1/shape)",
        "%y = pad(%x/image, %PAD_0_0/image1)",
    )


def test_a_view_moves_upstream_of_two_nodes() -> None:
    nodes = """
      %r: float32[1,10,4] = pad(%x, %p)
      %t: float32[2,7,4] = space_to_batch_nd(%r, %b, %q)
      %s2: float32[2,1,7,4] = expand_dims(%t, %axis)
      %y: float32[2,1,7,4] = abs(%s2)
    """
    check(
        "hoist_views",
        graph_text(ROWS + "const %axis: int32[1] = [1]\n", nodes),
        "%x/image = reshape(%x, %EXPAND_DIMS_0_2/shape)",
        "%r/image = pad(%x/image, %PAD_0_0/image1)",
        "%s2 = space_to_batch_nd(%r/image, %SPACE_TO_BATCH_ND_0_1/image1, %SPACE_TO_BATCH_ND_0_1/image2)",
        "%y = abs(%s2)",
    )


def test_another_view_stays() -> None:
    nodes = "%r: float32[1,10,4] = pad(%x, %p)\n %y: float32[1,10,1,4] = reshape(%r, %s)"
    text = graph_text(ROWS.replace("[1, 1, 10, 4]", "[1, 10, 1, 4]"), nodes)
    check("hoist_views", text, "%r = pad(%x, %p)", "%y = reshape(%r, %s)")


def test_blocks_become_a_dilation() -> None:
    constants = """
      input %x: float32[1,8,8,1]
      const %b: int32[2] = [2, 2]
      const %p: int32[2,2] = [[2, 2], [2, 2]]
      const %c: int32[2,2] = [[0, 0], [0, 0]]
      const %w: float32[3,3,3,1] = random(1)
    """
    nodes = f"""
      %t: float32[4,6,6,1] = space_to_batch_nd(%x, %b, %p)
      %f: float32[4,4,4,3] = conv_2d(%t, %w) {{{PLAIN}}}
      %y: float32[1,8,8,3] = batch_to_space_nd(%f, %b, %c)
    """
    dilation = "explicit_padding=(2, 2, 2, 2), dilation_h_factor=2, dilation_w_factor=2"
    check("dilate", graph_text(constants, nodes), f"%y = conv_2d(%x, %w) {{{PLAIN}, {dilation}}}")


def test_repeated_rows_and_columns_become_a_resize() -> None:
    constants = """
      input %x: float32[1,2,3,4]
      const %n: int32[5] = [1, 1, 2, 1, 1]
      const %m: int32[5] = [1, 1, 1, 2, 1]
      const %a: int32[5] = [1, 2, 1, 3, 4]
      const %b: int32[4] = [1, 4, 3, 4]
      const %c: int32[5] = [1, 4, 3, 1, 4]
      const %d: int32[4] = [1, 4, 6, 4]
    """
    nodes = """
      %r: float32[1,2,1,3,4] = reshape(%x, %a)
      %s: float32[1,2,2,3,4] = tile(%r, %n)
      %t: float32[1,4,3,4] = reshape(%s, %b)
      %u: float32[1,4,3,1,4] = reshape(%t, %c)
      %v: float32[1,4,3,2,4] = tile(%u, %m)
      %y: float32[1,4,6,4] = reshape(%v, %d)
    """
    check("enlarge", graph_text(constants, nodes), "%y = resize_nearest_neighbor(%x, %RESHAPE_0_0/size)")


def test_a_shuffle_of_channels_becomes_a_convolution() -> None:
    constants = IMAGE + "const %a: int32[5] = [1, 3, 4, 2, 3]\nconst %o: int32[5] = [0, 1, 2, 4, 3]\n"
    constants += "const %b: int32[4] = [1, 3, 4, 6]\n"
    nodes = """
      %r: float32[1,3,4,2,3] = reshape(%x, %a)
      %t: float32[1,3,4,3,2] = transpose(%r, %o)
      %y: float32[1,3,4,6] = reshape(%t, %b)
    """
    check("shuffle", graph_text(constants, nodes), f"%y = conv_2d(%x, %RESHAPE_0_0/ones) {{{PLAIN}}}")
    other = graph_text(constants.replace("[0, 1, 2, 4, 3]", "[0, 2, 1, 4, 3]"), nodes.replace("3,4,3,2", "4,3,3,2"))
    assert len(rewrite_text(RUN["shuffle"], other).nodes) == 3


def test_steps_become_a_pool() -> None:
    nodes = "%y: float32[1,2,4,6] = strided_slice(%x, %i, %e, %s) {begin_mask=15, end_mask=15}"
    constants = IMAGE + "const %i: int32[4] = [0, 0, 0, 0]\nconst %e: int32[4] = [0, 0, 0, 0]\n"
    text = graph_text(constants + "const %s: int32[4] = [1, 2, 1, 1]\n", nodes)
    begin, size = "%STRIDED_SLICE_0_0/begin", "%STRIDED_SLICE_0_0/size"
    window = f"{PLAIN.replace('stride_h=1', 'stride_h=2')}, filter_height=1, filter_width=1"
    check("pool_steps", text, f"%y/part = slice(%x, {begin}, {size})", f"%y = max_pool_2d(%y/part) {{{window}}}")
    plain = text.replace("[1, 2, 1, 1]", "[1, 1, 1, 1]").replace("[1,2,4,6]", "[1,3,4,6]")
    assert [node.operator for node in rewrite_text(RUN["pool_steps"], plain).nodes] == ["strided_slice"]


def test_a_resized_pixel_is_repeated() -> None:
    text = graph_text(
        "input %x: float32[1,1,1,2]\nconst %s: int32[2] = [3, 4]",
        "%y: float32[1,3,4,2] = resize_bilinear(%x, %s) {align_corners=False, half_pixel_centers=False}",
    )
    check("repeat_pixels", text, "%y = tile(%x, %RESIZE_BILINEAR_0_0/counts)")


def test_padding_becomes_a_filter() -> None:
    constants = IMAGE + "const %p: int32[4,2] = [[0, 0], [1, 2], [0, 1], [0, 0]]\n"
    padded = f"%y = depthwise_conv_2d(%x, %PAD_0_0/ones) {{{PLAIN}, explicit_padding=(1, 2, 0, 1)}}"
    text = graph_text(constants, "%y: float32[1,6,5,6] = pad(%x, %p)")
    check("pad_by_filters", text, padded)
    channels = text.replace("[0, 1], [0, 0]]", "[0, 1], [1, 0]]").replace("[1,6,5,6]", "[1,6,5,7]")
    check("pad_by_filters", channels, "%y = pad(%x, %p)")


FILTER = f"%f: float32[1,3,4,6] = conv_2d(%x, %w) {{{PLAIN}}}\n"
NONE, RELU = ('{fused_activation_function="none"}', '{fused_activation_function="relu"}')


def test_factors_and_addends_of_channels_go_into_the_filter() -> None:
    nodes = f"{FILTER}%m: float32[1,3,4,6] = mul(%c, %f) {NONE}\n%y: float32[1,3,4,6] = sub(%m, %one) {RELU}"
    relu = PLAIN.replace("none", "relu")
    check("fold_scales", graph_text(IMAGE, nodes), f"%y = conv_2d(%x, %w, %w/bias) {{{relu}}}")


@pytest.mark.parametrize(
    ("nodes", "kept"),
    [
        (f"{FILTER}%m: float32[1,3,4,6] = mul(%f, %f) {NONE}\n%y: float32[1,3,4,6] = abs(%m)", 3),
        (f"{FILTER}%m: float32[1,3,4,6] = mul(%f, %c) {NONE}\n%y: float32[1,3,4,6] = add(%m, %f) {NONE}", 3),
        (
            f"{FILTER.replace('none', 'relu')}%m: float32[1,3,4,6] = mul(%f, %c) {NONE}\n"
            "%y: float32[1,3,4,6] = abs(%m)",
            3,
        ),
        (f"{FILTER}%m: float32[1,3,4,6] = div(%f, %c) {NONE}\n%y: float32[1,3,4,6] = abs(%m)", 3),
    ],
    ids=["no constant", "two readers", "behind a ReLU", "a quotient"],
)
def test_other_products_stay(nodes: str, kept: int) -> None:
    assert len(rewrite_text(RUN["fold_scales"], graph_text(IMAGE, nodes)).nodes) == kept


def test_padding_is_added_to_that_of_a_dilated_convolution() -> None:
    """A convolution that has explicit padding already keeps it."""
    constants = IMAGE + "const %p: int32[4,2] = [[0, 0], [1, 0], [0, 2], [0, 0]]\n"
    nodes = f"""
      %f: float32[1,4,6,6] = pad(%x, %p)
      %y: float32[1,6,6,6] = conv_2d(%f, %w) {{{PLAIN}, explicit_padding=(1, 1, 0, 0)}}
    """
    after = f"%y = conv_2d(%x, %w) {{{PLAIN}, explicit_padding=(2, 1, 0, 2)}}"
    assert node_lines(rewrite_text(RUN["fold_padding"], graph_text(constants, nodes))) == [after]
