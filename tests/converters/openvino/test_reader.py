"""What is written is read back: layouts of joined, padded and grouped images, widths of elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.converters.openvino.networks import WINDOW, conv, depthwise, image_network, weights, with_ranges
from tests.support.openvino import Runtime, as_model, channels_first, converted
from tflq.converters.openvino import OPENVINO
from tflq.converters.openvino.ir import Builder, from_bytes, size_bytes, to_bytes
from tflq.converters.openvino.ir.files import network_to_bytes
from tflq.converters.openvino.reader import model_from_bytes
from tflq.converters.openvino.reader.filters import _is_kept, signed
from tflq.converters.openvino.reader.graph import Codes
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine

IMAGE = (1, 6, 6, 4)
Make = Callable[[GraphBuilder, int], int]


def read_back(graph: Graph, *assignments: str) -> tuple[Array, Array]:
    """Return the outputs of a network and of what is read of its files, channels first."""
    engine, xml, content = converted(Model([graph], source="small.tflite"), assignments)
    again = model_from_bytes(xml, content, "small.xml").main
    read = Engine(OPENVINO.quantize(again, parse_settings(OPENVINO.settings)), "openvino")
    x = np.random.default_rng(4).normal(size=(5, *IMAGE)).astype(np.float32)
    ours = engine.run([x])[engine.graph.outputs[0]]
    return channels_first(ours), read.run([channels_first(x)])[read.graph.outputs[0]]


def joined(b: GraphBuilder, x: int) -> int:
    y = b.add("relu", [x], IMAGE, DType.FLOAT32)
    return b.add("concatenation", [x, y], (1, 6, 6, 8), DType.FLOAT32, axis=3, fused_activation_function="none")


def padded(b: GraphBuilder, x: int, *value: float) -> int:
    amounts = b.constant("p", np.array([[0, 0], [1, 2], [0, 3], [0, 0]], np.int32))
    fill = [b.constant("v", np.array(v, np.float32)) for v in value]
    return b.add("padv2" if value else "pad", [x, amounts, *fill], (1, 9, 9, 4), DType.FLOAT32)


def grouped(b: GraphBuilder, x: int) -> int:
    operands = [x, b.constant("w", weights(6, 3, 2, 2)), b.constant("b", weights(6))]
    return b.add("conv_2d", operands, (1, 6, 6, 6), DType.FLOAT32, **WINDOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make", [joined, padded, lambda b, x: padded(b, x, 0.5), grouped], ids=["concat", "pad", "pad of 0.5", "groups"]
)
def test_what_is_written_is_read(make) -> None:
    b = GraphBuilder("one")
    graph = with_ranges(b.build([make(b, b.input("x", IMAGE, DType.FLOAT32))]))
    ours, again = read_back(graph)
    assert ours.shape == again.shape
    assert np.array_equal(ours, again)


def between(operator: str, *more: Array, **options: object) -> Make:
    def make(b: GraphBuilder, x: int) -> int:
        given = [b.constant("c", value) for value in more]
        return b.add(operator, [x, *given], IMAGE, DType.FLOAT32, **options)  # type: ignore[arg-type]

    return make


def with_itself(operator: str, **options: object) -> Make:
    return lambda b, x: b.add(operator, [x, b.add("relu", [x], IMAGE, DType.FLOAT32)], IMAGE, DType.FLOAT32, **options)  # type: ignore[arg-type]


POOL = {**WINDOW, "filter_height": 2, "filter_width": 2}
UNTURNED: dict[str, Make] = {
    **{o: between(o) for o in ("abs", "relu", "relu6", "relu_n1_to_1", "relu_0_to_1", "logistic", "tanh", "elu", "exp",
                               "hard_swish")},
    **{f"{o} {s}": between(o, np.abs(weights(*s)) + 1) for o in ("add", "sub", "mul", "div", "maximum", "minimum")
       for s in ((), (4,), (6, 1), (1, 1, 4), IMAGE)},
    **{f"{o} of both": with_itself(o) for o in ("add", "sub", "mul", "maximum", "minimum")},
    **{o: between(o, **POOL) for o in ("max_pool_2d", "average_pool_2d")},
    "softmax": between("softmax", beta=1.0),
    "leaky_relu": between("leaky_relu", alpha=0.25),
    "prelu": between("prelu", weights(1, 1, 4)),
    "mean": between("mean", np.array([2], np.int32), keep_dims=True),
    "pad": between("pad", np.array([[0, 0], [1, 0], [0, 2], [0, 0]], np.int32)),
    "padv2": between("padv2", np.array([[0, 0], [1, 0], [0, 2], [0, 0]], np.int32), np.array(0.5, np.float32)),
    **{f"concatenation {a}": with_itself("concatenation", axis=a) for a in (1, 2, 3)},
    "depthwise": lambda b, x: depthwise(b, x, 4),
}  # fmt: skip


@pytest.mark.parametrize("precision", ["float", "int8"])
@pytest.mark.parametrize("name", UNTURNED)
def test_channels_stay_last_between_filters(name: str, precision: str) -> None:
    """One transposition at each end of the network; in the middle images stay as TFLite has them."""
    b = GraphBuilder("between")
    y = UNTURNED[name](b, conv(b, b.input("x", IMAGE, DType.FLOAT32), 4, 4))
    last = 8 if name == "concatenation 3" else 4
    graph = settled_graph(b.build([conv(b, y, last, 4, seed=2)]))
    engine, xml, content = converted(as_model(with_ranges(graph)), [f"precision={precision}"])
    again = model_from_bytes(xml, content, "small.xml").main
    assert b'type="Transpose"' not in xml  # the IR has channels first throughout
    assert b'type="Reshape"' not in xml
    assert [n.operator for n in again.nodes].count("transpose") == 2
    read = Engine(OPENVINO.quantize(again, parse_settings(OPENVINO.settings, [f"precision={precision}"])), "openvino")
    x = np.random.default_rng(4).normal(size=(2, *IMAGE)).astype(np.float32)
    ours = channels_first(engine.run([x])[engine.graph.outputs[0]])
    theirs = read.run([channels_first(x)])[read.graph.outputs[0]]
    assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-5 * np.abs(ours).max())


@pytest.mark.parametrize(
    ("axes", "keep", "count"),
    [
        ((1, 2), False, 1),
        ((2, 1), False, 1),
        ((1,), False, None),
        ((2, 3), False, None),
        ((1, 2), True, 2),
        ((3,), True, 2),
    ],
)
def test_means_behind_a_filter(axes: tuple[int, ...], keep: bool, count: int | None) -> None:
    """Over height and width, or where all axes stay, with channels last: one transposition in, one out of four axes."""
    b = GraphBuilder("mean")
    y = conv(b, b.input("x", IMAGE, DType.FLOAT32), 4, 4)
    given = [y, b.constant("axes", np.array(axes, np.int32))]
    graph = settled_graph(b.build([b.add("mean", given, (1,), DType.FLOAT32, keep_dims=keep)]))
    engine, xml, content = converted(as_model(with_ranges(graph)), ["precision=float"])
    again = model_from_bytes(xml, content, "small.xml").main
    read = Engine(again, "float")
    x = np.random.default_rng(4).normal(size=(2, *IMAGE)).astype(np.float32)
    ours = channels_first(engine.run([x])[engine.graph.outputs[0]])
    theirs = read.run([channels_first(x)])[again.outputs[0]]
    assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    if count is not None:
        assert [n.operator for n in again.nodes].count("transpose") == count


def depthwise_in_front(b: GraphBuilder, x: int) -> int:
    return conv(b, depthwise(b, x, 4), 4, 8, activation="relu")


@pytest.mark.parametrize("granularity", ["per-channel", "per-tensor"])
def test_weights_with_zero_points_are_read(granularity: str) -> None:
    b = GraphBuilder("one")
    graph = with_ranges(b.build([depthwise_in_front(b, b.input("x", IMAGE, DType.FLOAT32))]))
    ours, again = read_back(graph, "weight_scheme=asymmetric", f"weight_granularity={granularity}")
    assert np.array_equal(ours, again)


@pytest.mark.parametrize("count", [1, 2, 7, 16])
@pytest.mark.parametrize(("name", "low", "high"), [("i4", -8, 7), ("u4", 0, 15), ("i8", -128, 127), ("i32", -9, 9)])
def test_elements(name: str, low: int, high: int, count: int) -> None:
    kind = {"i4": np.int8, "u4": np.uint8, "i8": np.int8, "i32": np.int32}[name]
    values = np.random.default_rng(count).integers(low, high + 1, (count, 1)).astype(kind)
    data = to_bytes(name, values)
    assert len(data) == size_bytes(name, count)
    assert np.array_equal(from_bytes(name, data, (count, 1)), values)


@pytest.mark.parametrize(("assignments", "scales"), [([], 8), (["weight_granularity=per-tensor"], 1)])
def test_scales_of_weights(assignments: list[str], scales: int) -> None:
    graph = OPENVINO.quantize(image_network(), parse_settings(OPENVINO.settings, assignments, []))
    layer = next(n for n in graph.nodes if n.operator == "conv_2d")
    assert graph.tensors[layer.inputs[1]].affine.scale.size == scales


@pytest.mark.parametrize(
    ("values", "zero_point", "left"),
    [
        *(([-128, 127], 0, 0), ([0, 255], 128, 0), ([0, 255], 129, 1), ([0, 255], 127, -1), ([-100, 100], 90, 90)),
        *(([10, 130], 138, 0), ([10, 130], 139, 11), ([0, 200], 73, 0), ([0, 200], 72, -56)),
    ],
)
def test_zero_points_stay_where_int8_does_not_hold_what_is_left(values: list[int], zero_point: int, left: int) -> None:
    codes = np.array(values, np.uint8 if max(values) > 127 else np.int8).reshape(-1, 1)
    found = Codes(codes, np.array(zero_point, np.float32), np.ones(1, np.float32))
    kept, zero = signed(found)
    assert zero == left
    assert np.abs(kept + 0.5).max() < 128
    assert np.array_equal(kept - zero, codes.astype(int) - zero_point)


@pytest.mark.parametrize(
    ("begin", "end"), [((0, 0), (0, 0)), ((1, 0), (0, 0)), ((0, 2), (0, 0)), ((0, 0), (1, 0)), ((1, 1), (1, 1))]
)
def test_zeros_stand_around_an_image(begin: tuple[int, int], end: tuple[int, int]) -> None:
    """Against the sum over the window; PAD only where TFLite has no such padding."""
    rng = np.random.default_rng(6)
    w, x = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 3, 3, 3), (1, 1, 3, 5, 6)))
    size = [5 + begin[0] + end[0] - 2, 6 + begin[1] + end[1] - 2]
    b = Builder("window")
    inputs = [b.parameter("x", x.shape[1:]), b.constant("w", w)]
    pads = {"pads_begin": "{},{}".format(*begin), "pads_end": "{},{}".format(*end)}
    windows = {"strides": "1,1", "dilations": "1,1", "auto_pad": "explicit", **pads}
    b.result("y", b.add("Convolution", "conv", inputs, (1, 2, *size), **windows))
    graph = model_from_bytes(*network_to_bytes(b.build()), "small.xml").main
    assert ("pad" in {n.operator[:3] for n in graph.nodes}) == (begin not in ((0, 0), (1, 1)) or end == (1, 0))
    padded = np.pad(x[0, 0], ((0, 0), (begin[0], end[0]), (begin[1], end[1])))
    wanted = [
        [[(w[o] * padded[:, i : i + 3, j : j + 3]).sum() for j in range(size[1])] for i in range(size[0])]
        for o in range(2)
    ]
    assert Engine(graph, "float").run([x])[graph.outputs[0]][0, 0].tolist() == np.array(wanted).tolist()


@pytest.mark.parametrize("shape", [(), (4,), (3, 1, 1), (1, 1, 4)])
def test_constants_of_fewer_axes_are_spread_as_numpy_does(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    value, x = (rng.integers(-9, 9, s).astype(np.float32) for s in (shape, (1, 1, 3, 2, 4)))
    b = Builder("spread")
    inputs = [b.parameter("x", x.shape[1:]), b.constant("c", value)]
    b.result("y", b.add("Add", "sum", inputs, x.shape[1:], auto_broadcast="numpy"))
    graph = model_from_bytes(*network_to_bytes(b.build()), "small.xml").main
    assert np.array_equal(Engine(graph, "float").run([x])[graph.outputs[0]], x + value)


@pytest.mark.parametrize(
    ("stored", "kind"), [(np.int32, "i64"), (np.int64, "i32"), (np.float32, "i64"), (np.float32, "i32")]
)
def test_a_constant_shape_may_be_converted(stored: type, kind: str) -> None:
    b = Builder("converted")
    x = np.arange(24, dtype=np.float32).reshape(1, 1, 24)
    shape = b.add("Convert", "c", [b.constant("s", np.array([4, 6], stored))], (2,), kind, destination_type=kind)
    b.result("y", b.add("Reshape", "r", [b.parameter("x", (1, 24)), shape], (4, 6), special_zero="false"))
    graph = model_from_bytes(*network_to_bytes(b.build()), "small.xml").main
    assert np.array_equal(Engine(graph, "float").run([x])[graph.outputs[0]], x.reshape(1, 4, 6))


@pytest.mark.parametrize("stored", [np.int8, np.uint8, np.float32])
def test_a_constant_operand_may_be_converted(stored: type) -> None:
    b = Builder("converted")
    x, c = np.ones((1, 1, 6), np.float32), np.array([[3, 1, 4, 1, 5, 9]], stored)
    operand = b.add("Convert", "c", [b.constant("s", c)], (1, 6), "f32", destination_type="f32")
    y = b.add("Add", "a", [b.parameter("x", (1, 6)), operand], (1, 6), auto_broadcast="numpy")
    b.result("y", y)
    graph = model_from_bytes(*network_to_bytes(b.build()), "small.xml").main
    assert np.array_equal(Engine(graph, "float").run([x])[graph.outputs[0]], x + c)


def test_one_group_is_a_convolution() -> None:
    """Also of one channel: the same operator, so the same settings reach it, and the same numbers."""
    rng = np.random.default_rng(8)
    w, x = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 1, 3, 3), (4, 1, 1, 5, 5)))
    found = []
    for kind, weights_ in (("Convolution", w), ("GroupConvolution", w[None])):
        b = Builder("groups")
        inputs = [b.parameter("x", x.shape[1:]), b.constant("w", weights_)]
        keys = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"}
        b.result("y", b.add(kind, "conv", inputs, (1, 2, 3, 3), **keys))
        graph = model_from_bytes(*network_to_bytes(b.build()), "small.xml").main
        found.append(([n.operator for n in graph.nodes], Engine(graph, "float").run([x])[graph.outputs[0]].tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("zero_points", "channels", "is_taken"),
    [((-128, 127), 2, True), ((-129, 0), 2, False), ((0, 128), 2, False), ((-200, 0), 2, False), ((0, 127), 3, False),
     ((64,), 3, True), ((0.5, 1), 2, False), ((256, 0), 2, False), ((-256, 0), 2, False)],
)  # fmt: skip
def test_weights_stay_integers_where_their_zero_points_are_int8(
    zero_points: tuple[float, ...], channels: int, is_taken: bool
) -> None:
    codes = np.array([[-128] * len(zero_points), [127] * len(zero_points)], np.int8)
    found = Codes(codes, np.array(zero_points, np.float32), np.ones(1, np.float32))
    assert _is_kept(found, channels) is is_taken


STEPS = {
    "Subtract": ((3,), (-7,), (3, -7, 2)),
    "Multiply": ((0.5,), (0.25, 2, 1)),
    "Add": ((3,),),
    "Divide": ((0.5,),),
    "Maximum": ((3,),),
}
FORMS = [
    ["Multiply"], ["Subtract", "Multiply"], ["Subtract", "Subtract", "Multiply"], ["Subtract"],
    ["Multiply", "Subtract"], ["Multiply", "Multiply"], ["Add"], ["Divide"], ["Maximum"], ["Subtract", "Add"],
]  # fmt: skip


@pytest.mark.parametrize("stored", [np.int8, np.uint8])
@pytest.mark.parametrize("steps", FORMS, ids="-".join)
def test_weights_are_integers_less_zero_points_times_scales(steps: list[str], stored: type) -> None:
    """As OpenVINO computes them, one number or one a row at each step; what no compressed weights are is refused."""
    rng = np.random.default_rng(len(steps))
    codes = rng.integers(0, 100, (3, 4)).astype(stored)
    x = rng.integers(-4, 5, (2, 1, 4)).astype(np.float32)
    for turn in range(4):
        b, made = Builder("weights"), codes.astype(np.float64)
        w = b.add("Convert", "real", [b.constant("w", codes)], (3, 4), "f32", destination_type="f32")
        for number, kind in enumerate(steps):
            given = np.array(STEPS[kind][(turn + number) % len(STEPS[kind])], np.float32).reshape(-1, 1)
            w = b.add(kind, f"step{number}", [w, b.constant("c", given)], (3, 4), auto_broadcast="numpy")
            made = made - given if kind == "Subtract" else made * given
        options = {"transpose_a": "false", "transpose_b": "true"}
        b.result("y", b.add("MatMul", "product", [b.parameter("x", (1, 4)), w], (1, 3), **options))
        xml, content = network_to_bytes(b.build())
        if set(steps) - {"Subtract", "Multiply"} or "Multiply" in steps[:-1]:
            with pytest.raises(UnsupportedError, match="both inputs are constants, and no compressed weights: fold"):
                model_from_bytes(xml, content, "small.xml")
            continue
        graph = model_from_bytes(xml, content, "small.xml").main
        found = Engine(graph, "float").run([x])[graph.outputs[0]]
        assert np.array_equal(found, x @ made.T)
        assert np.array_equal(found, Runtime(xml, content).run([x]))


@pytest.mark.parametrize("seed", range(8))
def test_inputs_and_outputs_have_the_order_of_the_file(seed: int) -> None:
    """Of Parameters and Results, wherever the file has the layers between; OpenVINO's own inputs and outputs judge."""
    rng, b = np.random.default_rng(seed), Builder("order")
    values = [b.parameter(f"x{i}", (i + 1, 4)) for i in range(3)]
    for i in rng.integers(0, 9, 6):
        values.append(b.add("ReLU", f"y{len(values)}", [values[i % len(values)]], values[i % len(values)].shape))
    for i in rng.permutation(len(values))[:5]:
        b.result(f"out{i}", values[i])
    xml, content = network_to_bytes(b.build())
    lines = xml.decode().split("\n")
    layers = [i for i, line in enumerate(lines) if line.startswith("<layer ")]
    for i, line in zip(layers, rng.permutation([lines[i] for i in layers]).tolist(), strict=True):
        lines[i] = line
    shuffled = "\n".join(lines).encode()
    graph, theirs = model_from_bytes(shuffled, content, "order.xml").main, Runtime(shuffled, content)
    shapes = [tuple(port.shape) for port in theirs.model.inputs]
    assert [graph.tensors[t].shape for t in graph.inputs] == shapes
    x = [rng.normal(size=(2, *shape)).astype(np.float32) for shape in shapes]
    ours = Engine(graph, "float").run(x)
    for t, wanted in zip(graph.outputs, theirs.run_all(x), strict=True):
        assert np.array_equal(ours[t], wanted)
