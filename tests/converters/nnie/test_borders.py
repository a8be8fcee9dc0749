"""Windows, axes and shapes drawn over their borders: the package is refused, or OpenCV computes what the graph does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest

from tests.converters.nnie.networks import conv, pool, start
from tests.support.nnie import package, run_in_opencv
from tflq.converters.nnie import NNIE
from tflq.converters.settings import parse_settings
from tflq.graph import Array, Attribute, Attributes, DType, Graph, GraphBuilder
from tflq.interpreter import Engine
from tflq.interpreter.operands.sliding_windows import window_of

SETTINGS = parse_settings(NNIE.settings)
NONE: dict[str, Any] = {"fused_activation_function": "none"}


def data_of(graph: Graph, count: int = 2) -> list[Array]:
    draw = np.random.default_rng(17)
    return [draw.uniform(0.2, 3, (count, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]


def agrees(graph: Graph) -> None:
    """Compare every output with OpenCV's, to 1e-5 of the largest."""
    data = data_of(graph)
    files = package(graph, data)
    for t in graph.outputs:
        ours = Engine(graph, "float").run(data)[t]
        images = [x[:, :, None] if x.ndim == 4 else x for x in data]
        found = run_in_opencv(files, images, graph.tensors[t].name)
        assert found.size == ours.size
        assert np.abs(found.reshape(ours.shape) - ours).max() <= 1e-5 * float(np.abs(ours).max())


def one(operator: str, source: tuple[int, ...], output: tuple[int, ...], *constants: Array, **options: Any) -> Graph:
    """Return an operator and a negation behind it: of a Slice OpenCV gives the first top only."""
    b = GraphBuilder("net")
    operands = [b.input("x", source, DType.FLOAT32), *(b.constant(f"c{i}", c) for i, c in enumerate(constants))]
    return b.build([b.add("neg", [b.add(operator, operands, output, DType.FLOAT32, **options)], output, DType.FLOAT32)])


def ints(*values: object) -> Array:
    return np.array(values, np.int32)


def pool_in_caffe(size: tuple[int, int], kernel: int, stride: int, pad: tuple[int, int], data: Array) -> Array:
    """Return what OpenCV makes of Caffe's Pooling itself."""
    text = (
        f'name: "p"\nlayer {{ name: "data" type: "Input" top: "data" input_param {{ shape {{ dim: 1 dim: 1 '
        f'dim: {size[0]} dim: {size[1]} }} }} }}\nlayer {{ name: "y" type: "Pooling" bottom: "data" top: "y" '
        f"pooling_param {{ pool: MAX kernel_size: {kernel} stride: {stride} pad_h: {pad[0]} pad_w: {pad[1]} }} }}\n"
    )
    return run_in_opencv({"p.prototxt": text.encode(), "p.caffemodel": b""}, [data])


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
def test_pools_are_taken_where_caffes_windows_are_the_same(kernel: int, stride: int, padding: str) -> None:
    options = Attributes({"padding": padding, "stride_h": stride, "stride_w": stride})
    for size in ((4, 5), (5, 7), (6, 4), (7, 9)):
        window = window_of(options, size, (kernel, kernel))
        b, x = start(*size, 1)
        graph = b.build([pool(b, "max", x, (*window.output_size(size), 1), kernel, stride, padding)])
        data = data_of(graph)
        if NNIE.check(graph, SETTINGS):
            ours = Engine(graph, "float").run(data)[graph.outputs[0]]
            caffes = pool_in_caffe(size, kernel, stride, (window.top, window.left), data[0])
            assert padding == "same"
            assert caffes.shape != ours.shape or not np.array_equal(caffes, ours)
        else:
            agrees(graph)


