"""Small networks that reach every layer of the Caffe package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.graph import DType, Graph, GraphBuilder


class SeededBuilder(GraphBuilder):
    """Draws the constants of one graph, always the same ones."""

    def __init__(self, name: str = "net") -> None:
        super().__init__(name)
        self.rng = np.random.default_rng(21)


def constant(b: SeededBuilder, *shape: int) -> int:
    return b.constant(f"c{b.rng.integers(1 << 40)}", b.rng.normal(0, 0.5, shape).astype(np.float32))


def conv(
    b: SeededBuilder,
    x: int,
    size: tuple[int, int, int],
    output: tuple[int, int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    padding: str = "same",
    activation: str = "none",
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    bias: bool = True,
) -> int:
    inputs = [x, constant(b, output[2], *kernel, size[2] // groups), *([constant(b, output[2])] if bias else [])]
    return b.add(
        "conv_2d",
        inputs,
        (1, *output),
        DType.FLOAT32,
        padding=padding,
        stride_h=stride[0],
        stride_w=stride[1],
        dilation_h_factor=dilation[0],
        dilation_w_factor=dilation[1],
        fused_activation_function=activation,
    )


def pool(
    b: GraphBuilder, kind: str, x: int, output: tuple[int, int, int], kernel: int, stride: int, padding: str
) -> int:
    return b.add(
        f"{kind}_pool_2d",
        [x],
        (1, *output),
        DType.FLOAT32,
        padding=padding,
        stride_h=stride,
        stride_w=stride,
        filter_height=kernel,
        filter_width=kernel,
        fused_activation_function="none",
    )


def fully_connected(b: SeededBuilder, x: int, depth: int, outputs: int, activation: str = "none") -> int:
    inputs = [x, constant(b, outputs, depth), constant(b, outputs)]
    return b.add(
        "fully_connected",
        inputs,
        (1, outputs),
        DType.FLOAT32,
        fused_activation_function=activation,
        keep_num_dims=False,
    )


def start(*shape: int) -> tuple[SeededBuilder, int]:
    b = SeededBuilder()
    return b, b.input("x", (1, *shape), DType.FLOAT32)


def uneven_padding() -> Graph:
    b, x = start(10, 7, 3)
    y = conv(b, x, (10, 7, 3), (5, 4, 6), (4, 3), (2, 2), activation="relu")
    return b.build([conv(b, y, (5, 4, 6), (5, 4, 4), (2, 4))])


def wide_stride() -> Graph:
    b, x = start(11, 9, 2)
    return b.build([conv(b, x, (11, 9, 2), (4, 3, 5), (5, 2), (3, 3), bias=False)])


def dilated_and_grouped() -> Graph:
    b, x = start(9, 9, 4)
    y = conv(b, x, (9, 9, 4), (9, 9, 8), (3, 3), dilation=(2, 2), groups=2)
    return b.build([conv(b, y, (9, 9, 8), (7, 7, 3), (3, 3), padding="valid", activation="relu")])


def depthwise_with_multiplier() -> Graph:
    b, x = start(8, 8, 3)
    inputs = [x, constant(b, 1, 3, 3, 6), constant(b, 6)]
    y = b.add(
        "depthwise_conv_2d",
        inputs,
        (1, 4, 4, 6),
        DType.FLOAT32,
        padding="same",
        stride_h=2,
        stride_w=2,
        depth_multiplier=2,
        fused_activation_function="relu",
    )
    return b.build([y])


def pools() -> Graph:
    b, x = start(10, 10, 3)
    y = pool(b, "max", x, (5, 5, 3), 3, 2, "same")
    z = pool(b, "max", y, (5, 5, 3), 3, 1, "same")
    return b.build([pool(b, "average", z, (2, 2, 3), 3, 2, "valid")])


def shortcut() -> Graph:
    b, x = start(6, 6, 4)
    y = conv(b, x, (6, 6, 4), (6, 6, 4), (3, 3), activation="relu")
    z = b.add("add", [x, y], (1, 6, 6, 4), DType.FLOAT32, fused_activation_function="relu")
    w = b.add("mul", [z, y], (1, 6, 6, 4), DType.FLOAT32, fused_activation_function="none")
    return b.build(
        [b.add("concatenation", [w, x], (1, 6, 6, 8), DType.FLOAT32, axis=3, fused_activation_function="none")]
    )


def activations() -> Graph:
    b, x = start(5, 5, 4)
    y = b.add("leaky_relu", [x], (1, 5, 5, 4), DType.FLOAT32, alpha=0.1)
    y = b.add("prelu", [y, constant(b, 1, 1, 4)], (1, 5, 5, 4), DType.FLOAT32)
    y = b.add("logistic", [y], (1, 5, 5, 4), DType.FLOAT32)
    y = b.add("tanh", [y], (1, 5, 5, 4), DType.FLOAT32)
    y = b.add("relu", [y], (1, 5, 5, 4), DType.FLOAT32)
    return b.build([b.add("softmax", [y], (1, 5, 5, 4), DType.FLOAT32, beta=1.0)])


def flattened_map() -> Graph:
    b, x = start(4, 3, 5)
    y = conv(b, x, (4, 3, 5), (4, 3, 6), (3, 3), activation="relu")
    r = b.add(
        "reshape", [y, b.constant("shape", np.array([1, 72], np.int32))], (1, 72), DType.FLOAT32, new_shape=(1, 72)
    )
    z = fully_connected(b, r, 72, 9, "relu")
    return b.build([b.add("softmax", [fully_connected(b, z, 9, 4)], (1, 4), DType.FLOAT32, beta=1.0)])


def global_mean() -> Graph:
    b, x = start(6, 4, 8)
    y = b.add("mean", [x, b.constant("axes", np.array([1, 2], np.int32))], (1, 8), DType.FLOAT32, keep_dims=False)
    return b.build([fully_connected(b, y, 8, 3)])


def upsampling() -> Graph:
    b, x = start(4, 3, 2)
    size = b.constant("size", np.array([8, 6], np.int32))
    y = b.add(
        "resize_nearest_neighbor", [x, size], (1, 8, 6, 2), DType.FLOAT32, align_corners=False, half_pixel_centers=False
    )
    return b.build([conv(b, y, (8, 6, 2), (8, 6, 3), (3, 3))])


NETWORKS: tuple[Callable[[], Graph], ...] = (
    uneven_padding,
    wide_stride,
    dilated_and_grouped,
    depthwise_with_multiplier,
    pools,
    shortcut,
    activations,
    flattened_map,
    global_mean,
    upsampling,
)
