"""Networks that OpenVINO's own functions make and write: what is read of their IR computes what the runtime does.

Values are small whole numbers, whose sums are exact in float32, unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.openvino import Runtime, channels_first
from tests.support.openvino import files_of as files_among
from tflq.converters.openvino import OPENVINO
from tflq.converters.openvino.reader import read_model
from tflq.converters.settings import parse_settings
from tflq.errors import FormatError, UnsupportedError
from tflq.graph import Array, DType, Graph, Model
from tflq.interpreter import Engine

IMAGE = (1, 4, 6, 5)
Make = Callable[[Any, Any], Any]


def whole(*shape: int, seed: int = 0, low: int = -4, high: int = 5) -> Array:
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(np.float32)


def opset() -> Any:
    pytest.importorskip("openvino", reason="openvino is not installed (tflq[openvino] has it)")
    import openvino.opset1 as op

    return op


def files_of(path: Path, make: Make, shape: Sequence[int], is_behind_filter: bool) -> Path:
    """Write the IR of a network of one input; behind a convolution a value has channels last when it is read."""
    import openvino as ov

    op = opset()
    x = op.parameter(list(shape), np.float32, name="x")
    y = x
    if is_behind_filter:
        y = op.convolution(x, whole(shape[1], shape[1], 1, 1, seed=9), [1, 1], [0, 0], [0, 0], [1, 1])
    model = ov.Model([make(op, y)], [x], "net")
    ov.save_model(model, path / "net.xml", compress_to_fp16=False)
    return path / "net.xml"


def read(path: Path) -> Graph:
    return read_model(path).main


def check(
    path: Path,
    make: Make,
    shape: Sequence[int] = IMAGE,
    is_behind_filter: bool = False,
    exact: bool = True,
    again: bool = True,
) -> Graph:
    """Compare what is read, and what is written of that again, with the runtime; return what is read."""
    file = files_of(path, make, shape, is_behind_filter)
    graph = read(file)
    x = whole(3, *shape, seed=5) if exact else whole(3, *shape, seed=5, low=1) / np.float32(2)
    (t,) = graph.outputs
    ours = Engine(graph, "openvino" if graph.tensors[t].quantization else "float").run([x])[t]
    theirs = Runtime(file.read_bytes(), file.with_suffix(".bin").read_bytes()).run([x])
    assert ours.shape == theirs.shape
    pairs = [(ours, theirs)]
    if again:
        written = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings, ["precision=float"]))
        runtime = Runtime(*files_among(OPENVINO.emit(written, Model([graph], source="net.xml"))))
        pairs.append((runtime.run([channels_first(x)]), channels_first(theirs)))
    for found, wanted in pairs:
        if exact:
            assert np.array_equal(found, wanted)
        else:
            assert np.allclose(found, wanted, rtol=2e-6, atol=1e-6)
    return graph


def both(path: Path, make: Make, shape: Sequence[int] = IMAGE, exact: bool = True, again: bool = True) -> None:
    """Check a layer of an input and of a convolution's output."""
    check(path, make, shape, exact=exact, again=again)
    if len(shape) == 4:
        check(path, make, shape, is_behind_filter=True, exact=exact, again=again)


PADS = [((1, 1), (1, 1)), ((0, 1), (1, 1)), ((2, 0), (0, 1))]


@pytest.mark.parametrize("pad", ["explicit", "same_upper", "same_lower", "valid"])
@pytest.mark.parametrize(
    ("stride", "dilation"), [((1, 1), (1, 1)), ((2, 1), (1, 2)), ((2, 3), (1, 1)), ((1, 1), (2, 1))]
)
def test_convolutions(tmp_path: Path, pad: str, stride: tuple[int, int], dilation: tuple[int, int]) -> None:
    for kernel, (begin, end) in product(((1, 2), (3, 3)), PADS if pad == "explicit" else PADS[:1]):

        def make(op: Any, x: Any, kernel: Any = kernel, begin: Any = begin, end: Any = end) -> Any:
            w = whole(3, 4, *kernel)
            return op.convolution(x, w, list(stride), list(begin), list(end), list(dilation), pad)

        both(tmp_path, make)


