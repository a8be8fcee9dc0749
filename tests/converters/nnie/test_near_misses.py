"""Patterns that become other layers, in every size, and graphs one step away from them.

A pattern is taken, and OpenCV computes what the graph does; what is one step away is refused by its operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.converters.nnie.networks import SeededBuilder, constant, start
from tests.converters.nnie.test_borders import NONE, SETTINGS, agrees, data_of, ints, one
from tests.converters.nnie.test_layers import causal
from tests.support.nnie import package
from tflq.converters.nnie import NNIE
from tflq.graph import ABSENT, DType, Graph, GraphBuilder

Pair = tuple[int, int]
Sides = tuple[Pair, Pair]
NOTHING: Sides = ((0, 0), (0, 0))
VALID: dict[str, Any] = {"padding": "valid", "stride_h": 1, "stride_w": 1, **NONE}


def refused(graph: Graph, words: str = "no layer of Caffe 1.0") -> None:
    lines = NNIE.check(graph, SETTINGS)
    assert lines
    assert words in lines[0], lines[0]


def apart(b: SeededBuilder, x: int, size: Pair, blocks: Pair, added: Sides) -> tuple[int, Pair]:
    """Return images of phases, and their size."""
    own = tuple((n + sum(p)) // c for n, p, c in zip(size, added, blocks, strict=True))
    operands = [x, b.constant("blocks", ints(*blocks)), b.constant("added", ints(*added))]
    shape = (blocks[0] * blocks[1], *own, 2)
    return b.add("space_to_batch_nd", operands, shape, DType.FLOAT32), (own[0], own[1])


def filtered(
    b: SeededBuilder, x: int, count: int, size: Pair, kernel: Pair, options: dict[str, Any]
) -> tuple[int, Pair]:
    """Return what a convolution of phases makes, and its size."""
    own = size
    if options["padding"] == "valid":
        reach = [
            (k - 1) * int(str(options.get(f"dilation_{a}_factor", 1))) + 1 for k, a in zip(kernel, "hw", strict=True)
        ]
        own = (size[0] - reach[0] + 1, size[1] - reach[1] + 1)
    own = (-(-own[0] // int(str(options["stride_h"]))), -(-own[1] // int(str(options["stride_w"]))))
    inputs = [x, constant(b, 3, *kernel, 2), constant(b, 3)]
    return b.add("conv_2d", inputs, (count, *own, 3), DType.FLOAT32, **options), own


def phases(
    blocks: Pair = (2, 2),
    added: Sides = NOTHING,
    kernel: Pair = (3, 3),
    cut: Sides = NOTHING,
    back: Pair | None = None,
    **changed: Any,
) -> Graph:
    """Return a convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""
    size = (12, 12)
    b, x = start(*size, 2)
    x, own = apart(b, x, size, blocks, added)
    x, own = filtered(b, x, blocks[0] * blocks[1], own, kernel, VALID | changed)
    back = back or blocks
    shape = tuple(n * c - sum(p) for n, c, p in zip(own, back, cut, strict=True))
    operands = [x, b.constant("again", ints(*back)), b.constant("cut", ints(*cut))]
    return b.build([b.add("batch_to_space_nd", operands, (1, *shape, 3), DType.FLOAT32)])


@pytest.mark.parametrize(
    ("blocks", "added", "kernel", "cut", "changed"),
    [
        ((2, 2), NOTHING, (3, 3), NOTHING, {}),
        ((2, 3), ((1, 1), (0, 3)), (2, 1), NOTHING, {}),
        ((3, 2), ((3, 3), (2, 2)), (3, 3), NOTHING, {}),
        ((1, 2), NOTHING, (1, 3), NOTHING, {}),
        ((4, 1), ((4, 0), (0, 0)), (2, 1), NOTHING, {}),
        ((2, 2), NOTHING, (3, 3), NOTHING, {"padding": "same"}),
        ((2, 2), NOTHING, (3, 1), ((1, 1), (0, 0)), {"padding": "same"}),
        ((2, 3), ((2, 2), (3, 3)), (3, 3), ((2, 2), (3, 0)), {}),
        ((2, 2), ((2, 2), (2, 2)), (3, 3), ((2, 2), (2, 2)), {}),
    ],
)
def test_phases_are_a_dilation(blocks: Pair, added: Sides, kernel: Pair, cut: Sides, changed: dict[str, Any]) -> None:
    agrees(phases(blocks, added, kernel, cut, **changed))