@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("size", [(4, 4), (5, 4), (4, 5), (7, 6), (3, 3)])
def test_average_pools_without_padding_are_taken(size: tuple[int, int], kernel: int) -> None:
    b, x = start(*size, 2)
    output = (*((n - kernel) // 2 + 1 for n in size), 2)
    agrees(b.build([pool(b, "average", x, output, kernel, 2, "valid")]))


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("operator", ["mean", "reduce_max", "reduce_min", "sum"])
def test_reductions_of_every_set_of_axes(operator: str, is_kept: bool) -> None:
    for shape in ((1, 5), (1, 4, 3), (1, 2, 4, 3)):
        for count in range(1, len(shape)):
            for axes in combinations(range(1, len(shape)), count):
                output = tuple(1 if a in axes else n for a, n in enumerate(shape) if is_kept or a not in axes)
                if len(output) > 1:
                    agrees(one(operator, shape, output, ints(*axes), keep_dims=is_kept))


@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (1, 4, 5)])
def test_transpositions(shape: tuple[int, ...]) -> None:
    """Caffe's order of axes turned once or twice, and nothing else, is what NNIE's one Permute makes."""
    x = data_of(one("relu", shape, shape))[0][0]
    images = x.reshape(1, -1, *shape[-2:]).transpose(0, 3, 1, 2)
    turned = [images, images.transpose(0, 2, 3, 1), images.transpose(0, 3, 1, 2)]
    for order in permutations(range(1, len(shape))):
        y = x.transpose(0, *order)
        graph = one("transpose", shape, y.shape, ints(0, *order))
        image = y.reshape(1, -1, *y.shape[-2:]).transpose(0, 3, 1, 2)
        if any(np.array_equal(image, t) for t in turned):
            agrees(graph)
        else:
            assert "NNIE has Permute 0, 2, 3, 1 only" in NNIE.check(graph, SETTINGS)[0]


SHAPES = [
    *((1, 24), (1, 4, 6), (1, 6, 4), (1, 2, 3, 4), (1, 4, 1, 6), (1, 1, 4, 6), (1, 1, 1, 24), (1, 3, 8, 1)),
    *((1, 24, 1), (1, 2, 12), (1, 12, 2), (1, 2, 1, 12), (1, 3, 4, 2)),
]


@pytest.mark.parametrize("before", SHAPES)
def test_reshapes(before: tuple[int, ...]) -> None:
    for after in SHAPES:
        agrees(one("reshape", before, after, ints(*after)))


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_slices(axis: int) -> None:
    shape = (1, 4, 5, 6)
    for begin, size in product((0, 1, 2), (1, 2, -1)):
        starts, sizes = [0] * 4, [-1] * 4
        starts[axis], sizes[axis] = begin, size
        output = tuple((size if size > 0 else n - begin) if a == axis else n for a, n in enumerate(shape))
        agrees(one("slice", shape, output, ints(*starts), ints(*sizes)))


def test_slices_of_several_axes() -> None:
    agrees(one("slice", (1, 4, 5, 6), (1, 2, 3, 2), ints(0, 1, 2, 4), ints(1, 2, 3, 2)))
    agrees(one("slice", (1, 5, 6), (1, 3, 2), ints(0, 1, 3), ints(1, 3, 2)))
    agrees(one("slice", (1, 4, 5, 6), (1, 4, 5, 6), ints(0, 0, 0, 0), ints(1, 4, 5, 6)))


@pytest.mark.parametrize(
    ("begin", "end", "strides", "options", "output"),
    [
        ((0, 1, 0, 0), (1, 3, 5, 6), (1, 1, 1, 1), {}, (1, 2, 5, 6)),
        ((0, 0, 2, 0), (0, 0, 0, 0), (1, 1, 1, 1), {"begin_mask": 3, "end_mask": 15}, (1, 4, 3, 6)),
        ((0, 0, 0, -3), (1, 4, 5, -1), (1, 1, 1, 1), {}, (1, 4, 5, 2)),
        ((0, 2, 0, 0), (1, 3, 5, 6), (1, 1, 1, 1), {"shrink_axis_mask": 2}, (1, 5, 6)),
        ((0, 0, 1, 0), (1, 4, 2, 6), (1, 1, 1, 1), {"shrink_axis_mask": 4}, (1, 4, 6)),
        ((0, 1, 0, 0), (1, 4, 5, 6), (1, 2, 1, 1), {}, (1, 2, 5, 6)),
        ((0, 0, 0, 0), (1, 4, 5, 6), (1, 2, 3, 1), {}, (1, 2, 2, 6)),
        ((0, 1, 1, 2), (1, 4, 5, 5), (1, 1, 3, 1), {}, (1, 3, 2, 3)),
    ],
)
def test_strided_slices(
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
    options: dict[str, Attribute],
    output: tuple[int, ...],
) -> None:
    agrees(one("strided_slice", (1, 4, 5, 6), output, ints(*begin), ints(*end), ints(*strides), **options))