@pytest.mark.parametrize(
    ("groups", "each", "depth"),
    [(1, 3, 4), (2, 3, 2), (4, 1, 1), (4, 2, 1), (2, 1, 2), (2, 1, 1), (2, 3, 1), (1, 2, 1)],
)
def test_groups(tmp_path: Path, groups: int, each: int, depth: int) -> None:
    """A group for each channel is a depthwise filter, but for images of one channel."""
    shape = (1, groups * depth, 6, 5)
    for kernel in ((1, 1), (3, 2)):

        def make(op: Any, x: Any, kernel: Any = kernel) -> Any:
            w = whole(groups, each, depth, *kernel)
            return op.group_convolution(x, w, [1, 2], [1, 1], [1, 1], [1, 1])

        # written without groups, zeros between two filters of one pixel are lost in the plug-in
        both(tmp_path, make, shape, again=groups > 1)
        (filters,) = [n.operator for n in read(files_of(tmp_path, make, shape, False)).nodes if "conv" in n.operator]
        assert filters == ("depthwise_conv_2d" if depth == 1 and groups > 1 else "conv_2d")


@pytest.mark.parametrize("shape", [(), (1,), (3, 1, 1), (1, 3, 1, 1), (1, 1, 1, 1), (1, 3, 6, 5), (1, 1, 6, 1), (5,)])
@pytest.mark.parametrize("is_first", [False, True])
def test_numbers_behind_a_filter(tmp_path: Path, shape: tuple[int, ...], is_first: bool) -> None:
    """One number a channel becomes its bias; any other stays an operator."""

    def make(op: Any, x: Any) -> Any:
        y = op.convolution(x, whole(3, 4, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1])
        addend = op.constant(whole(*shape, seed=2))
        return op.add(addend, y) if is_first else op.add(y, addend)

    graph = check(tmp_path, make)
    is_bias = len(shape) >= 3 and shape[-3:] == (3, 1, 1)
    assert ("add" in [n.operator for n in graph.nodes]) != is_bias


def test_a_filter_with_two_readers_keeps_its_sum_apart(tmp_path: Path) -> None:
    def make(op: Any, x: Any) -> Any:
        y = op.convolution(x, whole(3, 4, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1])
        return op.multiply(op.add(y, whole(1, 3, 1, 1, seed=2)), y)

    check(tmp_path, make)


@pytest.mark.parametrize("kernel", [(1, 1), (2, 3), (3, 3)])
@pytest.mark.parametrize("pad", ["explicit", "same_upper", "valid"])
def test_pools(tmp_path: Path, kernel: tuple[int, int], pad: str) -> None:
    for stride in ((2, 1), (1, 3)):
        rest = (list(stride), [0, 0], [0, 0], list(kernel))
        both(tmp_path, lambda op, x, r=rest: op.max_pool(x, *r, "floor", pad))
        both(tmp_path, lambda op, x, r=rest: op.avg_pool(x, *r, True, "floor", pad), exact=False)


@pytest.mark.parametrize("operator", ["max_pool", "avg_pool"])
def test_pools_with_padding_on_all_sides(tmp_path: Path, operator: str) -> None:
    def make(op: Any, x: Any) -> Any:
        rest = ([1, 1], [1, 1], [1, 1], [3, 3])
        return op.max_pool(x, *rest) if operator == "max_pool" else op.avg_pool(x, *rest, True)

    both(tmp_path, make, exact=operator == "max_pool")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda op, x: op.max_pool(x, [2, 2], [0, 0], [0, 0], [2, 2], "ceil"), "rounding_type ceil; floor is read"),
        (lambda op, x: op.max_pool(x, [2, 2], [1, 1], [0, 0], [2, 2]), "padding that is neither same_upper nor none"),
        (lambda op, x: op.avg_pool(x, [1, 1], [1, 1], [1, 1], [3, 3], False), "padding that counts as zeros"),
        (
            lambda op, x: op.avg_pool(x, [1, 1], [0, 0], [0, 0], [3, 3], False, "floor", "same_upper"),
            "padding that counts",
        ),
        (lambda op, x: op.clamp(x, 0.0, 5.0), "a clamp to 0..5; read are relu6, relu_n1_to_1, relu_0_to_1"),
        (lambda op, x: op.elu(x, 0.5), "alpha 0.5; 1 is read"),
        (lambda op, x: op.softmax(x, 2), "axis 2 of 4; the channels' one is read"),
        (lambda op, x: op.pad(x, [0, 0, 1, 1], [0, 0, 1, 1], "reflect"), "pad_mode reflect; constant is read"),
        (lambda op, x: op.matmul(x, x, False, True), "a product of two computed values"),
        (lambda op, x: op.matmul(x, whole(6, 3), True, False), "or of transposed ones"),
        (lambda op, x: op.floor(x), "layers of this type are not read; known are Abs, Add,"),
    ],
)
def test_what_is_not_read(tmp_path: Path, make: Make, words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        read(files_of(tmp_path, make, IMAGE, False))


@pytest.mark.parametrize("shape", [(1, 6), (3, 6), (1, 5, 6), (1, 4, 5, 6)])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_products(tmp_path: Path, shape: tuple[int, ...], is_transposed: bool) -> None:
    weights = whole(7, 6) if is_transposed else whole(6, 7)
    both(tmp_path, lambda op, x: op.matmul(x, weights, False, is_transposed), shape)
    both(tmp_path, lambda op, x: op.add(op.matmul(x, weights, False, is_transposed), whole(1, 7)), shape)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", [[0], [1], [2], [3], [-1], [2, 3], [1, 2], [1, 2, 3], [-2, 1], [0, 2, 3]])
def test_means(tmp_path: Path, axes: list[int], keep: bool) -> None:
    both(tmp_path, lambda op, x: op.reduce_mean(x, op.constant(np.array(axes)), keep), exact=False)
    if max(axes) < 3 and min(axes) >= -2:
        both(tmp_path, lambda op, x: op.reduce_mean(x, op.constant(np.array(axes)), keep), (2, 3, 4), exact=False)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2), (3, 2, 1, 0), (0, 1, 2, 3), (0, 2, 1, 3)])
