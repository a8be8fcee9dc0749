"""One-layer files of the operators whose rule differs between runtimes, with scales at which many results are ties."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters.tflite import model_to_bytes
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder

SAMPLES = 24
NONE = {"fused_activation_function": "none"}
INT8, UINT8, INT16, FLOAT = DType.INT8, DType.UINT8, DType.INT16, DType.FLOAT32


def affine(scale: float, zero_point: int = 0) -> Affine:
    """Return a quantization per tensor."""
    return Affine.per_tensor(np.float32(scale), zero_point)


class Case:
    """A network of one layer and its samples."""

    def __init__(self, name: str, build: Callable[[GraphBuilder, np.random.Generator], int]) -> None:
        self.name = name
        rng = np.random.default_rng([7, *name.encode()])
        builder = GraphBuilder(name)
        output = build(builder, rng)
        self.graph: Graph = builder.build([output])
        self.content = model_to_bytes(self.graph)
        self.inputs = [self._draw(rng, t) for t in self.graph.inputs]

    @property
    def samples(self) -> dict[str, Array]:
        """The samples by the inputs' names."""
        return {self.graph.tensors[t].name: x for t, x in zip(self.graph.inputs, self.inputs, strict=True)}

    def _draw(self, rng: np.random.Generator, t: int) -> Array:
        tensor = self.graph.tensors[t]
        shape = (SAMPLES, *tensor.shape)
        if tensor.dtype.is_floating:
            return rng.integers(-64, 64, shape).astype(np.float32) / np.float32(8)  # halves of the scale 1/4
        return rng.integers(tensor.dtype.minimum, tensor.dtype.maximum + 1, shape).astype(tensor.dtype.storage)


