"""Constants, pads and sums as TPU-MLIR takes them, which depends on the order of axes that it sees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import FLOAT, IMAGE, quantized, ranged, run, unary
from tflq.errors import UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder
from tflq.interpreter import lower

NONE = {"fused_activation_function": "none"}


def kinds(graph: Graph) -> list[str]:
    return [node.operator for node in graph.nodes if node.operator not in ("quantize", "dequantize")]


def product(
    shape: tuple[int, ...], constant: tuple[int, ...], *, back: tuple[int, ...] = (), activation: str = "relu"
) -> Graph:
    """Rows, times a matrix, reshaped, plus a constant, perhaps reshaped back and times another matrix."""
    rng = np.random.default_rng(1)
    b = GraphBuilder("dense")
    x = b.input("x", (int(np.prod(shape[:-1])), 3), FLOAT)
    y = b.tensor("y", (x_rows := int(np.prod(shape[:-1])), shape[-1]), FLOAT)
    weights = b.constant("w", rng.standard_normal((shape[-1], 3)).astype(np.float32))
    b.node("fully_connected", [x, weights, -1], [y], **NONE)
    z, s = b.tensor("z", shape, FLOAT), b.tensor("s", shape, FLOAT)
    b.node("reshape", [y, b.constant("shape", np.array(shape, np.int32))], [z])
    bias = rng.standard_normal(constant).astype(np.float32)
    b.node("add", [z, b.constant("c", bias)], [s], fused_activation_function=activation)
    ranges = {"x": (-1.0, 1.0), "y": (-3.0, 3.0), "z": (-3.0, 3.0), "s": (0.0, 4.0)}
    if not back:
        return ranged(b.build([s]), ranges)
    r, o = b.tensor("r", back, FLOAT), b.tensor("o", (x_rows, 2), FLOAT)
    b.node("reshape", [s, b.constant("back", np.array(back, np.int32))], [r])
    last = b.constant("v", rng.standard_normal((2, shape[-1])).astype(np.float32))
    b.node("fully_connected", [r, last, -1], [o], **NONE)
    return ranged(b.build([o]), {**ranges, "r": (0.0, 4.0), "o": (-5.0, 5.0)})


def test_one_number_a_channel_is_a_sum_where_channels_stay_last() -> None:
    """A product that is reshaped is no image: its last axis is not the second one, and no convolution is made."""
    graph = lower(quantized(product((1, 4, 4, 5), (5,))), "tpu_mlir")
    assert kinds(graph) == ["fully_connected", "reshape", "add"]
    assert kinds(quantized(unary("add", {"x": (-1, 1), "y": (-2, 2)}, np.float32([1, 2]), **NONE))) == [
        "depthwise_conv_2d"
    ]


@pytest.mark.parametrize(
    ("shape", "constant", "back", "name"),
    [((1, 4, 5), (5,), (4, 5), "s_Relu"), ((1, 1, 1, 5), (1, 1, 1, 5), (1, 5), "r_Reshape")],
)
def test_a_sum_that_is_shaped_back_is_a_bias(
    shape: tuple[int, ...], constant: tuple[int, ...], back: tuple[int, ...], name: str
) -> None:
    graph = quantized(product(shape, constant, back=back))
    first = next(node for node in graph.nodes if node.operator == "fully_connected")
    assert "add" not in kinds(graph)
    assert graph.tensors[first.outputs[0]].name == name
    assert np.any(graph.tensors[first.inputs[2]].data)
    assert graph.tensors[first.outputs[0]].dtype is DType.UINT8


@pytest.mark.parametrize(("place", "merged"), [(None, True), ((0, 0, 1), False), ((0, 3, 4), False)])
def test_a_constant_of_all_rows_is_a_bias_where_they_are_equal(place: tuple[int, ...] | None, merged: bool) -> None:
    graph = product((1, 4, 5), (1, 4, 5), back=(4, 5))
    (t,) = (i for i, x in enumerate(graph.tensors) if x.name == "c")
    data = np.broadcast_to(np.arange(5, dtype=np.float32), (1, 4, 5)).copy()
    if place is not None:
        data[place] += 1
    graph.tensors[t] = replace(graph.tensors[t], data=data)
    assert ("add" not in kinds(quantized(graph))) is merged


def test_a_sum_of_more_axes_stays() -> None:
    assert "add" in kinds(quantized(product((1, 2, 2, 5), (5,), back=(4, 5))))


def test_constants_without_negative_numbers_are_unsigned() -> None:
    for numbers, dtype, scale in (([1, 2], DType.UINT8, 2 / 255), ([-1, 2], DType.INT8, 2 / 127)):
        full = np.broadcast_to(np.float32(numbers), IMAGE) * np.linspace(0.5, 1, 32).reshape(IMAGE).astype(np.float32)
        graph = quantized(unary("mul", {"x": (-1, 1), "y": (-2, 2)}, full, **NONE))
        constant = graph.tensors[next(n for n in graph.nodes if n.operator == "mul").inputs[1]]
        assert (constant.dtype, float(constant.affine.scale[0])) == (dtype, pytest.approx(scale, rel=1e-6))


@pytest.mark.parametrize(
    ("reach", "kind"), [(2.0, {"false": "INT8", "true": "F32"}), (0.5, dict.fromkeys(("false", "true"), "F16"))]
)
def test_differences_with_a_constant_are_those_of_two(reach: float, kind: dict[str, str]) -> None:
    graph = unary("sub", {"x": (-1, 1), "y": (-reach, reach)}, np.float32([0.25, 0.5]), **NONE)
    for mode, wanted in kind.items():
        found = quantized(graph, [f"asymmetric={mode}"])
        assert [n.attributes.text("engine") for n in found.nodes if n.operator == "sub"] == [wanted]


def test_a_softmax_over_the_last_of_four_axes_is_in_float16() -> None:
    b = GraphBuilder("attention")
    q, k = (b.input(name, (1, 2, 4, 4), FLOAT) for name in "qk")
    s, p = (b.tensor(name, (1, 2, 4, 4), FLOAT) for name in "sp")
    b.node("batch_matmul", [q, k], [s], adj_x=False, adj_y=False)
    b.node("softmax", [s], [p], beta=1.0)
    ranges = {"q": (-1.0, 1.0), "k": (-1.0, 1.0), "s": (-4.0, 4.0), "p": (0.0, 1.0)}
    graph = quantized(ranged(b.build([p]), ranges))
    assert [n.attributes.text("engine") for n in graph.nodes if n.operator == "softmax"] == ["F16"]
    image = quantized(unary("softmax", {"x": (-1, 1), "y": (0, 1)}, beta=1.0))
    assert [n.attributes.text("engine") for n in image.nodes if n.operator == "softmax"] == ["INT8"]


def test_zeros_in_front_of_a_maximum_are_its_padding() -> None:
    """The pool's own padding never wins: where all pixels are negative, the zeros of the model are lost."""
    b = GraphBuilder("pool")
    x, p, y = b.input("x", IMAGE, FLOAT), b.tensor("p", (1, 6, 6, 2), FLOAT), b.tensor("y", (1, 2, 2, 2), FLOAT)
    b.node("pad", [x, b.constant("pads", np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))], [p])
    window = {"padding": "valid", "stride_h": 3, "stride_w": 3, "filter_height": 3, "filter_width": 3}
    b.node("max_pool_2d", [p], [y], **window, **NONE)
    graph = ranged(b.build([y]), {"x": (-2.0, 1.0), "p": (-2.0, 1.0), "y": (-2.0, 1.0)})
    found = quantized(graph)
    assert kinds(found) == ["max_pool_2d"]
    pool = next(node for node in found.nodes if node.operator == "max_pool_2d")
    assert "takes the zeros in front of it as padding" in pool.attributes.text("engine_reason")
    values = run(found, [np.full((1, *IMAGE), -1.0, np.float32)])
    assert np.allclose(values["y_MaxPool_f32"], -1.0, atol=0.01)