def test_transpositions(tmp_path: Path, order: tuple[int, ...]) -> None:
    both(tmp_path, lambda op, x: op.transpose(x, op.constant(np.array(order))))
    both(tmp_path, lambda op, x: op.relu(op.transpose(op.relu(x), op.constant(np.array(order)))))
    if 3 not in order[:3]:
        both(tmp_path, lambda op, x: op.transpose(x, op.constant(np.array(order[:3]))), (2, 3, 4))


@pytest.mark.parametrize("target", [(1, 120), (1, 24, 5), (1, 6, 4, 5), (2, 60), (1, 4, 1, 6, 5)])
def test_reshapes(tmp_path: Path, target: tuple[int, ...]) -> None:
    both(tmp_path, lambda op, x: op.reshape(x, op.constant(np.array(target)), False))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -3])
def test_concatenations(tmp_path: Path, axis: int) -> None:
    both(tmp_path, lambda op, x: op.concat([x, op.relu(x)], axis))
    both(tmp_path, lambda op, x: op.concat([op.constant(whole(*IMAGE, seed=3)), x], axis))
    if axis in (0, 1, -1):
        both(tmp_path, lambda op, x: op.concat([x, op.relu(x)], axis), (2, 3))
    if axis in (0, -1):
        both(tmp_path, lambda op, x: op.concat([x, op.relu(x)], axis), (3,))


@pytest.mark.parametrize("value", [0.0, 2.0, -3.0])
def test_padding(tmp_path: Path, value: float) -> None:
    fill = np.float32(value)
    both(tmp_path, lambda op, x: op.pad(x, [0, 0, 1, 2], [0, 0, 3, 0], "constant", op.constant(fill)))
    both(tmp_path, lambda op, x: op.pad(x, [0, 1, 0, 0], [0, 2, 0, 1], "constant", op.constant(fill)))
    both(tmp_path, lambda op, x: op.pad(x, [0, 1], [2, 0], "constant", op.constant(fill)), (2, 3))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum"])
@pytest.mark.parametrize("is_first", [False, True])
def test_pairs(tmp_path: Path, name: str, is_first: bool) -> None:
    def make(op: Any, x: Any, other: Any) -> Any:
        if is_first and name == "divide":
            x = op.add(op.abs(x), op.constant(np.float32(1)))
        return getattr(op, name)(other, x) if is_first else getattr(op, name)(x, other)

    positive = name == "divide"
    for shape in ((), (4, 1, 1), (6, 5)):
        number = np.abs(whole(*shape, seed=2)) + 1
        both(tmp_path, lambda op, x, n=number: make(op, x, op.constant(n)), exact=not positive)
    both(tmp_path, lambda op, x: make(op, op.abs(x), op.exp(x)), exact=False)
    both(tmp_path, lambda op, x: make(op, x, op.constant(np.abs(whole(3, seed=2)) + 1)), (2, 3), exact=not positive)


@pytest.mark.parametrize("name", ["abs", "exp", "relu", "sigmoid", "sqrt", "tanh"])
def test_functions(tmp_path: Path, name: str) -> None:
    for shape in (IMAGE, (2, 3)):
        both(tmp_path, lambda op, x: getattr(op, name)(op.abs(x)), shape, exact=False)


@pytest.mark.parametrize(("low", "high"), [(0, 6), (-1, 1), (0, 1)])
def test_clamps(tmp_path: Path, low: float, high: float) -> None:
    both(tmp_path, lambda op, x: op.clamp(x, float(low), float(high)))


