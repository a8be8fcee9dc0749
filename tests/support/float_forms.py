"""More small float networks: every form that converters write anew, and those that they must leave alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.float_networks import FLOAT, IMAGE, NETWORKS, ROWS, WHOLE, Make, Network, image
from tflq.graph import Array, DType, Graph

NONE: dict[str, Any] = {"fused_activation_function": "none"}
ALONE: dict[str, dict[str, Any]] = {"relu": {}, "leaky_relu": {"alpha": 0.3}, "relu6": {}, "tanh": {}}


def typed(
    b: Network, operator: str, inputs: Sequence[int], shape: tuple[int, ...], dtype: DType, **options: Any
) -> int:
    """A node whose result is not float."""
    t = b.add(operator, list(inputs), shape, dtype, **options)
    b.shapes[t] = shape
    return t


def following(
    b: Network,
    t: int,
    operator: str,
    constants: Sequence[object],
    new: tuple[int, ...] | None,
    options: dict[str, Any],
) -> int:
    """A layer behind a value; `behind` among its options puts its constants first."""
    given = [b.given(np.asarray(c)) for c in constants]
    order = [*given, t] if options.get("behind") else [t, *given]
    others = {key: value for key, value in options.items() if key != "behind"}
    return b.do(operator, *order, shape=b.shapes[t] if new is None else new, **others)


def row(*steps: tuple[Any, ...], shape: tuple[int, ...] = IMAGE) -> Make:
    """Layers one behind the other: (operator, constants, new shape or None, options)."""

    def make(b: Network) -> int:
        t = b.real("x", shape)
        for operator, constants, new, options in steps:
            t = following(b, t, operator, constants, new, options)
        return t

    return make


def step(operator: str, *constants: object, new: tuple[int, ...] | None = None, **options: Any) -> tuple[Any, ...]:
    real = [np.float32(c) if isinstance(c, float) else c for c in constants]
    return operator, real, new, options


def to(*shape: int) -> tuple[Any, ...]:
    return step("reshape", np.array(shape, np.int32), new=shape)


def turn(shape: tuple[int, ...], *perm: int) -> tuple[Any, ...]:
    """A Transpose of values of this shape."""
    return step("transpose", np.array(perm, np.int32), new=tuple(shape[a] for a in perm))


def over(operator: str, axes: tuple[int, ...], shape: tuple[int, ...], keep: bool = True) -> tuple[Any, ...]:
    kept = tuple(1 if a in axes else n for a, n in enumerate(shape) if keep or a not in axes)
    return step(operator, np.array(axes, np.int32), new=kept, keep_dims=keep)


def reals(*shape: int, seed: int = 4, least: float = -1.0) -> Array:
    return np.random.default_rng(seed).uniform(least, 1.0, shape).astype(np.float32)


def rows_of(x: int, b: Network, features: int, bias: bool = True) -> int:
    shape = b.shapes[x]
    given = (b.reals(features, shape[-1]), *((b.reals(features),) if bias else ()))
    return b.do("fully_connected", x, *given, shape=(shape[0], features), **NONE)


def dense_then(*steps: tuple[Any, ...], bias: bool = True) -> Make:
    """Layers behind rows times a matrix, [4, 6]."""

    def make(b: Network) -> int:
        t = rows_of(b.real("x", (4, 5)), b, 6, bias)
        for operator, constants, new, options in steps:
            t = following(b, t, operator, constants, new, options)
        return t

    return make


def filter_then(*steps: tuple[Any, ...], channels: int = 4) -> Make:
    """Layers behind a filter, [1, 5, 6, 4]."""

    def make(b: Network) -> int:
        t = b.conv(image(b), channels)
        for operator, constants, new, options in steps:
            t = following(b, t, operator, constants, new, options)
        return t

    return make


def pair(operator: str, first: tuple[int, ...], second: tuple[int, ...], **options: Any) -> Make:
    shape = tuple(np.broadcast_shapes(first, second))
    return lambda b: b.do(operator, b.real("x", first), b.real("y", second), shape=shape, **options)


def compared(operator: str, first: tuple[int, ...], second: tuple[int, ...] | float) -> Make:
    """A comparison that chooses between two values."""

    def make(b: Network) -> int:
        x = b.real("x", first)
        y = b.real("y", second) if isinstance(second, tuple) else b.number(second)
        shape = first if not isinstance(second, tuple) else tuple(np.broadcast_shapes(first, second))
        which = typed(b, operator, (x, y), shape, DType.BOOL)
        return b.do("select_v2", which, x, b.real("z", first), shape=shape)

    return make


def chosen_by(condition: tuple[int, ...], first: tuple[int, ...], second: tuple[int, ...]) -> Make:
    def make(b: Network) -> int:
        which = typed(b, "greater", (b.real("w", condition), b.number(0.25)), condition, DType.BOOL)
        return b.do(
            "select_v2",
            which,
            b.real("x", first),
            b.real("y", second),
            shape=tuple(np.broadcast_shapes(condition, first, second)),
        )

    return make


def logical(operator: str, single: bool = False) -> Make:
    def make(b: Network) -> int:
        x, y = b.real("x"), b.real("y", IMAGE[-1:] if single else IMAGE)
        a = typed(b, "less", (x, b.number(0.5)), IMAGE, DType.BOOL)
        c = typed(b, "greater_equal", (y, b.number(-0.5)), b.shapes[y], DType.BOOL)
        both = (
            typed(b, "logical_not", (a,), IMAGE, DType.BOOL)
            if operator == "logical_not"
            else typed(b, operator, (a, c), IMAGE, DType.BOOL)
        )
        return b.do("select_v2", both, x, b.do("neg", x))

    return make


def squared_itself(b: Network) -> int:
    x = image(b)
    return b.do("mul", x, x)


def twice(
    operator: str, first: Sequence[object], second: Sequence[object], behind: tuple[bool, bool] = (False, False)
) -> Make:
    return row(step(operator, *first, behind=behind[0]), step(operator, *second, behind=behind[1]))


def shared_branch(operator: str) -> Make:
    """What two layers read: a filter, then an operator on it and the filter itself."""

    def make(b: Network) -> int:
        x = b.conv(image(b), 4)
        given = (b.reals(4, least=0.5),) if operator in ("mul", "add", "sub") else ()
        return b.do("add", b.do(operator, x, *given), b.do("tanh", x))

    return make


def the_same_twice(b: Network) -> int:
    x = image(b)
    return b.do("add", b.do("logistic", x), b.do("mul", b.do("logistic", x), b.real("y")))


def gathered(*index: int, axis: int = 0, keeps: bool = True, shape: tuple[int, ...] = ROWS) -> Make:
    def make(b: Network) -> int:
        x = b.real("x", shape)
        where = b.given(np.array(index if keeps else index[0], np.int32))
        new = (*shape[:axis], *((len(index),) if keeps else ()), *shape[axis + 1 :])
        return b.do("gather", x, where, shape=new, axis=axis, batch_dims=0)

    return make


def shuffled(
    groups: int, shape: tuple[int, ...] = IMAGE, back: tuple[int, ...] | None = None, perm: tuple[int, ...] = ()
) -> Make:
    apart = (*shape[:-1], groups, shape[-1] // groups)
    last = len(apart) - 1
    perm = perm or (*range(last - 1), last, last - 1)
    return row(to(*apart), turn(apart, *perm), to(*(back or shape)), shape=shape)


def means(axes: tuple[int, ...], shape: tuple[int, ...], keep: bool) -> Make:
    return row(over("mean", axes, shape, keep), shape=shape)


def limited(*steps: tuple[str, float]) -> Make:
    return row(*(step(operator, value) for operator, value in steps))


def hard_sigmoid(offset: float, low: float, high: float, factor: float) -> Make:
    """max(low, min(high, x + offset)) * factor."""
    return row(step("add", offset), step("minimum", high), step("maximum", low), step("mul", factor))


def relu6_sigmoid(factor: float, times_x: bool, early: bool = False) -> Make:
    def make(b: Network) -> int:
        x = image(b)
        y = b.do("relu6", b.do("add", x, b.number(3.0)))
        if not times_x:
            return b.do("mul", y, b.number(factor))
        return (
            b.do("mul", b.do("mul", x, y), b.number(factor))
            if early
            else b.do("mul", x, b.do("mul", y, b.number(factor)))
        )

    return make


def swish(alpha: float | None) -> Make:
    def make(b: Network) -> int:
        x = image(b)
        return b.do("mul", x, b.do("logistic", x if alpha is None else b.do("mul", x, b.number(alpha))))

    return make


def softplus(mish: bool, one: float = 1.0) -> Make:
    def make(b: Network) -> int:
        x = image(b)
        y = b.do("log", b.do("add", b.do("exp", x), b.number(one)))
        return b.do("mul", x, b.do("tanh", y)) if mish else y

    return make


def length(axes: tuple[int, ...], form: str) -> Make:
    def make(b: Network) -> int:
        x = b.real("x", ROWS)
        kept = tuple(1 if a in axes else n for a, n in enumerate(ROWS))
        squares = b.do("square", x)
        total = b.do("sum", squares, b.whole(*axes), shape=kept, keep_dims=True)
        if form == "sizes":
            return b.do("sum", b.do("abs", x), b.whole(*axes), shape=kept, keep_dims=True)
        if form == "limited":
            return b.do("mul", x, b.do("rsqrt", b.do("maximum", total, b.number(1e-6))))
        if form == "quotient":
            return b.do("div", x, b.do("add", b.do("sqrt", total), b.number(1e-3)))
        if form == "two roots":
            return b.do("add", b.do("sqrt", total), b.do("rsqrt", total))
        return b.do(form, total)

    return make


def softmax_by_hand(axis: int, axes: tuple[int, ...]) -> Make:
    def make(b: Network) -> int:
        x = b.real("x", ROWS)
        e = b.do("exp", x)
        kept = tuple(1 if a in axes else n for a, n in enumerate(ROWS))
        return b.do("div", e, b.do("sum", e, b.whole(*axes), shape=kept, keep_dims=True))

    return make


def variance(axes: tuple[int, ...], keep: bool = True, both: bool = False, power: bool = False) -> Make:
    """The mean of squared differences from the mean; both: the mean is an output, too."""

    def make(b: Network) -> int:
        x = b.real("x", ROWS)
        kept = tuple(1 if a in axes else n for a, n in enumerate(ROWS))
        mean = b.do("mean", x, b.whole(*axes), shape=kept, keep_dims=True)
        d = b.do("sub", x, mean)
        s = b.do("pow", d, b.number(2.0)) if power else b.do("square", d)
        new = kept if keep else tuple(n for a, n in enumerate(ROWS) if a not in axes)
        v = b.do("mean", s, b.whole(*axes), shape=new, keep_dims=keep)
        return b.do("add", v, mean) if both else v

    return make


def product(
    first: tuple[int, ...],
    second: tuple[int, ...],
    turned: str = "",
    adj: tuple[bool, bool] = (False, False),
    constant: bool = False,
) -> Make:
    """MatMul; "x" or "y" turned: a Transpose of the last two axes in front of it."""

    def make(b: Network) -> int:
        shapes = {"x": first, "y": second}
        t = {"x": b.real("x", first), "y": b.reals(*second) if constant else b.real("y", second)}
        for key in turned:
            rank = len(shapes[key])
            perm = (*range(rank - 2), rank - 1, rank - 2)
            shapes[key] = tuple(shapes[key][a] for a in perm)
            t[key] = b.do("transpose", t[key], b.whole(*perm), shape=shapes[key])
        a, c = (s[::-1] if flip else s for s, flip in zip((shapes["x"][-2:], shapes["y"][-2:]), adj, strict=True))
        batch = np.broadcast_shapes(shapes["x"][:-2], shapes["y"][:-2])
        return b.do("batch_matmul", t["x"], t["y"], shape=(*batch, a[0], c[1]), adj_x=adj[0], adj_y=adj[1])

    return make


def scaled_product(number: float, where: str) -> Make:
    """A MatMul and a number: on its result, or on one of its operands, or behind a Reshape."""

    def make(b: Network) -> int:
        x, y = b.real("x", (1, 4, 5)), b.real("y", (1, 5, 3))
        n = b.number(number)
        if where == "x":
            x = b.do("mul", x, n)
        if where == "both":
            x, y = b.do("mul", x, n), b.do("mul", b.do("reshape", y, b.whole(1, 5, 3), shape=(1, 5, 3)), b.number(0.75))
        z = b.do("batch_matmul", x, y, shape=(1, 4, 3), adj_x=False, adj_y=False)
        if where == "reshaped":
            z = b.do("reshape", z, b.whole(4, 3), shape=(4, 3))
        return b.do("mul", z, n) if where in ("result", "reshaped") else b.do("tanh", z)

    return make


def split_and_join(axis: int, count: int, crossed: bool) -> Make:
    def make(b: Network) -> int:
        x = image(b)
        part = tuple(n // count if a == axis else n for a, n in enumerate(IMAGE))
        parts = [b.tensor(f"part{i}", part, FLOAT) for i in range(count)]
        b.node("split", [b.given(np.int32(axis)), x], parts, num_splits=count)
        b.shapes.update(dict.fromkeys(parts, part))
        parts = [b.do("tanh", parts[0]), *parts[1:]]
        return b.do("concatenation", *(parts[::-1] if crossed else parts), shape=IMAGE, axis=axis, **NONE)

    return make


def pooled(kind: str, size: int, stride: int, padding: str, zeros: float | None = None) -> Make:
    def make(b: Network) -> int:
        x = image(b)
        if zeros is not None:
            x = b.do("padv2", x, b.whole([0, 0], [1, 1], [0, 1], [0, 0]), b.number(zeros), shape=(1, 7, 7, 4))
        side = [-(-n // stride) if padding == "same" else (n - size) // stride + 1 for n in b.shapes[x][1:3]]
        return b.do(
            kind,
            x,
            shape=(1, *side, 4),
            padding=padding,
            stride_h=stride,
            stride_w=stride,
            filter_height=size,
            filter_width=size,
            **NONE,
        )

    return make


def window(
    operator: str,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: str,
    clamp: str = "none",
    multiplier: int = 1,
) -> Make:
    def make(b: Network) -> int:
        x = b.real("x", (1, 7, 8, 4))
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        side = [
            -(-n // s) if padding == "same" else (n - r) // s + 1 for n, r, s in zip((7, 8), reach, stride, strict=True)
        ]
        keys = {
            "padding": padding,
            "stride_h": stride[0],
            "stride_w": stride[1],
            "dilation_h_factor": dilation[0],
            "dilation_w_factor": dilation[1],
            "fused_activation_function": clamp,
        }
        if operator == "conv_2d":
            return b.do(operator, x, b.reals(3, *kernel, 4), b.reals(3), shape=(1, *side, 3), **keys)
        return b.do(
            operator,
            x,
            b.reals(1, *kernel, 4 * multiplier),
            b.reals(4 * multiplier),
            shape=(1, *side, 4 * multiplier),
            depth_multiplier=multiplier,
            **keys,
        )

    return make


def upwards(kernel: tuple[int, int], stride: int, padding: str, bias: bool, clamp: str = "none") -> Make:
    def make(b: Network) -> int:
        x = b.real("x", (1, 4, 5, 3))
        side = [n * stride if padding == "same" else (n - 1) * stride + k for n, k in zip((4, 5), kernel, strict=True)]
        given = [b.whole(1, *side, 2), b.reals(2, *kernel, 3), x, *((b.reals(2),) if bias else ())]
        return b.do(
            "transpose_conv",
            *given,
            shape=(1, *side, 2),
            padding=padding,
            stride_h=stride,
            stride_w=stride,
            fused_activation_function=clamp,
        )

    return make


def resized(kind: str, size: tuple[int, int], corners: bool, centers: bool) -> Make:
    return lambda b: b.do(
        kind, image(b), b.whole(*size), shape=(1, *size, 4), align_corners=corners, half_pixel_centers=centers
    )


def sliced(begin: Sequence[int], end: Sequence[int], strides: Sequence[int], shrink: int = 0) -> Make:
    full = [slice(*v) for v in zip(begin, end, strides, strict=True)]
    shape = np.empty(IMAGE)[tuple(full)].shape
    kept = tuple(n for a, n in enumerate(shape) if not shrink >> a & 1)
    masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": shrink}

    def make(b: Network) -> int:
        given = [b.whole(*v) for v in (begin, end, strides)]
        return b.do("tanh", b.do("strided_slice", image(b), *given, shape=kept, **masks))

    return make


def around(
    operator: str, shape: tuple[int, ...], pads: Sequence[Sequence[int]], value: float | None = None, **options: Any
) -> Make:
    new = tuple(n + sum(p) for n, p in zip(shape, pads, strict=True))

    def make(b: Network) -> int:
        given = [b.whole(*pads), *(() if value is None else (b.number(value),))]
        return b.do(operator, b.real("x", shape), *given, shape=new, **options)

    return make


def moved(
    operator: str, new: tuple[int, ...], *constants: Sequence[int], shape: tuple[int, ...] = IMAGE, **options: Any
) -> Make:
    return lambda b: b.do(
        operator, b.real("x", shape), *(b.given(np.array(c, np.int32)) for c in constants), shape=new, **options
    )


def zeros_then_filter(
    operator: str, pads: Sequence[Sequence[int]], value: float = 0.0, mode: str = "", read_twice: bool = False
) -> Make:
    def make(b: Network) -> int:
        new = tuple(n + sum(p) for n, p in zip(IMAGE, pads, strict=True))
        x = image(b)
        x = (
            b.do("mirror_pad", x, b.whole(*pads), shape=new, mode=mode)
            if mode
            else b.do("padv2", x, b.whole(*pads), b.number(value), shape=new)
        )
        side = tuple(n - 1 for n in new[1:3])
        if operator == "conv_2d":
            y = b.do(
                operator, x, b.reals(new[3], 2, 2, new[3]), b.reals(new[3]), shape=(new[0], *side, new[3]), **WHOLE
            )
        else:
            given = b.reals(1, 2, 2, new[3]), b.reals(new[3])
            y = b.do(operator, x, *given, shape=(new[0], *side, new[3]), **WHOLE, depth_multiplier=1)
        return (
            b.do("add", y, b.do("mean", x, b.whole(1, 2), shape=(new[0], 1, 1, new[3]), keep_dims=True))
            if read_twice
            else y
        )

    return make


def pack_of(count: int, axis: int) -> Make:
    def make(b: Network) -> int:
        shape = [3, 4]
        shape.insert(axis, count)
        return b.do(
            "pack",
            *(b.do("tanh", b.real(f"x{i}", (3, 4))) for i in range(count)),
            shape=tuple(shape),
            axis=axis,
            values_count=count,
        )

    return make


def indexed(kind: str) -> Make:
    def make(b: Network) -> int:
        x = b.real("x", ROWS)
        if kind == "top_k":
            values, places = b.tensor("values", (1, 5, 3), FLOAT), b.tensor("places", (1, 5, 3), DType.INT32)
            b.node("topk_v2", [x, b.given(np.int32(3))], [values, places])
            b.shapes[values] = (1, 5, 3)
            return b.do("tanh", values)
        place = typed(b, kind, (x, b.given(np.int32(2))), (1, 5), DType.INT32, output_type="int32")
        return b.do("one_hot", place, b.given(np.int32(8)), b.number(1.0), b.number(-0.5), shape=(1, 5, 8), axis=-1)

    return make


def cubes(padding: str, stride: int) -> Make:
    def make(b: Network) -> int:
        x = b.real("x", (1, 4, 5, 6, 2))
        side = [-(-n // stride) if padding == "same" else (n - 2) // stride + 1 for n in (4, 5, 6)]
        return b.do(
            "conv_3d",
            x,
            b.reals(2, 2, 2, 2, 3),
            b.reals(3),
            shape=(1, *side, 3),
            padding=padding,
            stride_d=stride,
            stride_h=stride,
            stride_w=stride,
            fused_activation_function="relu",
        )

    return make


def two_branches(first: tuple[Any, ...], second: tuple[Any, ...], operator: str) -> Make:
    """Two values that moved alike, joined by an operator."""

    def make(b: Network) -> int:
        found = []
        for name, (kind, constants, new, options) in (("x", first), ("y", second)):
            found.append(b.do(kind, b.real(name), *(b.given(c) for c in constants), shape=new, **options))
        return b.do("tanh", b.do(operator, *found, shape=tuple(np.broadcast_shapes(*(b.shapes[t] for t in found)))))

    return make


def alone(operator: str) -> Make:
    def make(b: Network) -> int:
        x = image(b)
        is_positive = operator in ("sqrt", "rsqrt", "log")
        return b.do(operator, b.do("add", b.do("abs", x), b.number(0.25)) if is_positive else x)

    return make


UNARY = (
    "abs",
    "neg",
    "exp",
    "sqrt",
    "rsqrt",
    "log",
    "sin",
    "cos",
    "floor",
    "ceil",
    "round",
    "sign",
    "square",
    "tanh",
    "logistic",
    "relu",
    "relu6",
    "relu_n1_to_1",
    "relu_0_to_1",
    "elu",
    "hard_swish",
)
FORMS: dict[str, Make] = {
    **NETWORKS,
    **{f"{o} alone": alone(o) for o in UNARY},
    **{
        f"{o} of two": pair(o, IMAGE, IMAGE)
        for o in ("add", "sub", "mul", "div", "maximum", "minimum", "squared_difference")
    },
    **{
        f"{o} of a row": pair(o, IMAGE, (1, 1, 1, 4))
        for o in ("add", "sub", "mul", "div", "maximum", "minimum", "squared_difference")
    },
    **{f"{o} of a lower rank": pair(o, IMAGE, (6, 4)) for o in ("add", "sub", "mul", "maximum", "minimum")},
    **{f"{o} by a pixel": pair(o, IMAGE, (1, 5, 6, 1)) for o in ("add", "mul", "minimum")},
    **{f"{o} swapped": pair(o, (1, 1, 6, 1), IMAGE) for o in ("sub", "div", "maximum")},
    **{
        f"{o} by {n}": row(step(o, n))
        for o in ("add", "sub", "mul", "div", "maximum", "minimum", "pow")
        for n in (0.5, 2.0)
    },
    **{f"{n} {o}": row(step(o, n, behind=True)) for o in ("sub", "div", "add") for n in (0.5, 1.0)},
    **{
        f"{o} nothing": row(step(o, n), step("tanh"))
        for o, n in (("add", 0.0), ("sub", 0.0), ("mul", 1.0), ("div", 1.0))
    },
    **{
        f"tanh, then {o} nothing": row(step("tanh"), step(o, n), step("tanh"))
        for o, n in (("add", 0.0), ("sub", 0.0), ("mul", 1.0))
    },
    "tanh, then 0 - x": row(step("tanh"), step("sub", 0.0, behind=True), step("tanh")),
    "tanh, then zeros of a row": row(step("tanh"), step("add", np.zeros(4, np.float32)), step("tanh")),
    "tanh, then zeros of an image": row(step("tanh"), step("add", np.zeros(IMAGE, np.float32)), step("tanh")),
    "tanh, then ones of a row": row(step("tanh"), step("mul", np.ones(4, np.float32)), step("tanh")),
    "a square by itself": squared_itself,
    "power of 0.5": row(step("abs"), step("pow", 0.5)),
    "power of 3": row(step("abs"), step("pow", 3.0)),
    **{
        f"{o} twice{w}": twice(o, (a,), (c,), w2)
        for o in ("add", "mul")
        for w, a, c, w2 in (
            ("", reals(1, 5, 6, 1), reals(1, 1, 6, 4, seed=5), (False, False)),
            (" swapped", reals(1, 5, 6, 1), reals(1, 1, 6, 4, seed=5), (True, True)),
            (" by a number", 0.75, reals(6, 4), (False, True)),
            (" by a channel", reals(4), reals(4, seed=6), (False, False)),
        )
    },
    "sub twice": twice("sub", (reals(6, 4),), (0.5,)),
    **{
        f"{a} then {o}, {n}": row(step("mul", s), step(o, t, behind=w))
        for a in ("scale",)
        for o in ("add", "sub")
        for n, s, t, w in (
            ("channels", reals(4), reals(4, seed=5), False),
            ("numbers", 0.75, 0.5, False),
            ("channel and number", reals(4), -0.5, False),
            ("an image", reals(6, 4), reals(4, seed=5), False),
            ("constant first", reals(4), reals(4, seed=5), True),
            ("one row", reals(1, 4), reals(1, 1, 1, 4), False),
        )
    },
    "scale and shift, read between": lambda b: b.do("add", m := b.do("mul", image(b), b.reals(4)), b.do("tanh", m)),
    **{
        f"{o} {n} behind rows": dense_then(step(o, c, behind=w))
        for o in ("add", "sub", "mul", "div")
        for n, c, w in (
            ("channels", reals(6, least=0.25), False),
            ("number", 0.75, False),
            ("matrix", reals(4, 6, least=0.25), False),
            ("channels first", reals(6, least=0.25), True),
            ("one row", reals(1, 6, least=0.25), False),
        )
    },
    **{
        f"{o} {n} in front of a rectifier": filter_then(step(o, c), step("relu"))
        for o in ("add", "mul", "sub")
        for n, c in (("channels", reals(4)), ("number", 0.75))
    },
    **{
        f"rows, {n}, then {o}": dense_then(to(*s), step(o, c))
        for o in ("add", "mul")
        for n, s, c in (
            ("reshaped", (2, 2, 6), reals(6)),
            ("split", (4, 2, 3), reals(3)),
            ("with an image", (1, 4, 6), reals(4, 6)),
            ("joined", (24,), reals(24)),
            ("uniform", (4, 3, 2), np.full((3, 2), 0.75, np.float32)),
        )
    },
    **{f"rows without bias, {o}": dense_then(step(o, reals(6)), bias=False) for o in ("add", "mul")},
    **{f"rows, reshaped, {o}": dense_then(to(2, 2, 6), step(o, **k)) for o, k in ALONE.items()},
    **{
        f"turned, then {o}": filter_then(turn((1, 5, 6, 4), 0, 3, 1, 2), step(o, c))
        for o in ("add", "mul")
        for c in (reals(1, 4, 1, 1),)
    },
    "turned, then a whole image": filter_then(turn((1, 5, 6, 4), 0, 3, 1, 2), step("add", reals(1, 4, 5, 6))),
    "turned, then uniform": filter_then(turn((1, 5, 6, 4), 0, 3, 1, 2), step("mul", np.full((5, 6), 0.5, np.float32))),
    "turned, then a constant minus it": filter_then(
        turn((1, 5, 6, 4), 0, 3, 1, 2), step("sub", reals(1, 4, 1, 1), behind=True)
    ),
    **{f"turned, then {o}": filter_then(turn((1, 5, 6, 4), 0, 3, 1, 2), step(o)) for o in ("relu", "relu6")},
    **{
        f"turned input, then {o}": row(turn(IMAGE, 0, 3, 1, 2), step(o, 0.5), step("tanh"))
        for o in ("add", "mul", "div")
    },
    **{f"shared {o}": shared_branch(o) for o in ("mul", "add", "sub", "relu", "logistic")},
    "the same twice": the_same_twice,
    **{
        f"gathered {i}, axis {a}, keeps {k}": gathered(*i, axis=a, keeps=k)
        for i, a, k in (
            ((2,), 1, True),
            ((2,), 1, False),
            ((7,), 2, False),
            ((1, 3), 1, True),
            ((0,), 0, False),
            ((4, 0, 2), 1, True),
        )
    },
    "gathered from an image": gathered(3, axis=2, keeps=False, shape=IMAGE),
    **{f"shuffled in {g}": shuffled(g) for g in (2, 4)},
    "shuffled rows": shuffled(2, (5, 8)),
    "shuffled to another shape": shuffled(2, back=(1, 30, 4)),
    "shuffled otherwise": shuffled(2, perm=(0, 1, 3, 2, 4)),
    "shuffled and squeezed": shuffled(2, (1, 5, 8), back=(5, 8)),
    **{
        f"mean over {a}, {len(s)} axes, keeps {k}": means(a, s, k)
        for k in (True, False)
        for a, s in (
            ((1, 2), IMAGE),
            ((2, 3), IMAGE),
            ((1,), ROWS),
            ((2,), ROWS),
            ((3,), IMAGE),
            ((1,), IMAGE),
            ((1, 2, 3), IMAGE),
            ((1,), (3, 8)),
            ((2, 3), (1, 3, 4, 5, 2)),
        )
    },
    **{
        f"{o} over {a}, keeps {k}": row(over(o, a, IMAGE, k))
        for k in (True, False)
        for o, a in (("sum", (1, 2)), ("reduce_max", (3,)), ("reduce_min", (1,)), ("sum", (2,)), ("reduce_max", (1, 2)))
    },
    **{
        f"limits {w}": limited(*s)
        for w, s in (
            ("0 to 6", (("maximum", 0.0), ("minimum", 6.0))),
            ("low to high", (("maximum", -0.5), ("minimum", 0.75))),
            ("high to low", (("minimum", 0.75), ("maximum", -0.5))),
            ("only low", (("maximum", -0.5),)),
            ("crossed", (("minimum", -0.5), ("maximum", 0.25))),
        )
    },
    **{f"rectified below {n}": row(step("relu"), step("minimum", n)) for n in (6.0, 1.5, 0.0)},
    "rectified below less than 0": row(step("relu"), step("minimum", -0.5)),
    **{
        f"hard sigmoid {v}": hard_sigmoid(*v)
        for v in (
            (0.5, 0.0, 1.0, 1.0),
            (1.5, 0.0, 3.0, 1 / 3),
            (3.0, 0.0, 6.0, 1 / 6),
            (2.0, -1.0, 4.0, 0.25),
            (2.0, 0.0, 4.0, 0.3),
        )
    },
    **{
        f"relu6 sigmoid {v}": relu6_sigmoid(*v)
        for v in ((1 / 6, False), (0.16667, False), (1 / 6, True), (1 / 6, True, True), (0.2, True), (0.25, False))
    },
    **{f"swish {a}": swish(a) for a in (None, 1.5, 1.702)},
    **{f"softplus {v}": softplus(*v) for v in ((False,), (True,), (False, 2.0))},
    **{
        f"length {f}, {a}": length(a, f)
        for a in ((2,), (1, 2))
        for f in ("sizes", "limited", "quotient", "two roots", "sqrt", "rsqrt")
    },
    **{f"softmax by hand {a}": softmax_by_hand(2, a) for a in ((2,), (1,), (1, 2))},
    "softmax, beta 1.0": lambda b: b.do("softmax", b.real("x", ROWS), beta=1.0),
    "log softmax": lambda b: b.do("log_softmax", b.real("x", ROWS)),
    **{
        f"variance {a}, keeps {k}, both {both}, power {p}": variance(a, k, both, p)
        for a, k, both, p in (
            ((2,), True, False, False),
            ((1, 2), False, False, False),
            ((2,), True, True, False),
            ((1,), True, True, True),
            ((2,), False, False, True),
        )
    },
    **{
        f"product of {s}, turned {t!r}, {adj}": product(s[0], s[1], turned=t, adj=adj)
        for s, t, adj in (
            (((1, 4, 5), (1, 5, 3)), "", (False, False)),
            (((1, 5, 4), (1, 5, 3)), "x", (False, False)),
            (((1, 4, 5), (1, 3, 5)), "y", (False, False)),
            (((1, 5, 4), (1, 3, 5)), "xy", (False, False)),
            (((1, 4, 5), (1, 5, 3)), "y", (False, True)),
            (((1, 5, 4), (1, 3, 5)), "", (True, True)),
            (((2, 3, 4, 5), (2, 3, 5, 3)), "", (False, False)),
            (((2, 3, 5, 4), (2, 3, 5, 3)), "x", (False, False)),
        )
    },
    **{
        f"product with constants {s}, {adj}, turned {t!r}": product(s[0], s[1], adj=adj, turned=t, constant=True)
        for s, adj, t in (
            (((4, 5), (5, 3)), (False, False), ""),
            (((1, 4, 5), (5, 3)), (False, False), ""),
            (((2, 4, 5), (3, 5)), (False, True), ""),
            (((1, 5, 4), (5, 3)), (True, False), ""),
            (((1, 4, 5), (1, 5, 3)), (False, False), ""),
        )
    },
    **{
        f"product times {n}, {w}": scaled_product(n, w)
        for n, w in ((0.5, "result"), (-0.5, "result"), (0.3, "x"), (0.3, "both"), (0.7, "reshaped"), (2.0, "x"))
    },
    **{f"split and joined {v}": split_and_join(*v) for v in ((3, 2, False), (3, 4, True), (2, 3, True), (2, 2, False))},
    **{
        f"{k} of {v}": pooled(k, *v)
        for k in ("max_pool_2d", "average_pool_2d")
        for v in (
            (1, 1, "valid"),
            (2, 2, "same"),
            (3, 1, "same"),
            (3, 2, "valid"),
            (2, 1, "valid", 0.0),
            (2, 1, "valid", -4.0),
        )
    },
    **{
        f"{o} {v}": window(o, *v)
        for o in ("conv_2d", "depthwise_conv_2d")
        for v in (
            ((3, 2), (1, 1), (1, 1), "same", "relu"),
            ((3, 3), (2, 1), (1, 1), "same", "relu6"),
            ((2, 3), (1, 1), (2, 2), "valid", "none"),
            ((3, 3), (1, 1), (1, 2), "same", "relu_n1_to_1"),
        )
    },
    "two filters a channel": window("depthwise_conv_2d", (2, 2), (1, 1), (1, 1), "same", "relu", 2),
    **{
        f"upwards {v}": upwards(*v)
        for v in (
            ((3, 3), 2, "same", True),
            ((2, 2), 2, "valid", False),
            ((3, 2), 1, "same", True, "relu"),
            ((4, 4), 2, "same", False),
            ((3, 3), 3, "valid", True),
        )
    },
    **{
        f"{k} {v}": resized(f"resize_{k}", *v)
        for k in ("bilinear", "nearest_neighbor")
        for v in (((10, 12), False, False), ((9, 11), True, False), ((10, 12), False, True), ((3, 3), False, True))
    },
    **{
        f"slice {v}": sliced(*v)
        for v in (
            ((0, 1, 0, 0), (1, 4, 6, 4), (1, 1, 1, 1)),
            ((0, 0, 1, 0), (1, 5, 6, 4), (1, 2, 2, 1)),
            ((0, 2, 0, 0), (1, 3, 6, 4), (1, 1, 1, 1), 2),
            ((0, 0, 0, 0), (1, 5, 6, 4), (1, 1, 1, 1)),
            ((0, 0, 0, 1), (1, 5, 6, 2), (1, 1, 1, 1), 9),
        )
    },
    **{
        f"zeros around {len(s)} axes, {v}": around("pad" if v is None else "padv2", s, p, v)
        for s, p, v in (
            (IMAGE, ((0, 0), (1, 2), (0, 1), (0, 0)), None),
            (IMAGE, ((0, 0), (0, 0), (0, 0), (0, 0)), None),
            (ROWS, ((0, 0), (1, 0), (0, 2)), None),
            (IMAGE, ((0, 0), (1, 2), (0, 1), (1, 0)), 0.5),
            (IMAGE, ((0, 0), (1, 1), (1, 1), (0, 0)), -1.0),
        )
    },
    **{
        f"mirrored {m}": around("mirror_pad", IMAGE, ((0, 0), (1, 2), (2, 1), (0, 0)), None, mode=m)
        for m in ("reflect", "symmetric")
    },
    **{
        f"{o} behind {n}": zeros_then_filter(o, *v)
        for o in ("conv_2d", "depthwise_conv_2d")
        for n, v in (
            ("zeros", (((0, 0), (1, 2), (0, 1), (0, 0)),)),
            ("ones", (((0, 0), (1, 2), (0, 1), (0, 0)), 1.0)),
            ("zeros of channels", (((0, 0), (1, 0), (0, 0), (0, 2)),)),
            ("a mirror", (((0, 0), (1, 2), (0, 1), (0, 0)), 0.0, "reflect")),
            ("zeros that others read", (((0, 0), (1, 2), (0, 1), (0, 0)), 0.0, "", True)),
        )
    },
    **{
        f"{n}": moved(o, new, *c, **k)
        for n, o, new, c, k in (
            ("squeezed", "squeeze", (5, 6, 4), (), {"squeeze_dims": (0,)}),
            ("expanded", "expand_dims", (1, 5, 6, 4, 1), ((4,),), {}),
            ("depth to space", "depth_to_space", (1, 10, 12, 1), (), {"block_size": 2}),
            ("tiled", "tile", (1, 10, 6, 12), ((1, 2, 1, 3),), {}),
            ("tiled once", "tile", IMAGE, ((1, 1, 1, 1),), {}),
            ("broadcast", "broadcast_to", (3, 5, 6, 4), ((3, 5, 6, 4),), {}),
            ("reversed", "reverse_v2", IMAGE, ((2,),), {}),
            ("reversed batch", "reverse_v2", IMAGE, ((0,),), {}),
            ("reversed channels", "reverse_v2", IMAGE, ((3,),), {}),
        )
    },
    "space to depth": lambda b: b.do("space_to_depth", b.real("x", (1, 4, 6, 3)), shape=(1, 2, 3, 12), block_size=2),
    **{f"pack of {v}": pack_of(*v) for v in ((2, 0), (3, 1), (2, 2))},
    **{f"places of {k}": indexed(k) for k in ("arg_max", "arg_min", "top_k")},
    **{f"cubes {v}": cubes(*v) for v in (("same", 1), ("valid", 2))},
    **{
        f"{o} chooses": compared(o, IMAGE, IMAGE)
        for o in ("less", "greater", "less_equal", "greater_equal", "equal", "not_equal")
    },
    **{f"{o} a number chooses": compared(o, IMAGE, 0.25) for o in ("less", "greater_equal", "equal")},
    **{f"{o} a row chooses": compared(o, IMAGE, (4,)) for o in ("greater", "less_equal")},
    **{
        f"chosen by {v}": chosen_by(*v)
        for v in ((IMAGE, (1, 1, 1, 4), IMAGE), (IMAGE, IMAGE, (4,)), (IMAGE, (1,), (1,)), ((1, 5, 6, 1), IMAGE, IMAGE))
    },
    **{o: logical(o) for o in ("logical_and", "logical_or", "logical_not")},
    "logical_and with a row": logical("logical_and", True),
    **{
        f"Transposes {n}": row(*s, step("tanh"))
        for n, s in (
            ("twice", (turn(IMAGE, 0, 3, 1, 2), turn((1, 4, 5, 6), 0, 2, 1, 3))),
            ("and back", (turn(IMAGE, 0, 3, 1, 2), turn((1, 4, 5, 6), 0, 2, 3, 1))),
            ("of ones", (turn(IMAGE, 1, 0, 2, 3),)),
            ("of ones, reshaped", (turn(IMAGE, 1, 0, 2, 3), to(5, 24))),
            ("of nothing", (turn(IMAGE, 0, 1, 2, 3),)),
            ("then joined", (turn(IMAGE, 0, 3, 1, 2), to(1, 4, 30))),
            ("then split", (turn(IMAGE, 0, 3, 1, 2), to(1, 2, 2, 5, 6))),
            ("then joined across", (turn(IMAGE, 0, 3, 1, 2), to(1, 20, 6))),
            ("split, turned", (turn(IMAGE, 0, 2, 3, 1), to(1, 3, 2, 4, 5), turn((1, 3, 2, 4, 5), 0, 4, 1, 2, 3))),
            ("around an exchange", (turn(IMAGE, 0, 3, 1, 2), to(4, 1, 5, 6), turn((4, 1, 5, 6), 1, 2, 3, 0))),
            ("around a Reshape of ones", (to(1, 1, 30, 4), turn((1, 1, 30, 4), 0, 2, 1, 3))),
            ("and a longer shape", (turn(IMAGE, 0, 3, 1, 2), to(1, 4, 5, 6, 1, 1))),
            ("and a shorter shape", (turn((1, 5, 6, 4), 3, 1, 2, 0), to(4, 5, 6))),
        )
    },
    **{
        f"Reshapes {n}": row(*s)
        for n, s in (
            ("twice", (to(30, 4), to(5, 24))),
            ("and back", (to(30, 4), to(*IMAGE), step("tanh"))),
            ("around tanh", (to(30, 4), step("tanh"), to(*IMAGE))),
            ("in front of sqrt", (step("abs"), to(30, 4), step("sqrt"), to(5, 24))),
            ("in front of a sum", (to(30, 4), step("add", reals(30, 4)), to(5, 24), step("tanh"))),
        )
    },
    "slopes behind a Reshape": row(to(1, 30, 1, 4), step("prelu", reals(30, 1, 4)), to(*IMAGE), step("tanh")),
    **{f"two Reshapes, {o}": two_branches(to(30, 4), to(30, 4), o) for o in ("add", "maximum")},
    "two unlike Reshapes": two_branches(to(30, 4), to(30, 4), "mul"),
}


def built_of(make: Make) -> tuple[Graph, list[Array]]:
    """The network without ranges, and samples of its inputs."""
    b = Network()
    graph = b.build([make(b)])
    draw = np.random.default_rng(9)
    return graph, [draw.uniform(-2, 2, (10, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]


def built(name: str) -> tuple[Graph, list[Array]]:
    """One of FORMS."""
    return built_of(FORMS[name])