def computed_crops() -> Graph:
    b, x = start(4, 4, 2)
    row = b.input("crops", (1, 4), DType.INT32)
    crops = b.add("reshape", [row, b.constant("pairs", ints(2, 2))], (2, 2), DType.INT32)
    x, own = apart(b, x, (4, 4), (2, 2), NOTHING)
    x, own = filtered(b, x, 4, own, (1, 1), VALID)
    operands = [x, b.constant("again", ints(2, 2)), crops]
    return b.build([b.add("batch_to_space_nd", operands, (1, 4, 4, 3), DType.FLOAT32)])


def two_readers(first: bool) -> Graph:
    """The phases, or what the convolution makes of them, have another reader."""
    b, x = start(4, 4, 2)
    seen, own = apart(b, x, (4, 4), (2, 2), NOTHING)
    made, own = filtered(b, seen, 4, own, (1, 1), VALID)
    other, channels = (seen, 2) if first else (made, 3)
    operands = [made, b.constant("again", ints(2, 2)), b.constant("cut", ints(*NOTHING))]
    y = b.add("batch_to_space_nd", operands, (1, 4, 4, 3), DType.FLOAT32)
    return b.build([y, b.add("neg", [other], (4, 2, 2, channels), DType.FLOAT32)])


def no_phases() -> Graph:
    """A convolution of four images, then BATCH_TO_SPACE_ND."""
    b = SeededBuilder()
    x = b.add("neg", [b.input("x", (4, 2, 2, 2), DType.FLOAT32)], (4, 2, 2, 2), DType.FLOAT32)
    y, _ = filtered(b, x, 4, (2, 2), (1, 1), VALID)
    operands = [y, b.constant("again", ints(2, 2)), b.constant("cut", ints(*NOTHING))]
    return b.build([b.add("batch_to_space_nd", operands, (1, 4, 4, 3), DType.FLOAT32)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: phases(back=(4, 1)),
        lambda: phases(stride_h=2, stride_w=1),
        lambda: phases(stride_w=2),
        lambda: phases(dilation_h_factor=2),
        lambda: phases(cut=((0, 1), (0, 0))),
        lambda: phases(cut=((0, 0), (1, 0))),
        computed_crops,
        lambda: two_readers(True),
        lambda: two_readers(False),
        no_phases,
    ],
    ids=["other blocks", "stride", "stride across", "dilation", "rows cut", "columns cut", "computed crops",
         "phases read twice", "result read twice", "no phases"],
)  # fmt: skip
def test_other_phases_are_refused(make: Callable[[], Graph]) -> None:
    refused(make())


def repeated(
    steps: Sequence[tuple[Sequence[int], Sequence[int], Sequence[int]]], source: tuple[int, ...] = (1, 4, 6, 3)
) -> Graph:
    """Return views, counts of a TILE and views behind it, one after the other."""
    b = GraphBuilder("net")
    x = b.input("x", source, DType.FLOAT32)
    for number, (view, counts, behind) in enumerate(steps):
        tiled = tuple(n * c for n, c in zip(view, counts, strict=True))
        x = b.add("reshape", [x, b.constant(f"v{number}", ints(*view))], tuple(view), DType.FLOAT32)
        x = b.add("tile", [x, b.constant(f"t{number}", ints(*counts))], tiled, DType.FLOAT32)
        x = b.add("reshape", [x, b.constant(f"b{number}", ints(*behind))], tuple(behind), DType.FLOAT32)
    return b.build([x])