@pytest.mark.parametrize("least", [-2.0, 0.0])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 0, 0, 0), (0, 2, 0, 0), (0, 0, 1, 0), (0, 0, 0, 2), (1, 1, 1, 1)])
def test_zeros_of_one_side_are_padding_too(pads: tuple[int, ...], least: float) -> None:
    """Named where a pixel may be negative."""
    b = GraphBuilder("pool")
    shape = (1, 4 + pads[0] + pads[1], 4 + pads[2] + pads[3], 2)
    sides = np.array([(0, 0), pads[:2], pads[2:], (0, 0)], np.int32)
    p = b.add("pad", [b.input("x", IMAGE, FLOAT), b.constant("pads", sides)], shape, FLOAT)
    window = {"padding": "valid", "stride_h": 1, "stride_w": 1, "filter_height": 3, "filter_width": 3}
    y = b.add("max_pool_2d", [p], (1, shape[1] - 2, shape[2] - 2, 2), FLOAT, **window, **NONE)
    graph = b.build([y])
    names = [graph.tensors[t].name for t in (graph.inputs[0], p, y)]
    found = quantized(ranged(graph, dict.fromkeys(names, (least, 1.0))))
    said = [node.attributes.text("engine_reason", "") for node in found.nodes]
    assert any("takes the zeros in front of it" in words for words in said) is (any(pads) and least < 0)


