"""Each operator as ONNX in onnxruntime against our float kernels, on shapes where the layouts differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tflq.converters.onnx import OnnxOptions, model_bytes, translate, unsupported
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine

FLOAT = DType.FLOAT32
IMAGE = (1, 6, 5, 4)
WINDOW = {"stride_h": 2, "stride_w": 1}
POOL = {**WINDOW, "filter_height": 3, "filter_width": 2}

Make = Callable[[GraphBuilder], int]


def reals(*shape: int, seed: int = 1) -> Array:
    """Always the same values of a shape and seed."""
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def unary(operator: str, shape: tuple[int, ...] = IMAGE, **options: object) -> Make:
    return lambda b: b.add(operator, [b.input("x", IMAGE, FLOAT)], shape, FLOAT, **options)


def with_constants(operator: str, shape: tuple[int, ...], *values: Array, source: tuple[int, ...] = IMAGE, **o) -> Make:
    def make(b: GraphBuilder) -> int:
        constants = [b.constant(f"c{i}", value) for i, value in enumerate(values)]
        return b.add(operator, [b.input("x", source, FLOAT), *constants], shape, FLOAT, **o)

    return make


def two(operator: str, second: tuple[int, ...] = IMAGE, **options: object) -> Make:
    return lambda b: b.add(operator, [b.input("x", IMAGE, FLOAT), b.input("y", second, FLOAT)], IMAGE, FLOAT, **options)


def flattened_product(b: GraphBuilder) -> int:
    flat = b.add("reshape", [b.input("x", IMAGE, FLOAT)], (1, 120), FLOAT, new_shape=(1, 120))
    return b.add("fully_connected", [flat, b.constant("w", reals(3, 120)), -1], (1, 3), FLOAT)


def joined(b: GraphBuilder) -> int:
    operands = [b.input("x", IMAGE, FLOAT), b.input("y", (1, 6, 5, 2), FLOAT), b.constant("c", reals(1, 6, 5, 3))]
    return b.add("concatenation", operands, (1, 6, 5, 9), FLOAT, axis=-1)


def computed_bias(b: GraphBuilder) -> int:
    x, bias = b.input("x", IMAGE, FLOAT), b.add("tanh", [b.input("y", (6,), FLOAT)], (6,), FLOAT)
    given = [x, b.constant("w", reals(6, 3, 3, 4)), bias]
    return b.add("conv_2d", given, (1, 6, 5, 6), FLOAT, padding="same", stride_h=1, stride_w=1)


def computed_weights(b: GraphBuilder) -> int:
    x, w, bias = (b.input(name, shape, FLOAT) for name, shape in (("x", (2, 5)), ("y", (3, 5)), ("z", (3,))))
    return b.add("fully_connected", [x, w, b.add("tanh", [bias], (3,), FLOAT)], (2, 3), FLOAT)


def ints(*values: object) -> Array:
    return np.array(values, np.int32)


PADS = ints((0, 0), (1, 2), (0, 3), (2, 0))
CASES: dict[str, Make] = {
    "abs": unary("abs"),
    "add": two("add", fused_activation_function="relu6"),
    "add channels": with_constants("add", IMAGE, reals(4)),
    "add rank 1": two("add", (4,)),
    "average_pool_2d same": unary("average_pool_2d", (1, 3, 5, 4), padding="same", **POOL),
    "average_pool_2d whole": unary(
        "average_pool_2d", (1, 1, 1, 4), padding="valid", stride_h=6, stride_w=5, filter_height=6, filter_width=5
    ),
    "concatenation": joined,
    "conv_2d of a computed bias": computed_bias,
    "fully_connected of computed weights": computed_weights,
    "conv_2d": with_constants(
        "conv_2d", (1, 3, 5, 6), reals(6, 3, 3, 4), reals(6), padding="same", **WINDOW, fused_activation_function="relu"
    ),
    "conv_2d grouped": with_constants("conv_2d", (1, 2, 3, 6), reals(6, 3, 3, 2), padding="valid", **WINDOW),
    "conv_2d dilated": with_constants(
        "conv_2d", IMAGE, reals(4, 3, 3, 4), padding="same", stride_h=1, stride_w=1, dilation_h_factor=2
    ),
    "depthwise_conv_2d": with_constants(
        "depthwise_conv_2d", (1, 3, 5, 8), reals(1, 3, 3, 8), reals(8), padding="same", depth_multiplier=2, **WINDOW
    ),
    "div": two("div"),
    "elu": unary("elu"),
    "exp": unary("exp"),
    "expand_dims": with_constants("expand_dims", (1, 6, 5, 4), ints(0), source=(6, 5, 4)),
    "fully_connected": with_constants("fully_connected", (1, 3), reals(3, 120), reals(3)),
    "fully_connected rows": with_constants("fully_connected", (30, 3), reals(3, 4), fused_activation_function="relu"),
    "fully_connected flattened": flattened_product,
    "fully_connected kept": with_constants("fully_connected", (1, 6, 5, 3), reals(3, 4), keep_num_dims=True),
    "fully_connected of three axes": with_constants(
        "fully_connected", (2, 3, 5), reals(5, 4), source=(2, 3, 4), keep_num_dims=True
    ),
    "hard_swish": unary("hard_swish"),
    "leaky_relu": unary("leaky_relu", alpha=0.1),
    "logistic": unary("logistic"),
    "max_pool_2d same": unary("max_pool_2d", (1, 3, 5, 4), padding="same", **POOL),
    **{
        f"{o} as wide as the image": unary(
            o, (1, 3, 3, 4), padding="same", stride_h=2, stride_w=2, filter_height=6, filter_width=5
        )
        for o in ("average_pool_2d", "max_pool_2d")
    },
    "maximum": two("maximum"),
    "mean": with_constants("mean", (1, 4), ints(1, 2)),
    "mean kept": with_constants("mean", (1, 1, 5, 4), ints(1), keep_dims=True),
    "mean of channels": with_constants("mean", (1, 6, 5), ints(3)),
    "minimum": two("minimum"),
    "mul": two("mul"),
    "mul number": with_constants("mul", IMAGE, reals(1)),
    "neg": unary("neg"),
    "pad": with_constants("pad", (1, 9, 8, 6), PADS),
    "padv2": with_constants("padv2", (1, 9, 8, 6), PADS, np.array(0.5, np.float32)),
    "prelu": with_constants("prelu", IMAGE, np.abs(reals(1, 1, 4))),
    "relu": unary("relu"),
    "relu6": unary("relu6"),
    "relu_n1_to_1": unary("relu_n1_to_1"),
    "reshape image": with_constants("reshape", (1, 4, 5, 6), ints(1, 4, 5, 6)),
    "reshape flat": with_constants("reshape", (1, 120), ints(1, 120)),
    "softmax": unary("softmax", beta=1.0),
    "softmax scaled": unary("softmax", beta=2.0),
    "sqrt": unary("sqrt"),
    "squeeze": unary("squeeze", (6, 5, 4), squeeze_dims=(0,)),
    "sub": two("sub", fused_activation_function="relu_n1_to_1"),
    "tanh": unary("tanh"),
    "transpose": with_constants("transpose", (5, 4, 1, 6), ints(2, 3, 0, 1)),
}


def built(make: Make) -> Graph:
    b = GraphBuilder("one")
    return b.build([make(b)])


@pytest.mark.parametrize("name", CASES)
def test_operator(name: str) -> None:
    graph = built(CASES[name])
    inputs = [reals(3, *graph.tensors[t].shape, seed=2 + i) for i, t in enumerate(graph.inputs)]
    if name == "sqrt":
        inputs = [np.abs(x) for x in inputs]
    ours = Engine(graph, "float").run(inputs)[graph.outputs[0]]
    (theirs,) = run_onnx(model_bytes(translate(graph)), inputs)
    assert theirs.shape == ours.shape
    assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_flattened_images_need_no_transpose() -> None:
    kinds = [node.op_type for node in translate(built(CASES["fully_connected flattened"])).nodes]
    assert kinds == ["Reshape", "Gemm"]


def test_whole_image_pools_have_no_stride() -> None:
    kinds = [node.op_type for node in translate(built(CASES["average_pool_2d whole"])).nodes]
    assert kinds == ["GlobalAveragePool"]


def test_all_unknown_operators_at_once() -> None:
    b = GraphBuilder("odd")
    x = b.input("x", (1, 4), FLOAT)
    y = b.add("dilate", [b.add("relu", [b.add("unique", [x], (1, 4), FLOAT)], (1, 4), FLOAT)], (1, 4), FLOAT)
    graph = b.build([y])
    assert [line.split("(")[0] for line in unsupported(graph)] == ["operator 0 ", "operator 2 "]
    with pytest.raises(UnsupportedError, match="no rule writes unique in ONNX; "):
        translate(graph)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("shape", [(7,), (2, 3), IMAGE])
def test_outputs_that_nothing_computes(shape: tuple[int, ...], layout: str) -> None:
    b = GraphBuilder("idle")
    x = b.input("x", shape, FLOAT)
    graph = b.build([b.add("relu", [x], shape, FLOAT), b.constant("c", reals(*shape)), x])
    given = reals(2, *shape)
    data = model_bytes(translate(graph, OnnxOptions(layout=layout)))
    relu, constant, same = run_onnx(data, [given], in_layout=layout == "nchw")
    assert np.array_equal(relu, np.maximum(given, 0))
    assert np.array_equal(constant[0], reals(*shape))
    assert np.array_equal(same, given)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("shape", [(7,), (2, 3), IMAGE])
def test_integers_that_nothing_computes(shape: tuple[int, ...], layout: str) -> None:
    """They leave as they stand in the file; what reads the constant reads what it stands for."""
    b, step = GraphBuilder("idle"), Affine.per_tensor(np.float32(0.5), 3)
    draw = np.random.default_rng(len(shape))
    codes, given = (draw.integers(-99, 99, s).astype(np.int8) for s in (shape, (2, *shape)))
    x, c = b.input("x", shape, DType.INT8, step), b.constant("c", codes, step)
    graph = b.build([b.add("maximum", [x, c], shape, DType.INT8, step), c, x])
    data = model_bytes(translate(graph, OnnxOptions(form="qdq", layout=layout)))
    most, constant, same = run_onnx(data, [given], in_layout=layout == "nchw")
    assert np.array_equal(most, np.maximum(given, codes))
    assert np.array_equal(constant[0], codes)
    assert np.array_equal(same, given)


def test_names_are_plain_and_unique() -> None:
    b = GraphBuilder("names")
    x = b.input("serving_default:0", (1, 4), FLOAT)
    y = b.tensor("a/Relu;b/conv", (1, 4), FLOAT)
    z = b.tensor("a Relu", (1, 4), FLOAT)
    b.node("relu", [x], [y])
    b.node("tanh", [y], [z])
    written = translate(b.build([y, z]))
    assert [value.name for value in (*written.inputs, *written.outputs)] == ["serving_default", "a_Relu", "a_Relu_2"]


@pytest.mark.parametrize(("operator", "kind", "since"), [("gelu", "Gelu", 20)])
def test_operators_that_onnx_got_later(operator: str, kind: str, since: int) -> None:
    graph = built(unary(operator))
    for opset in (since - 1, since, since + 1):
        kinds = [node.op_type for node in translate(graph, OnnxOptions(opset=opset)).nodes]
        assert (kind in kinds) == (opset >= since)
