"""Float IR of one layer each, drawn: shapes, keys and ranges that nobody chose, and the mode that quantizes it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from tests.converters.aipu.recording import MODES
from tests.converters.aipu.single_layers import Draw, Keys, OneLayer, Shape, real, truth, whole, window
from tflq.graph import Array

T = TypeVar("T")
Rng = np.random.Generator
Limits = tuple[float, float]
ANY: Sequence[Limits] = ((-2, 3), (0, 1), (-3, -0.5), (0.3, 4), (-100, 200), (-1e-3, 2e-3), (-6, 6), (-0.1, 7))
POSITIVE: Sequence[Limits] = ((0.3, 4), (1e-3, 1), (50, 900), (0.9, 1.1), (0.01, 20))


def one_of(draw: Rng, choices: Sequence[T]) -> T:
    return choices[int(draw.integers(len(choices)))]


def number(draw: Rng, low: int, high: int) -> int:
    """A whole number of low..high, both included."""
    return int(draw.integers(low, high + 1))


def numbers(draw: Rng, low: int, high: int, count: int) -> Shape:
    return tuple(number(draw, low, high) for _ in range(count))


def truly(draw: Rng) -> bool:
    return bool(draw.integers(2))


def amount(draw: Rng, low: float, high: float) -> float:
    """A number as a file writes it."""
    return round(float(draw.uniform(low, high)), 3)


def shape_of(draw: Rng, low: int = 2, high: int = 5, most: int = 6) -> Shape:
    """A shape of `low`..`high` axes, the first of which is a batch."""
    return number(draw, 1, 2), *numbers(draw, 1, most, number(draw, low, high) - 2), number(draw, 2, most)


def image_of(draw: Rng, channels: int = 0) -> Shape:
    return number(draw, 1, 2), *numbers(draw, 4, 8, 2), channels or number(draw, 1, 6)


def values(draw: Rng, among: Sequence[Limits] = ANY) -> Draw:
    return real(*one_of(draw, among))


def put(shape: Shape, axis: int, size: int) -> Shape:
    return *shape[:axis], size, *shape[axis + 1 :]


def axes_of(draw: Rng, shape: Shape, first: int = 0) -> Shape:
    """Some axes, in order, of which at least one."""
    rank = len(shape)
    chosen = draw.permutation(np.arange(first, rank))[: number(draw, 1, rank - first)]
    return tuple(sorted(int(a) for a in chosen))


def reals(draw: Rng, shape: Shape, low: float = -1.0, high: float = 1.0) -> Array:
    return draw.uniform(low, high, shape).astype(np.float32)


def plain(operator: str, among: Sequence[Limits] = ANY) -> Callable[[Rng], OneLayer]:
    def make(draw: Rng) -> OneLayer:
        shape = shape_of(draw)
        return OneLayer(operator, (shape,), (shape,), {}, {}, (values(draw, among),))

    return make


def fused(draw: Rng) -> Keys:
    """A fused activation, most often none."""
    kind = one_of(draw, ("NONE", "NONE", "NONE", "RELU", "RELU", "RELU6", "CLIP", "LEAKYRELU"))
    keys: Keys = {"with_activation": kind}
    if kind == "CLIP":
        keys |= {"clip_min": -amount(draw, 0, 1) * truly(draw), "clip_max": amount(draw, 0.5, 2)}
    if kind == "LEAKYRELU":
        keys |= {"negative_slope_type": "float32", "negative_slope_value": amount(draw, 0.01, 0.9)}
    return keys


ACTIVATIONS: dict[str, Callable[[Rng], Keys]] = {
    **dict.fromkeys(
        ("RELU", "RELU6", "SIGMOID", "TANH", "HARDSWISH", "SOFTPLUS", "SOFTSIGN", "MISH", "SILU"), lambda _: {}
    ),
    "CLIP": lambda draw: {"clip_min": -amount(draw, 0, 3) * truly(draw), "clip_max": amount(draw, 0.5, 5)},
    "LEAKYRELU": lambda draw: {"negative_slope_type": "float32", "negative_slope_value": amount(draw, -0.5, 1.5)},
    **dict.fromkeys(("ELU", "CELU", "SWISH"), lambda draw: {"alpha": amount(draw, 0.2, 2)}),
    "SELU": lambda draw: {"alpha": amount(draw, 1, 2), "gamma": amount(draw, 0.5, 2)},
    "HARDSIGMOID": lambda draw: {
        "alpha": amount(draw, 0.1, 0.5),
        "beta": amount(draw, 0.2, 0.6),
        "clip_min": 0.0,
        "clip_max": 1.0,
    },
    "GELU": lambda draw: {"approximate": one_of(draw, ("NONE", "TANH"))},
    "THRESHOLDEDRELU": lambda draw: {"alpha": amount(draw, 0.1, 2)},
    "SHRINK": lambda draw: {"bias": amount(draw, 0, 0.5), "lambd": amount(draw, 0.1, 1)},
}


def activation(method: str) -> Callable[[Rng], OneLayer]:
    def make(draw: Rng) -> OneLayer:
        shape = shape_of(draw)
        keys = {"method": method, **ACTIVATIONS[method](draw)}
        return OneLayer("activation", (shape,), (shape,), keys, {}, (values(draw),))

    return make


def slopes(draw: Rng) -> OneLayer:
    shape = image_of(draw)
    given = {"negative_slope": reals(draw, one_of(draw, (shape[-1:], shape[1:])), -0.5, 2)}
    return OneLayer("activation", (shape,), (shape,), {"method": "PRELU"}, {}, (values(draw),), given)


def crelu(draw: Rng) -> OneLayer:
    shape = shape_of(draw)
    axis = number(draw, 0, len(shape) - 1)
    return OneLayer("crelu", (shape,), (put(shape, axis, 2 * shape[axis]),), {"axis": axis}, {}, (values(draw),))


def beside(draw: Rng, shape: Shape) -> Shape:
    """A shape that broadcasts to another one: of the same rank, or of fewer axes."""
    kind = number(draw, 0, 3)
    if kind == 0:
        return shape
    single = tuple(1 if truly(draw) else n for n in shape)
    return single if kind < 3 else single[number(draw, 1, len(shape) - 1) :]


def pair(operator: str, methods: Sequence[str] = ("",)) -> Callable[[Rng], OneLayer]:
    """Two inputs, often of one range; Eltwise takes equal shapes only."""

    def make(draw: Rng) -> OneLayer:
        shape = shape_of(draw)
        shapes = [shape, shape if operator == "eltwise" else beside(draw, shape)]
        if truly(draw):
            shapes.reverse()
        method = one_of(draw, methods)
        keys: Keys = {"method": method} if method else {}
        keys |= fused(draw) if operator in ("eltwise", "add", "sub", "mul") else {}
        first = values(draw)
        second = first if number(draw, 0, 2) == 0 else values(draw)
        return OneLayer(operator, shapes, (shape,), keys, {}, (first, second))

    return make


def divided(draw: Rng) -> OneLayer:
    shape = shape_of(draw)
    divisor = values(draw, (*POSITIVE, (-2, -0.5), (-3, 3)))
    return OneLayer("div", (shape, beside(draw, shape)), (shape,), {}, {}, (values(draw), divisor))


def power(draw: Rng) -> OneLayer:
    shape = shape_of(draw)
    return OneLayer("pow", (shape, shape), (shape,), {}, {}, (values(draw, ((0.2, 2), (0.01, 1))), real(-1, 2)))


def logical(draw: Rng) -> OneLayer:
    shape = shape_of(draw)
    method = one_of(draw, ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "AND", "OR", "XOR"))
    first = truth if method in ("AND", "OR", "XOR") else values(draw)
    return OneLayer(
        "logical", (shape, shape), (shape,), {"method": method}, {}, (first, first if truly(draw) else values(draw))
    )


def chosen(draw: Rng) -> OneLayer:
    shape = shape_of(draw)
    return OneLayer("where", (shape,) * 3, (shape,), {}, {}, (truth, values(draw), values(draw)))


def _window(draw: Rng, size: Shape, dilated: bool = True) -> tuple[Keys, Callable[[bool], Shape]]:
    """Keys of a window on an image, and the sides of what comes out."""
    kernel, stride = numbers(draw, 1, 3, 2), numbers(draw, 1, 3, 2)
    dilation = numbers(draw, 1, 2, 2) if dilated and number(draw, 0, 3) == 0 else (1, 1)
    pads = [number(draw, 0, kernel[1 - side // 2] - 1) for side in range(4)] if truly(draw) else [0] * 4
    keys = window(kernel, stride, tuple(pads), dilation)

    def sides(ceil: bool) -> Shape:
        found = []
        for n, k, s, d, before, behind in zip(
            size, kernel, stride, dilation, (pads[2], pads[0]), (pads[3], pads[1]), strict=True
        ):
            free = n + before + behind - (k - 1) * d - 1
            found.append((-(-free // s) if ceil else free // s) + 1)
        return tuple(found)

    return keys, sides


def pooled(draw: Rng) -> OneLayer:
    shape = image_of(draw)
    keys, sides = _window(draw, shape[1:3])
    method, ceil = one_of(draw, ("AVG", "MAX")), truly(draw)
    more: Keys = {"count_include_pad": truly(draw)} if method == "AVG" else {}
    new = (shape[0], *sides(ceil), shape[3])
    return OneLayer(
        "pooling", (shape,), (new,), {**keys, "method": method, "ceil_mode": ceil, **more}, {}, (values(draw),)
    )


def pooled_whole(draw: Rng) -> OneLayer:
    shape = image_of(draw)
    keys: Keys = {"method": one_of(draw, ("AVG", "MAX"))}
    return OneLayer("global_pool", (shape,), ((shape[0], 1, 1, shape[3]),), keys, {}, (values(draw),))


FLATTENED = ("HW", "HWC", "NHWC", "NCHW")


def pooled_with_places(draw: Rng) -> OneLayer:
    shape = image_of(draw)
    keys, sides = _window(draw, shape[1:3])
    ceil = truly(draw)
    keys |= {"ceil_mode": ceil, "flatten_dim": one_of(draw, FLATTENED), "storage_order": number(draw, 0, 1)}
    new = (shape[0], *sides(ceil), shape[3])
    return OneLayer("max_pooling_with_arg_max", (shape,), (new, new), keys, {}, (values(draw),))


def put_back(draw: Rng) -> OneLayer:
    flatten = one_of(draw, FLATTENED)
    new = image_of(draw, number(draw, 1, 4))
    shape = (new[0], *numbers(draw, 1, 3, 2), new[3])
    size = {"HW": new[1] * new[2], "HWC": int(np.prod(new[1:]))}.get(flatten, int(np.prod(new)))
    keys: Keys = {"flatten_dim": flatten, "shape": new}
    return OneLayer("upsample_by_index", (shape, shape), (new,), keys, {}, (values(draw), whole(0, size)))


def _weights(draw: Rng, shape: Shape, channels: int) -> dict[str, Array]:
    """Weights whose channels differ in size, and biases, small, large or 0."""
    by_channel: Array = np.exp(draw.uniform(-2, 2, (channels, *(1,) * (len(shape) - 1)))) if truly(draw) else np.ones(1)
    bias = one_of(draw, (0.0, 0.1, 1.0, 20.0))
    weights = np.multiply(reals(draw, shape), by_channel).astype(np.float32)
    return {"weights": weights, "biases": reals(draw, (channels,), -bias, bias)}


def convolved(draw: Rng) -> OneLayer:
    group = one_of(draw, (1, 1, 2, 3))
    shape = image_of(draw, group * number(draw, 1, 3))
    keys, sides = _window(draw, shape[1:3])
    channels = group * number(draw, 1, 3)
    kernel = (int(keys["kernel_y"]), int(keys["kernel_x"]))
    keys = {"num_output": channels, **keys, "group": group, **fused(draw)}
    given = _weights(draw, (channels, *kernel, shape[3] // group), channels)
    return OneLayer("convolution", (shape,), ((shape[0], *sides(False), channels),), keys, {}, (values(draw),), given)


def convolved_by_depth(draw: Rng) -> OneLayer:
    shape, multiplier = image_of(draw), one_of(draw, (1, 1, 2, 3))
    keys, sides = _window(draw, shape[1:3])
    channels = shape[3] * multiplier
    kernel = (int(keys["kernel_y"]), int(keys["kernel_x"]))
    keys = {"num_output": channels, **keys, "group": shape[3], "multiplier": multiplier, **fused(draw)}
    given = _weights(draw, (channels, *kernel, 1), channels)
    return OneLayer(
        "depthwise_conv", (shape,), ((shape[0], *sides(False), channels),), keys, {}, (values(draw),), given
    )


def transposed(draw: Rng) -> OneLayer:
    shape = image_of(draw)
    kernel, stride = numbers(draw, 1, 4, 2), numbers(draw, 1, 3, 2)
    pads = tuple(number(draw, 0, (kernel[1 - side // 2] - 1) // 2) for side in range(4))
    extra = tuple(number(draw, 0, s - 1) for s in stride)
    sides = [
        (n - 1) * s + k - p + e
        for n, s, k, p, e in zip(shape[1:3], stride, kernel, (pads[2] + pads[3], pads[0] + pads[1]), extra, strict=True)
    ]
    channels = number(draw, 1, 5)
    keys: Keys = {"num_output": channels, **window(kernel, stride, pads), "group": 1, **fused(draw)}
    keys |= {"output_padding_x": extra[1], "output_padding_y": extra[0]}
    given = _weights(draw, (channels, *kernel, shape[3]), channels)
    new = (shape[0], *sides, channels)
    return OneLayer("conv_transpose", (shape,), (new,), keys, {}, (values(draw),), given)


def multiplied(draw: Rng) -> OneLayer:
    rows, columns, channels = numbers(draw, 1, 6, 3)
    given = _weights(draw, (channels, columns), channels)
    keys = {"num_output": channels, **fused(draw)}
    return OneLayer("fully_connected", ((rows, columns),), ((rows, channels),), keys, {}, (values(draw),), given)


def cubes(draw: Rng) -> OneLayer:
    group = number(draw, 1, 2)
    shape = (number(draw, 1, 2), *numbers(draw, 3, 5, 3), 2 * group)
    kernel, stride, channels = numbers(draw, 1, 3, 3), numbers(draw, 1, 2, 3), group * number(draw, 1, 3)
    pads = [(number(draw, 0, k - 1), number(draw, 0, k - 1)) for k in kernel]
    keys: Keys = {"num_output": channels, "group": group, "with_activation": one_of(draw, ("NONE", "RELU"))}
    sides = []
    for axis, n, k, s, (before, behind) in zip("zyx", shape[1:4], kernel, stride, pads, strict=True):
        keys |= {f"kernel_{axis}": k, f"stride_{axis}": s, f"dilation_{axis}": 1}
        keys |= {f"pad_{axis}_begin": before, f"pad_{axis}_end": behind}
        sides.append((n + before + behind - k) // s + 1)
    given = _weights(draw, (channels, kernel[1], kernel[2], kernel[0], 2), channels)
    new = (shape[0], *sides, channels)
    return OneLayer("convolution_3d", (shape,), (new,), keys, {}, (values(draw),), given)


def matrices(draw: Rng) -> OneLayer:
    lead = numbers(draw, 1, 3, number(draw, 1, 2))
    rows, inner, columns = numbers(draw, 1, 6, 3)
    a, b = truly(draw), truly(draw)
    first, second = (inner, rows) if a else (rows, inner), (columns, inner) if b else (inner, columns)
    shapes = ((*lead, *first), (*lead, *second))
    keys: Keys = {"trans_a": a, "trans_b": b}
    return OneLayer("mat_mul", shapes, ((*lead, rows, columns),), keys, {}, (values(draw), values(draw)))


def biased(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 4)
    axis = number(draw, 1, len(shape) - 1)
    given = {"biases": reals(draw, (shape[axis],))}
    return OneLayer("bias_add", (shape,), (shape,), {"axis": axis}, {}, (values(draw),), given)


def batch_norm(draw: Rng) -> OneLayer:
    shape = image_of(draw)
    axis = number(draw, 1, 3)
    given = _weights(draw, (shape[axis],), shape[axis])
    keys: Keys = {"axis": axis, "epsilon": 0.0, **fused(draw)}
    return OneLayer("batch_norm", (shape,), (shape,), keys, {}, (values(draw),), given)


def layer_norm(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 4)
    axis = len(shape) - 1
    given = {"weights": reals(draw, shape[-1:], -1, 2), "biases": reals(draw, shape[-1:])}
    keys: Keys = {"axis": (axis,), "epsilon": one_of(draw, (1e-5, 1e-3, 0.1))}
    return OneLayer("layer_norm", (shape,), (shape,), keys, {}, (values(draw),), given)


def other_norm(operator: str) -> Callable[[Rng], OneLayer]:
    def make(draw: Rng) -> OneLayer:
        group = number(draw, 1, 3)
        shape = image_of(draw, group * number(draw, 1, 3))
        given = {"weights": reals(draw, shape[-1:], -1, 2), "biases": reals(draw, shape[-1:])}
        keys: Keys = {"epsilon": one_of(draw, (1e-5, 1e-3, 0.1))}
        keys |= {"axis": 3, "group": group} if operator == "group_norm" else {}
        return OneLayer(operator, (shape,), (shape,), keys, {}, (values(draw),), given)

    return make


def normalized(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 3, 4)
    keys: Keys = {"axis": (number(draw, 1, len(shape) - 1),), "method": "L2", "epsilon": one_of(draw, (1e-12, 1e-3))}
    return OneLayer("normalization", (shape,), (shape,), keys, {}, (values(draw),))


def response(draw: Rng) -> OneLayer:
    shape = image_of(draw, number(draw, 3, 8))
    method = one_of(draw, ("ACROSS_CHANNELS", "ACROSS_CHANNELS", "WITHIN_CHANNEL"))
    keys: Keys = {"method": method, "size": one_of(draw, (1, 3, 5)), "bias": amount(draw, 0.5, 2)}
    keys |= {"alpha": amount(draw, 0.01, 1), "beta": amount(draw, 0.3, 1)}
    return OneLayer("lrn", (shape,), (shape,), keys, {}, (values(draw, ((-2, 3), (0, 1), (-6, 6))),))


def along_axis(operator: str) -> Callable[[Rng], OneLayer]:
    def make(draw: Rng) -> OneLayer:
        shape = shape_of(draw)
        keys: Keys = {"axis": number(draw, 0, len(shape) - 1)}
        return OneLayer(operator, (shape,), (shape,), keys, {}, (values(draw, ((-2, 3), (-20, 20), (0, 1), (-9, -1))),))

    return make


def reduced(draw: Rng) -> OneLayer:
    shape = shape_of(draw)
    axes = axes_of(draw, shape)
    method = one_of(draw, ("SUM", "MEAN", "MIN", "MAX", "VARIANCE", "UNBIASED_VARIANCE", "L1", "L2", "ANY", "ALL"))
    new = tuple(1 if a in axes else n for a, n in enumerate(shape))
    data = truth if method in ("ANY", "ALL") else values(draw)
    return OneLayer("reduce", (shape,), (new,), {"axis": axes, "method": method}, {}, (data,))


def product(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 4)
    axis = number(draw, 0, len(shape) - 1)
    data = real(*one_of(draw, ((0.5, 1.5), (-1.5, 2), (0, 1))))
    return OneLayer("reduce", (shape,), (put(shape, axis, 1),), {"axis": (axis,), "method": "PROD"}, {}, (data,))


def moments(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 3, 5)
    axes = axes_of(draw, shape, 1)
    new = tuple(1 if a in axes else n for a, n in enumerate(shape))
    return OneLayer("moments", (shape,), (new, new), {"axis": axes, "keepdims": True}, {}, (values(draw),))


def cumulated(draw: Rng) -> OneLayer:
    shape = shape_of(draw)
    keys: Keys = {"axis": number(draw, 0, len(shape) - 1), "method": one_of(draw, ("SUM", "SUM", "PROD"))}
    keys |= {"exclusive": truly(draw), "reverse": truly(draw)}
    data = values(draw) if keys["method"] == "SUM" else real(*one_of(draw, ((0.5, 1.5), (-1.5, 1), (0, 1))))
    return OneLayer("cumulate", (shape,), (shape,), keys, {}, (data,))


def segments(draw: Rng) -> OneLayer:
    rows, rest = number(draw, 3, 8), numbers(draw, 1, 4, number(draw, 1, 2))
    count = number(draw, 2, 5)
    keys: Keys = {"method": one_of(draw, ("SUM", "SUM", "MEAN", "MAX", "MIN", "PROD"))}

    def order(draw: Rng, shape: Shape) -> Array:
        return np.sort(draw.integers(0, count, shape), axis=-1).astype(np.int32)

    return OneLayer("segment_reduce", ((rows, *rest), (rows,)), ((count, *rest),), keys, {}, (values(draw), order))


def gathered(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 4)
    axis = number(draw, 0, len(shape) - 1)
    batch = number(draw, 0, axis) if truly(draw) else 0
    indices = (*shape[:batch], *numbers(draw, 1, 4, number(draw, 1, 2)))
    new = (*shape[:axis], *indices[batch:], *shape[axis + 1 :])
    low = -shape[axis] if truly(draw) else 0
    keys: Keys = {"axis": axis, "batch_dims": batch}
    return OneLayer("gather", (shape, indices), (new,), keys, {}, (values(draw), whole(low, shape[axis])))


def places(shape: Shape) -> Draw:
    """Places in a tensor, the last axis one number an axis."""
    return lambda draw, size: np.stack(
        [draw.integers(0, n, size[:-1]) for n in shape[: size[-1]]], axis=-1
    ).astype(np.int32)  # fmt: skip


def gathered_places(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 4)
    batch = 1 if number(draw, 0, 3) == 0 and len(shape) > 2 else 0
    depth = number(draw, 1, len(shape) - batch)
    lead = (*shape[:batch], *numbers(draw, 1, 4, number(draw, 1, 2)))
    new = (*lead, *shape[batch + depth :])
    keys: Keys = {"batch_dims": batch}
    return OneLayer("gather_nd", (shape, (*lead, depth)), (new,), keys, {}, (values(draw), places(shape[batch:])))


def scattered(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 4)
    depth, rows = number(draw, 1, len(shape)), numbers(draw, 1, 4, number(draw, 1, 2))
    keys: Keys = {"reduction": one_of(draw, ("ADD", "MUL", "MAX", "MIN", "NONE"))}
    data = values(draw)
    draws = (data, places(shape), data if truly(draw) else values(draw))
    return OneLayer("scatter_nd", (shape, (*rows, depth), (*rows, *shape[depth:])), (shape,), keys, {}, draws)


def scattered_elements(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 4)
    axis = number(draw, 0, len(shape) - 1)
    rows = tuple(number(draw, 1, n) for n in shape)
    keys: Keys = {"axis": axis, "reduction": one_of(draw, ("ADD", "MAX", "MIN", "NONE"))}
    draws = (values(draw), whole(0, shape[axis]), values(draw))
    return OneLayer("scatter_elements", (shape, rows, rows), (shape,), keys, {}, draws)


def sampled(draw: Rng) -> OneLayer:
    batch, channels = number(draw, 1, 2), number(draw, 1, 4)
    size, new = numbers(draw, 1, 9, 2), numbers(draw, 1, 4, 2)
    keys: Keys = {"method": one_of(draw, ("BILINEAR", "NEAREST")), "padding_mode": one_of(draw, ("ZEROS", "BORDER"))}
    keys["align_corners"] = truly(draw)
    shapes = ((batch, *size, channels), (batch, *new, 2))
    draws = (values(draw), real(*one_of(draw, ((-1, 1), (-1.4, 1.2), (-3, 3)))))
    return OneLayer("grid_sample", shapes, ((batch, *new, channels),), keys, {}, draws)


def resized(draw: Rng) -> OneLayer:
    shape, size = image_of(draw), numbers(draw, 1, 12, 2)
    method = one_of(draw, ("BILINEAR", "NEAREST"))
    modes = ("ALIGN_CORNERS", "ASYMMETRIC", "HALF_PIXEL", "PYTORCH_HALF_PIXEL", "TF_HALF_PIXEL_FOR_NN")
    keys: Keys = {"method": method, "size": (shape[0], *size, shape[3]), "antialias": False, "exclude_outside": False}
    keys["mode"] = one_of(draw, modes if method == "NEAREST" else modes[:-1])
    if method == "NEAREST":
        keys["nearest_mode"] = one_of(draw, ("ROUND_PREFER_FLOOR", "ROUND_PREFER_CEIL", "FLOOR", "CEIL", "SIMPLE"))
    return OneLayer("resize", (shape,), ((shape[0], *size, shape[3]),), keys, {}, (values(draw),))


def joined(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 4)
    axis, count = number(draw, 0, len(shape) - 1), number(draw, 2, 4)
    shapes = [put(shape, axis, number(draw, 1, 4)) for _ in range(count)]
    new = put(shape, axis, sum(s[axis] for s in shapes))
    one = values(draw)
    draws = [one if number(draw, 0, 2) == 0 else values(draw) for _ in range(count)]
    return OneLayer("concat", shapes, (new,), {"axis": axis}, {}, draws)


def extreme(draw: Rng) -> OneLayer:
    shape = shape_of(draw)
    axis = number(draw, 0, len(shape) - 1)
    keys: Keys = {"axis": axis, "method": one_of(draw, ("MIN", "MAX")), "select_last_index": truly(draw)}
    data = one_of(draw, (values(draw), lambda draw, shape: draw.integers(-2, 3, shape).astype(np.float32)))
    return OneLayer("arg_min_max", (shape,), (put(shape, axis, 1),), keys, {}, (data,))


def best(draw: Rng) -> OneLayer:
    shape = shape_of(draw)
    axis = number(draw, 0, len(shape) - 1)
    count = number(draw, 1, shape[axis])
    keys: Keys = {"axis": axis, "k": count, "sorted": True, "largest": truly(draw), "select_index": "first"}
    data = one_of(draw, (values(draw), lambda draw, shape: draw.integers(-2, 3, shape).astype(np.float32)))
    return OneLayer("top_k", (shape,), (put(shape, axis, count),) * 2, keys, {}, (data,))


def among_best(draw: Rng) -> OneLayer:
    rows, classes = number(draw, 1, 4), number(draw, 2, 8)
    draws = (values(draw), whole(0, classes))
    return OneLayer("in_top_k", ((rows, classes), (rows,)), ((rows,),), {"k": number(draw, 1, classes)}, {}, draws)


def one_hot(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 3, 4)
    axis, depth = number(draw, 0, len(shape)), number(draw, 2, 6)
    off, on = one_of(
        draw,
        (
            (0.0, 1.0),
            (-1.0, 1.0),
            (0.0, 255.0),
            (0.0, 256.0),
            (-128.0, 127.0),
            (-129.0, 5.0),
            (-0.5, 1.5),
            (0.0, 70000.0),
            (0.0, 4095.0),
        ),
    )
    keys: Keys = {"axis": axis, "values": (off, on), "depth": depth}
    return OneLayer("one_hot", (shape,), ((*shape[:axis], depth, *shape[axis:]),), keys, {}, (whole(0, depth),))


def padded(draw: Rng) -> OneLayer:
    shape = tuple(n + 2 for n in shape_of(draw, 2, 4))
    mode = one_of(draw, ("CONSTANT", "CONSTANT", "REFLECT", "SYMMETRIC"))
    pads = np.array([(number(draw, 0, 2), number(draw, 0, 2)) if truly(draw) else (0, 0) for _ in shape])
    keys: Keys = {"mode": mode, "constant_value": amount(draw, -4, 4) if mode == "CONSTANT" else 0.0, "pads": pads}
    new = tuple(n + int(before + behind) for n, (before, behind) in zip(shape, pads, strict=True))
    return OneLayer("pad", (shape,), (new,), keys, {}, (values(draw),))


def tiled(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 4)
    repeats = numbers(draw, 1, 3, len(shape))
    new = tuple(n * r for n, r in zip(shape, repeats, strict=True))
    return OneLayer("tile", (shape,), (new,), {"repeats": repeats}, {}, (values(draw),))


def turned(draw: Rng) -> OneLayer:
    shape = shape_of(draw)
    order = tuple(int(a) for a in draw.permutation(len(shape)))
    return OneLayer("transpose", (shape,), (tuple(shape[a] for a in order),), {"perm": order}, {}, (values(draw),))


def shaped(draw: Rng) -> OneLayer:
    shape = shape_of(draw)
    new = one_of(draw, ((int(np.prod(shape)),), (1, *shape), (*shape, 1), (shape[0], int(np.prod(shape[1:])))))
    return OneLayer("reshape", (shape,), (new,), {"shape": new}, {}, (values(draw),))


def split(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 4)
    axis, sizes = number(draw, 0, len(shape) - 1), numbers(draw, 1, 3, number(draw, 2, 3))
    keys: Keys = {"axis": axis, "splits": sizes}
    outputs = [put(shape, axis, n) for n in sizes]
    return OneLayer("split", (put(shape, axis, sum(sizes)),), outputs, keys, {}, (values(draw),))


def sliced(draw: Rng) -> OneLayer:
    shape = tuple(n + 1 for n in shape_of(draw, 2, 4))
    begin, end, strides = [], [], []
    for n in shape:
        first, last = sorted(int(v) for v in draw.choice(n + 1, 2, replace=False))
        begin.append(first)
        end.append(last)
        strides.append(number(draw, 1, 3))
    new = tuple(len(range(b, e, s)) for b, e, s in zip(begin, end, strides, strict=True))
    keys: Keys = {"begin": tuple(begin), "end": tuple(end), "strides": tuple(strides)}
    return OneLayer("slice", (shape,), (new,), keys, {}, (values(draw),))


def cut(draw: Rng) -> OneLayer:
    shape = tuple(n + 1 for n in shape_of(draw, 2, 4))
    crops = np.array([sorted(int(v) for v in draw.choice(n + 1, 2, replace=False)) for n in shape])
    new = tuple(int(e - b) for b, e in crops)
    return OneLayer("crop", (shape,), (new,), {"crops": crops}, {}, (values(draw),))


def reversed_rows(draw: Rng) -> OneLayer:
    shape = tuple(n + 1 for n in shape_of(draw, 2, 4))
    batch, time = (int(a) for a in draw.permutation(len(shape))[:2])
    keys: Keys = {"batch_axis": batch, "time_axis": time}
    draws = (values(draw), whole(0, shape[time] + 1))
    return OneLayer("reverse_sequence", (shape, (shape[batch],)), (shape,), keys, {}, draws)


def _blocks(draw: Rng) -> tuple[int, int, Keys]:
    by, bx = one_of(draw, ((2, 2), (2, 3), (3, 1), (1, 2)))
    return by, bx, {"block_size_x": bx, "block_size_y": by}


def from_blocks(draw: Rng) -> OneLayer:
    by, bx, keys = _blocks(draw)
    batch, height, width, depth = numbers(draw, 2, 4, 4)
    crops = [number(draw, 0, 1) for _ in range(4)]
    keys |= {f"crop_{side}": n for side, n in zip(("left", "right", "top", "bottom"), crops, strict=True)}
    new = (batch, height * by - crops[2] - crops[3], width * bx - crops[0] - crops[1], depth)
    return OneLayer("batch_to_space", ((batch * by * bx, height, width, depth),), (new,), keys, {}, (values(draw),))


def to_blocks(draw: Rng) -> OneLayer:
    by, bx, keys = _blocks(draw)
    batch, height, width, depth = numbers(draw, 1, 4, 4)
    before = numbers(draw, 0, 1, 4)
    sizes = (height * by - before[2] - before[3], width * bx - before[0] - before[1])
    if min(sizes) < 1:
        return to_blocks(draw)
    keys |= {f"pad_{side}": n for side, n in zip(("left", "right", "top", "bottom"), before, strict=True)}
    new = (batch * by * bx, height, width, depth)
    return OneLayer("space_to_batch", ((batch, *sizes, depth),), (new,), keys, {}, (values(draw),))


def depth_moved(operator: str) -> Callable[[Rng], OneLayer]:
    def make(draw: Rng) -> OneLayer:
        n = number(draw, 2, 3)
        batch, height, width, depth = numbers(draw, 1, 3, 4)
        shapes = [(batch, height * n, width * n, depth), (batch, height, width, depth * n * n)]
        keys: Keys = {"block_size_x": n, "block_size_y": n}
        if operator == "depth_to_space":
            keys |= {"mode": one_of(draw, ("DCR", "CRD"))}
            shapes.reverse()
        return OneLayer(operator, shapes[:1], shapes[1:], keys, {}, (values(draw),))

    return make


def batch_to_depth(draw: Rng) -> OneLayer:
    n, (batch, height, width, depth) = number(draw, 2, 4), numbers(draw, 1, 3, 4)
    shape, new = (batch * n, height, width, depth), (batch, height, width, depth * n)
    return OneLayer("batch_to_depth", (shape,), (new,), {"block_size": n}, {}, (values(draw),))


def strided(draw: Rng) -> OneLayer:
    shape = (1, *numbers(draw, 4, 7, 2), number(draw, 1, 3))
    kernel, stride = numbers(draw, 1, 3, 2), numbers(draw, 1, 3, 2)
    counts = [(n - k) // s + 1 for n, k, s in zip(shape[1:3], kernel, stride, strict=True)]
    new = (1, *(k * c for k, c in zip(kernel, counts, strict=True)), shape[3])
    keys: Keys = {"kernel_y": kernel[0], "kernel_x": kernel[1], "stride_y": stride[0], "stride_x": stride[1]}
    return OneLayer("data_stride", (shape,), (new,), keys, {}, (values(draw),))


def shuffled(draw: Rng) -> OneLayer:
    group, splits = number(draw, 2, 3), number(draw, 1, 2)
    shape = image_of(draw, group * splits * number(draw, 1, 3))
    outputs = (put(shape, 3, shape[3] // splits),) * splits
    return OneLayer("channel_shuffle", (shape,), outputs, {"group": group, "splits": splits}, {}, (values(draw),))


def filtered(draw: Rng) -> OneLayer:
    rows, count = number(draw, 3, 6), number(draw, 1, 3)
    shapes = [(rows, *numbers(draw, 1, 4, number(draw, 1, 2))) for _ in range(count)]
    keys: Keys = {"axis": 0, "num": count}
    draws = [*(values(draw) for _ in shapes), whole(0, 2)]
    return OneLayer("filter", (*shapes, (rows,)), (*shapes, ()), keys, {}, draws)


def repeated(draw: Rng) -> OneLayer:
    shape = shape_of(draw, 2, 3)
    axis = number(draw, 0, len(shape) - 1)
    new = put(shape, axis, 3 * shape[axis])
    return OneLayer("repeat", (shape, (shape[axis],)), (new,), {"axis": axis}, {}, (values(draw), whole(0, 4)))


def decoded(draw: Rng) -> OneLayer:
    batch, steps, classes = number(draw, 1, 3), number(draw, 3, 9), number(draw, 2, 5)
    keys: Keys = {"merge_repeated": truly(draw)}
    draws = (values(draw), whole(1, steps + 1))
    new = (batch, steps + number(draw, 0, 4), 1, 1)
    return OneLayer("ctc_greedy_decoder", ((batch, steps, classes), (batch,)), (new,), keys, {}, draws)


def counted(draw: Rng) -> OneLayer:
    bins = number(draw, 2, 9)
    low, high = one_of(draw, ((-1.0, 2.5), (-2.0, 2.0), (0.0, 1.0), (1.5, -1.5)))
    keys: Keys = {"min": low, "max": high, "nbins": bins, "discrete": truly(draw)}
    return OneLayer("count", ((1, number(draw, 20, 60)),), ((1, bins),), keys, {}, (values(draw),))


def recurrent(operator: str) -> Callable[[Rng], OneLayer]:
    def make(draw: Rng) -> OneLayer:
        batch, steps, columns, cells = number(draw, 1, 2), number(draw, 1, 4), number(draw, 1, 5), number(draw, 1, 6)
        gates = 4 if operator == "basic_lstm" else 3
        keys: Keys = {"time_steps": steps, "input_size": columns, "cell_size": cells}
        keys |= {
            "direction": one_of(draw, ("forward", "reverse")),
            "activations": ("SIGMOID", "TANH", "TANH")[: gates - 1],
        }
        state = (batch, cells)
        whole_run = {"Y": (batch, steps, cells)} if gates == 4 else {"H": (batch, steps, cells)}
        shapes = {**whole_run, **({"H": state, "C": state} if gates == 4 else {"Hn": state})}
        if gates == 4:
            keys["forget_bias"] = one_of(draw, (0.0, 1.0))
        out = one_of(draw, [tuple(shapes), tuple(shapes)[-1:], tuple(shapes)[:1]])
        keys["out_sequence"] = out
        biases = gates * cells + (cells if operator == "gru_v1" else 0) if operator != "gru_v3" else 3 * cells
        given = {"weights": reals(draw, (cells * gates, columns + cells)), "biases": reals(draw, (biases,))}
        inputs = ((batch, steps, columns), *(state,) * (gates - 2))
        draws = (values(draw, ((-2, 3), (-1, 1), (0, 1))), real(-1, 1))
        return OneLayer(operator, inputs, tuple(shapes[o] for o in out), keys, {}, draws, given)

    return make


def corners(low: float, high: float, smallest: float, numbered: int = 0) -> Draw:
    """Boxes [..., 4] of y0, x0, y1, x1, or behind the number of an image."""

    def drawn(draw: Rng, shape: Shape) -> Array:
        lead = shape[:-1]
        start = draw.uniform(low, high - smallest, (*lead, 2))
        end = np.minimum(
            start + draw.uniform(smallest, (high - low) * draw.uniform(0.2, 1, (*lead, 1)), (*lead, 2)), high
        )
        found = np.concatenate([start, np.maximum(start, end)], axis=-1)
        if numbered:
            found = np.concatenate([draw.integers(0, numbered, (*lead, 1)), found], axis=-1)
        return found.astype(np.float32)

    return drawn


def normal(deviation: float) -> Draw:
    return lambda draw, shape: draw.normal(0, deviation, shape).astype(np.float32)


def moved_boxes(draw: Rng) -> OneLayer:
    shape = (1, number(draw, 2, 20), 4)
    keys: Keys = {"coordinate_order": "YX"}
    draws = (corners(0, 1, 0.02), normal(one_of(draw, (0.3, 1, 4))))
    return OneLayer("bounding_box", (shape, shape), (shape,), keys, {}, draws)


def proposed(draw: Rng) -> OneLayer:
    count, batch = number(draw, 4, 30), 1
    height, width = numbers(draw, 60, 600, 2)
    boxes = corners(0, 1, 0.05)(draw, (count, 4)).astype(np.float64) * [height, width, height, width]
    size, center = boxes[:, 2:] - boxes[:, :2], (boxes[:, 2:] + boxes[:, :2]) / 2
    found = {"wa": size[:, 1], "ha": size[:, 0], "xcenter": center[:, 1], "ycenter": center[:, 0]}
    keys: Keys = {"width": width, "height": height, "score_threshold": amount(draw, 0.1, 0.9)}
    keys["scale_anchor"] = (10.0, 10.0, 5.0, 5.0)
    limit = number(draw, 2, count + 3)
    inputs, outputs = ((batch, count, 2), (batch, count, 4)), ((batch, limit), (batch, limit, 4), (batch, 1), (1, 1))
    given = {key: value.astype(np.float32) for key, value in found.items()}
    return OneLayer("proposal", inputs, outputs, keys, {}, (real(0, 1), normal(one_of(draw, (0.5, 1.5)))), given)


def detected(draw: Rng) -> OneLayer:
    count, classes = number(draw, 3, 12), number(draw, 1, 4)
    height, width = numbers(draw, 60, 600, 2)
    side = float(min(height, width))
    shown = max(1, classes - 1)
    keys: Keys = {"image_width": width, "image_height": height, "score_threshold": amount(draw, 0.1, 0.9)}
    keys["variance"] = one_of(draw, ((10.0, 10.0, 5.0, 5.0), (8.0, 12.0, 4.0, 6.0)))
    if truly(draw):
        keys["anchor_mode"] = "caffe_detection"
    if truly(draw):
        keys["bbox_xform_clip"] = amount(draw, 0.1, 4)
    limit, rows = number(draw, 2, count * shown + 2), number(draw, 1, shown + 1)
    inputs = ((1, count, classes), (1, count, classes, 4), (1, count, 4))
    outputs = ((1, limit), (1, limit, 4), (1, rows), (1, rows), (1, 1))
    draws = (real(0, 1), normal(one_of(draw, (0.5, 1.5))), corners(0, side, 4))
    return OneLayer("detection_output", inputs, outputs, keys, {}, draws)


def suppressed(draw: Rng) -> OneLayer:
    sizes = numbers(draw, 2, 9, number(draw, 1, 3))
    count, classes, limit = sum(sizes), len(sizes), number(draw, 2, 12)
    is_pixels, soft = truly(draw), truly(draw)
    keys: Keys = {"method": "GAUSSIAN" if soft else "HARD", "image_width": number(draw, 100, 600)}
    keys |= {"image_height": number(draw, 100, 600), "center_point_box": 0, "max_output_size": number(draw, 1, 8)}
    keys |= {"iou_threshold": amount(draw, 0.1, 0.8), "score_threshold": amount(draw, 0.05, 0.4)}
    keys["soft_nms_sigma"] = amount(draw, 0.2, 1) if soft else 0.0

    def parts(_: Rng, shape: Shape) -> Array:
        return np.array(np.broadcast_to(np.array(sizes, np.int32), shape))

    draws = (
        corners(0, 400 if is_pixels else 1, 20 if is_pixels else 0.05),
        parts,
        whole(classes, classes + 1),
        real(0, 1),
    )
    inputs = ((1, count, 4), (1, classes), (1, 1), (1, count))
    return OneLayer("nms", inputs, ((1, limit, 4), (1, classes), (1, limit), (1, limit)), keys, {}, draws)


def aligned_regions(draw: Rng) -> OneLayer:
    images, count = number(draw, 1, 2), number(draw, 2, 6)
    height, width = numbers(draw, 6, 24, 2)
    scales = (one_of(draw, (0.25, 0.125, 0.1)), one_of(draw, (0.25, 0.125)))
    pooled, sample = numbers(draw, 1, 4, 2), one_of(draw, ((2, 2), (0, 0), (1, 3), (3, 2)))
    keys: Keys = {"method": one_of(draw, ("AVG", "AVG", "MAX")), "pooled_shape": pooled, "spatial_scale_value": scales}
    keys |= {"sample": sample, "coordinate_transformation_mode": one_of(draw, ("HALF_PIXEL", "OUTPUT_HALF_PIXEL"))}
    reach = min(height / scales[0], width / scales[1]) * one_of(draw, (1.0, 1.0, 1.2))
    inputs = ((images, height, width, number(draw, 1, 3)), (count, 5))
    draws = (values(draw, ((-2, 3), (0, 1), (-6, 6))), corners(0, reach, 2, images))
    return OneLayer("roi_align", inputs, ((count, *pooled, inputs[0][3]),), keys, {}, draws)


def pooled_regions(draw: Rng) -> OneLayer:
    height, width, count = number(draw, 6, 24), number(draw, 6, 24), number(draw, 2, 6)
    scales, pooled = (one_of(draw, (0.25, 0.125)), one_of(draw, (0.25, 0.125))), numbers(draw, 1, 4, 2)
    reach = min(height / scales[0], width / scales[1]) * one_of(draw, (1.0, 1.2))
    inputs = ((1, height, width, number(draw, 1, 3)), (count, 5))
    draws = (values(draw, ((-2, 3), (0, 1), (-6, 6))), corners(0, reach, 2, 1))
    keys: Keys = {"pooled_shape": pooled, "spatial": scales}
    return OneLayer("max_roi_pool", inputs, ((count, *pooled, inputs[0][3]),), keys, {}, draws)


def pyramid_regions(draw: Rng) -> OneLayer:
    count, channels, size = number(draw, 3, 10), number(draw, 1, 3), numbers(draw, 2, 4, 2)
    sides = [40, 20, 10, 5]
    is_parts = truly(draw)
    keys: Keys = {"resize_width": size[1], "resize_height": size[0], "image_width": 640, "image_height": 640}
    keys |= {"sample": one_of(draw, ((2, 2), (1, 1), (2, 3))), "spatial_scale_value": tuple(n / 640 for n in sides)}
    keys |= {"proposal_normalized": is_parts}
    keys["coordinate_transformation_mode"] = one_of(draw, ("HALF_PIXEL", "OUTPUT_HALF_PIXEL"))
    maps = values(draw, ((-2, 3), (0, 1), (-6, 6)))
    others = maps if is_parts else values(draw, ((-2, 3), (0, 1), (-6, 6)))
    draws = (corners(0, 1 if is_parts else 640, 0.03 if is_parts else 12), maps, others)
    inputs = ((1, count, 4), *((1, n, n, channels) for n in sides))
    return OneLayer("pyramid_roi_align", inputs, ((count, *size, channels),), keys, {}, draws)


FAMILIES: dict[str, tuple[int, Callable[[Rng], OneLayer]]] = {
    **{
        operator: (6, plain(operator))
        for operator in ("abs", "bnll", "ceil", "cosine", "erf", "floor", "negative", "round", "sign", "sine", "square")
    },
    "exp": (6, plain("exp", ((-2, 3), (0, 1), (-3, -0.5), (-6, 6)))),
    **{operator: (6, plain(operator, POSITIVE)) for operator in ("sqrt", "rsqrt", "log", "reciprocal")},
    **{method: (5, activation(method)) for method in ACTIVATIONS},
    "slopes": (8, slopes),
    "crelu": (6, crelu),
    "eltwise": (24, pair("eltwise", ("ADD", "SUB", "MUL", "MAX", "MIN"))),
    **{operator: (12, pair(operator)) for operator in ("add", "sub", "mul", "squared_difference")},
    "div": (12, divided),
    "pow": (6, power),
    "logical": (16, logical),
    "where": (8, chosen),
    "pooled": (24, pooled),
    "pooled whole": (4, pooled_whole),
    "pooled with places": (16, pooled_with_places),
    "put back": (8, put_back),
    "convolution": (30, convolved),
    "depthwise_conv": (20, convolved_by_depth),
    "conv_transpose": (16, transposed),
    "fully_connected": (16, multiplied),
    "cubes": (8, cubes),
    "matrices": (16, matrices),
    "bias_add": (6, biased),
    "batch_norm": (12, batch_norm),
    "layer_norm": (8, layer_norm),
    **{operator: (8, other_norm(operator)) for operator in ("instance_norm", "group_norm")},
    "normalization": (8, normalized),
    "lrn": (10, response),
    "softmax": (12, along_axis("softmax")),
    "log_softmax": (8, along_axis("log_softmax")),
    "reduce": (30, reduced),
    "reduce PROD": (8, product),
    "moments": (6, moments),
    "cumulate": (14, cumulated),
    "segment_reduce": (8, segments),
    "gather": (12, gathered),
    "gather_nd": (10, gathered_places),
    "scatter_nd": (16, scattered),
    "scatter_elements": (12, scattered_elements),
    "grid_sample": (16, sampled),
    "resize": (24, resized),
    "concat": (16, joined),
    "arg_min_max": (10, extreme),
    "top_k": (10, best),
    "in_top_k": (6, among_best),
    "one_hot": (12, one_hot),
    "pad": (12, padded),
    "tile": (5, tiled),
    "transpose": (6, turned),
    "reshape": (5, shaped),
    "split": (6, split),
    "slice": (8, sliced),
    "crop": (5, cut),
    "reverse_sequence": (8, reversed_rows),
    "batch_to_space": (6, from_blocks),
    "space_to_batch": (8, to_blocks),
    **{operator: (5, depth_moved(operator)) for operator in ("space_to_depth", "depth_to_space")},
    "batch_to_depth": (4, batch_to_depth),
    "data_stride": (6, strided),
    "channel_shuffle": (5, shuffled),
    "filter": (6, filtered),
    "repeat": (6, repeated),
    "ctc_greedy_decoder": (8, decoded),
    "count": (8, counted),
    **{operator: (8, recurrent(operator)) for operator in ("gru_v1", "gru_v3", "basic_lstm")},
    "bounding_box": (10, moved_boxes),
    "proposal": (10, proposed),
    "detection_output": (16, detected),
    "nms": (20, suppressed),
    "roi_align": (24, aligned_regions),
    "max_roi_pool": (10, pooled_regions),
    "pyramid_roi_align": (16, pyramid_regions),
}
"""What is drawn -> how many, and how."""


OPTIONAL = re.findall(
    r"\w+",
    """