@pytest.mark.parametrize("stride", [1, 2])
def test_padded_averages_beside_a_zero_point_count_their_padding(stride: int) -> None:
    options = {"filter_height": 3, "filter_width": 3, "padding": "same", "stride_h": stride, "stride_w": stride}
    b = GraphBuilder("pool")
    size = -(-5 // stride)
    x, y = b.input("x", (1, 5, 5, 1), FLOAT), b.tensor("y", (1, size, size, 1), FLOAT)
    b.node("average_pool_2d", [x], [y], **options, **NONE)
    graph = lower(
        quantized(ranged(b.build([y]), {"x": (-1.0, 3.0), "y": (-1.0, 3.0)}), ["asymmetric=true"]), "tpu_mlir"
    )
    pool = next(node for node in graph.nodes if node.operator == "average_pool_2d")
    assert pool.attributes.text("engine") == "INT8"
    codes = run(graph, [np.full((1, 1, 5, 5, 1), 2.0, np.float32)])["y_AveragePool_f32"][0, 0, :, :, 0]
    assert codes[0, 0] == pytest.approx(2.0 * 4 / 9, abs=0.02)  # four of nine taps lie inside, the others hold 0


def test_averages_that_leave_pixels_over_are_in_float32() -> None:
    options = {"filter_height": 2, "filter_width": 2, "padding": "valid", "stride_h": 2, "stride_w": 2}
    b = GraphBuilder("pool")
    x, y = b.input("x", (1, 5, 5, 1), FLOAT), b.tensor("y", (1, 2, 2, 1), FLOAT)
    b.node("average_pool_2d", [x], [y], **options, **NONE)
    for low in (-1.0, 0.0):
        graph = ranged(b.build([y]), {"x": (low, 3.0), "y": (low, 3.0)})
        engines = [
            [
                n.attributes.text("engine")
                for n in quantized(graph, [f"asymmetric={mode}"]).nodes
                if n.operator == "average_pool_2d"
            ]
            for mode in ("true", "false")
        ]
        assert engines == [["F32"], ["INT8"]]


def test_one_number_a_row_of_what_is_no_image_is_refused() -> None:
    graph = product((1, 4, 2, 5), (1, 4, 1, 1))
    with pytest.raises(UnsupportedError, match="one number for each place along axis 1 of a tensor that is no image"):
        quantized(graph)


@pytest.mark.parametrize(("crop", "merged"), [((1, 1, 1, 1), True), ((0, 1, 1, 0), True), ((2, 0, 1, 1), False)])
def test_what_a_slice_cuts_off_the_padding_is_not_computed(crop: tuple[int, ...], merged: bool) -> None:
    rng = np.random.default_rng(4)
    top, bottom, left, right = crop
    b = GraphBuilder("crop")
    x, y = b.input("x", (1, 6, 6, 2), FLOAT), b.tensor("y", (1, 6, 6, 3), FLOAT)
    weights = b.constant("w", rng.standard_normal((3, 3, 3, 2)).astype(np.float32))
    b.node("conv_2d", [x, weights, -1], [y], padding="same", stride_h=1, stride_w=1, **NONE)
    z = b.tensor("z", (1, 6 - top - bottom, 6 - left - right, 3), FLOAT)
    parts = [[0, top, left, 0], [1, 6 - bottom, 6 - right, 3], [1, 1, 1, 1]]
    given = [b.constant(f"s{i}", np.array(part, np.int32)) for i, part in enumerate(parts)]
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    b.node("strided_slice", [y, *given], [z], **masks)
    source = b.build([z])
    whole = {"x": (-1.0, 1.0), "y": (-4.0, 4.0), "z": (-4.0, 4.0)}
    graph = quantized(ranged(source, whole))
    assert (kinds(graph) == ["conv_2d"]) is merged
    image = rng.uniform(-1, 1, (2, 1, 6, 6, 2)).astype(np.float32)
    found = run(graph, [image])["z_Slice_f32"]
    full = run(quantized(ranged(replace(source, outputs=(y,), nodes=source.nodes[:1]), whole)), [image])["y_Conv_f32"]
    assert np.array_equal(found, full[:, :, top : 6 - bottom, left : 6 - right])


@pytest.mark.parametrize("align", [True, False])
def test_bilinear_resizes_go_down_then_across(align: bool) -> None:
    """With neither option positions are those of half-pixel centers, as TPU-MLIR has no other."""
    rng = np.random.default_rng(6)
    b = GraphBuilder("resize")
    x, y = b.input("x", (1, 3, 4, 1), FLOAT), b.tensor("y", (1, 7, 5, 1), FLOAT)
    b.node("resize_bilinear", [x, b.constant("size", np.array([7, 5], np.int32))], [y], align_corners=align)
    graph = quantized(ranged(b.build([y]), {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}))
    values = run(graph, [rng.uniform(-2, 2, (1, 1, 3, 4, 1)).astype(np.float32)])
    source = next(value for name, value in values.items() if name.endswith("_f16"))[0, 0, :, :, 0].astype(np.float32)
    found = next(value for name, value in values.items() if name == "y_Resize")[0, 0, :, :, 0]
    one = np.float32

    def place(i: int, old: int, new: int) -> tuple[int, np.float32]:
        at = (
            one(i) * one(one(old - 1) / one(new - 1))
            if align
            else (one(i) + one(0.5)) * one(one(old) / one(new)) - one(0.5)
        )
        at = min(max(at, one(0)), one(old - 1))
        return int(at), one(at - one(int(at)))

    for i, j in np.ndindex(7, 5):
        (row, down), (column, across) = place(i, 3, 7), place(j, 4, 5)
        low, high = (
            source[row, c] + down * (source[min(row + 1, 2), c] - source[row, c]) for c in (column, min(column + 1, 3))
        )
        assert found[i, j] == low + across * (high - low)


def test_a_table_without_the_sum_in_front_of_a_reshape(tmp_path: Path) -> None:
    """TPU-MLIR reshapes the operands of a sum instead, and its own table has the name behind that only."""
    b = GraphBuilder("sum")
    inputs = [b.input(name, IMAGE, FLOAT) for name in "ab"]
    s, r = b.tensor("s", IMAGE, FLOAT), b.tensor("r", (1, 32), FLOAT)
    b.node("add", inputs, [s], **NONE)
    b.node("reshape", [s, b.constant("shape", np.array([1, 32], np.int32))], [r])
    table = tmp_path / "table"
    table.write_text("a 1 -1 1\nb 1 -1 1\nr_Reshape 2 -2 2\n", encoding="utf-8")
    graph = quantized(b.build([r]), [f"calibration_table={table}"])
    total = graph.tensors[next(node for node in graph.nodes if node.operator == "add").outputs[0]]
    assert float(total.affine.scale[0]) == 2 / 127


@pytest.mark.parametrize(("strides", "shrunk", "is_shared", "merged"), [
    ((1, 1), 0, False, True), ((2, 1), 0, False, False), ((1, 2), 0, False, False), ((1, 1), 1, False, False),
    ((1, 1), 2, False, False), ((1, 1), 0, True, False),
])  # fmt: skip
def test_slices_that_are_no_crop_of_padding(
    strides: tuple[int, int], shrunk: int, is_shared: bool, merged: bool
) -> None:
    """Steps of the filter, an axis that goes, another reader: the slice stays. The first case is one step away."""
    b = GraphBuilder("crop")
    x, (height, width) = b.input("x", (1, 6, 6, 2), FLOAT), (-(-6 // strides[0]), -(-6 // strides[1]))
    weights = b.constant("w", np.random.default_rng(4).standard_normal((3, 3, 3, 2)).astype(np.float32))
    window = {"padding": "same", "stride_h": strides[0], "stride_w": strides[1], **NONE}
    y = b.add("conv_2d", [x, weights, -1], (1, height, width, 3), FLOAT, **window)
    kept = [1, 1 if shrunk == 1 else height, 1 if shrunk == 2 else width - 1, 3]
    parts = [[0, 0, 0, 0], kept, [1, 1, 1, 1]]
    given = [b.constant(f"s{i}", np.array(part, np.int32)) for i, part in enumerate(parts)]
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask"), 0)
    shape = tuple(n for axis, n in enumerate(kept) if axis != shrunk or not shrunk)
    z = b.add("strided_slice", [y, *given], shape, FLOAT, **masks, shrink_axis_mask=1 << shrunk if shrunk else 0)
    graph = b.build([z, b.add("tanh", [y], (1, height, width, 3), FLOAT)] if is_shared else [z])
    found = quantized(ranged(graph, {t.name: (-4.0, 4.0) for t in graph.tensors if not t.is_constant}))
    assert ("strided_slice" not in kinds(found)) is merged
