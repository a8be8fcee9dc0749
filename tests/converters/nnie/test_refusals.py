"""What NNIE's package cannot hold: which operator, why, what to change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.converters.nnie.networks import constant, conv, pool, start
from tflq.converters.calibration.ranges import range_of
from tflq.converters.nnie import NNIE
from tflq.converters.settings import parse_settings
from tflq.errors import GraphError, InputError, OptionError, UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder
from tflq.interpreter import Engine

SETTINGS = parse_settings(NNIE.settings)


def with_ranges(graph: Graph, low: float = -4, high: float = 4) -> Graph:
    ranged = graph.copy()
    ranged.tensors = [t if t.is_constant else replace(t, range=range_of(low, high)) for t in graph.tensors]
    return ranged


def problem(graph: Graph) -> str:
    (line,) = NNIE.check(with_ranges(graph), SETTINGS)
    return line


def single(
    operator: str, shape: tuple[int, ...], output: tuple[int, ...], *extra: np.ndarray, **attributes: object
) -> Graph:
    b = GraphBuilder()
    x = b.input("x", shape, DType.FLOAT32)
    inputs = [x, *(b.constant(f"k{i}", array) for i, array in enumerate(extra))]
    return b.build([b.add(operator, inputs, output, DType.FLOAT32, **attributes)])  # type: ignore[arg-type]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def average_same() -> Graph:
    b, x = start(6, 6, 2)
    return b.build([pool(b, "average", x, (6, 6, 2), 3, 1, "same")])


def uneven_dilation() -> Graph:
    b, x = start(9, 9, 2)
    return b.build([conv(b, x, (9, 9, 2), (9, 9, 2), (4, 4), dilation=(3, 3))])


def big_kernel() -> Graph:
    b, x = start(300, 2, 1)
    return b.build([conv(b, x, (300, 2, 1), (45, 2, 1), (256, 1), padding="valid")])


def pad_of_channels() -> Graph:
    return single("pad", (1, 2, 2, 1), (1, 2, 2, 2), np.array([[0, 0], [0, 0], [0, 0], [1, 0]], np.int32))


CASES: list[tuple[Callable[[], Graph], str]] = [
    (lambda: single("sin", (1, 4), (1, 4)), "no layer of Caffe 1.0 in NNIE's package; docs/reference/coverage.md"),
    (pad_of_channels, "no layer of Caffe 1.0"),
    (
        lambda: single("add", (1, 2, 2, 3), (1, 2, 2, 3), ones(1, 2, 2, 3), fused_activation_function="none"),
        "a constant for each place",
    ),
    (lambda: single("maximum", (1, 2, 2, 3), (1, 2, 2, 3), ones(3)), "a bound for each channel"),
    (lambda: single("pow", (1, 4), (1, 4), np.full((), 1.5, np.float32)), "an exponent that is none of -3, -2"),
    (lambda: single("reshape", (1, 4, 4), (1, 2, 2, 2, 2), np.array([1, 2, 2, 2, 2], np.int32)), "a tensor of 5 axes"),
    (lambda: single("sum", (2, 3), (3,), np.array([0], np.int32), keep_dims=False), "no operation on the batch"),
    (average_same, "average pool with padding"),
    (uneven_dilation, "uneven padding"),
    (big_kernel, "a kernel of \\(256, 1\\); NNIE takes up to 255"),
    (lambda: single("relu", (1, 5000), (1, 5000)), "NNIE takes axes up to 4096"),
    (lambda: single("prelu", (1, 3, 3, 2), (1, 3, 3, 2), ones(3, 3, 2)), "one for each of 2 channels"),
    (lambda: single("prelu", (1, 3, 2, 2), (1, 3, 2, 2), ones(2, 1)), "one for each of 2 channels"),
    (
        lambda: single("resize_nearest_neighbor", (1, 3, 3, 2), (1, 9, 9, 2), np.array([9, 9], np.int32)),
        "nearest neighbors of 2 times",
    ),
    (
        lambda: single("transpose", (1, 2, 3, 4), (1, 3, 2, 4), np.array([0, 2, 1, 3], np.int32)),
        "NNIE has Permute 0, 2, 3, 1 only",
    ),
    (lambda: single("mul", (1, 4), (1, 4), ones(1, 4), fused_activation_function="tanh"), "fused activation tanh"),
]


@pytest.mark.parametrize(("make", "words"), CASES)
def test_the_reason_is_told(make: Callable[[], Graph], words: str) -> None:
    graph = make()
    line = problem(graph)
    assert line.startswith("operator ")
    with pytest.raises(UnsupportedError, match=words):
        NNIE.quantize(with_ranges(graph), SETTINGS)


def test_all_problems_at_once() -> None:
    b, x = start(6, 6, 2)
    y = pool(b, "average", x, (6, 6, 2), 3, 1, "same")
    z = b.add("sin", [y], (1, 6, 6, 2), DType.FLOAT32)
    lines = NNIE.check(b.build([z]), SETTINGS)
    assert len(lines) == 2
    assert "operator 0 (average_pool_2d" in lines[0]
    assert "operator 1 (sin" in lines[1]


def relu6(highest: float, saturating: bool) -> Graph:
    b, x = start(4, 4, 2)
    y = conv(b, x, (4, 4, 2), (4, 4, 3), (1, 1), activation="relu6")
    end = conv(b, y, (4, 4, 3), (4, 4, 3), (1, 1)) if saturating else b.add("tanh", [y], (1, 4, 4, 3), DType.FLOAT32)
    return with_ranges(b.build([end]), -1, highest)


@pytest.mark.parametrize(("highest", "saturating"), [(5.5, True), (5.5, False), (6.0, True)])
def test_relu6_becomes_relu_where_its_readers_saturate(highest: float, saturating: bool) -> None:
    made = NNIE.quantize(relu6(highest, saturating), SETTINGS)
    assert made.nodes[0].attributes.text("fused_activation_function") == "relu"


@pytest.mark.parametrize(("highest", "saturating"), [(6.0, False), (7.5, True)])
def test_relu6_stays_one_elsewhere(highest: float, saturating: bool) -> None:
    made = NNIE.quantize(relu6(highest, saturating), SETTINGS)
    assert made.nodes[0].attributes.text("fused_activation_function") == "relu6"


@pytest.mark.parametrize("operator", ["relu6", "conv_2d"])
def test_relu6_without_a_range_stays_one(operator: str) -> None:
    """A file of ranges need not have one of an output that no layer quantizes."""
    graph = relu6(5.5, False)
    if operator == "relu6":
        b, x = start(4, 4, 2)
        graph = b.build([b.add("relu6", [x], (1, 4, 4, 2), DType.FLOAT32)])
    y = graph.nodes[0].outputs[0]
    graph.tensors[y] = replace(graph.tensors[y], range=None)
    made = NNIE.quantize(graph, SETTINGS)
    kept = made.nodes[0].operator if operator == "relu6" else made.nodes[0].attributes.text("fused_activation_function")
    assert kept == "relu6"


def test_missing_ranges() -> None:
    b, x = start(4, 4, 2)
    graph = b.build([conv(b, conv(b, x, (4, 4, 2), (4, 4, 3), (1, 1)), (4, 4, 3), (4, 4, 1), (1, 1))])
    with pytest.raises(UnsupportedError, match=r"2 of 2 tensors have no range \(first 'x'\): calibrate"):
        NNIE.quantize(graph, SETTINGS)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_weights_that_are_not_finite(value: float) -> None:
    b, x = start(4, 4, 2)
    w = np.ones((3, 1, 1, 2), np.float32)
    w[1, 0, 0, 1] = value
    inputs = [x, b.constant("filter", w), constant(b, 3)]
    y = b.add("conv_2d", inputs, (1, 4, 4, 3), DType.FLOAT32, padding="same", stride_h=1, stride_w=1)
    with pytest.raises(UnsupportedError, match=r"weights 'filter': the largest magnitude is (inf|nan)"):
        NNIE.quantize(with_ranges(b.build([y])), SETTINGS)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("values", [[[np.inf, 1]], [[1, np.nan]], [[-np.inf, 1]]])
def test_a_graph_whose_weights_were_damaged_is_not_run(values: list[list[float]], bits: int) -> None:
    b, x = start(2)
    y = b.add("fully_connected", [x, b.constant("w", np.ones((1, 2), np.float32))], (1, 1), DType.FLOAT32)
    made = NNIE.quantize(with_ranges(b.build([y])), parse_settings(NNIE.settings, [f"bits={bits}"]))
    w = made.nodes[0].inputs[1]
    made.tensors[w] = replace(made.tensors[w], data=np.array(values, np.float32))
    with pytest.raises(GraphError, match="weights 'w': the largest magnitude is"):
        Engine(made, "nnie")


def test_infinity_at_run_time() -> None:
    b, x = start(4, 4, 2)
    made = NNIE.quantize(with_ranges(b.build([conv(b, x, (4, 4, 2), (4, 4, 3), (1, 1))])), SETTINGS)
    data = np.ones((2, 1, 4, 4, 2), np.float32)
    data[1, 0, 0, 0, 0] = np.inf
    with pytest.raises(InputError, match=r"operator 0 \(conv_2d.*found infinity"):
        Engine(made, "nnie").run([data])


def test_all_zero_weights_have_the_librarys_z_and_no_published_one() -> None:
    b, x = start(4)
    inputs = [x, b.constant("w", np.zeros((2, 4), np.float32)), b.constant("b", np.ones(2, np.float32))]
    y = b.add("fully_connected", inputs, (1, 2), DType.FLOAT32, fused_activation_function="none", keep_num_dims=False)
    graph = with_ranges(b.build([y]))
    made = NNIE.quantize(graph, SETTINGS)
    assert np.all(Engine(made, "nnie").run([np.ones((1, 1, 4), np.float32)])[made.outputs[0]] == 1)
    with pytest.raises(UnsupportedError, match="weights 'w': all values are zero"):
        NNIE.quantize(graph, parse_settings(NNIE.settings, ["formula=page"]))


@pytest.mark.parametrize("text", ["bits=4", "formula=other", "internal_stride=8", "batch_num=257"])
def test_refused_settings(text: str) -> None:
    with pytest.raises(OptionError, match="allowed is"):
        parse_settings(NNIE.settings, [text])


def test_an_unquantized_graph_has_no_kernel_values() -> None:
    b, x = start(4, 4, 2)
    graph = b.build([conv(b, x, (4, 4, 2), (4, 4, 3), (1, 1))])
    graph.nodes[0] = replace(graph.nodes[0], arithmetic="nnie")
    with pytest.raises(GraphError, match="attribute bits: found nothing"):
        Engine(graph, "nnie")


@pytest.mark.parametrize(
    "graph",
    [
        single("mean", (1, 4, 4, 2), (1, 2), np.array([-3, -2], np.int32), keep_dims=False),
        single("fully_connected", (1, 50, 50, 2), (1, 3), ones(3, 5000)),
        single("transpose", (1, 2, 3, 4), (1, 2, 3, 4), np.array([0, 1, 2, 3], np.int32)),
        single("relu", (2, 5, 3), (2, 5, 3)),
    ],
    ids=["axes from the back", "weights longer than an axis may be", "no axis moves", "two sequences at a time"],
)
def test_what_is_taken(graph: Graph) -> None:
    assert list(NNIE.check(with_ranges(graph), SETTINGS)) == []


def test_padding_of_one_direction() -> None:
    b, x = start(30, 4, 1)
    pads = b.constant("pads", np.array([[0, 0], [256, 256], [0, 0], [0, 0]], np.int32))
    padded = b.add("pad", [x, pads], (1, 542, 4, 1), DType.FLOAT32)
    graph = b.build([conv(b, padded, (542, 4, 1), (540, 4, 1), (3, 1), padding="valid")])
    assert "padding (256, 256, 0, 0); NNIE takes up to 255" in problem(graph)


def test_slopes_are_told_by_their_shape() -> None:
    assert "slopes of shape (4, 3, 2)" in problem(single("prelu", (1, 4, 3, 2), (1, 4, 3, 2), ones(4, 3, 2)))


@pytest.mark.parametrize("key", ["internal_stride=32", "compress_mode=1", "is_simulation=1", "batch_num=2"])
def test_settings_of_the_mapper_are_those_of_the_whole_graph(key: str) -> None:
    with pytest.raises(OptionError, match="whole graph"):
        parse_settings(NNIE.settings, (), [f"conv_2d:{key}"])