def _linear(operator: str, dtype: DType, channels: int, per_channel: bool, **options: object) -> Case:
    def build(b: GraphBuilder, rng: np.random.Generator) -> int:
        zi, zo = (0, 0) if dtype is INT16 else (3, -5) if dtype is INT8 else (120, 130)
        x = b.input("x", (1, 6) if operator == "fully_connected" else (1, 4, 4, 8), dtype, affine(0.5, zi))
        shape = {"fully_connected": (channels, 6), "conv_2d": (channels, 2, 2, 8), "depthwise_conv_2d": (1, 2, 2, 8)}
        axis = 3 if operator == "depthwise_conv_2d" else 0
        count = shape[operator][axis] if per_channel else 1
        scale = np.float32(2.0) ** -rng.integers(4, 7, count).astype(np.float32) * rng.choice([1, 1.1], count)
        kind = UINT8 if dtype is UINT8 else INT8
        weights = rng.integers(kind.minimum + 1, kind.maximum + 1, shape[operator]).astype(kind.storage)
        zero_points = np.full(count, 128 if dtype is UINT8 else 0, np.int64)
        quantization = Affine(scale.astype(np.float32), zero_points, axis if per_channel else None)
        w = b.constant("w", weights, quantization)
        outputs = shape[operator][axis]
        bias = rng.integers(-500, 500, outputs).astype(np.int64 if dtype is INT16 else np.int32)
        scales = (np.float32(0.5) * scale).astype(np.float32)
        c = b.constant("b", bias, Affine(scales, np.zeros(count, np.int64), 0 if per_channel else None))
        size = (1, channels) if operator == "fully_connected" else (1, 3, 3, outputs)
        attributes = {"padding": "valid", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
        if operator == "depthwise_conv_2d":
            attributes["depth_multiplier"] = 1
        if operator == "fully_connected":
            attributes = {"keep_num_dims": False}
        return b.add(operator, [x, w, c], size, dtype, affine(4.0, zo), **attributes, **NONE)

    kind = "channel" if per_channel else "tensor"
    return Case(f"{operator}_{dtype.value}_{channels}_{kind}", build)


def _pair(operator: str, dtype: DType, s1: float, s2: float, so: float, activation: str = "none") -> Case:
    def build(b: GraphBuilder, _: np.random.Generator) -> int:
        z = (0, 0, 0) if dtype is INT16 else (-7, 11, 4) if dtype is INT8 else (120, 131, 128)
        shape = (2, 19)
        x = [b.input(f"x{i}", shape, dtype, affine(s, z[i])) for i, s in enumerate((s1, s2))]
        options = {"pot_scale_int16": False} if operator in ("add", "sub") else {}
        return b.add(operator, x, shape, dtype, affine(so, z[2]), fused_activation_function=activation, **options)

    return Case(f"{operator}_{dtype.value}_{activation}_{s1}", build)


def _reduction(operator: str, dtype: DType, axes: tuple[int, ...], keep: bool, so: float) -> Case:
    def build(b: GraphBuilder, _: np.random.Generator) -> int:
        zi, zo = (17, -9) if dtype is INT8 else (117, 140)
        shape = (1, 4, 4, 21)
        x = b.input("x", shape, dtype, affine(0.25, zi))
        after = [1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes]
        a = b.constant("axes", np.array(axes, np.int32))
        return b.add(operator, [x, a], after, dtype, affine(so, zo), keep_dims=keep)

    return Case(f"{operator}_{dtype.value}_{''.join(map(str, axes))}_{'keep' if keep else 'drop'}", build)


def _unary(
    operator: str, source: DType, output: DType, ends: tuple[Affine | None, Affine | None], **more: object
) -> Case:
    def build(b: GraphBuilder, _: np.random.Generator) -> int:
        shape = (2, 13)
        return b.add(operator, [b.input("x", shape, source, ends[0])], shape, output, ends[1], **more)

    return Case(f"{operator}_{source.value}_{output.value}", build)


def _resize(dtype: DType, align: bool, centers: bool) -> Case:
    def build(b: GraphBuilder, _: np.random.Generator) -> int:
        q = affine(0.5, 1)
        x, size = b.input("x", (1, 3, 4, 5), dtype, q), b.constant("size", np.array([7, 6], np.int32))
        options = {"align_corners": align, "half_pixel_centers": centers}
        return b.add("resize_bilinear", [x, size], (1, 7, 6, 5), dtype, q, **options)

    return Case(f"resize_bilinear_{dtype.value}_{int(align)}{int(centers)}", build)


def _transpose(dtype: DType, channels: int) -> Case:
    def build(b: GraphBuilder, rng: np.random.Generator) -> int:
        size = b.constant("size", np.array([1, 6, 6, channels], np.int32))
        weights = rng.integers(-127, 128, (channels, 3, 3, 4)).astype(np.int8)
        scale = (2.0 ** -rng.integers(4, 7, channels)).astype(np.float32)
        w = b.constant("w", weights, Affine(scale, np.zeros(channels, np.int64), 0))
        x = b.input("x", (1, 3, 3, 4), dtype, affine(0.5, 3))
        options = {"padding": "same", "stride_h": 2, "stride_w": 2}
        return b.add(
            "transpose_conv", [size, w, x], (1, 6, 6, channels), dtype, affine(2.0, -3), version=3, **options, **NONE
        )

    return Case(f"transpose_conv_{dtype.value}_{channels}", build)


def _prelu(dtype: DType) -> Case:
    def build(b: GraphBuilder, rng: np.random.Generator) -> int:
        alpha = b.constant("alpha", rng.integers(-128, 128, (1, 13)).astype(np.int8), affine(0.0123, 2))
        x = b.input("x", (2, 13), dtype, affine(0.11, 5))
        return b.add("prelu", [x, alpha], (2, 13), dtype, affine(0.097, -4))

    return Case(f"prelu_{dtype.value}", build)


LINEAR = ("conv_2d", "depthwise_conv_2d", "fully_connected")
CASES = (
    *(_linear(operator, INT8, 11, True) for operator in LINEAR),
    *(_linear(operator, INT8, 8, False) for operator in LINEAR),
    _linear("conv_2d", INT16, 6, True),
    _linear("fully_connected", INT16, 6, False),
    *(_pair(operator, INT8, 0.3, 0.7, 1.1) for operator in ("add", "sub", "mul")),
    *(_pair(operator, INT8, 0.1, 0.3, 0.2) for operator in ("add", "sub")),
    _pair("add", INT8, 0.25, 0.5, 0.5, "relu"),
    _pair("mul", INT16, 0.013, 0.021, 9.1),
    _pair("add", INT16, 0.01, 0.03, 0.02),
    _reduction("mean", INT8, (1, 2), True, 0.19),
    _reduction("mean", INT8, (1, 2), False, 0.19),
    _reduction("mean", INT8, (3,), True, 0.07),
    _unary("leaky_relu", INT8, INT8, (affine(0.11, 5), affine(0.09, -4)), alpha=0.3),
    _unary("leaky_relu", INT16, INT16, (affine(0.11), affine(0.097)), alpha=0.3),
    _unary("quantize", FLOAT, INT8, (None, affine(0.25, 3))),
    _unary("quantize", FLOAT, INT16, (None, affine(0.25))),
    _unary("quantize", INT8, INT8, (affine(0.11, 5), affine(0.07, -6))),
    _unary("quantize", INT8, UINT8, (affine(0.11, 5), affine(0.11, 133))),
    _unary("dequantize", INT8, FLOAT, (affine(0.1, 5), None)),
    _unary("softmax", INT8, INT8, (affine(0.03, 5), affine(1 / 256, -128)), beta=1.0),
    _unary("softmax", INT16, INT16, (affine(0.0007), affine(1 / 32768)), beta=1.0),
    *(_unary(name, INT8, INT8, (affine(0.04, 5), affine(scale, zero)))
      for name, scale, zero in (("logistic", 1 / 256, -128), ("tanh", 1 / 128, 0))),
    _unary("relu6", INT8, INT8, (affine(0.047, -5), affine(0.03, -90))),
    _resize(INT8, False, False), _resize(INT8, True, False), _resize(INT8, False, True),
    _prelu(INT8),
)  # fmt: skip
LITERT_ONLY = (  # types and operators that TensorFlow Lite Micro refuses
    *(_linear(operator, UINT8, 8, False) for operator in LINEAR),
    *(_pair(operator, UINT8, 0.3, 0.7, 1.1) for operator in ("add", "sub", "mul")),
    _pair("add", UINT8, 0.1, 0.3, 0.2),
    _reduction("mean", UINT8, (1, 2), True, 0.19),
    _reduction("sum", INT8, (1, 2), True, 1.9),
    _reduction("sum", INT8, (3,), False, 0.9),
    _unary("leaky_relu", UINT8, UINT8, (affine(0.11, 125), affine(0.09, 133)), alpha=0.3),
    _unary("quantize", FLOAT, UINT8, (None, affine(0.25, 130))),
    _unary("quantize", UINT8, UINT8, (affine(0.11, 125), affine(0.07, 133))),
    _unary("dequantize", UINT8, FLOAT, (affine(0.1, 125), None)),
    _unary("softmax", UINT8, UINT8, (affine(0.07, 125), affine(1 / 256, 0)), beta=1.0),
    _unary("elu", INT8, INT8, (affine(0.04, 5), affine(0.03, -90))),
    _resize(UINT8, False, True), _resize(UINT8, True, False), _resize(UINT8, False, False),
    _transpose(INT8, 5),
    _transpose(INT8, 19),
)  # fmt: skip