@pytest.mark.parametrize(
    ("shape", "begin", "end", "strides", "options", "output", "words"),
    [
        ((1, 4, 5, 6), (0, 0, 0, 0), (1, 4, 5, 6), (1, 1, 1, 2), {}, (1, 4, 5, 3), "a step of 2; Caffe's Slice"),
        ((1, 4, 5, 6), (0, 3, 0, 0), (1, -5, 5, 6), (1, -1, 1, 1), {}, (1, 4, 5, 6), "a step of -1; Caffe's Slice"),
        ((1, 5, 6), (0, 0, 0), (1, 5, 6), (1, 3, 1), {}, (1, 2, 6), "a step of 3; Caffe's Slice"),
        ((1, 4, 5, 6), (0, 0, 0, 2), (1, 4, 5, 3), (1,) * 4, {"shrink_axis_mask": 8}, (1, 4, 5), "an axis of channels"),
        ((1, 5, 6), (0, 0, 2), (1, 5, 3), (1,) * 3, {"shrink_axis_mask": 4}, (1, 5), "an axis of channels"),
    ],
)
def test_what_a_slice_of_caffe_does_not_take(
    shape: tuple[int, ...],
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
    options: dict[str, Attribute],
    output: tuple[int, ...],
    words: str,
) -> None:
    graph = one("strided_slice", shape, output, ints(*begin), ints(*end), ints(*strides), **options)
    assert words in NNIE.check(graph, SETTINGS)[0]


@pytest.mark.parametrize("axis", [1, 2, 3, -1, -2])
@pytest.mark.parametrize("operator", ["split", "split_v"])
def test_splits(operator: str, axis: int) -> None:
    shape, sizes = (1, 6, 6, 6), [2, 2, 2] if operator == "split" else [1, 3, 2]
    b = GraphBuilder("net")
    x, place = b.input("x", shape, DType.FLOAT32), b.constant("axis", np.array(axis, np.int32))
    operands = [place, x] if operator == "split" else [x, b.constant("sizes", ints(*sizes)), place]
    parts = [tuple(s if a == axis % 4 else n for a, n in enumerate(shape)) for s in sizes]
    tops = [b.tensor(f"part{i}", part, DType.FLOAT32) for i, part in enumerate(parts)]
    b.node(operator, operands, tops, num_splits=3)
    agrees(b.build([b.add("neg", [t], part, DType.FLOAT32) for t, part in zip(tops, parts, strict=True)]))


@pytest.mark.parametrize(("rank", "axis"), [(r, a) for r in (2, 3, 4) for a in (*range(1, r), -1)])
def test_concatenations(rank: int, axis: int) -> None:
    shape = (1, 3, 4, 5)[:rank]
    b = GraphBuilder("net")
    operands = [b.input(name, shape, DType.FLOAT32) for name in "xy"]
    output = tuple(n * 2 if a == axis % rank else n for a, n in enumerate(shape))
    agrees(b.build([b.add("concatenation", operands, output, DType.FLOAT32, axis=axis, **NONE)]))


