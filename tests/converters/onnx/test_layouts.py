"""Where axes are moved and where not: images stay [N, C, H, W] from filter to filter, and numbers stay right."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tflq.converters.onnx import OnnxOptions, model_bytes, translate
from tflq.converters.settled import settled_graph
from tflq.graph import Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine

FLOAT, IMAGE = DType.FLOAT32, (1, 3, 4, 5)
Make = Callable[[GraphBuilder, int], int]


def reals(*shape: int) -> Array:
    return np.random.default_rng([3, *shape]).normal(size=shape).astype(np.float32)


def filtered(b: GraphBuilder, x: int, depth: int = 5) -> int:
    where = {"padding": "same", "stride_h": 1, "stride_w": 1}
    return b.add("conv_2d", [x, b.constant("w", reals(5, 1, 1, depth))], IMAGE, FLOAT, **where)  # type: ignore[arg-type]


def pair(operator: str, *shape: int, is_first: bool = False, **options: object) -> Make:
    def make(b: GraphBuilder, x: int) -> int:
        other = b.constant("c", np.abs(reals(*shape)) + 1)
        return b.add(operator, [other, x] if is_first else [x, other], IMAGE, FLOAT, **options)  # type: ignore[arg-type]

    return make


def alone(operator: str, **options: object) -> Make:
    return lambda b, x: b.add(operator, [x], IMAGE, FLOAT, **options)  # type: ignore[arg-type]


def both(operator: str) -> Make:
    return lambda b, x: b.add(operator, [x, b.add("relu", [x], IMAGE, FLOAT)], IMAGE, FLOAT)


def computed_channels(b: GraphBuilder, x: int) -> int:
    return b.add("mul", [b.add("relu", [b.input("z", (1, 1, 1, 5), FLOAT)], (1, 1, 1, 5), FLOAT), x], IMAGE, FLOAT)


def chosen(b: GraphBuilder, x: int) -> int:
    mask = b.add("greater", [x, b.constant("c", reals(5))], IMAGE, DType.BOOL)
    return b.add("select_v2", [mask, x, b.constant("zero", np.zeros((), np.float32))], IMAGE, FLOAT)


def with_shape(operator: str, *numbers: object, **options: object) -> Make:
    def make(b: GraphBuilder, x: int) -> int:
        given = [b.constant("c", np.array(n, np.int32)) for n in numbers]
        return b.add(operator, [x, *given], IMAGE, FLOAT, **options)  # type: ignore[arg-type]

    return make


def chosen_of_both(b: GraphBuilder, x: int) -> int:
    other = b.add("tanh", [x], IMAGE, FLOAT)
    return b.add("select", [b.add("less", [x, other], IMAGE, DType.BOOL), x, other], IMAGE, FLOAT)


def split_and_joined(b: GraphBuilder, x: int) -> int:
    parts = [b.tensor("part", (1, 3, 2, 5), FLOAT) for _ in range(2)]
    b.node("split", [b.constant("axis", np.array(2, np.int32)), x], parts, num_splits=2)
    return b.add("concatenation", parts, IMAGE, FLOAT, axis=-2)


def through_blocks(b: GraphBuilder, x: int) -> int:
    deep = b.add("space_to_depth", [b.add("tile", [x, b.constant("c", np.array((1, 2, 1, 1), np.int32))],
                                          (1, 6, 4, 5), FLOAT)], (1, 3, 2, 20), FLOAT, block_size=2)  # fmt: skip
    return b.add("depth_to_space", [deep], (1, 6, 4, 5), FLOAT, block_size=2)


NO_MASKS = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
PAIRS = ("add", "sub", "mul", "div", "maximum", "minimum", "squared_difference", "floor_div", "floor_mod")
NO_TURN: dict[str, Make] = {
    **{f"{o} {s} {f}": pair(o, *s, is_first=f) for o in PAIRS
       for s in ((), (5,), (4, 1), (1, 1, 5), (1, 3, 1, 1), IMAGE) for f in (False, True)},
    **{o: alone(o) for o in ("abs", "relu", "relu6", "logistic", "tanh", "elu", "exp", "neg", "hard_swish", "gelu",
                             "l2_normalization", "log_softmax", "square", "sign", "ceil", "floor", "round", "cos",
                             "sin", "relu_n1_to_1", "relu_0_to_1")},
    **{f"{o} of both": both(o) for o in ("add", "sub", "minimum", "maximum", "add_n", "atan2")},
    "softmax": alone("softmax", beta=2.0),
    "leaky_relu": alone("leaky_relu", alpha=0.5),
    "prelu": pair("prelu", 1, 1, 5),
    "channels that are computed": computed_channels,
    "chosen": chosen,
    "chosen of both": chosen_of_both,
    "split": split_and_joined,
    "blocks": through_blocks,
    "concatenation": lambda b, x: b.add("concatenation", [x, x, x], (3, 3, 4, 5), FLOAT, axis=0),
    "slice": with_shape("slice", (0, 1, 0, 0), (-1, 2, 4, 5)),
    "strided_slice": with_shape("strided_slice", (0, 1, 0, 0), (1, 3, 4, 5), (1, 1, 2, 1), **NO_MASKS),
    "pad": with_shape("pad", ((0, 0), (1, 0), (0, 2), (0, 0))),
    "tile": with_shape("tile", (1, 2, 1, 1)),
    "reverse_v2": with_shape("reverse_v2", (1, 2)),
    **{o: with_shape(o, (1,), keep_dims=True) for o in ("mean", "sum", "reduce_max", "reduce_min", "reduce_prod")},
    "cumsum": with_shape("cumsum", 2, exclusive=False, reverse=True),
    "gather": with_shape("gather", (2, 0, 1), axis=1, batch_dims=0),
    "mirror_pad": with_shape("mirror_pad", ((0, 0), (1, 0), (0, 2), (0, 0)), mode="reflect"),
    **{o: with_shape(o, (5, 6)) for o in ("resize_bilinear", "resize_nearest_neighbor")},
    **{o: alone(o, padding="same", stride_h=1, stride_w=1, filter_height=2, filter_width=2)
       for o in ("max_pool_2d", "average_pool_2d")},
}  # fmt: skip


def checked(graph: Graph, opset: int = 13) -> list[str]:
    """Compare with our float kernels; return the kinds of the nodes."""
    graph = settled_graph(graph)
    written = translate(graph, OnnxOptions(opset=opset))
    inputs = [reals(2, *graph.tensors[t].shape) for t in graph.inputs]
    ours = Engine(graph, "float").run(inputs)
    for t, theirs in zip(graph.outputs, run_onnx(model_bytes(written), inputs), strict=True):
        assert ours[t].shape == theirs.shape
        assert np.allclose(ours[t], theirs, rtol=1e-5, atol=1e-5)
    return [node.op_type for node in written.nodes]


@pytest.mark.parametrize("name", NO_TURN)
def test_between_filters_nothing_is_turned(name: str) -> None:
    b = GraphBuilder("between")
    graph = b.build([filtered(b, NO_TURN[name](b, filtered(b, b.input("x", IMAGE, FLOAT))))])
    assert "Transpose" not in checked(graph)


@pytest.mark.parametrize("operator", ["add", "sub", "maximum", "less", "concatenation"])
@pytest.mark.parametrize("is_first", [False, True])
def test_one_of_two_is_turned_to_the_image(operator: str, is_first: bool) -> None:
    """PACK leaves the model's own layout; what it is added to does not leave the image's."""
    b = GraphBuilder("beside")
    image, rows = b.input("x", IMAGE, FLOAT), b.input("y", IMAGE[1:], FLOAT)
    plain = b.add("pack", [rows], IMAGE, FLOAT, axis=0, values_count=1)
    operands = [filtered(b, image), plain]
    kind = DType.BOOL if operator == "less" else FLOAT
    options = {"axis": 1} if operator == "concatenation" else {}
    y = b.add(operator, operands[:: -1 if is_first else 1], IMAGE, kind, **options)  # type: ignore[arg-type]
    graph = b.build([y if operator == "less" else filtered(b, y)])
    assert checked(graph).count("Transpose") == 1


@pytest.mark.parametrize("shape", [*product((1, 2), (1, 2), (1, 3), (1, 2, 3))])
def test_elements_in_the_same_order_are_not_moved(shape: tuple[int, int, int, int]) -> None:
    """[N, H, W, C] and [N, C, H, W] have the same order where there is one channel or one pixel."""
    count, is_same = int(np.prod(shape)), shape[3] == 1 or shape[1] == shape[2] == 1
    for target in ((count,), (1, count), (count, 1, 1), (1, 1, 1, count), (1, count, 1, 1), shape[::-1]):
        b = GraphBuilder("flat")
        x = b.input("x", shape, FLOAT)
        y = b.add("reshape", [x, b.constant("s", np.array(target, np.int32))], target, FLOAT, new_shape=target)
        kinds = checked(b.build([b.add("relu", [y], target, FLOAT)]))
        is_end_same = len(target) < 4 or target[3] == 1 or target[1] == target[2] == 1
        assert kinds.count("Transpose") == (not is_same) + (not is_end_same)


def test_who_reads_a_flattened_image() -> None:
    """Products of constants alone permute their weights; beside any other reader the image is turned."""
    shape, count = (2, 3, 4, 5), 60

    def product_of(b: GraphBuilder, flat: int, is_constant: bool) -> int:
        w = b.constant("w", reals(3, count)) if is_constant else b.input("weights", (3, count), FLOAT)
        return b.add("fully_connected", [flat, w], (2, 3), FLOAT)

    def flattened(*readers: Callable[[GraphBuilder, int], int], is_output: bool = False) -> list[str]:
        b = GraphBuilder("flattened")
        flat = b.add("reshape", [b.input("x", shape, FLOAT), b.constant("s", np.array((2, count), np.int32))],
                     (2, count), FLOAT, new_shape=(2, count))  # fmt: skip
        ends = [reader(b, flat) for reader in readers]
        return checked(b.build([*ends, flat] if is_output else ends))

    constant, computed = (lambda b, t, c=c: product_of(b, t, c) for c in (True, False))
    as_weights: Make = lambda b, t: b.add("fully_connected", [b.input("rows", (4, count), FLOAT), t], (4, 2), FLOAT)  # noqa: E731
    softmax: Make = lambda b, t: b.add("softmax", [t], (2, count), FLOAT, beta=1.0)  # noqa: E731
    assert "Transpose" not in flattened(constant)
    assert "Transpose" not in flattened(constant, constant)
    for others in ((computed,), (constant, computed), (constant, softmax), (constant, as_weights), (as_weights,)):
        assert "Transpose" in flattened(*others)
    assert "Transpose" in flattened(constant, is_output=True)