ROWS = ((1, 4, 1, 6, 3), (1, 1, 2, 1, 1), (1, 8, 6, 3))
COLUMNS = ((1, 8, 6, 1, 3), (1, 1, 1, 2, 1), (1, 8, 12, 3))


def test_rows_and_columns_that_repeat_are_an_upsampling() -> None:
    agrees(repeated([ROWS, COLUMNS]))


@pytest.mark.parametrize(
    "steps",
    [
        [ROWS],
        [((1, 4, 6, 1, 3), (1, 1, 1, 2, 1), (1, 4, 12, 3))],
        [ROWS, ((1, 8, 1, 6, 3), (1, 1, 2, 1, 1), (1, 16, 6, 3))],
        [((1, 4, 1, 6, 3), (1, 1, 2, 1, 1), (1, 4, 12, 3)), ((1, 4, 12, 1, 3), (1, 1, 1, 2, 1), (1, 4, 24, 3))],
        [((1, 4, 1, 6, 3), (1, 1, 2, 1, 2), (1, 8, 6, 6)), ((1, 8, 6, 1, 6), (1, 1, 1, 2, 1), (1, 8, 12, 6))],
        [((1, 4, 1, 6, 3), (1, 2, 1, 1, 1), (1, 8, 6, 3)), COLUMNS],
        [((1, 6, 1, 4, 3), (1, 1, 2, 1, 1), (1, 8, 6, 3)), COLUMNS],
        [ROWS, ((1, 8, 6, 1, 3), (1, 1, 1, 2, 1), (1, 16, 6, 3))],
    ],
    ids=["rows", "columns", "rows twice", "side by side", "channels too", "before the rows", "other rows", "turned"],
)
def test_other_repetitions_are_refused(
    steps: Sequence[tuple[Sequence[int], Sequence[int], Sequence[int]]],
) -> None:
    refused(repeated(steps), "a tensor of 5 axes")


def test_three_times_is_no_upsampling_of_nnie() -> None:
    rows = ((1, 4, 1, 6, 3), (1, 1, 3, 1, 1), (1, 12, 6, 3))
    refused(repeated([rows, ((1, 12, 6, 1, 3), (1, 1, 1, 3, 1), (1, 12, 18, 3))]), "nearest neighbors of 2 times")


