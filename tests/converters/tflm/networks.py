"""Networks of one layer that TensorFlow Lite Micro refuses or computes otherwise, and their samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.graph import Affine, Array, DType, Graph, GraphBuilder

INT8, UINT8, INT32 = DType.INT8, DType.UINT8, DType.INT32
NONE = {"fused_activation_function": "none"}
WINDOW = {"padding": "same", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
SAMPLES = 12


@dataclass(frozen=True)
class Network:
    """A graph with its samples, and the operators after the rewrite."""

    name: str
    graph: Graph
    samples: list[Array]
    operators: list[str]


def affine(scale: float, zero_point: int = 0) -> Affine:
    return Affine.per_tensor(np.float32(scale), zero_point)


def make(name: str, operators: str, build: Callable[[GraphBuilder, np.random.Generator], int]) -> Network:
    rng = np.random.default_rng([3, *name.encode()])
    builder = GraphBuilder(name)
    graph = builder.build([build(builder, rng)])
    samples = []
    for t in graph.inputs:
        tensor = graph.tensors[t]
        low, high = (0, 3) if tensor.dtype is INT32 else (tensor.dtype.minimum, tensor.dtype.maximum)
        samples.append(rng.integers(low, high + 1, (SAMPLES, *tensor.shape)).astype(tensor.dtype.storage))
    return Network(name, graph, samples, operators.split())


def convolution(name: str, zero_point: int, operators: str, depthwise: bool = False) -> Network:
    def build(b: GraphBuilder, rng: np.random.Generator) -> int:
        x = b.input("x", (1, 5, 4, 3), UINT8, affine(0.0473, 117))
        shape = (1, 3, 2, 6) if depthwise else (7, 3, 2, 3)
        values = rng.integers(0, 256, shape).astype(np.uint8)
        values.flat[:2] = 0, 255
        w = b.constant("w", values, affine(0.00731, zero_point))
        outputs = 6 if depthwise else 7
        bias_scale = Affine.per_tensor(np.float32(0.0473) * np.float32(0.00731))
        c = b.constant("b", rng.integers(-900, 900, outputs).astype(np.int32), bias_scale)
        more = {"depth_multiplier": 2} if depthwise else {}
        operator = "depthwise_conv_2d" if depthwise else "conv_2d"
        return b.add(operator, [x, w, c], (1, 5, 4, outputs), UINT8, affine(0.31, 121), **WINDOW, **NONE, **more)

    return make(name, operators, build)


def pool(name: str, size: tuple[int, int], operators: str) -> Network:
    def build(b: GraphBuilder, _: np.random.Generator) -> int:
        x = b.input("x", (1, 6, 6, 5), UINT8, affine(0.1, 131))
        shape = (1, 6 // size[0], 6 // size[1], 5)
        options = {"filter_height": size[0], "filter_width": size[1], "stride_h": size[0], "stride_w": size[1]}
        return b.add("average_pool_2d", [x], shape, UINT8, affine(0.1, 131), padding="valid", **options, **NONE)

    return make(name, operators, build)


def tile(multiples: tuple[int, ...], operators: str) -> Network:
    def build(b: GraphBuilder, _: np.random.Generator) -> int:
        x = b.input("x", (1, 1, 2, 3), INT8, affine(0.1, 3))
        m = b.constant("m", np.array(multiples, np.int32))
        shape = tuple(n * m for n, m in zip((1, 1, 2, 3), multiples, strict=True))
        return b.add("tile", [x, m], shape, INT8, affine(0.1, 3))

    return make(f"tile_{'_'.join(map(str, multiples))}", operators, build)


def function(operator: str, dtype: DType, operators: str, **options: object) -> Network:
    def build(b: GraphBuilder, _: np.random.Generator) -> int:
        zero = 128 if dtype is UINT8 else 0
        x = b.input("x", (1, 21, 13), dtype, affine(0.0371, zero - 5))
        return b.add(operator, [x], (1, 21, 13), dtype, affine(0.0293, zero - 60), **options)

    return make(f"{operator}_{dtype.value}", operators, build)


def joined(count: int, operators: str) -> Network:
    def build(b: GraphBuilder, _: np.random.Generator) -> int:
        x = b.input("x", (1, 2, 3), INT8, affine(0.1, 3))
        return b.add("concatenation", [x] * count, (1, 2, 3 * count), INT8, affine(0.1, 3), axis=-1, **NONE)

    return make(f"concatenation_{count}", operators, build)


def rescaled() -> Network:
    def build(b: GraphBuilder, _: np.random.Generator) -> int:
        x = b.input("x", (1, 40, 3), UINT8, affine(0.1, 130))
        y = b.input("y", (1, 40, 2), UINT8, affine(0.033, 90))
        return b.add("concatenation", [x, y], (1, 40, 5), UINT8, affine(0.1, 130), axis=2, **NONE)

    return make("concatenation_rescaled", "", build)


def choice() -> Network:
    def build(b: GraphBuilder, _: np.random.Generator) -> int:
        x, y = b.input("x", (2, 5), INT32), b.input("y", (5,), INT32)
        zero = b.constant("zero", np.array([1], np.int32))
        less = b.add("less", [x, zero], (2, 5), DType.BOOL)
        return b.add("select_v2", [less, x, y], (2, 5), INT32)

    return make("select_v2_int32", "less cast sub mul add", build)


SPLIT = "quantize concatenation conv_2d quantize"
GROUPS = "quantize reshape concatenation reshape conv_2d quantize"
TABLE = "cast add gather"
NETWORKS = (
    convolution("conv_2d_uint8", 121, SPLIT),
    convolution("conv_2d_uint8_0", 0, SPLIT),
    convolution("depthwise_conv_2d_uint8", 131, GROUPS, depthwise=True),
    pool("average_pool_2d_even", (2, 3), "quantize depthwise_conv_2d quantize"),
    pool("average_pool_2d_odd", (3, 3), "quantize average_pool_2d quantize"),
    pool("average_pool_2d_two", (2, 2), "quantize depthwise_conv_2d quantize"),
    tile((1, 1, 3, 2), "concatenation concatenation"),
    tile((1, 33, 1, 1), "concatenation concatenation"),
    tile((1, 1, 1, 1), "reshape"),
    function("gelu", INT8, TABLE, approximate=False),
    function("exp", INT8, TABLE),
    function("gelu", UINT8, f"quantize {TABLE} quantize", approximate=True),
    function("relu6", UINT8, f"quantize {TABLE} quantize"),
    function("relu", UINT8, "quantize relu quantize"),
    joined(10, "concatenation"),
    joined(23, "concatenation concatenation concatenation concatenation"),
    rescaled(),
    choice(),
)