def test_elu_and_softmax(tmp_path: Path) -> None:
    both(tmp_path, lambda op, x: op.elu(x, 1.0), exact=False)
    both(tmp_path, lambda op, x: op.softmax(x, 1), exact=False)
    for shape in ((2, 3), (1, 3, 4)):
        both(tmp_path, lambda op, x, s=shape: op.softmax(x, len(s) - 1), shape, exact=False)


@pytest.mark.parametrize("count", [1, 4])
def test_slopes(tmp_path: Path, count: int) -> None:
    both(tmp_path, lambda op, x: op.prelu(x, op.constant(whole(count, low=1))))


@pytest.mark.parametrize("levels", [2, 16, 255, 256])
@pytest.mark.parametrize("count", [1, 4])
def test_levels(tmp_path: Path, levels: int, count: int) -> None:
    """Steps are powers of two, so that levels are exact.

    Behind a transposition the plug-in takes no FakeQuantize of several channels; of 255 levels it computes other bits.
    """
    low = -np.arange(1, count + 1, dtype=np.float32).reshape(1, count, 1, 1)
    high = low + np.float32((levels - 1) / 64)
    make = lambda op, x: op.fake_quantize(x, *map(op.constant, (low, high, low, high)), levels)  # noqa: E731
    both(tmp_path, make, again=False)
    flat = [b.reshape(1, count) for b in (low, high, low, high)]
    both(tmp_path, lambda op, x: op.fake_quantize(x, *map(op.constant, flat), levels), (2, count), again=levels != 255)


@pytest.mark.parametrize("bottom", [-2.0, 0.0, 0.5, -9.0])
@pytest.mark.parametrize("count", [1, 3])
def test_levels_of_other_outputs(tmp_path: Path, bottom: float, count: int) -> None:
    """Of the outputs from 0.5 on, and of those up to -1, no level is zero: these stay whole."""
    low = -np.arange(1, count + 1, dtype=np.float32).reshape(1, count)
    high, under = low + np.float32(255 / 64), np.full((1, count), bottom, np.float32)
    bounds = (low, high, under, under + np.float32(255 / 32))

    def make(op: Any, x: Any) -> Any:
        return op.relu(op.fake_quantize(x, *map(op.constant, bounds), 256))

    graph = check(tmp_path, make, (2, count))
    made = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings))
    is_whole = bottom not in (-2.0, 0.0)
    assert ("fake_quantize" in [n.operator for n in made.nodes]) == is_whole
    x = whole(3, 2, count, seed=6) / np.float32(8)
    runtime = Runtime(*files_among(OPENVINO.emit(made, Model([graph], source="net.xml"))))
    assert np.array_equal(Engine(made, "openvino").run([x])[made.outputs[0]], runtime.run([x]))


def test_levels_whole_behind_a_filter(tmp_path: Path) -> None:
    def make(op: Any, x: Any) -> Any:
        y = op.convolution(x, whole(3, 4, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1])
        bounds = [op.constant(np.float32(v)) for v in (-64, -64 + 255 / 2, 1, 1 + 255 / 4)]
        return op.max_pool(op.fake_quantize(y, *bounds, 256), [1, 1], [0, 0], [0, 0], [2, 2])

    check(tmp_path, make)


def test_bounds_that_are_not_read(tmp_path: Path) -> None:
    low, high = (value * np.ones((1, 1, 6, 1), np.float32) for value in (-1, 1))
    with pytest.raises(UnsupportedError, match="one number, or one for each channel, is read"):
        read(files_of(tmp_path, lambda op, x: op.fake_quantize(x, low, high, low, high, 256), IMAGE, False))
    low, high = (value * np.ones((1, 4, 1), np.float32) for value in (-1, 1))
    with pytest.raises(UnsupportedError, match="a value with 3 axes; read are 2 and 4"):
        read(files_of(tmp_path, lambda op, x: op.fake_quantize(x, low, high, low, high, 256), (1, 4, 3), False))


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("zero_point", [None, 0, 3, 128, "each"])
@pytest.mark.parametrize("is_each", [False, True])
def test_compressed_weights(tmp_path: Path, kind: type, zero_point: Any, is_each: bool) -> None:
    """Whole numbers, an optional zero point, a scale of a power of two for all or each channel."""
    bounds = (-128, 128) if kind is np.int8 else (0, 256)

    def stored(shape: tuple[int, ...], channels: int) -> Callable[[Any], Any]:
        codes = np.random.default_rng(3).integers(*bounds, shape).astype(kind)
        each = (channels, *(1,) * (len(shape) - 1))
        scale = np.float32(2.0) ** -(np.arange(channels) % 3 + 1).reshape(each) if is_each else np.float32(0.5)
        zeros = np.arange(channels, dtype=np.float32).reshape(each) if zero_point == "each" else zero_point

        def make(op: Any) -> Any:
            w = op.convert(op.constant(codes), "f32")
            if zeros is not None:
                w = op.subtract(w, op.constant(np.asarray(zeros, np.float32)))
            return op.multiply(w, op.constant(np.asarray(scale, np.float32)))

        return make

    filters, products = stored((3, 4, 2, 2), 3), stored((3, 6), 3)
    graph = check(tmp_path, lambda op, x: op.convolution(x, filters(op), [1, 1], [0, 0], [0, 0], [1, 1]))
    check(tmp_path, lambda op, x: op.matmul(x, products(op), False, True), (2, 6))
    is_kept = not (kind is np.int8 and zero_point == 128)  # int8 holds neither -256 nor a zero point of 128
    assert any(t.dtype is DType.INT8 for t in graph.tensors) == is_kept


