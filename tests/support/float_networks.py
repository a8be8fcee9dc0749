"""Small float networks of every form that converters write anew, with what they compute, for all targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.converters.settings import parse_settings
from tflq.converters.targets import Target
from tflq.graph import Array, DType, Graph, GraphBuilder, Range, Tensor
from tflq.graph.float_view import dequantize
from tflq.interpreter import Engine

FLOAT = DType.FLOAT32
IMAGE = (1, 5, 6, 4)
WHOLE = {"padding": "valid", "stride_h": 1, "stride_w": 1}
ROWS = (1, 5, 8)
Stride = int | tuple[int, int]
Make = Callable[["Network"], int]


class Network(GraphBuilder):
    """A builder that draws constants and knows the shape of what it adds."""

    def __init__(self) -> None:
        super().__init__("written")
        self.draw = np.random.default_rng(8)
        self.shapes: dict[int, tuple[int, ...]] = {}

    def real(self, name: str, shape: tuple[int, ...] = IMAGE) -> int:
        return self._known(self.input(name, shape, FLOAT), shape)

    def given(self, values: Array) -> int:
        return self._known(self.constant(f"c{len(self.shapes)}", values), values.shape)

    def reals(self, *shape: int, least: float = -1.0) -> int:
        return self.given(self.draw.uniform(least, 1.0, shape).astype(np.float32))

    def number(self, value: float) -> int:
        return self.given(np.array(value, np.float32))

    def whole(self, *values: object) -> int:
        return self.given(np.array(values, np.int32))

    def do(self, operator: str, *inputs: int, shape: tuple[int, ...] | None = None, **options: Any) -> int:
        shape = self.shapes[inputs[0]] if shape is None else shape
        return self._known(self.add(operator, list(inputs), shape, FLOAT, **options), shape)

    def _known(self, t: int, shape: tuple[int, ...]) -> int:
        self.shapes[t] = shape
        return t

    def conv(
        self, x: int, channels: int, size: int = 1, bias: bool = True, stride: Stride = 1, clamp: str = "none"
    ) -> int:
        old, (down, across) = self.shapes[x], (stride, stride) if isinstance(stride, int) else stride
        side = [(n - size) // s + 1 for n, s in zip(old[1:3], (down, across), strict=True)]
        given = (self.reals(channels, size, size, old[3]), *((self.reals(channels),) if bias else ()))
        window = {**WHOLE, "stride_h": down, "stride_w": across, "fused_activation_function": clamp}
        return self.do("conv_2d", x, *given, shape=(1, *side, channels), **window)


def image(b: Network) -> int:
    return b.real("x")


def filters_in_a_row(
    bias: tuple[bool, bool],
    stride: tuple[Stride, Stride] = (1, 1),
    sizes: tuple[int, int] = (1, 1),
    channels: tuple[int, int] = (3, 5),
    inputs: int = 4,
    clamp: str = "none",
) -> Make:
    def make(b: Network) -> int:
        first = b.conv(b.real("x", (1, 5, 6, inputs)), channels[0], sizes[0], bias[0], stride[0], clamp)
        return b.conv(first, channels[1], sizes[1], bias[1], stride[1])

    return make


def padded_filter(b: Network) -> int:
    x = b.conv(image(b), 3)
    given = b.reals(5, 3, 3, 3), b.reals(5)
    return b.do("conv_2d", x, *given, shape=(1, 5, 6, 5), padding="same", stride_h=1, stride_w=1)


def behind_a_filter(operator: str, constant: float | None, clamp: str = "none", depthwise: bool = False) -> Make:
    """None: one number a channel."""

    def make(b: Network) -> int:
        x = image(b)
        if depthwise:
            given = (b.reals(1, 3, 3, 4), b.reals(4))
            x = b.do("depthwise_conv_2d", x, *given, shape=(1, 3, 4, 4), **WHOLE, fused_activation_function=clamp)
        else:
            x = b.conv(x, 4, 3, True, 1, clamp)
        operand = b.reals(4, least=0.25) if constant is None else b.number(constant)
        return b.do(operator, x, operand)

    return make


def normalized(gamma: bool, beta: bool, swapped: bool = False, extra: bool = False) -> Make:
    """(x - m) / sqrt(v + eps) * gamma + beta, as PyTorch's exporters write it; one more reader inside."""

    def make(b: Network) -> int:
        x, axes, single = b.real("x", ROWS), b.whole(2), (1, 5, 1)
        mean = b.do("mean", x, axes, shape=single, keep_dims=True)
        variance = b.do("mean", b.do("squared_difference", x, mean), axes, shape=single, keep_dims=True)
        inverse = b.do("rsqrt", b.do("add", variance, b.number(1e-3)))
        y = b.do("mul", b.do("sub", x, mean), inverse)
        for wanted, operator in ((gamma, "mul"), (beta, "add")):
            constant = b.reals(8) if wanted else 0
            y = b.do(operator, *((constant, y) if swapped else (y, constant)), shape=ROWS) if wanted else y
        return b.do("add", b.do("relu", y), mean) if extra else b.do("relu", y)

    return make


