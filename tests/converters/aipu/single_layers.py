"""Float IR of one layer each, with keys and shapes that golden data do not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.support.aipu_layers import Output, float_layer
from tflq.converters.aipu.emit import float_network_of
from tflq.graph import Array
from tflq.schemas.aipu import Network

SAMPLES = 10
IMAGE = (1, 5, 6, 4)
ROWS = (1, 5, 8)
Shape = tuple[int, ...]
Keys = dict[str, Any]
Draw = Callable[[np.random.Generator, Shape], Array]


def real(low: float = -2.0, high: float = 3.0) -> Draw:
    return lambda draw, shape: draw.uniform(low, high, shape).astype(np.float32)


def whole(low: int, high: int) -> Draw:
    return lambda draw, shape: draw.integers(low, high, shape).astype(np.int32)


def truth(draw: np.random.Generator, shape: Shape) -> Array:
    """Mostly zeros or mostly not, row by row."""
    return (draw.uniform(-1, 1, shape) * (draw.uniform(0, 1, (*shape[:-1], 1)) < 0.6)).astype(np.float32)


def given(*rows: Sequence[float]) -> Draw:
    """The same numbers in every sample."""
    return lambda _draw, shape: np.broadcast_to(np.array(rows, np.float32), shape).copy()


@dataclass(frozen=True)
class OneLayer:
    """A layer, what it reads and writes, its keys and its own constants: shapes of drawn ones, or given."""

    operator: str
    inputs: Sequence[Shape]
    outputs: Sequence[Shape]
    keys: Keys = field(default_factory=dict)
    constants: Mapping[str, Shape] = field(default_factory=dict)
    draws: Sequence[Draw] = (real(),)
    given: Mapping[str, Array] = field(default_factory=dict)

    def samples(self) -> list[Array]:
        """[S, *shape] of each input."""
        draw = np.random.default_rng(12)
        draws = [*self.draws, *[self.draws[-1]] * len(self.inputs)]
        return [one(draw, (SAMPLES, *shape)) for one, shape in zip(draws, self.inputs, strict=False)]

    def network(self) -> Network:
        draw = np.random.default_rng(13)
        constants: dict[str, Array] = dict(self.given)
        constants |= {key: draw.uniform(-1, 1, shape).astype(np.float32) for key, shape in self.constants.items()}
        graph = float_layer(self.operator, self.samples(), [Output(s) for s in self.outputs], constants, **self.keys)
        graph.nodes = [replace(node, name="layer") for node in graph.nodes]
        graph.tensors = [replace(tensor, range=None) for tensor in graph.tensors]
        return float_network_of(graph, "layer")


def one(operator: str, shape: Shape, new: Shape | None = None, **keys: Any) -> OneLayer:
    return OneLayer(operator, (shape,), (shape if new is None else new,), keys)


def _reduced(shape: Shape, axes: Shape) -> Shape:
    return tuple(1 if a in axes else n for a, n in enumerate(shape))


def window(kernel: Shape, stride: Shape, pads: Shape, dilation: Shape = (1, 1)) -> Keys:
    """Keys of a window; pads left, right, top, bottom."""
    keys: Keys = {"kernel_y": kernel[0], "kernel_x": kernel[1], "stride_y": stride[0], "stride_x": stride[1]}
    keys |= {f"pad_{side}": n for side, n in zip(("left", "right", "top", "bottom"), pads, strict=True)}
    return keys | {"dilation_y": dilation[0], "dilation_x": dilation[1]}


def _sides(size: Shape, keys: Keys, ceil: bool = False) -> Shape:
    found = []
    for n, axis, sides in zip(size, "yx", (("top", "bottom"), ("left", "right")), strict=True):
        reach = (int(keys[f"kernel_{axis}"]) - 1) * int(keys[f"dilation_{axis}"]) + 1
        free = n + sum(int(keys[f"pad_{s}"]) for s in sides) - reach
        step = int(keys[f"stride_{axis}"])
        found.append((-(-free // step) if ceil else free // step) + 1)
    return tuple(found)


def pool(
    method: str,
    kernel: Shape,
    stride: Shape,
    pads: Shape,
    dilation: Shape = (1, 1),
    ceil: bool = False,
    full: bool = False,
) -> OneLayer:
    keys = window(kernel, stride, pads, dilation)
    sides = _sides((7, 6), keys, ceil)
    more: Keys = {"count_include_pad": full} if method == "AVG" else {}
    return one("pooling", (1, 7, 6, 3), (1, *sides, 3), **keys, method=method, ceil_mode=ceil, **more)


def arg_pool(flatten: str, pads: Shape, order: int = 0, ceil: bool = False, dilation: Shape = (1, 1)) -> OneLayer:
    keys = window((2, 3), (2, 2), pads, dilation)
    new = (2, *_sides((7, 6), keys, ceil), 3)
    keys |= {"ceil_mode": ceil, "flatten_dim": flatten, "storage_order": order}
    return OneLayer("max_pooling_with_arg_max", ((2, 7, 6, 3),), (new, new), keys)


def linear(
    operator: str,
    kernel: Shape,
    stride: Shape,
    pads: Shape,
    dilation: Shape = (1, 1),
    group: int = 1,
    channels: int = 4,
    act: Keys | None = None,
) -> OneLayer:
    keys = window(kernel, stride, pads, dilation)
    sides = _sides((7, 6), keys)
    own: dict[str, Shape] = {"weights": (channels, *kernel, 4 // group), "biases": (channels,)}
    more: Keys = {"multiplier": channels // 4} if operator == "depthwise_conv" else {}
    keys = {"num_output": channels, **keys, "group": group, **(act or {"with_activation": "NONE"}), **more}
    return OneLayer(operator, ((1, 7, 6, 4),), ((1, *sides, channels),), keys, own)


def transposed(
    kernel: Shape, stride: Shape, pads: Shape, extra: Shape = (0, 0), dilation: Shape = (1, 1), group: int = 1
) -> OneLayer:
    keys = window(kernel, stride, pads, dilation)
    left, right, top, bottom = pads
    sides = [
        (n - 1) * s + (k - 1) * d + 1 - p + e
        for n, s, k, d, p, e in zip((4, 5), stride, kernel, dilation, (top + bottom, left + right), extra, strict=True)
    ]
    keys = {
        "num_output": 4,
        **keys,
        "group": group,
        "with_activation": "NONE",
        "output_padding_x": extra[1],
        "output_padding_y": extra[0],
    }
    return OneLayer(
        "conv_transpose",
        ((1, 4, 5, 4),),
        ((1, *sides, 4),),
        keys,
        {"weights": (4, *kernel, 4 // group), "biases": (4,)},
    )


def resized(method: str, mode: str, size: Shape, nearest: str = "") -> OneLayer:
    keys: Keys = {"method": method, "size": (1, *size, 4), "mode": mode, "antialias": False, "exclude_outside": False}
    return one("resize", IMAGE, (1, *size, 4), **keys, **({"nearest_mode": nearest} if nearest else {}))


def pair(
    operator: str, first: Shape, second: Shape, draws: Sequence[Draw] = (real(), real(-1, 4)), **keys: Any
) -> OneLayer:
    return OneLayer(operator, (first, second), (tuple(np.broadcast_shapes(first, second)),), keys, {}, draws)


def recurrent(operator: str, direction: str, out: tuple[str, ...], **more: Any) -> OneLayer:
    gates = 4 if operator == "basic_lstm" else 3
    keys: Keys = {"time_steps": 3, "input_size": 4, "cell_size": 5, "direction": direction}
    keys |= {"activations": ("SIGMOID", "TANH", "TANH")[: gates - 1], **more, "out_sequence": out}
    biases = 20 if operator in ("gru_v1", "basic_lstm") else 15
    states = ((1, 5),) * (gates - 2)
    shapes = (
        {"Y": (1, 3, 5), "H": (1, 5), "C": (1, 5), "Hn": (1, 5)}
        if operator == "basic_lstm"
        else {"H": (1, 3, 5), "Hn": (1, 5)}
    )
    return OneLayer(
        operator,
        ((1, 3, 4), *states),
        tuple(shapes[o] for o in out),
        keys,
        {"weights": (5 * gates, 9), "biases": (biases,)},
        (real(), real(-1, 1)),
    )


def grid(method: str, mode: str, aligned: bool) -> OneLayer:
    return OneLayer(
        "grid_sample",
        ((1, 5, 6, 3), (1, 4, 3, 2)),
        ((1, 4, 3, 3),),
        {"method": method, "padding_mode": mode, "align_corners": aligned},
        {},
        (real(), real(-1.3, 1.3)),
    )


RELU: Keys = {"with_activation": "RELU"}
LEAKY: Keys = {"with_activation": "LEAKYRELU", "negative_slope_type": "float32", "negative_slope_value": 0.3}


def of_pair(operator: str, method: str) -> Keys:
    """Keys of an operator of two inputs; `method` is "" for none."""
    named: Keys = {"method": method} if method else {}
    return named if operator in ("div", "squared_difference", "logical") else {"with_activation": "NONE", **named}


BORDERS = given((0, 0, 0, 36, 28), (0, 8, 8, 8, 8), (0, 12, 4, 12, 20), (0, 20, 20, 24, 20), (0, 35, 27, 36, 28))
"""A map of 9 by 7 pixels, each of 4: the whole, a point, two lines, the last corner."""
LAYERS: dict[str, OneLayer] = {
    **{
        f"cumulate {m} {a} {e} {r}": one("cumulate", (1, 3, 4, 5), axis=a, method=m, exclusive=e, reverse=r)
        for m in ("SUM", "PROD")
        for a, e, r in ((3, False, False), (1, True, False), (2, False, True), (2, True, True))
    },
    **{
        f"reduce {m} {a}": OneLayer(
            "reduce",
            (IMAGE,),
            (_reduced(IMAGE, a),),
            {"axis": a, "method": m},
            {},
            (truth if m in ("ANY", "ALL") else real(-1.5, 2),),
        )
        for m in ("SUM", "MEAN", "MIN", "MAX", "PROD", "VARIANCE", "ANY", "ALL", "L1", "L2")
        for a in ((3,), (1, 2))
    },
    "reduce PROD positive": OneLayer(
        "reduce", (IMAGE,), (_reduced(IMAGE, (1,)),), {"axis": (1,), "method": "PROD"}, {}, (real(0.5, 1.5),)
    ),
    "moments": OneLayer("moments", (IMAGE,), (_reduced(IMAGE, (1, 2)),) * 2, {"axis": (1, 2), "keepdims": True}),
    **{
        f"gather {a} {b}": OneLayer(
            "gather",
            (IMAGE, i),
            (new,),
            {"axis": a, "batch_dims": b},
            {},
            (real(), whole(-5 if a == 1 else 0, 5 if a == 1 else 4)),
        )
        for a, b, i, new in ((1, 0, (3,), (1, 3, 6, 4)), (3, 0, (2, 2), (1, 5, 6, 2, 2)), (2, 1, (1, 3), (1, 5, 3, 4)))
    },
    **{
        f"gather_nd {n}": OneLayer(
            "gather_nd", (IMAGE, (3, n)), ((3, *IMAGE[n:]),), {"batch_dims": 0}, {}, (real(), whole(0, 1))
        )
        for n in (1, 3, 4)
    },
    **{
        f"gather_nd of rows {n}": OneLayer(
            "gather_nd", ((4, 5, 6), (7, n)), ((7, *(4, 5, 6)[n:]),), {"batch_dims": 0}, {}, (real(), whole(0, 4))
        )
        for n in (1, 2, 3)
    },
    **{
        f"scatter_nd {m}": OneLayer(
            "scatter_nd", ((6, 4), (5, 1), (5, 4)), ((6, 4),), {"reduction": m}, {}, (real(), whole(0, 6), real(-1, 4))
        )
        for m in ("ADD", "MUL", "MAX", "MIN", "NONE")
    },
    **{
        f"scatter_elements {m} {a}": OneLayer(
            "scatter_elements",
            ((1, 4, 5), *(((1, 2, 5),) * 2 if a == 1 else ((1, 4, 2),) * 2)),
            ((1, 4, 5),),
            {"axis": a, "reduction": m},
            {},
            (real(), whole(0, 4), real(-1, 4)),
        )
        for m in ("ADD", "MAX", "MIN", "NONE")
        for a in (1, 2)
    },
    **{
        f"{m} grid {p} {a}": grid(m, p, a)
        for m, p, a in (
            ("BILINEAR", "ZEROS", False),
            ("BILINEAR", "BORDER", True),
            ("NEAREST", "ZEROS", True),
            ("NEAREST", "BORDER", False),
        )
    },
    **{
        f"bilinear {m}": resized("BILINEAR", m, (8, 4))
        for m in ("ALIGN_CORNERS", "ASYMMETRIC", "HALF_PIXEL", "PYTORCH_HALF_PIXEL")
    },
    **{
        f"nearest {m} {n}": resized("NEAREST", m, (7, 9), n)
        for m, n in (
            ("ALIGN_CORNERS", "ROUND_PREFER_FLOOR"),
            ("ASYMMETRIC", "CEIL"),
            ("HALF_PIXEL", "ROUND_PREFER_CEIL"),
            ("HALF_PIXEL", "FLOOR"),
            ("PYTORCH_HALF_PIXEL", "ROUND_PREFER_FLOOR"),
            ("TF_HALF_PIXEL_FOR_NN", "SIMPLE"),
        )
    },
    "pool a": pool("AVG", (3, 2), (2, 1), (1, 0, 1, 1)),
    "pool b": pool("AVG", (3, 2), (2, 1), (1, 0, 1, 1), full=True),
    "pool c": pool("AVG", (3, 3), (2, 2), (1, 1, 1, 1), ceil=True),
    "pool e": pool("MAX", (3, 2), (2, 2), (1, 0, 1, 1), ceil=True),
    "pool f": pool("MAX", (2, 2), (1, 1), (0, 1, 1, 0), (2, 2)),
    "pool g": pool("AVG", (2, 2), (1, 1), (0, 1, 1, 0), (2, 2)),
    **{
        f"arg pool {f} {p} {o} {c}": arg_pool(f, p, o, c)
        for f, p, o, c in (
            ("HW", (1, 0, 0, 1), 0, False),
            ("NHWC", (0, 0, 0, 0), 0, True),
            ("NCHW", (1, 1, 1, 1), 1, False),
            ("HWC", (0, 1, 1, 0), 0, True),
        )
    },
    **{
        f"{o} {k} {s} {d} {g} {n}": linear(o, k, s, p, d, g, n, act)
        for o, k, s, p, d, g, n, act in (
            ("convolution", (3, 2), (2, 1), (1, 0, 0, 1), (1, 1), 1, 3, RELU),
            ("convolution", (2, 3), (1, 1), (2, 1, 1, 1), (2, 1), 2, 6, None),
            ("convolution", (2, 2), (1, 2), (0, 0, 1, 0), (1, 2), 4, 8, LEAKY),
            ("convolution", (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, 5, {"with_activation": "RELU6"}),
            ("depthwise_conv", (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 4, 4, LEAKY),
            ("depthwise_conv", (2, 3), (2, 1), (0, 1, 1, 0), (1, 2), 4, 8, {"with_activation": "RELU6"}),
        )
    },
    **{
        f"transposed {v}": transposed(*v)
        for v in (
            ((3, 3), (2, 2), (0, 1, 0, 1)),
            ((2, 3), (1, 2), (1, 1, 0, 0), (0, 1)),
            ((3, 2), (3, 1), (0, 0, 1, 1)),
            ((2, 2), (2, 2), (0, 0, 0, 0), (1, 1)),
            ((3, 3), (1, 1), (1, 1, 1, 1)),
        )
    },
    "fully_connected": OneLayer(
        "fully_connected", ((4, 6),), ((4, 5),), {"num_output": 5, **RELU}, {"weights": (5, 6), "biases": (5,)}
    ),
    "fully_connected leaky": OneLayer(
        "fully_connected", ((4, 6),), ((4, 5),), {"num_output": 5, **LEAKY}, {"weights": (5, 6), "biases": (5,)}
    ),
    **{
        f"mat_mul {a} {b} {len(x)}": OneLayer("mat_mul", (x, y), ((*x[:-2], 4, 3),), {"trans_a": a, "trans_b": b})
        for a, b, x, y in (
            (True, False, (2, 5, 4), (2, 5, 3)),
            (False, True, (2, 4, 5), (2, 3, 5)),
            (True, True, (2, 3, 5, 4), (2, 3, 3, 5)),
        )
    },
    "bias_add": OneLayer("bias_add", (IMAGE,), (IMAGE,), {}, {"biases": (4,)}),
    "bias_add 1": OneLayer("bias_add", (IMAGE,), (IMAGE,), {"axis": 1}, {"biases": (5,)}),
    "bias_add 2": OneLayer("bias_add", (IMAGE,), (IMAGE,), {"axis": 2}, {"biases": (6,)}),
    **{
        f"batch_norm {a}": OneLayer(
            "batch_norm",
            (IMAGE,),
            (IMAGE,),
            {"axis": a, "epsilon": 0.0},
            {"weights": (IMAGE[a],), "biases": (IMAGE[a],)},
        )
        for a in (1, 2, 3)
    },
    "layer_norm": OneLayer(
        "layer_norm", (ROWS,), (ROWS,), {"axis": (2,), "epsilon": 0.01}, {"weights": (8,), "biases": (8,)}
    ),
    **{
        f"layer_norm of {n}": OneLayer(
            "layer_norm", ((1, n),), ((1, n),), {"axis": (1,), "epsilon": 0.01}, {"weights": (n,), "biases": (n,)}
        )
        for n in (5, 16129, 16400)
    },
    "layer_norm of two": OneLayer(
        "layer_norm", (IMAGE,), (IMAGE,), {"axis": (2, 3), "epsilon": 0.001}, {"weights": (6, 4), "biases": (6, 4)}
    ),
    "instance_norm": OneLayer(
        "instance_norm", (IMAGE,), (IMAGE,), {"epsilon": 0.01}, {"weights": (4,), "biases": (4,)}
    ),
    "group_norm": OneLayer(
        "group_norm", (IMAGE,), (IMAGE,), {"axis": 3, "group": 2, "epsilon": 0.01}, {"weights": (4,), "biases": (4,)}
    ),
    "group_norm of a row": OneLayer(
        "group_norm",
        ((1, 4, 3, 6),),
        ((1, 4, 3, 6),),
        {"axis": 3, "group": 3, "epsilon": 1e-5},
        {"weights": (6,), "biases": (6,)},
    ),
    **{
        f"normalization {m} {a}": one("normalization", IMAGE, axis=(a,), method=m, epsilon=1e-6)
        for m, a in (("L2", 3), ("L2", 1), ("L1", 3))
    },
    **{
        f"lrn {m} {n}": one("lrn", IMAGE, method=m, size=n, bias=1.0, alpha=0.5, beta=0.75)
        for m, n in (("ACROSS_CHANNELS", 3), ("ACROSS_CHANNELS", 7), ("WITHIN_CHANNEL", 3))
    },
    **{f"softmax {a}": one("softmax", IMAGE, axis=a) for a in (1, 3)},
    "log_softmax": one("log_softmax", IMAGE, axis=2),
    **{
        f"{o} {m or ''} {len(s)}": pair(o, f, s, **of_pair(o, m))
        for o, m, f, s in (
            ("eltwise", "MAX", IMAGE, IMAGE),
            ("eltwise", "MIN", IMAGE, IMAGE),
            ("eltwise", "ADD", IMAGE, IMAGE),
            ("eltwise", "SUB", IMAGE, IMAGE),
            ("eltwise", "MUL", IMAGE, IMAGE),
            ("add", "", IMAGE, (1, 5, 1, 1)),
            ("sub", "", (1, 1, 6, 1), IMAGE),
            ("mul", "", IMAGE, (4,)),
            ("squared_difference", "", IMAGE, IMAGE),
            *(
                ("logical", m, IMAGE, IMAGE)
                for m in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "AND", "OR", "XOR")
            ),
        )
    },
    "logical NOT": OneLayer("logical", (IMAGE,), (IMAGE,), {"method": "NOT"}, {}, (truth,)),
    "div by positive": pair("div", IMAGE, IMAGE, (real(), real(0.5, 3))),
    "div by any": pair("div", IMAGE, IMAGE),
    "pow": pair("pow", IMAGE, IMAGE, (real(0.2, 2), real(-1, 2))),
    "eltwise relu": pair("eltwise", IMAGE, IMAGE, method="ADD", **RELU),
    "eltwise leaky": pair("eltwise", IMAGE, IMAGE, **{"method": "SUB", **LEAKY}),
    "add relu": pair("add", IMAGE, (4,), **RELU),
    "where": OneLayer("where", (IMAGE,) * 3, (IMAGE,), {}, {}, (truth, real(), real(0, 4))),
    **{
        f"activation {m}": one("activation", IMAGE, method=m, **k)
        for m, k in (
            ("RELU", {}),
            ("RELU6", {}),
            ("CLIP", {"clip_min": -0.5, "clip_max": 1.25}),
            ("LEAKYRELU", {"negative_slope_type": "float32", "negative_slope_value": 0.2}),
            ("ELU", {"alpha": 0.75}),
            ("SELU", {"alpha": 1.67, "gamma": 1.05}),
            ("SIGMOID", {}),
            ("TANH", {}),
            ("HARDSWISH", {}),
            ("SOFTPLUS", {}),
            ("SOFTSIGN", {}),
            ("MISH", {}),
            ("SILU", {}),
            ("SWISH", {"alpha": 1.3}),
            ("HARDSIGMOID", {"alpha": 0.2, "beta": 0.5, "clip_min": 0.0, "clip_max": 1.0}),
            ("GELU", {"approximate": "NONE"}),
            ("GELU", {"approximate": "TANH"}),
            ("THRESHOLDEDRELU", {"alpha": 0.5}),
            ("SHRINK", {"bias": 0.2, "lambd": 0.5}),
            ("CELU", {"alpha": 0.7}),
        )
    },
    "activation GELU by tanh": one("activation", IMAGE, method="GELU", approximate="TANH"),
    "PRELU": OneLayer("activation", (IMAGE,), (IMAGE,), {"method": "PRELU"}, {"negative_slope": (4,)}),
    "PRELU of an image": OneLayer("activation", (IMAGE,), (IMAGE,), {"method": "PRELU"}, {"negative_slope": (5, 6, 4)}),
    **{
        f"crelu {a}": one("crelu", IMAGE, tuple(2 * n if i == a else n for i, n in enumerate(IMAGE)), axis=a)
        for a in (1, 3)
    },
    **{
        o: one(o, IMAGE)
        for o in ("abs", "bnll", "ceil", "cosine", "erf", "exp", "floor", "negative", "round", "sign", "sine", "square")
    },
    **{o: OneLayer(o, (IMAGE,), (IMAGE,), {}, {}, (real(0.3, 4),)) for o in ("sqrt", "rsqrt", "log", "reciprocal")},
    **{
        f"concat {a} of {len(s)}": OneLayer("concat", s, (new,), {"axis": a}, {}, (real(), real(-4, 1), real(0, 9)))
        for a, s, new in (
            (3, ((1, 5, 6, 2), (1, 5, 6, 3)), (1, 5, 6, 5)),
            (1, ((1, 2, 3), (1, 1, 3), (1, 4, 3)), (1, 7, 3)),
        )
    },
    **{
        f"arg {m} {a} {last}": one(
            "arg_min_max", IMAGE, _reduced(IMAGE, (a,)), axis=a, method=m, select_last_index=last
        )
        for m, a, last in (("MAX", 1, False), ("MIN", 3, True))
    },
    **{
        f"top_k {a} {large}": OneLayer(
            "top_k",
            (IMAGE,),
            (tuple(3 if i == a else n for i, n in enumerate(IMAGE)),) * 2,
            {"axis": a, "k": 3, "sorted": True, "largest": large, "select_index": "first"},
        )
        for a, large in ((3, True), (1, False))
    },
    **{
        f"one_hot {v} {a}": OneLayer(
            "one_hot", ((3, 4),), (new,), {"axis": a, "values": v, "depth": 5}, {}, (whole(0, 5),)
        )
        for v, a, new in (
            ((0.0, 1.0), 2, (3, 4, 5)),
            ((-1.0, 3.0), 1, (3, 5, 4)),
            ((0.0, 300.0), 0, (5, 3, 4)),
            ((-0.5, 1.5), 2, (3, 4, 5)),
            ((-200.0, 100.0), 2, (3, 4, 5)),
            ((0.25, 1.0), 2, (3, 4, 5)),
        )
    },
    **{
        f"pad {m} {v}": one(
            "pad", IMAGE, (1, 8, 9, 4), mode=m, constant_value=v, pads=np.array([[0, 0], [1, 2], [2, 1], [0, 0]])
        )
        for m, v in (("CONSTANT", 0.0), ("CONSTANT", -1.25), ("CONSTANT", 9.0), ("REFLECT", 0.0), ("SYMMETRIC", 0.0))
    },
    "tile": one("tile", IMAGE, (2, 5, 12, 4), repeats=(2, 1, 2, 1)),
    "transpose": one("transpose", IMAGE, (6, 1, 4, 5), perm=(2, 0, 3, 1)),
    "split": OneLayer("split", (IMAGE,), ((1, 5, 1, 4), (1, 5, 3, 4), (1, 5, 2, 4)), {"axis": 2, "splits": (1, 3, 2)}),
    **{
        f"reverse_sequence {v}": OneLayer(
            "reverse_sequence",
            ((3, 4, 5), (n,)),
            ((3, 4, 5),),
            {"batch_axis": v[0], "time_axis": v[1]},
            {},
            (real(), whole(1, 4)),
        )
        for v, n in (((0, 1), 3), ((1, 2), 4), ((1, 0), 4))
    },
    "batch_to_space": one(
        "batch_to_space",
        (4, 3, 4, 2),
        (1, 5, 7, 2),
        block_size_x=2,
        block_size_y=2,
        crop_left=1,
        crop_right=0,
        crop_top=0,
        crop_bottom=1,
    ),
    "space_to_batch": one(
        "space_to_batch",
        (1, 5, 6, 3),
        (4, 3, 4, 3),
        block_size_x=2,
        block_size_y=2,
        pad_left=1,
        pad_right=1,
        pad_top=1,
        pad_bottom=0,
    ),
    "space_to_depth": one("space_to_depth", (1, 4, 6, 3), (1, 2, 3, 12), block_size_x=2, block_size_y=2),
    **{
        f"depth_to_space {m}": one(
            "depth_to_space", (1, 3, 4, 12), (1, 6, 8, 3), mode=m, block_size_x=2, block_size_y=2
        )
        for m in ("DCR", "CRD")
    },
    "channel_shuffle": one("channel_shuffle", IMAGE, group=2, splits=1),
    "channel_shuffle in parts": OneLayer(
        "channel_shuffle", ((1, 3, 4, 8),), ((1, 3, 4, 4),) * 2, {"group": 4, "splits": 2}
    ),
    **{
        f"{o} {d} {out}": recurrent(o, d, out, **k)
        for o, d, out, k in (
            ("gru_v1", "forward", ("Hn",), {}),
            ("gru_v3", "reverse", ("H",), {}),
            ("gru_v3", "forward", ("H", "Hn"), {}),
            ("gru_v1", "reverse", ("H", "Hn"), {}),
            ("basic_lstm", "reverse", ("Y", "H", "C"), {"forget_bias": 1.0}),
            ("basic_lstm", "forward", ("H",), {"forget_bias": 0.0}),
        )
    },
    **{
        f"cubes {g}": OneLayer(
            "convolution_3d",
            ((1, 3, 4, 5, 2),),
            ((1, 2, 2, 4, 4),),
            {
                "num_output": 4,
                "kernel_x": 2,
                "kernel_y": 2,
                "kernel_z": 2,
                "stride_x": 1,
                "stride_y": 2,
                "stride_z": 1,
                "pad_x_begin": 0,
                "pad_x_end": 0,
                "pad_y_begin": 0,
                "pad_y_end": 0,
                "pad_z_begin": 0,
                "pad_z_end": 0,
                "dilation_x": 1,
                "dilation_y": 1,
                "dilation_z": 1,
                "group": g,
                "with_activation": "NONE",
            },
            {"weights": (4, 2, 2, 2, 2 // g), "biases": (4,)},
        )
        for g in (1, 2)
    },
    **{
        f"segment_reduce {m}": OneLayer(
            "segment_reduce",
            ((6, 3), (6,)),
            ((4, 3),),
            {"method": m},
            {},
            (real(), lambda d, s: np.sort(d.integers(0, 4, s), axis=-1).astype(np.int32)),
        )
        for m in ("SUM", "MEAN", "MAX", "MIN", "PROD")
    },
    **{
        f"count {d}": OneLayer("count", ((1, 40),), ((1, 6),), {"min": -1.0, "max": 2.5, "nbins": 6, "discrete": d})
        for d in (True, False)
    },
    "crop": one("crop", IMAGE, (1, 3, 2, 4), crops=np.array([[0, 1], [1, 4], [2, 4], [0, 4]])),
    "max_roi_pool at borders": OneLayer(
        "max_roi_pool",
        ((1, 9, 7, 2), (5, 5)),
        ((5, 2, 3, 2),),
        {"pooled_shape": (2, 3), "spatial": (0.25, 0.25)},
        {},
        (real(), BORDERS),
    ),
    **{
        f"pyramid_roi_align of {s} samples, {c}": OneLayer(
            "pyramid_roi_align",
            ((1, 5, 4), *((1, n, n, 2) for n in (40, 20, 10, 5))),
            ((5, 2, 3, 2),),
            {
                "resize_width": 3,
                "resize_height": 2,
                "image_width": 640,
                "image_height": 640,
                "sample": s,
                "spatial_scale_value": tuple(n / 640 for n in (40, 20, 10, 5)),
                "proposal_normalized": False,
                "coordinate_transformation_mode": c,
            },
            {},
            (
                given((0, 0, 112, 112), (8, 40, 330, 330), (0, 0, 640, 640), (60, 0, 400, 640), (100, 100, 104, 108)),
                real(),
            ),
        )
        for s, c in (((0, 0), "OUTPUT_HALF_PIXEL"), ((2, 1), "HALF_PIXEL"))
    },
}