def test_weights_behind_levels(tmp_path: Path) -> None:
    """Symmetric levels of a constant become whole numbers of 8 bits; others the values of their levels."""
    weights = whole(3, 4, 2, 2) / np.float32(64)
    for low, high, levels, is_kept in (
        (-1.0, 127 / 128, 256, True),
        (-127 / 128, 127 / 128, 255, True),
        (-0.5, 1.0, 4, False),
    ):

        def make(op: Any, x: Any, low: float = low, high: float = high, levels: int = levels) -> Any:
            bounds = [op.constant(np.float32(v)) for v in (low, high, low, high)]
            return op.convolution(
                x, op.fake_quantize(op.constant(weights), *bounds, levels), [1, 1], [0, 0], [0, 0], [1, 1]
            )

        graph = check(tmp_path, make)
        assert any(t.dtype is DType.INT8 for t in graph.tensors) == is_kept


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('strides="1,1"', 'strides="0,1"', r"strides \(0, 1\), dilations \(1, 1\), kernel \(1, 1\); all are 1 or more"),
        ('strides="1,1"', 'strides="1"', "'1' has 1 numbers; 2 small ones are needed"),
        ('dilations="1,1"', 'dilations="1,0"', "all are 1 or more"),
        ('strides="1,1"', 'strides="2147483648,1"', "2 small ones are needed"),
        ('pads_begin="0,0"', 'pads_begin="-1,0"', r"pads \(-1, 0\) and \(0, 0\); they are 0 or more"),
        ('auto_pad="explicit"', 'auto_pad="other"', "auto_pad 'other'; known are explicit, notset, same_upper"),
        ('pads_begin="0,0"', "", "attribute 'pads_begin' is missing"),
    ],
)
def test_damaged_windows(tmp_path: Path, old: str, new: str, words: str) -> None:
    file = files_of(tmp_path, lambda op, x: op.relu(x), IMAGE, True)
    text = file.read_text().replace(", ", ",")
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(FormatError, match=words):
        read(file)


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("deep", [False, True])
def test_filters_behind_levels_of_channels(tmp_path: Path, deep: bool, count: int) -> None:
    """A convolution sums products of several channels, so it computes on reals; a depthwise one takes them."""
    low = -np.arange(1, count + 1, dtype=np.float32).reshape(1, count, 1, 1) / 2
    high = low + np.float32(255 / 64)
    ends = [np.array([bound], np.float32) for bound in (-127 / 16, 127 / 16)]

    def make(op: Any, x: Any) -> Any:
        y = op.fake_quantize(x, *map(op.constant, (low, high, low, high)), 256)
        w = whole(5, 1, 1, 1, 1) if deep else whole(3, 5, 1, 1)
        scaled = op.fake_quantize(op.constant(w), *map(op.constant, (*ends, *ends)), 255)
        return (op.group_convolution if deep else op.convolution)(y, scaled, [1, 1], [0, 0], [0, 0], [1, 1])

    graph = check(tmp_path, make, (1, 5, 4, 6), again=False)
    made = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings))
    (filtered,) = (n for n in made.nodes if n.operator in ("conv_2d", "depthwise_conv_2d"))
    assert made.tensors[filtered.inputs[0]].dtype.is_integer == (deep or count == 1)
    x = whole(3, 1, 5, 4, 6, seed=6) / np.float32(8)
    engine = Engine(made, "openvino")
    runtime = Runtime(*files_among(OPENVINO.emit(engine.graph, Model([graph], source="net.xml"))))
    assert np.array_equal(channels_first(engine.run([x])[made.outputs[0]]), runtime.run([channels_first(x)]))
