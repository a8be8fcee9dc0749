"""Each operator's layers of Caffe in OpenCV's importer, and what NNIE's arithmetic quantizes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.converters.nnie.networks import conv, fully_connected, pool, start
from tests.support.nnie import package, quantized, run_in_opencv
from tflq.graph import Array, DType, Graph, GraphBuilder, Node, float_view
from tflq.interpreter import Engine
from tflq.interpreter.kernels.nnie.logarithm import fake_quantize, scheme_of, z_of

IMAGE = (1, 4, 6, 3)
NONE = {"fused_activation_function": "none"}
Make = Callable[[], Graph]


def reals(*shape: int, low: float = 0.5) -> Array:
    return np.random.default_rng([3, *shape]).uniform(low, 2, shape).astype(np.float32)


def one(
    operator: str,
    output: tuple[int, ...] = IMAGE,
    *constants: Array,
    source: tuple[int, ...] = IMAGE,
    **options: object,
) -> Make:
    def make() -> Graph:
        b = GraphBuilder("net")
        operands = [b.input("x", source, DType.FLOAT32), *(b.constant(f"c{i}", c) for i, c in enumerate(constants))]
        return b.build([b.add(operator, operands, output, DType.FLOAT32, **options)])

    return make


def two(operator: str, second: tuple[int, ...] = IMAGE, **options: object) -> Make:
    def make() -> Graph:
        b = GraphBuilder("net")
        operands = [b.input("x", IMAGE, DType.FLOAT32), b.input("y", second, DType.FLOAT32)]
        return b.build([b.add(operator, operands, IMAGE, DType.FLOAT32, **options)])

    return make


def constant_first(operator: str) -> Graph:
    b = GraphBuilder("net")
    operands = [b.constant("c", reals(3)), b.input("x", IMAGE, DType.FLOAT32)]
    return b.build([b.add(operator, operands, IMAGE, DType.FLOAT32, **NONE)])


def transposed(output: tuple[int, int], padding: str) -> Make:
    def make() -> Graph:
        b = GraphBuilder("net")
        shape = b.constant("shape", np.array([1, *output, 5], np.int32))
        operands = [shape, b.constant("w", reals(5, 3, 3, 3)), b.input("x", IMAGE, DType.FLOAT32)]
        return b.build(
            [b.add("transpose_conv", operands, (1, *output, 5), DType.FLOAT32, padding=padding, stride_h=2, stride_w=2)]
        )

    return make


def then_neg(make: Make) -> Make:
    """Return the network with one more layer: OpenCV gives the first of a Slice's tops only."""

    def longer() -> Graph:
        graph = make().copy()
        (t,) = graph.outputs
        out = graph.add_tensor(replace(graph.tensors[t], name="turned"))
        graph.nodes.append(Node("neg", (t,), (out,), name="NEG"))
        return replace(graph, outputs=(out,))

    return longer


def rows_left_over() -> Graph:
    b, x = start(10, 10, 2)
    return b.build([pool(b, "max", x, (4, 4, 2), 3, 2, "valid")])


def row_and_pixel() -> Graph:
    b, x = start(4)
    return b.build([b.add("add", [x, fully_connected(b, x, 4, 4)], (1, 4), DType.FLOAT32, **NONE)])


def flattened_into_relu() -> Graph:
    b, x = start(2, 2, 3)
    y = b.add("reshape", [x, b.constant("shape", np.array([1, 12], np.int32))], (1, 12), DType.FLOAT32)
    return b.build([b.add("relu", [y], (1, 12), DType.FLOAT32)])


def pixels_through_a_product() -> Graph:
    b, x = start(4, 6, 3)
    return b.build([b.add("fully_connected", [x, b.constant("w", reals(5, 3))], (1, 4, 6, 5), DType.FLOAT32,
                          keep_num_dims=True, **NONE)])  # fmt: skip


def padded_convolution() -> Graph:
    b, x = start(5, 5, 2)
    amounts = b.constant("p", np.array([[0, 0], [2, 1], [0, 1], [0, 0]], np.int32))
    y = b.add("pad", [x, amounts], (1, 8, 6, 2), DType.FLOAT32)
    return b.build([conv(b, y, (8, 6, 2), (6, 4, 3), (3, 3), padding="valid")])