def dealt(
    groups: tuple[int, ...], order: tuple[int, ...], behind: tuple[int, ...], source: tuple[int, ...] = (1, 4, 5, 6)
) -> Graph:
    b = GraphBuilder("net")
    x = b.input("x", source, DType.FLOAT32)
    turned = tuple(groups[a] for a in order)
    x = b.add("reshape", [x, b.constant("g", ints(*groups))], groups, DType.FLOAT32)
    x = b.add("transpose", [x, b.constant("o", ints(*order))], turned, DType.FLOAT32)
    return b.build([b.add("reshape", [x, b.constant("s", ints(*behind))], behind, DType.FLOAT32)])


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_channels_are_dealt(groups: int) -> None:
    agrees(dealt((1, 4, 5, groups, 6 // groups), (0, 1, 2, 4, 3), (1, 4, 5, 6)))


@pytest.mark.parametrize(
    ("groups", "order", "behind"),
    [
        ((1, 4, 5, 2, 3), (0, 1, 3, 2, 4), (1, 4, 5, 6)),
        ((1, 4, 5, 2, 3), (0, 1, 2, 4, 3), (1, 5, 4, 6)),
        ((1, 4, 5, 2, 3), (0, 1, 2, 4, 3), (1, 20, 6)),
        ((1, 5, 4, 2, 3), (0, 1, 2, 4, 3), (1, 4, 5, 6)),
        ((1, 4, 3, 2, 5), (0, 1, 2, 4, 3), (1, 4, 5, 6)),
    ],
)
def test_other_turns_are_refused(groups: tuple[int, ...], order: tuple[int, ...], behind: tuple[int, ...]) -> None:
    refused(dealt(groups, order, behind), "a tensor of 5 axes")


def test_rows_that_are_dealt_are_refused() -> None:
    refused(dealt((1, 4, 5, 2, 3), (0, 1, 2, 4, 3), (1, 20, 6), (1, 20, 6)), "a tensor of 5 axes")


@pytest.mark.parametrize("block", [2, 3])
@pytest.mark.parametrize("channels", [1, 2])
def test_blocks_of_channels(block: int, channels: int) -> None:
    deep, wide = (1, 2, 3, block * block * channels), (1, 2 * block, 3 * block, channels)
    agrees(one("depth_to_space", deep, wide, block_size=block))
    agrees(one("space_to_depth", wide, deep, block_size=block))


def rows_behind(view: tuple[int, ...]) -> Graph:
    """A sequence with rows in front, as images of another form."""
    b = SeededBuilder()
    x = b.input("x", (1, 6, 2), DType.FLOAT32)
    x = b.add("pad", [x, b.constant("p", ints((0, 0), (3, 0), (0, 0)))], (1, 9, 2), DType.FLOAT32)
    x = b.add("reshape", [x, b.constant("v", ints(*view))], view, DType.FLOAT32)
    y, _ = filtered(b, x, 1, (view[1], view[2]), (1, 1), VALID)
    return b.build([y])


def test_rows_in_front_of_an_image() -> None:
    agrees(rows_behind((1, 1, 9, 2)))


@pytest.mark.parametrize("view", [(1, 9, 1, 2), (1, 3, 3, 2)])
def test_rows_in_front_of_other_images_are_refused(view: tuple[int, ...]) -> None:
    refused(rows_behind(view))


@pytest.mark.parametrize("source", [(2, 4, 1, 3), (2, 2, 2, 3), (2, 12)])
def test_rows_of_other_images_back_from_phases_are_refused(source: tuple[int, ...]) -> None:
    b = SeededBuilder()
    x = b.add("neg", [b.input("x", source, DType.FLOAT32)], source, DType.FLOAT32)
    x = b.add("reshape", [x, b.constant("v", ints(2, 4, 3))], (2, 4, 3), DType.FLOAT32)
    operands = [x, b.constant("b", ints(2)), b.constant("c", ints((0, 0)))]
    refused(b.build([b.add("batch_to_space_nd", operands, (1, 8, 3), DType.FLOAT32)]))


@pytest.mark.parametrize("given", [(), (ABSENT,)], ids=["missing", "absent"])
@pytest.mark.parametrize("operator", ["transpose", "tile"])
def test_patterns_without_their_constant_are_refused(operator: str, given: tuple[int, ...]) -> None:
    groups, made = ((1, 4, 5, 2, 3), (1, 4, 5, 3, 2)) if operator == "transpose" else ((1, 4, 1, 5, 6), (1, 4, 2, 5, 6))
    behind = (1, 4, 5, 6) if operator == "transpose" else (1, 8, 5, 6)
    b = GraphBuilder("net")
    x = b.input("x", (1, 4, 5, 6), DType.FLOAT32)
    x = b.add("reshape", [x, b.constant("g", ints(*groups))], groups, DType.FLOAT32)
    x = b.add(operator, [x, *given], made, DType.FLOAT32)
    refused(b.build([b.add("reshape", [x, b.constant("s", ints(*behind))], behind, DType.FLOAT32)]), "5 axes")


def test_steps_beside_a_part_without_rows_are_refused() -> None:
    graph = one("strided_slice", (1, 4, 5, 6), (1, 0, 3, 6), ints(0, 2, 0, 0), ints(1, 2, 5, 6), ints(1, 1, 2, 1))
    refused(graph, "a step of 2; Caffe's Slice")


def test_the_dilation_of_a_sequence_is_one_of_columns() -> None:
    graph = causal()
    text = package(graph, data_of(graph))["net.prototxt"].decode()
    assert "    dilation: 1\n    dilation: 2\n" in text
