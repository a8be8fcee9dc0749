"""Padding, and Feat, Width and Height, in AutoTiler's calls: tables of what NNTool 4.1 wrote.

Source: docs/targets/gap9.md#hand-over-to-greenwaves-flow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Limits, Net
from tflq.converters.gap9.departures import departures_of
from tflq.converters.gap9.emit.generators import Generator, generators_of
from tflq.graph import Affine
from tflq.interpreter import lower

_SIDES = ("0000", "1000", "0100", "0001", "1100", "0011", "0101", "1010", "1111", "2222", "0202", "1212", "2011",
          "1021", "0021", "0111", "1101", "1211", "2111", "1122", "0211", "2020")  # fmt: skip
"""Rows above and below, columns left and right."""
_CONVOLUTIONS = {
    (1, 1, 8): "0 1 1t1 1t1 1 1 1t1 1 1 1 1t1 1t3 - 1 1 1t3 1t3 1t3 1 1 - 1t0",
    (3, 1, 8): "0 0 0t1 0t1 0 0 0t1 0 1 1 1t1 1t3 - 0 0 0t3 0t3 1t3 1 1 - 1t0",
    (2, 1, 8): "0 0 0t1 0t1 0 0 1t1 1 1 1 1t1 1t3 - 1 0 1t3 1t3 1t3 1 1 - 1t0",
    (5, 1, 8): "0 0 0t1 0t1 0 0 0t1 0 0 1 0t1 0t3 - 0 0 0t3 0t3 0t3 0 0 - 0t0",
    (3, 2, 8): "0 0 0t1 0t1 0 0 1t1 1 1 1 1t1 1t3 - 1 0 1t3 1t3 1t3 1 1 - 1t0",
    (3, 2, 9): "0 0 0t1 0t1 0 0 0t1 0 1 1 1t1 1t3 - 0 0 0t3 0t3 1t3 1 1 - 1t0",
}
"""Kernel, stride, height and width -> for each of those sides ConvPad, and PADTYPE where it is set; - for no model."""


def _padded(net: Net, sides: str, kernel: int = 3, stride: int = 1) -> int:
    top, bottom, left, right = map(int, sides)
    _, height, width, channels = net.shapes[net.x]
    x, shape = net.x, (1, height + top + bottom, width + left + right, channels)
    if shape != net.shapes[x]:
        amounts = net.builder.constant("pads", np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32))
        x = net.add("pad", [x, amounts], shape, (-2.0, 2.0))
    codes = net.random.integers(-127, 128, (4, kernel, kernel, channels)).astype(np.int8)
    weights = net.builder.constant("w", codes, Affine(np.full(4, 0.01, np.float32), np.zeros(4, np.int64), 0))
    size = [(n - kernel) // stride + 1 for n in shape[1:3]]
    options = {"padding": "valid", "stride_h": stride, "stride_w": stride, "fused_activation_function": "none"}
    return net.add("conv_2d", [x, weights, -1], (1, *size, 4), (-2.0, 2.0), **options)


def _calls(net: Net, output: int, target: str = "gap9-sq8") -> tuple[list[Generator], str]:
    graph = lower(quantized(net.model(output), target, ["numerics=nntool"]), "gap9")
    found = [g for g in generators_of(graph).values() if isinstance(g, Generator) and "Convert" not in g.name]
    return found, "; ".join(departures_of(graph).values())


def _shown(made: Generator, pad: str) -> str:
    kind = made.controls.get("PADTYPE")
    return f"{made.parameters[pad]}" + ("" if kind is None else f"t{kind}")


@pytest.mark.parametrize(("kernel", "stride", "size"), _CONVOLUTIONS)
def test_padding_of_convolutions(kernel: int, stride: int, size: int) -> None:
    found = []
    for sides in _SIDES:
        net = Net(shape=(1, size, size, 4))
        calls, warned = _calls(net, _padded(net, sides, kernel, stride))
        found.append(_shown(calls[0], "ConvPad") if calls else "-")
        assert ("(19)" in warned) is (found[-1] == "-" or (found[-1][0] == "0" and sides != "0000"))
    assert " ".join(found) == _CONVOLUTIONS[kernel, stride, size]


_POOLS = (("same", (2, 2), 1), ("same", (3, 3), 1), ("same", (3, 3), 2), ("valid", (2, 2), 2), ("same", (2, 1), 1))
_BOTH = {
    "0000": "0 1t1  0 1  0 1t1  0 0  0 1t1",
    "0101": "0 1t1  0 1t3  0 1t3  0 0t1  0 1t1",
    "1010": "-  0 1  0 1  0 0  -",
    "1111": "1 1t3  1 1  1 1t3  1 0  1 1t3",
    "2020": "-  -  -  1 0t0  -",
    "0202": "1 1t1  -  1 1t1  1 0t1  1 1t1",
    "1212": "1 1t3  1 1t3  1 1t3  1 0t3  1 1t3",
    "2121": "-  1 1  1 1  1 0  -",
    "1012": "-  -  -  -  -",
    "0102": "0 1t1  -  -  0 0t1  0 1t1",
    "0112": "0 1t3  0 1t3  0 1t3  0 0t3  0 1t3",
}
"""Sides of a 3x3 convolution -> with each of those pools behind it ConvPad, PoolPad and PADTYPE."""


@pytest.mark.parametrize("target", ["gap9-sq8", "gap9-ne16"])
@pytest.mark.parametrize("sides", _BOTH)
def test_padding_of_a_convolution_and_its_pool(sides: str, target: str) -> None:
    found = []
    for padding, kernel, stride in _POOLS:
        net = Net()
        x = _padded(net, sides)
        lost = [k - 1 if padding == "valid" else 0 for k in kernel]
        size = [-(-(n - less) // stride) for n, less in zip(net.shapes[x][1:3], lost, strict=True)]
        window = {"stride_h": stride, "stride_w": stride, "filter_height": kernel[0], "filter_width": kernel[1]}
        y = net.add("max_pool_2d", [x], (1, *size, 4), (-2.0, 2.0), padding=padding, **window)
        calls, _ = _calls(net, y, target)
        found.append(f"{calls[0].parameters['ConvPad']} {_shown(calls[0], 'PoolPad')}" if calls else "-")
    assert "  ".join(found) == _BOTH[sides]


_LIMITS: Limits = (-2.0, 2.0)


def _resized(net: Net, x: int) -> int:
    n, h, w, c = net.shapes[x]
    size = net.builder.constant("size", np.array([2 * h, 2 * w], np.int32))
    options = {"align_corners": False, "half_pixel_centers": False}
    return net.add("resize_bilinear", [x, size], (n, 2 * h, 2 * w, c), _LIMITS, **options)


def _filter(net: Net) -> int:
    return net.conv(net.x, (0.0, 3.0), activation="relu")


def _pooled(net: Net, x: int) -> int:
    window = {"padding": "same", "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}
    return net.add("average_pool_2d", [x], net.shapes[x], _LIMITS, **window)


_MADE: dict[str, tuple[Callable[[Net], int], tuple[int, int, int]]] = {
    "a filter": (_filter, (4, 5, 7)),
    "an input": (lambda net: net.x, (7, 4, 5)),
    "a pool": (lambda net: _pooled(net, net.x), (4, 5, 7)),
    "a resize": (lambda net: _resized(net, net.x), (4, 10, 14)),
    "filter first": (lambda net: net.join([_filter(net), net.x], _LIMITS), (8, 5, 7)),
    "input first": (lambda net: net.join([net.x, _filter(net)], _LIMITS), (7, 8, 5)),
    "a sum": (lambda net: net.binary("add", net.x, _filter(net), _LIMITS), (7, 4, 5)),
}


@pytest.mark.parametrize("source", _MADE)
def test_names_of_axes(source: str) -> None:
    """A tanh alone on 7x5 maps of 4 channels."""
    make, wanted = _MADE[source]
    net = Net(shape=(1, 7, 5, 4))
    calls, _ = _calls(net, net.unary("tanh", make(net), (-1.0, 1.0)))
    (made,) = (g for g in calls if g.parameters.get("ActOper") == "KOP_TANH")
    assert _sizes(made) == wanted


def _sizes(made: Generator) -> tuple[int, int, int]:
    feat, width, height = (int(made.parameters[key]) for key in ("Feat", "Width", "Height"))
    return feat, width, height


@pytest.mark.parametrize(("shape", "wanted"), [
    ((1, 5, 6, 1), (1, 6, 5)), ((1, 3, 5, 3), (3, 5, 3)), ((1, 3, 5, 4), (3, 4, 5)), ((1, 1, 5, 4), (1, 4, 5)),
    ((2, 5, 6, 4), (10, 4, 6)), ((1, 6, 3), (1, 3, 6)), ((1, 3), (1, 3, 1)),
])  # fmt: skip
def test_inputs_of_one_or_three_channels_are_images(shape: tuple[int, ...], wanted: tuple[int, int, int]) -> None:
    net = Net(shape=shape)
    calls, _ = _calls(net, net.unary("tanh", net.x, (-1.0, 1.0)))
    assert _sizes(calls[0]) == wanted


@pytest.mark.parametrize(("more", "wanted"), [("", (4, 5, 7)), ("convolution", (4, 5, 7)), ("softmax", (7, 4, 5))])
def test_a_mean_turns_what_comes_from_inputs(more: str, wanted: tuple[int, int, int]) -> None:
    net = Net(shape=(1, 7, 5, 4))
    x = net.unary("tanh", net.x, (-1.0, 1.0))
    outputs = [net.dense(net.mean(x, (-1.0, 1.0)), _LIMITS)]
    if more == "convolution":
        outputs.append(net.conv(x, _LIMITS))
    elif more:
        outputs.append(net.add("softmax", [x], net.shapes[x], (0.0, 1.0), beta=1.0))
    graph = lower(quantized(net.model(*outputs), "gap9-sq8", []), "gap9")
    (made,) = (g for g in generators_of(graph).values() if isinstance(g, Generator) and "KOP_TANH" in str(g.parameters))
    assert _sizes(made) == wanted


@pytest.mark.parametrize(("count", "wanted"), [(6, (2, 3)), (7, (1, 7)), (12, (3, 4)), (30, (5, 6)), (96, (8, 12))])
def test_sums_of_one_axis(count: int, wanted: tuple[int, int]) -> None:
    """The two nearest factors; of (1, 1, n) the axes as they are."""
    for shape, sizes in (((1, count), (1, *wanted)), ((1, 1, count), (1, 1, count))):
        net = Net(shape=shape)
        calls, _ = _calls(net, net.binary("add", net.x, net.input((-1.0, 2.0), shape), (-3.0, 4.0)))
        assert _sizes(calls[0]) == sizes


@pytest.mark.parametrize(("first", "wanted"), [((6,), (1, 2, 3)), ((1, 6), (1, 1, 6))])
def test_a_constant_row_as_the_first_operand(first: tuple[int, ...], wanted: tuple[int, int, int]) -> None:
    net = Net(shape=(1, 1, 1, 6))
    total = net.binary("add", net.x, net.input((-1.0, 2.0), (1, 1, 1, 6)), (-3.0, 4.0))
    codes = net.random.integers(-127, 128, first).astype(np.int8)
    row = net.builder.constant("row", codes, Affine.per_tensor(np.float32(0.02), 0))
    options = {"fused_activation_function": "none"}
    calls, _ = _calls(net, net.add("add", [row, total], (1, 1, 1, 6), (-3.0, 4.0), **options))
    assert _sizes(calls[-1]) == wanted


@pytest.mark.parametrize(("back", "wanted"), [((1, 8, 1, 2), (8, 2, 1)), ((1, 4, 2, 2), (1, 2, 8))])
def test_an_activation_between_reshapes(back: tuple[int, ...], wanted: tuple[int, int, int]) -> None:
    """Of reshapes that undo each other it has the map's axes (network 119), of others its own."""
    net = Net(shape=(1, 8, 1, 2))
    first, second = (net.builder.constant("shape", np.array(shape, np.int32)) for shape in ((1, 1, 8, 2), back))
    x = net.unary("relu", net.add("reshape", [net.x, first], (1, 1, 8, 2), (-1.0, 1.0)), (0.0, 1.0))
    calls, _ = _calls(net, net.conv(net.add("reshape", [x, second], back, (0.0, 1.0)), _LIMITS))
    (made,) = (g for g in calls if g.name == "CNN_PoolAct_SQ8")
    assert _sizes(made) == wanted


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize(("channels", "outputs"), [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("target", ["gap9-sq8", "gap9-ne16"])
def test_one_channel_to_one_is_depthwise(channels: int, outputs: int, kernel: int, target: str) -> None:
    """And goes to NE16 with 3x3 alone, as depthwise convolutions do."""
    net = Net(shape=(1, 7, 5, channels))
    (made,), _ = _calls(net, net.conv(net.x, _LIMITS, (kernel, kernel), outputs), target)
    single = channels == outputs == 1
    assert made.parameters["ConvOper"] == ("KOP_CONV_DW" if single else "KOP_CONV")
    on_ne16 = target == "gap9-ne16" and (kernel == 3 or not single)
    assert made.name == ("CNN_ConvolutionNE16" if on_ne16 else "CNN_ConvolutionPoolAct_SQ8")