def normalized_by_keras(gamma: bool, negated: bool, last: str = "add") -> Make:
    """X * s + (beta - m * s), s = gamma / sqrt(v + eps); with another last operator it is no normalization."""

    def make(b: Network) -> int:
        x, axes, single = b.real("x", ROWS), b.whole(2), (1, 5, 1)
        mean = b.do("mean", x, axes, shape=single, keep_dims=True)
        variance = b.do("mean", b.do("squared_difference", x, mean), axes, shape=single, keep_dims=True)
        s = b.do("rsqrt", b.do("add", variance, b.number(1e-3)))
        wide = ROWS if gamma else single
        s = b.do("mul", s, b.reals(8), shape=ROWS) if gamma else s
        beta, scaled = b.reals(8), b.do("mul", x, s)
        if negated:
            shift = b.do("add", b.do("mul", b.do("neg", mean), s, shape=wide), beta, shape=ROWS)
        else:
            shift = b.do("sub", beta, b.do("mul", mean, s, shape=wide), shape=ROWS)
        return b.do("relu", b.do(last, scaled, shift))

    return make


def mirrored(b: Network) -> int:
    pads = b.whole([0, 0], [1, 2], [0, 3], [0, 0])
    return b.do("mirror_pad", image(b), pads, shape=(1, 8, 9, 4), mode="reflect")


def mirrored_thrice(b: Network) -> int:
    pads = b.whole([0, 0], [1, 2], [2, 1], [1, 0])
    return b.do("mirror_pad", image(b), pads, shape=(1, 8, 9, 5), mode="reflect")


def unary(operator: str, shape: tuple[int, ...] = IMAGE, **options: Any) -> Make:
    return lambda b: b.do(operator, b.real("x", shape), **options)


def of_a_sum(operator: str, **options: Any) -> Make:
    return lambda b: b.do("add", b.do(operator, s := b.do("add", x := image(b), b.real("y")), **options),
                          b.do("relu", b.do("add", s, x)))  # fmt: skip


def softsign(b: Network) -> int:
    x = image(b)
    return b.do("div", x, b.do("add", b.do("abs", x), b.number(1.0)))


def summed(b: Network) -> int:
    return b.do("add_n", image(b), b.real("y"), b.real("z"), b.real("v"))


def packed(axis: int) -> Make:
    def make(b: Network) -> int:
        x, y = b.real("x", (5, 6)), b.real("y", (5, 6))
        shape = [5, 6]
        shape.insert(axis, 2)
        y = b.do("add", y, b.real("z", (5, 6)))
        return b.do("pack", x, y, shape=tuple(shape), axis=axis, values_count=2)

    return make


def joined(operator: str) -> Make:
    def make(b: Network) -> int:
        x, y = image(b), b.real("y", (1, 5, 6, 2))
        return b.do(operator, b.do("concatenation", x, y, shape=(1, 5, 6, 6), axis=3))

    return make


def dense(shape: tuple[int, ...], constant: tuple[int, ...], back: bool) -> Make:
    """Rows times a matrix, reshaped, plus a constant, perhaps reshaped back and times another matrix."""

    def make(b: Network) -> int:
        rows = int(np.prod(shape[:-1]))
        y = b.do("fully_connected", b.real("x", (rows, 3)), b.reals(shape[-1], 3), -1, shape=(rows, shape[-1]))
        z = b.do("reshape", y, b.whole(*shape), shape=shape)
        s = b.do("add", z, b.reals(*constant), fused_activation_function="relu" if back else "none")
        if not back:
            return s
        r = b.do("reshape", s, b.whole(rows, shape[-1]), shape=(rows, shape[-1]))
        return b.do("fully_connected", r, b.reals(2, shape[-1]), b.reals(2), shape=(rows, 2))

    return make


def slopes(shape: tuple[int, ...], least: float) -> Make:
    return lambda b: b.do("prelu", b.conv(image(b), 4), b.reals(*shape, least=least))


def with_a_clamp(operator: str, clamp: str) -> Make:
    return lambda b: b.do(operator, image(b), b.real("y"), fused_activation_function=clamp)


