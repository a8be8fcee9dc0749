"""Rewrites of GAP9's converter at their borders: which operators are there then, and that results stay the same.

What NNTool makes of such networks is in test_recorded_networks.py; here is what stands one step beside it.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Net, encoding
from tests.support.gap9_recorded import codes_of
from tflq.converters.gap9.passes.slices import UNUSED
from tflq.graph import Graph, Model, Node
from tflq.graph.float_view import dequantize
from tflq.interpreter import Engine, lower

ENGINES = ("gap9-ne16", "gap9-sq8")
LIMITS = (-2.0, 2.0)


def converted(model: Model, engine: str) -> Graph:
    """The lowered graph, whose outputs are within two steps of TFLite's of the file."""
    graph = lower(quantized(model, engine), "gap9")
    codes = np.random.default_rng(0).integers(-128, 128, (2, *model.main.tensors[model.main.inputs[0]].shape))
    ours = Engine(graph).run(codes_of(model.main, graph))
    theirs = Engine(model.main).run([codes.astype(np.int8)])
    for t, u in zip(graph.outputs, model.main.outputs, strict=True):
        real = dequantize(theirs[u], model.main.tensors[u].affine)
        step = max(float(graph.tensors[t].affine.scale[0]), float(model.main.tensors[u].affine.scale[0]))
        assert np.abs(dequantize(ours[t], graph.tensors[t].affine).reshape(real.shape) - real).max() <= 2 * step
    return graph


def window(
    axis: int, kernel: int, pads: tuple[int, int], stride: int, size: int = 1, depthwise: bool = False
) -> tuple[Model, tuple[int, ...]]:
    """A PAD along one axis and a convolution with a kernel of one other tap; and the shape of its weights."""
    net = Net(LIMITS, (1, size, 6, 4) if axis == 0 else (1, 6, size, 4))
    amounts = np.zeros((4, 2), np.int32)
    amounts[1 + axis] = pads
    shape = [1, 6, 6, 4]
    shape[1 + axis] = size + sum(pads)
    x = net.add("pad", [net.x, net.builder.constant("pads", amounts)], tuple(shape), LIMITS) if any(pads) else net.x
    shape[1 + axis] = -(-(size + sum(pads) - kernel + 1) // stride)
    taps = (kernel, 1) if axis == 0 else (1, kernel)
    codes = net.random.integers(-127, 128, (1, *taps, 4) if depthwise else (4, *taps, 4)).astype(np.int8)
    weights = net.builder.constant("w", codes, net._scales(4, 0.004))
    options = {"stride_h": stride if axis == 0 else 1, "stride_w": 1 if axis == 0 else stride, "padding": "valid"}
    options |= {"depth_multiplier": 1} if depthwise else {}
    name = "depthwise_conv_2d" if depthwise else "conv_2d"
    y = net.add(
        name, [x, weights, net._bias(4)], tuple(shape), (-9.0, 9.0), fused_activation_function="none", **options
    )
    return net.model(y), codes.shape


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("kernel", "pads", "stride", "size", "left"),
    [
        (3, (1, 1), 1, 1, 1),  # the middle tap sees the map
        (3, (2, 0), 1, 1, 1),
        (3, (0, 2), 1, 1, 1),
        (2, (1, 0), 1, 1, 1),
        (2, (0, 1), 1, 1, 1),
        (5, (3, 1), 1, 1, 1),
        (3, (1, 1), 1, 2, 3),  # two rows
        (3, (1, 1), 2, 2, 3),  # two rows, one of results
        (3, (2, 1), 1, 1, 3),  # two rows of results
        (1, (0, 0), 1, 1, 1),  # nothing to cut
        (1, (1, 1), 3, 1, 1),  # a kernel of one tap beside the map
        (2, (2, 0), 2, 1, 2),  # kernels that stand in the padding beside the map
        (2, (3, 0), 3, 1, 2),
        (3, (4, 0), 3, 1, 3),
    ],
)
def test_kernels_beyond_a_map_of_one_row(
    axis: int, kernel: int, pads: tuple[int, int], stride: int, size: int, left: int, engine: str
) -> None:
    model, shape = window(axis, kernel, pads, stride, size)
    graph = converted(model, engine)
    wanted = list(shape)
    wanted[1 + axis] = left
    (node,) = graph.nodes
    assert graph.tensors[node.inputs[1]].shape == tuple(wanted)
    departs = left < kernel and pads[0] > 0
    assert ("(17.1)" in node.attributes.text("departure", "")) is departs


