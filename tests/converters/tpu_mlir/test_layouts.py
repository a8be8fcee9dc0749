"""Constants, pads and sums as TPU-MLIR takes them, which depends on the order of axes that it sees."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import FLOAT, IMAGE, quantised, ranged, run, unary
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
    graph = lower(quantised(product((1, 4, 4, 5), (5,))), "tpu_mlir")
    assert kinds(graph) == ["fully_connected", "reshape", "add"]
    assert kinds(quantised(unary("add", {"x": (-1, 1), "y": (-2, 2)}, np.float32([1, 2]), **NONE))) == [
        "depthwise_conv_2d"
    ]


@pytest.mark.parametrize(
    ("shape", "constant", "back", "name"),
    [((1, 4, 5), (5,), (4, 5), "s_Relu"), ((1, 1, 1, 5), (1, 1, 1, 5), (1, 5), "r_Reshape")],
)
def test_a_sum_that_is_shaped_back_is_a_bias(
    shape: tuple[int, ...], constant: tuple[int, ...], back: tuple[int, ...], name: str
) -> None:
    graph = quantised(product(shape, constant, back=back))
    first = next(node for node in graph.nodes if node.operator == "fully_connected")
    assert "add" not in kinds(graph)
    assert graph.tensors[first.outputs[0]].name == name
    assert np.any(graph.tensors[first.inputs[2]].data)
    assert graph.tensors[first.outputs[0]].dtype is DType.UINT8


def test_a_sum_of_more_axes_stays() -> None:
    assert "add" in kinds(quantised(product((1, 2, 2, 5), (5,), back=(4, 5))))


def test_constants_without_negative_numbers_are_unsigned() -> None:
    for numbers, dtype, scale in (([1, 2], DType.UINT8, 2 / 255), ([-1, 2], DType.INT8, 2 / 127)):
        full = np.broadcast_to(np.float32(numbers), IMAGE) * np.linspace(0.5, 1, 32).reshape(IMAGE).astype(np.float32)
        graph = quantised(unary("mul", {"x": (-1, 1), "y": (-2, 2)}, full, **NONE))
        constant = graph.tensors[next(n for n in graph.nodes if n.operator == "mul").inputs[1]]
        assert (constant.dtype, float(constant.affine.scale[0])) == (dtype, pytest.approx(scale, rel=1e-6))


@pytest.mark.parametrize(
    ("reach", "kind"), [(2.0, {"false": "INT8", "true": "F32"}), (0.5, dict.fromkeys(("false", "true"), "F16"))]
)
def test_differences_with_a_constant_are_those_of_two(reach: float, kind: dict[str, str]) -> None:
    graph = unary("sub", {"x": (-1, 1), "y": (-reach, reach)}, np.float32([0.25, 0.5]), **NONE)
    for mode, wanted in kind.items():
        found = quantised(graph, [f"asymmetric={mode}"])
        assert [n.attributes.text("engine") for n in found.nodes if n.operator == "sub"] == [wanted]


def test_a_softmax_over_the_last_of_four_axes_is_in_float16() -> None:
    b = GraphBuilder("attention")
    q, k = (b.input(name, (1, 2, 4, 4), FLOAT) for name in "qk")
    s, p = (b.tensor(name, (1, 2, 4, 4), FLOAT) for name in "sp")
    b.node("batch_matmul", [q, k], [s], adj_x=False, adj_y=False)
    b.node("softmax", [s], [p], beta=1.0)
    ranges = {"q": (-1.0, 1.0), "k": (-1.0, 1.0), "s": (-4.0, 4.0), "p": (0.0, 1.0)}
    graph = quantised(ranged(b.build([p]), ranges))
    assert [n.attributes.text("engine") for n in graph.nodes if n.operator == "softmax"] == ["F16"]
    image = quantised(unary("softmax", {"x": (-1, 1), "y": (0, 1)}, beta=1.0))
    assert [n.attributes.text("engine") for n in image.nodes if n.operator == "softmax"] == ["INT8"]


def test_zeros_in_front_of_a_maximum_are_its_padding() -> None:
    """The pool's own padding never wins: where all pixels are negative, the zeros of the model are lost."""
    b = GraphBuilder("pool")
    x, p, y = b.input("x", IMAGE, FLOAT), b.tensor("p", (1, 6, 6, 2), FLOAT), b.tensor("y", (1, 2, 2, 2), FLOAT)
    b.node("pad", [x, b.constant("pads", np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))], [p])
    window = {"padding": "valid", "stride_h": 3, "stride_w": 3, "filter_height": 3, "filter_width": 3}
    b.node("max_pool_2d", [p], [y], **window, **NONE)
    graph = ranged(b.build([y]), {"x": (-2.0, 1.0), "p": (-2.0, 1.0), "y": (-2.0, 1.0)})
    found = quantised(graph)
    assert kinds(found) == ["max_pool_2d"]
    pool = next(node for node in found.nodes if node.operator == "max_pool_2d")
    assert "takes the zeros in front of it as padding" in pool.attributes.text("engine_reason")
    values = run(found, [np.full((1, *IMAGE), -1.0, np.float32)])
    assert np.allclose(values["y_MaxPool_f32"], -1.0, atol=0.01)


@pytest.mark.parametrize("stride", [1, 2])
def test_padded_averages_beside_a_zero_point_count_their_padding(stride: int) -> None:
    options = {"filter_height": 3, "filter_width": 3, "padding": "same", "stride_h": stride, "stride_w": stride}
    b = GraphBuilder("pool")
    size = -(-5 // stride)
    x, y = b.input("x", (1, 5, 5, 1), FLOAT), b.tensor("y", (1, size, size, 1), FLOAT)
    b.node("average_pool_2d", [x], [y], **options, **NONE)
    graph = lower(
        quantised(ranged(b.build([y]), {"x": (-1.0, 3.0), "y": (-1.0, 3.0)}), ["asymmetric=true"]), "tpu_mlir"
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
                for n in quantised(graph, [f"asymmetric={mode}"]).nodes
                if n.operator == "average_pool_2d"
            ]
            for mode in ("true", "false")
        ]
        assert engines == [["F32"], ["INT8"]]


def test_one_number_a_row_of_what_is_no_image_is_refused() -> None:
    graph = product((1, 4, 2, 5), (1, 4, 1, 1))
    with pytest.raises(UnsupportedError, match="one number for each place along axis 1 of a tensor that is no image"):
        quantised(graph)