def weighing(low: int, high: int) -> Make:
    """A filter whose weights are whole numbers, of all channels together from low to below high."""

    def make(b: Network) -> int:
        weights = b.draw.integers(low, high, (3, 2, 2, 4)).astype(np.float32)
        weights.reshape(-1)[:2] = low, high - 1
        return b.do("conv_2d", image(b), b.given(weights), b.reals(3), shape=(1, 4, 5, 3), **WHOLE)

    return make


def behind_a_move(operator: str, mover: str, filtered: bool) -> Make:
    """A layer whose range goes back, behind one that moves what a filter or the network gives."""

    def make(b: Network) -> int:
        x = b.conv(image(b), 4) if filtered else image(b)
        moved, shape = {
            "reshape": (b.whole(1, 30, 1, 4), (1, 30, 1, 4)),
            "transpose": (b.whole(0, 2, 1, 3), (1, 6, 5, 4)),
            "depth_to_space": (None, (1, 10, 12, 1)),
        }[mover]
        options = {"block_size": 2} if moved is None else {}
        y = b.do(mover, x, *(() if moved is None else (moved,)), shape=shape, **options)
        if operator == "concatenation":
            z = b.do("add", b.real("y", shape), b.real("z", shape))
            return b.do("concatenation", y, z, shape=(*shape[:3], 2 * shape[3]), axis=3)
        slope: dict[str, Any] = {"alpha": 0.25} if operator == "leaky_relu" else {}
        return b.do(operator, y, **slope)

    return make


def behind_zeros(depthwise: bool, clamp: str = "none") -> Make:
    """A filter behind zeros of four widths."""

    def make(b: Network) -> int:
        pads = b.whole([0, 0], [1, 2], [0, 3], [0, 0])
        x = b.do("pad", image(b), pads, shape=(1, 8, 9, 4))
        if not depthwise:
            return b.conv(x, 3, 3, clamp=clamp)
        given = (b.reals(1, 3, 3, 4), b.reals(4))
        return b.do("depthwise_conv_2d", x, *given, shape=(1, 6, 7, 4), **WHOLE, fused_activation_function=clamp)

    return make