def added(shape: tuple[int, ...], image: tuple[int, ...] = (1, 4, 4, 4)) -> Graph:
    net = Net(LIMITS, image)
    x = net.conv(net.x, (-4.0, 4.0), outputs=image[3], scale=0.004)
    codes = np.random.default_rng(3).integers(-128, 128, shape).astype(np.int8)
    k = net.builder.constant("k", codes, encoding((-1.0, 1.0)))
    return converted(net.model(net.binary("add", x, k, (-5.0, 5.0))), "gap9-ne16")


@pytest.mark.parametrize("shape", [(1,), (4,), (1, 4), (1, 1, 4), (1, 1, 1, 4), (1, 1, 1, 1)])
def test_constants_that_join_the_bias(shape: tuple[int, ...]) -> None:
    assert [node.operator for node in added(shape).nodes] == ["conv_2d"]


@pytest.mark.parametrize(
    "shape", [(), (4, 1), (4, 4), (4, 1, 1), (1, 4, 1), (1, 4, 1, 1), (1, 1, 4, 1), (1, 1, 4, 4), (1, 4, 4, 4)]
)
def test_constants_that_stay(shape: tuple[int, ...]) -> None:
    """A number a row or a column is none a channel, though there are as many."""
    assert [node.operator for node in added(shape).nodes if node.operator == "add"] == ["add"]


def test_constants_added_one_behind_the_other() -> None:
    net = Net(LIMITS)
    x = net.conv(net.x, (-4.0, 4.0), scale=0.004)
    for codes in ([100], [-30, 5, 90, -128]):
        k = net.builder.constant("k", np.array(codes, np.int8), encoding((-1.0, 1.0)))
        x = net.binary("add", x, k, (-6.0, 6.0))
    assert [node.operator for node in converted(net.model(x), "gap9-sq8").nodes] == ["conv_2d"]


def sliced(begin: tuple[int, ...], size: tuple[int, ...], step: tuple[int, ...] | None = None) -> Graph:
    net = Net(LIMITS, (1, 5, 6, 4))
    indices = [net.builder.constant("k", np.array(v, np.int32)) for v in (begin, size)]
    if step is None:
        return converted(net.model(net.add("slice", [net.x, *indices], size, LIMITS)), "gap9-sq8")
    ends = [b + n * s for b, n, s in zip(begin, size, step, strict=True)]
    indices = [net.builder.constant("k", np.array(v, np.int32)) for v in (begin, ends, step)]
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    return converted(net.model(net.add("strided_slice", [net.x, *indices], size, LIMITS, **masks)), "gap9-sq8")


def pieces(graph: Graph, node: Node) -> list[tuple[int, ...]]:
    return [graph.tensors[t].shape for t in node.outputs]


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize(
    ("axis", "first", "count"),
    [
        (1, 0, 1),
        (1, 0, 4),
        (1, 1, 1),
        (1, 2, 3),
        (1, 4, 1),
        (2, 0, 5),
        (2, 3, 2),
        (2, 5, 1),
        (3, 0, 2),
        (3, 1, 2),
        (3, 2, 2),
    ],
)
def test_a_slice_along_one_axis_is_a_split(axis: int, first: int, count: int, strided: bool) -> None:
    """Pieces in front of it, itself, behind it; those that nobody reads are named."""
    shape = (1, 5, 6, 4)
    begin = tuple(first if a == axis else 0 for a in range(4))
    size = tuple(count if a == axis else n for a, n in enumerate(shape))
    graph = sliced(begin, size, (1, 1, 1, 1) if strided else None)
    (node,) = graph.nodes
    sizes = [n for n in (first, count, shape[axis] - first - count) if n]
    assert node.operator == "split_v"
    assert pieces(graph, node) == [tuple(n if a == axis else m for a, m in enumerate(shape)) for n in sizes]
    kept = int(first > 0)
    assert graph.outputs == (node.outputs[kept],)
    assert node.attributes.integers(UNUSED, ()) == tuple(i for i in range(len(sizes)) if i != kept)


@pytest.mark.parametrize(
    ("begin", "size", "step"),
    [
        ((0, 1, 1, 0), (1, 4, 5, 4), None),  # two axes
        ((0, 0, 0, 0), (1, 3, 6, 4), (1, 2, 1, 1)),  # every other row
        ((0, 0, 0, 3), (1, 5, 6, 2), (1, 1, 1, -1)),  # backwards
    ],
)
def test_other_slices_stay(begin: tuple[int, ...], size: tuple[int, ...], step: tuple[int, ...] | None) -> None:
    assert [node.operator for node in sliced(begin, size, step).nodes] == ["slice" if step is None else "strided_slice"]