def ints(*values: object) -> Array:
    return np.array(values, np.int32)


def dilated(cut: int) -> Make:
    """Return a convolution with dilation 2 as a converter writes it: in phases, whose last rows are cut."""

    def make() -> Graph:
        b, x = start(6, 6, 2)
        amounts, crops = ints([2, 2 + cut], [2, 2]), ints([0, cut], [0, 0])
        apart = (4, (10 + cut) // 2, 5, 2)
        x = b.add("space_to_batch_nd", [x, b.constant("b", ints(2, 2)), b.constant("p", amounts)], apart, DType.FLOAT32)
        options = {"padding": "valid", "stride_h": 1, "stride_w": 1, "fused_activation_function": "relu"}
        phases = (4, apart[1] - 2, 3, 5)
        x = b.add("conv_2d", [x, b.constant("w", reals(5, 3, 3, 2))], phases, DType.FLOAT32, **options)
        operands = [x, b.constant("b2", ints(2, 2)), b.constant("c", crops)]
        return b.build([b.add("batch_to_space_nd", operands, (1, 6, 6, 5), DType.FLOAT32)])

    return make


def causal() -> Graph:
    """A convolution of a sequence with dilation 2 that reads the past only."""
    b = GraphBuilder("net")
    x = b.input("x", (1, 8, 3), DType.FLOAT32)
    x = b.add("pad", [x, b.constant("past", ints([0, 0], [4, 0], [0, 0]))], (1, 12, 3), DType.FLOAT32)
    blocks, amounts = b.constant("b", ints(2)), b.constant("p", ints([0, 0]))
    x = b.add("space_to_batch_nd", [x, blocks, amounts], (2, 6, 3), DType.FLOAT32)
    x = b.add("expand_dims", [x, b.constant("axis", np.array(-3, np.int32))], (2, 1, 6, 3), DType.FLOAT32)
    options = {"padding": "valid", "stride_h": 1, "stride_w": 1, **NONE}
    x = b.add("conv_2d", [x, b.constant("w", reals(4, 1, 3, 3))], (2, 1, 4, 4), DType.FLOAT32, **options)
    x = b.add("reshape", [x, b.constant("rows", ints(-1, 4, 4))], (2, 4, 4), DType.FLOAT32)
    crops = b.constant("c", ints([0, 0]))
    return b.build([b.add("batch_to_space_nd", [x, blocks, crops], (1, 8, 4), DType.FLOAT32)])


def padded_maximum() -> Graph:
    b, x = start(5, 5, 2)
    amounts = b.constant("p", ints([0, 0], [1, 2], [0, 1], [0, 0]))
    x = b.add("pad", [x, amounts], (1, 8, 6, 2), DType.FLOAT32)
    return b.build([pool(b, "max", x, (4, 3, 2), 2, 2, "valid")])


def repeated() -> Graph:
    """Rows and columns twice, as Keras' UpSampling2D becomes them."""
    b = GraphBuilder("net")
    x = b.input("x", IMAGE, DType.FLOAT32)
    for axis, shape in ((1, (1, 4, 1, 6, 3)), (2, (1, 8, 6, 1, 3))):
        x = b.add("expand_dims", [x, b.constant(f"a{axis}", np.array(axis + 1, np.int32))], shape, DType.FLOAT32)
        counts = [2 if a == axis + 1 else 1 for a in range(5)]
        tiled = tuple(n * c for n, c in zip(shape, counts, strict=True))
        x = b.add("tile", [x, b.constant(f"t{axis}", ints(*counts))], tiled, DType.FLOAT32)
        after = (1, 8, 6, 3) if axis == 1 else (1, 8, 12, 3)
        x = b.add("reshape", [x, b.constant(f"s{axis}", ints(*after))], after, DType.FLOAT32)
    return b.build([x])


def dealt() -> Graph:
    """Channels of three groups, dealt out as ShuffleNet does."""
    b, x = start(4, 5, 6)
    x = b.add("reshape", [x, b.constant("g", ints(1, 4, 5, 3, 2))], (1, 4, 5, 3, 2), DType.FLOAT32)
    x = b.add("transpose", [x, b.constant("o", ints(0, 1, 2, 4, 3))], (1, 4, 5, 2, 3), DType.FLOAT32)
    return b.build([b.add("reshape", [x, b.constant("s", ints(1, 4, 5, 6))], (1, 4, 5, 6), DType.FLOAT32)])


CASES: dict[str, Make] = {
    "abs": one("abs"),
    "add a number": one("add", IMAGE, reals(1), **NONE),
    "add channels": one("add", IMAGE, reals(3), fused_activation_function="relu6"),
    "div": two("div", **NONE),
    "div by channels": one("div", IMAGE, reals(3), **NONE),
    "div of channels": lambda: constant_first("div"),
    "elu": one("elu"),
    "exp": one("exp"),
    "hard_swish": one("hard_swish"),
    "maximum": two("maximum"),
    "maximum of a number": one("maximum", IMAGE, reals(1)),
    "mean of channels": one("mean", (1, 4, 6), ints(3), keep_dims=False),
    "mean of rows": one("mean", (1, 6, 3), ints(1), keep_dims=False),
    "mean of columns": one("mean", (1, 4, 3), ints(2), keep_dims=False),
    "mean of all": one("mean", (1, 1, 1, 1), ints(1, 2, 3), keep_dims=True),
    "mean of a sequence": one("mean", (1, 3), ints(1), source=(1, 6, 3), keep_dims=False),
    "minimum": two("minimum"),
    "minimum of a number": one("minimum", IMAGE, reals(1)),
    "mul channels": one("mul", IMAGE, reals(3), **NONE),
    "mul by a pixel": two("mul", (1, 1, 1, 3), **NONE),
    "neg": one("neg"),
    "pow": one("pow", IMAGE, np.full((), 3, np.float32)),
    "reduce_max": one("reduce_max", (1, 3), ints(1, 2), keep_dims=False),
    "relu6": one("relu6"),
    "relu_n1_to_1": one("relu_n1_to_1"),
    "reshape channels": one("reshape", (1, 2, 4, 9), ints(1, 2, 4, 9)),
    "reshape pixels": one("reshape", (1, 8, 3, 3), ints(1, 8, 3, 3)),
    "reshape rows": one("reshape", (1, 72), ints(1, 72)),
    "rsqrt": one("rsqrt"),
    "slice": then_neg(one("slice", (1, 2, 6, 2), ints(0, 1, 0, 1), ints(1, 2, -1, 2))),
    "softmax scaled": one("softmax", beta=2.0),
    "sqrt": one("sqrt"),
    "square": one("square"),
    "squared_difference": two("squared_difference"),
    "strided_slice": then_neg(
        one("strided_slice", (1, 6, 3), ints(0, 2, 0, 0), ints(1, 3, 6, 3), ints(1, 1, 1, 1), shrink_axis_mask=2)
    ),
    "sub": two("sub", **NONE),
    "sub of channels": lambda: constant_first("sub"),
    "sum": one("sum", (1, 3), ints(1, 2), keep_dims=False),
    "transpose": one("transpose", (1, 3, 4, 6), ints(0, 3, 1, 2)),
    "transpose_conv even": transposed((8, 12), "same"),
    "transpose_conv uneven": transposed((7, 11), "same"),
    "transpose_conv valid": transposed((9, 13), "valid"),
    "rows left over": rows_left_over,
    "row and pixel": row_and_pixel,
    "flattened into relu": flattened_into_relu,
    "pixels through a product": pixels_through_a_product,
    "padded convolution": padded_convolution,
    "depth_to_space": one("depth_to_space", (1, 8, 12, 2), source=(1, 4, 6, 8), block_size=2),
    "space_to_depth": one("space_to_depth", (1, 2, 3, 12), source=IMAGE, block_size=2),
    "reduce_min": one("reduce_min", (1, 3), ints(1, 2), keep_dims=False),
    "strided_slice with steps": one(
        "strided_slice", (1, 2, 2, 3), ints(0, 0, 1, 0), ints(1, 4, 6, 3), ints(1, 2, 3, 1)
    ),
    "dilated": dilated(0),
    "dilated and cut": dilated(2),
    "causal": then_neg(causal),
    "padded maximum": padded_maximum,
    "repeated": repeated,
    "dealt": dealt,
}


def positive(graph: Graph, count: int = 3) -> list[Array]:
    draw = np.random.default_rng(8)
    return [draw.uniform(0.2, 3, (count, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]


def as_images(x: Array) -> Array:
    """Return [S, N, L, C] as [S, N, 1, L, C], as Caffe's inputs are."""
    return x[:, :, None] if x.ndim == 4 else x


@pytest.mark.parametrize("name", CASES)
def test_opencv_computes_the_same(name: str) -> None:
    graph = CASES[name]()
    data = positive(graph)
    if name in {"abs", "elu", "relu6", "relu_n1_to_1", "hard_swish", "maximum of a number", "minimum of a number"}:
        data = [(x - 1.5) * 4 for x in data]
    ours = Engine(float_view(graph), "float").run(data)[graph.outputs[0]]
    found = run_in_opencv(package(graph, data), [as_images(x) for x in data], output_of(graph))
    assert np.abs(found.reshape(ours.shape) - ours).max() <= 1e-5 * float(np.abs(ours).max())
    made = quantized(graph, data)
    assert Engine(made, "nnie").run(data)[made.outputs[0]].shape == ours.shape


def output_of(graph: Graph) -> str:
    """Return the blob of the output: cut layers leave others open."""
    return graph.tensors[graph.outputs[0]].name.replace("/", "_")


def layers_of(make: Make) -> list[str]:
    graph = make()
    return [
        line.split('"')[1]
        for line in package(graph, positive(graph))["net.prototxt"].decode().split("\n")
        if "type:" in line
    ]


@pytest.mark.parametrize(
    ("make", "layers"),
    [
        (one("tile", (1, 8, 6, 9), ints(1, 2, 1, 3)), ["Tile", "Tile"]),
        (two("sub", (1, 4, 1, 3), **NONE), ["Tile", "Eltwise"]),
        (one("resize_bilinear", IMAGE, ints(4, 6), source=(1, 1, 1, 3)), ["Tile", "Tile"]),
        (two("mul", (1, 1, 1, 3), **NONE), ["Flatten", "Scale"]),
    ],
)
def test_what_opencv_does_not_read(make: Make, layers: list[str]) -> None:
    assert [kind for kind in layers_of(make) if kind != "Input"] == layers


@pytest.mark.parametrize("operator", ["sub", "maximum", "mul"])
def test_two_operands_share_one_z(operator: str) -> None:
    graph = two(operator, **({} if operator == "maximum" else NONE))()
    data = positive(graph)
    made = quantized(graph, data)
    z = z_of(max(float(x.max()) for x in data), scheme_of(8))
    seen = [fake_quantize(x, z, scheme_of(8)) for x in data]
    rule = {"sub": np.subtract, "maximum": np.maximum, "mul": np.multiply}[operator]
    assert np.array_equal(Engine(made, "nnie").run(data)[made.outputs[0]], rule(*seen))


def test_constants_stay_float() -> None:
    graph = CASES["div by channels"]()
    data = positive(graph)
    made = quantized(graph, data)
    seen = fake_quantize(data[0], z_of(float(data[0].max()), scheme_of(8)), scheme_of(8))
    assert np.array_equal(Engine(made, "nnie").run(data)[made.outputs[0]], seen / reals(3))
    assert "not published" in made.nodes[0].attributes.text("engine_reason")


def test_factors_of_channels_go_into_the_convolution() -> None:
    b, x = start(4, 4, 2)
    y = conv(b, x, (4, 4, 2), (4, 4, 3), (1, 1))
    z = b.add("mul", [y, b.constant("gamma", reals(3))], (1, 4, 4, 3), DType.FLOAT32, **NONE)
    z = b.add("add", [z, b.constant("beta", reals(3))], (1, 4, 4, 3), DType.FLOAT32, fused_activation_function="relu")
    graph = b.build([z])
    data = positive(graph)
    made = quantized(graph, data)
    assert [node.operator for node in made.nodes] == ["conv_2d"]
    ours = Engine(graph, "float").run(data)[graph.outputs[0]]
    folded = replace(made, nodes=[replace(made.nodes[0], arithmetic="float")])
    assert np.allclose(Engine(folded, "float").run(data)[made.outputs[0]], ours, rtol=1e-5, atol=1e-5)