def between_blocks(down: int, across: int) -> Make:
    """A dilated filter as TensorFlow wrote it: between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""

    def make(b: Network) -> int:
        blocks, pads = b.whole(down, across), b.whole([down, down], [across, across])
        count, sides = down * across, [(6 + 2 * n) // n for n in (down, across)]
        x = b.do("space_to_batch_nd", b.real("x", (1, 6, 6, 4)), blocks, pads, shape=(count, *sides, 4))
        shape = (count, *(n - 2 for n in sides), 3)
        y = b.do("conv_2d", x, b.reals(3, 3, 3, 4), b.reals(3), shape=shape, **WHOLE)
        return b.do("batch_to_space_nd", y, blocks, b.whole([0, 0], [0, 0]), shape=(1, 6, 6, 3))

    return make


def written_prelu(swapped: bool) -> Make:
    """relu(x) + c * -relu(-x), as Keras writes PRELU."""

    def make(b: Network) -> int:
        x = b.conv(image(b), 4)
        inner = b.do("neg", b.do("relu", b.do("neg", x)))
        slope = b.reals(4, least=0.25)
        terms = b.do("relu", x), b.do("mul", *((slope, inner) if swapped else (inner, slope)), shape=b.shapes[x])
        return b.do("add", *(terms[::-1] if swapped else terms))

    return make


BOTH = [(False, False), (False, True), (True, False), (True, True)]
NETWORKS: dict[str, Make] = {
    **{f"filters of one pixel, biases {bias}": filters_in_a_row(bias) for bias in BOTH},
    **{f"a filter behind one of one pixel, biases {bias}": filters_in_a_row(bias, sizes=(1, 3)) for bias in BOTH},
    "a filter with a stride behind one of one pixel": filters_in_a_row((True, True), (1, (2, 1)), (1, 2)),
    "a padded filter behind one of one pixel": padded_filter,
    "many filters behind few of one pixel": filters_in_a_row((True, True), channels=(1, 200), inputs=64),
    "filters behind few of one pixel": filters_in_a_row((True, True), channels=(1, 20), inputs=64),
    "a filter of one pixel with a stride": filters_in_a_row((True, True), (1, 2)),
    "a filter of one pixel behind another": filters_in_a_row((True, True), sizes=(3, 1)),
    "filters of one pixel with a rectifier": filters_in_a_row((True, True), clamp="relu"),
    **{f"{o} a channel behind a filter": behind_a_filter(o, None) for o in ("add", "mul", "div")},
    **{f"{o} a channel behind a depthwise": behind_a_filter(o, None, depthwise=True) for o in ("add", "mul", "div")},
    **{f"{o} a channel behind a rectifier": behind_a_filter(o, None, "relu") for o in ("add", "mul", "div")},
    **{f"{o} {n} behind {c}": behind_a_filter(o, n, c)
       for o in ("mul", "div") for n in (0.75, -1.5) for c in ("none", "relu")},
    **{f"normalized, gamma {g}, beta {b}": normalized(g, b) for g, b in BOTH if g or not b},
    "normalized, constants first": normalized(True, True, swapped=True),
    "normalized, read inside": normalized(True, True, extra=True),
    **{f"normalized by Keras, negated {n}": normalized_by_keras(True, n) for n in (False, True)},
    "a filter behind zeros": behind_zeros(False),
    "a depthwise behind zeros": behind_zeros(True, "relu"),
    "a written slope": written_prelu(False),
    "a written slope, swapped": written_prelu(True),
    **{f"a filter between blocks of {h} x {w}": between_blocks(h, w) for h, w in ((2, 2), (1, 2), (3, 1), (2, 3))},
    "two mirrored axes": mirrored,
    "three mirrored axes": mirrored_thrice,
    "rows of length 1": unary("l2_normalization", ROWS),
    "gelu": unary("gelu", approximate=False),
    "gelu of a sum that others read": of_a_sum("gelu", approximate=False),
    "gelu behind a filter": lambda b: b.do("gelu", b.conv(image(b), 4), approximate=False),
    "softsign": softsign,
    "hard_swish behind a filter": lambda b: b.do("hard_swish", b.conv(image(b), 4)),
    "elu": unary("elu"),
    "a sum of four": summed,
    **{f"packed along {axis}": packed(axis) for axis in range(3)},
    **{f"{o} behind a concatenation": joined(o) for o in ("relu", "relu6", "relu_0_to_1")},
    "squares of a difference": lambda b: b.do("squared_difference", image(b), b.real("y")),
    "a square": unary("square"),
    "a power of two": lambda b: b.do("pow", image(b), b.number(2.0)),
    "rows plus a constant": dense((1, 4, 5), (5,), back=False),
    "rows of an image plus a constant": dense((1, 2, 2, 5), (5,), back=False),
    "rows plus a constant, shaped back": dense((1, 4, 5), (5,), back=True),
    "one slope": slopes((1,), 0.25),
    "slopes": slopes((4,), -1.0),
    **{f"{o} with {c}": with_a_clamp(o, c) for o in ("add", "sub", "mul") for c in ("relu", "relu6")},
    **{f"{o} behind {m}, filtered {f}": behind_a_move(o, m, f)
       for o in ("relu", "leaky_relu", "concatenation") for m in ("reshape", "transpose", "depth_to_space")
       for f in (False, True)},
    "whole weights": weighing(-128, 128),
    "whole weights beyond 8 bits": weighing(-300, 300),
}  # fmt: skip


def built(name: str) -> tuple[Graph, list[Array], Array]:
    """The network with the ranges of eight samples, the samples, and what it computes of them."""
    return measured(NETWORKS[name])


def measured(make: Make) -> tuple[Graph, list[Array], Array]:
    """As `built`."""
    b = Network()
    graph = b.build([make(b)])
    draw = np.random.default_rng(9)
    inputs: list[Array] = [draw.uniform(-2, 2, (8, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]
    computed = [*graph.inputs, *(t for node in graph.nodes for t in node.outputs)]
    values = Engine(graph, "float").run(inputs, computed)
    for t in computed:
        found = Range(*(np.array([bound(values[t])], np.float32) for bound in (np.min, np.max)))
        graph.tensors[t] = replace(graph.tensors[t], range=found)
    return graph, inputs, values[graph.outputs[0]]


def share_lost(target: Target, name: str, sets: Sequence[str] = ()) -> float:
    """Quantize a network and return how far it is from what the model does, as a share of the largest result."""
    graph, inputs, wanted = built(name)
    engine = Engine(target.quantize(graph, parse_settings(target.settings, sets)), target.arithmetic)
    made = engine.graph
    given = [_quantized(made.tensors[t], x) for t, x in zip(made.inputs, inputs, strict=True)]
    found, output = engine.run(given)[made.outputs[0]], made.tensors[made.outputs[0]]
    real = dequantize(found, output.affine) if output.dtype.is_integer else found
    distance = np.abs(np.subtract(real, wanted, dtype=np.float32)).max()
    return float(distance / np.abs(wanted.astype(np.float32)).max())


def _quantized(tensor: Tensor, real: Array) -> Array:
    if not tensor.dtype.is_integer:
        return real
    codes = np.rint(real.astype(np.float32) / tensor.affine.scale[0]) + tensor.affine.zero_point[0]
    found: Array = np.clip(codes, tensor.dtype.minimum, tensor.dtype.maximum).astype(tensor.dtype.storage)
    return found