trans_a trans_b axis coordinate_order direction group discrete exclusive reverse count_include_pad flatten_dim
storage_order ceil_mode nearest_mode antialias batch_dims align_corners reduction with_activation select_last_index
select_index largest merge_repeated mode constant_value proposal_normalized method max_output_size approximate alpha
gamma forget_bias score_threshold dilation_y dilation_x
""",
)
"""Keys that a file may leave out."""
OF_SHAPES: Keys = {"ceil_mode": False, "dilation_y": 1, "dilation_x": 1, "group": 1, "mode": "DCR", "axis": None}
"""Keys that change a shape: the values at which it stays, None for that of the last axis."""


def _without_keys(layers: Mapping[str, OneLayer]) -> dict[str, OneLayer]:
    """Of each operator the first layer that may do without a key, without it."""
    found: dict[tuple[str, str], tuple[str, OneLayer]] = {}
    for name, layer in layers.items():
        for key in OPTIONAL:
            if key not in layer.keys or (layer.operator, key) in found:
                continue
            stays = OF_SHAPES.get(key, layer.keys[key]) if key != "axis" else len(layer.inputs[0]) - 1
            if layer.keys[key] == stays or (key == "mode" and layer.operator in ("pad", "resize")):
                keys = {k: value for k, value in layer.keys.items() if k != key}
                found[layer.operator, key] = (f"{name} without {key}", replace(layer, keys=keys))
    return dict(found.values())


def _drawn() -> tuple[dict[str, OneLayer], dict[str, str]]:
    layers, modes = {}, {}
    for family, (count, make) in FAMILIES.items():
        for k in range(-(-count // 2)):
            draw = np.random.default_rng([zlib.crc32(family.encode()), k])
            modes[f"{family} {k}"] = one_of(draw, MODES)
            layers[f"{family} {k}"] = make(draw)
    for k, (name, layer) in enumerate(_without_keys(layers).items()):
        modes[name], layers[name] = MODES[k % 7], layer
    return layers, modes


DRAWN, MODE_OF = _drawn()