@pytest.mark.parametrize("operator", ["add", "sub", "mul", "div", "maximum", "minimum", "squared_difference"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, 4, 6, 3), (1, 1, 6, 3)),
        ((1, 4, 6, 3), (1, 4, 1, 3)),
        ((1, 4, 6, 1), (1, 4, 6, 3)),
        ((1, 4, 1, 3), (1, 1, 6, 1)),
        ((1, 6, 3), (1, 6, 1)),
    ],
)
def test_operands_that_broadcast(operator: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    b = GraphBuilder("net")
    operands = [b.input("x", first, DType.FLOAT32), b.input("y", second, DType.FLOAT32)]
    options = {} if operator in ("maximum", "minimum", "squared_difference") else NONE
    agrees(b.build([b.add(operator, operands, np.broadcast_shapes(first, second), DType.FLOAT32, **options)]))


@pytest.mark.parametrize("counts", [(1, 2, 1, 1), (1, 1, 3, 1), (1, 1, 1, 2), (1, 2, 3, 2), (1, 1, 1, 1)])
def test_tiles(counts: tuple[int, ...]) -> None:
    shape = (1, 2, 3, 4)
    agrees(one("tile", shape, tuple(n * c for n, c in zip(shape, counts, strict=True)), ints(*counts)))


@pytest.mark.parametrize("operator", ["resize_bilinear", "resize_nearest_neighbor"])
def test_a_pixel_is_repeated(operator: str) -> None:
    agrees(one(operator, (1, 1, 1, 3), (1, 4, 5, 3), ints(4, 5), align_corners=False, half_pixel_centers=False))


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [(1, 4), (2, 3), (3, 2), (5, 5)])
def test_convolutions_of_every_padding(kernel: tuple[int, int], stride: int) -> None:
    for size in ((6, 7), (7, 8)):
        for padding in ("same", "valid"):
            options = Attributes({"padding": padding, "stride_h": stride, "stride_w": stride})
            output = (*window_of(options, size, kernel).output_size(size), 3)
            b, x = start(*size, 2)
            agrees(b.build([conv(b, x, (*size, 2), output, kernel, (stride, stride), padding)]))


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
def test_transposed_convolutions_of_every_cut(kernel: int, stride: int) -> None:
    """An output that the whole one does not reach is refused; every other one is cut from it."""
    source = (3, 4)
    for padding, more in product(("same", "valid"), (-1, 0, 1)):
        least = [n * stride if padding == "same" else (n - 1) * stride + kernel for n in source]
        output = (least[0] + more, least[1] + more)
        reached = [(n + stride - 1 if padding == "same" else n - kernel + stride) // stride for n in output]
        if tuple(reached) != source or min(output) < 1:
            continue
        weights = np.random.default_rng(4).normal(0, 1, (5, kernel, kernel, 2)).astype(np.float32)
        shape, b = (1, *output, 5), GraphBuilder("net")
        operands = [
            b.constant("s", ints(*shape)),
            b.constant("w", weights),
            b.input("x", (1, *source, 2), DType.FLOAT32),
        ]
        options: dict[str, Attribute] = {"padding": padding, "stride_h": stride, "stride_w": stride}
        y = b.add("transpose_conv", operands, shape, DType.FLOAT32, **options, **NONE)
        graph = b.build([b.add("neg", [y], shape, DType.FLOAT32)])
        whole = [(n - 1) * stride + kernel for n in source]
        window = window_of(Attributes(options), output, (kernel, kernel))
        if output[0] + window.top <= whole[0] and output[1] + window.left <= whole[1]:
            agrees(graph)
        else:
            words = f"an output of {output[0]}x{output[1]}; Caffe's Deconvolution ends at {whole}"
            assert words in NNIE.check(graph, SETTINGS)[0]


def conv_of(size: tuple[int, int], kernel: tuple[int, int], padding: str) -> Graph:
    b, x = start(*size, 1)
    output = (size[0] - kernel[0] + 1, size[1] - kernel[1] + 1, 1)
    return b.build([conv(b, x, (*size, 1), output, kernel, padding=padding)])


def pool_of(kernel: int) -> Graph:
    b, x = start(kernel, kernel, 1)
    return b.build([pool(b, "max", x, (1, 1, 1), kernel, 1, "valid")])


LIMITS: dict[str, tuple[Callable[[int], Graph], int, str]] = {
    "kernel": (lambda n: conv_of((n, 2), (n, 1), "valid"), 255, "a kernel of (256, 1); NNIE takes up to 255 each way"),
    "kernel across": (lambda n: conv_of((2, n), (1, n), "valid"), 255, "a kernel of (1, 256); NNIE takes up to 255"),
    "pool": (pool_of, 255, "a window of (256, 256); NNIE takes up to 255 each way"),
    "mean": (lambda n: one("mean", (1, n, 2, 2), (1, 2, 2), ints(1), keep_dims=False), 255, "a window of (256, 1)"),
    "axis": (lambda n: one("relu", (1, n), (1, n)), 4096, "has shape (1, 4097); NNIE takes axes up to 4096: cut it up"),
    "channels": (lambda n: one("relu", (1, 1, 1, n), (1, 1, 1, n)), 4096, "has shape (1, 1, 1, 4097)"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_taken_and_one_more_is_refused(name: str) -> None:
    make, largest, words = LIMITS[name]
    assert list(NNIE.check(make(largest), SETTINGS)) == []
    assert words in NNIE.check(make(largest + 1), SETTINGS)[0]
