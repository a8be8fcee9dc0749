"""Networks one step away from the forms that TPU-MLIR fuses, and chains of layers that are drawn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from tests.support.float_networks import FLOAT, IMAGE, ROWS, WHOLE, Make, Network, image
from tests.support.tpu_mlir_front_end import FRONT_END

SAME = {"padding": "same", "stride_h": 1, "stride_w": 1}
PAIRS = ("add", "sub", "mul", "div", "maximum", "minimum")
CONSTANTS: dict[str, Callable[[Network, int], int]] = {
    "a number": lambda b, _: b.number(0.75),
    "a number below 0": lambda b, _: b.number(-1.5),
    "channels": lambda b, channels: b.reals(channels, least=0.25),
    "an image": lambda b, channels: b.reals(1, 5, 6, channels, least=0.25),
    "a row": lambda b, channels: b.reals(6, channels, least=0.25),
}


def filtered(b: Network, x: int, size: int = 3, clamp: str = "none", depthwise: bool = False) -> int:
    """A filter that leaves the shape."""
    channels, weights = b.shapes[x][3], (b.reals, size)
    shape = (1, size, size, channels) if depthwise else (channels, size, size, channels)
    given = weights[0](*shape), b.reals(channels)
    operator = "depthwise_conv_2d" if depthwise else "conv_2d"
    return b.do(operator, x, *given, **SAME, fused_activation_function=clamp)


def paired(operator: str, constant: str, first: bool, behind: str) -> Make:
    """A layer of two operands, one of them a constant."""

    def make(b: Network) -> int:
        x = image(b)
        x = {"nothing": lambda: x, "a filter": lambda: filtered(b, x), "relu": lambda: b.do("relu", x)}[behind]()
        c = CONSTANTS[constant](b, 4)
        if first and operator == "div":
            x = b.do("add", b.do("abs", x), b.number(1.0))
        return b.do("relu6", b.do(operator, *((c, x) if first else (x, c)), shape=IMAGE))

    return make


def rows_of_two(operator: str, constant: tuple[int, ...], shape: tuple[int, ...]) -> Make:
    return lambda b: b.do("tanh", b.do(operator, b.real("x", shape), b.reals(*constant, least=0.25)))


def cropped(operator: str, begin: tuple[int, ...], size: tuple[int, ...], stride: int = 1, mask: int = 0) -> Make:
    """A filter and a slice of what it writes; what a mask names begins at 0 whatever is stated."""

    def make(b: Network) -> int:
        old = (1, -(-5 // stride), -(-6 // stride), 3)
        window = {"padding": "same", "stride_h": stride, "stride_w": stride}
        y = b.do("conv_2d", image(b), b.reals(3, 3, 3, 4), b.reals(3), shape=old, **window)
        if operator == "slice":
            return b.do("slice", y, b.whole(*begin), b.whole(*size), shape=size)
        ends = [a + s for a, s in zip(begin, size, strict=True)]
        stated = [a - n if a else 0 for a, n in zip(begin, old, strict=True)]  # counted from the back
        stated = [1 if mask >> axis & 1 else a for axis, a in enumerate(stated)]
        options = {"begin_mask": mask, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
        return b.do("strided_slice", y, b.whole(*stated), b.whole(*ends), b.whole(1, 1, 1, 1), shape=size, **options)

    return make


def every_second(b: Network) -> int:
    y = filtered(b, image(b))
    options = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    given = b.whole(0, 1, 1, 0), b.whole(1, 5, 6, 4), b.whole(1, 2, 1, 1)
    return b.do("strided_slice", y, *given, shape=(1, 2, 5, 4), **options)


def summed_rows(shape: tuple[int, ...], constant: tuple[int, ...], swapped: bool, biased: bool, last: str) -> Make:
    """Rows times a matrix, reshaped, plus a constant, reshaped back, and a layer behind it."""

    def make(b: Network) -> int:
        rows = int(np.prod(shape[:-1]))
        given = b.reals(shape[-1], 3), b.reals(shape[-1]) if biased else -1
        y = b.do("fully_connected", b.real("x", (rows, 3)), *given, shape=(rows, shape[-1]))
        z, c = b.do("reshape", y, b.whole(*shape), shape=shape), b.reals(*constant)
        s = b.do("add", *((c, z) if swapped else (z, c)), shape=shape)
        r = b.do("reshape", s, b.whole(rows, shape[-1]), shape=(rows, shape[-1]))
        if last == "fully_connected":
            return b.do(last, r, b.reals(2, shape[-1]), b.reals(2), shape=(rows, 2))
        return b.do(last, r)

    return make


def slope_of(wrong: str) -> Make:
    """relu(x) + c * -relu(-x) but for one thing."""

    def make(b: Network) -> int:
        x = filtered(b, image(b))
        other = b.do("tanh", x) if wrong == "of another" else x
        inner = b.do("relu", b.do("neg", other))
        inner = inner if wrong == "not negated" else b.do("neg", inner)
        slope = b.do("logistic", x) if wrong == "computed" else b.reals(4, least=0.25)
        clamp = "relu6" if wrong == "clamped" else "none"
        return b.do("add", b.do("relu", x), b.do("mul", inner, slope), fused_activation_function=clamp)

    return make


def norm_of(wrong: str) -> Make:
    """(x - m) / sqrt(v + eps) * gamma + beta but for one thing."""

    def make(b: Network) -> int:
        x, axes, single = b.real("x", ROWS), b.whole(2), (1, 5, 1)
        mean = b.do("mean", x, axes, shape=single, keep_dims=True)
        if wrong == "a sum":
            square = b.do("square", x)
        else:
            square = b.do("squared_difference", *((mean, x) if wrong == "swapped square" else (x, mean)), shape=ROWS)
        variance = b.do("mean", square, axes, shape=single, keep_dims=True)
        epsilon = b.reals(1, 5, 1, least=0.5) if wrong == "several epsilons" else b.number(1e-2)
        inverse = b.do("rsqrt", b.do("add", *((epsilon, variance) if wrong == "epsilon first" else (variance, epsilon)),
                                     shape=single))  # fmt: skip
        difference = b.do("sub", *((mean, x) if wrong == "swapped" else (x, mean)), shape=ROWS)
        clamp = "relu" if wrong == "clamped" else "none"
        y = b.do("mul", difference, inverse, shape=ROWS, fused_activation_function=clamp)
        y = b.do("mul", y, b.do("logistic", b.real("z", ROWS)) if wrong == "computed gamma" else b.reals(8))
        return b.do("tanh", b.do("sub" if wrong == "beta taken away" else "add", y, b.reals(8)))

    return make


def gated(wrong: str) -> Make:
    """x * logistic(x) but for one thing."""

    def make(b: Network) -> int:
        x = filtered(b, image(b))
        gate = b.do("logistic", b.do("tanh", x) if wrong == "of another" else x)
        operands = (gate, x) if wrong == "swapped" else (x, gate)
        clamp = "relu" if wrong == "clamped" else "none"
        y = b.do("mul", *operands, fused_activation_function=clamp)
        return b.do("add", y, gate) if wrong == "read" else b.do("tanh", y)

    return make


def softsigned(wrong: str) -> Make:
    """x / (1 + |x|) but for one thing."""

    def make(b: Network) -> int:
        x = filtered(b, image(b))
        size = b.do("abs", b.do("tanh", x) if wrong == "of another" else x)
        one = b.reals(4, least=0.5) if wrong == "channels" else b.number(2.0 if wrong == "two" else 1.0)
        total = b.do("add", *((one, size) if wrong == "one first" else (size, one)), shape=IMAGE)
        clamp = "relu" if wrong == "clamped" else "none"
        return b.do("tanh", b.do("div", x, total, fused_activation_function=clamp))

    return make


def behind(operator: str, *constants: float, clamp: str = "none", dense: bool = False, **options: object) -> Make:
    """A layer behind a filter, or behind rows times a matrix."""

    def make(b: Network) -> int:
        if dense:
            x = b.do("fully_connected", b.real("x", (2, 5)), b.reals(7, 5), b.reals(7), shape=(2, 7),
                     fused_activation_function=clamp)  # fmt: skip
        else:
            x = filtered(b, image(b), clamp=clamp)
        return b.do("tanh", b.do(operator, x, *map(b.number, constants), **options))

    return make


def pooled(operator: str, rectified: bool, padding: str, size: int, stride: int, border: int = 0) -> Make:
    def make(b: Network) -> int:
        x, height, width = image(b), 5, 6
        x = b.do("relu", x) if rectified else x
        if border:
            height, width = 5 + 2 * border, 6 + 2 * border
            pads = b.whole([0, 0], [border, border], [border, border], [0, 0])
            x = b.do("pad", x, pads, shape=(1, height, width, 4))
        sides = [-(-n // stride) if padding == "same" else (n - size) // stride + 1 for n in (height, width)]
        window = {"filter_height": size, "filter_width": size, "stride_h": stride, "stride_w": stride}
        return b.do("tanh", b.do(operator, x, shape=(1, *sides, 4), padding=padding, **window))

    return make


def reduced(operator: str, axes: tuple[int, ...], keep: bool, rectified: bool) -> Make:
    def make(b: Network) -> int:
        x = b.do("relu", image(b)) if rectified else image(b)
        places = {a % 4 for a in axes}
        shape = tuple(1 if a in places else n for a, n in enumerate(IMAGE) if keep or a not in places)
        return b.do("tanh", b.do(operator, x, b.whole(*axes), shape=shape, keep_dims=keep))

    return make


def softmax_of(shape: tuple[int, ...]) -> Make:
    return lambda b: b.do("tanh", b.do("softmax", b.real("x", shape), beta=1.0))


def enlarged(operator: str, height: int, width: int, **options: object) -> Make:
    def make(b: Network) -> int:
        y = b.do(operator, filtered(b, image(b)), b.whole(height, width), shape=(1, height, width, 4), **options)
        return b.do("tanh", y)

    return make


def gathered(axis: int, *places: int) -> Make:
    def make(b: Network) -> int:
        shape = list(IMAGE)
        shape[axis] = len(places)
        given = b.whole(*places)
        return b.do("tanh", b.do("gather", filtered(b, image(b)), given, shape=tuple(shape), axis=axis, batch_dims=0))

    return make


def joined_with(what: str, axis: int = 3) -> Make:
    def make(b: Network) -> int:
        x, shape = filtered(b, image(b)), list(IMAGE)
        other = {
            "a constant": lambda: b.reals(*IMAGE),
            "itself": lambda: x,
            "what is not negative": lambda: b.do("relu", b.real("y")),
            "another": lambda: b.do("tanh", b.real("y")),
            "its pool": lambda: b.do("max_pool_2d", x, filter_height=3, filter_width=3, **SAME),
        }[what]()
        shape[axis] *= 2
        return b.do("tanh", b.do("concatenation", x, other, shape=tuple(shape), axis=axis))

    return make


def of_two(operator: str, left: str, right: str, same: bool = False) -> Make:
    """Two operands behind these layers, or one of them twice."""

    def make(b: Network) -> int:
        x = b.do(left, image(b))
        y = x if same else b.do(right, b.real("y"))
        return b.do("tanh", b.do(operator, x, y))

    return make


def of_two_products(signed: bool) -> Make:
    def make(b: Network) -> int:
        x, y = image(b), b.real("y")
        x, y = (x, y) if signed else (b.do("relu", x), b.do("relu", y))
        return b.do("add", b.do("mul", x, y), b.do("mul", b.real("z"), b.real("v")))

    return make


def far_apart(factor: float) -> Make:
    return lambda b: b.do("add", filtered(b, image(b)), b.do("tanh", b.do("mul", b.real("y"), b.number(factor))))


def moved(*steps: tuple[int, ...], last: str = "relu") -> Make:
    """Reshapes (of as many elements) and permutations in a row, between a filter and a layer whose range goes back."""

    def make(b: Network) -> int:
        x = filtered(b, image(b))
        for step in steps:
            old = b.shapes[x]
            if int(np.prod(step)) == 120:
                x = b.do("reshape", x, b.whole(*step), shape=step)
            else:
                x = b.do("transpose", x, b.whole(*step), shape=tuple(old[a] for a in step))
        return b.do(last, x, **({"alpha": 0.25} if last == "leaky_relu" else {}))

    return make


def of_parts(operator: str, axis: int) -> Make:
    def make(b: Network) -> int:
        x, shape = filtered(b, image(b)), list(IMAGE)
        shape[axis] //= 2
        outputs = [b.tensor(f"part{i}", tuple(shape), FLOAT) for i in range(2)]
        b.node("split", [b.given(np.array(axis, np.int32)), x], outputs, num_splits=2)
        for t in outputs:
            b.shapes[t] = tuple(shape)
        return b.do(operator, *outputs)

    return make


def drawn(seed: int) -> Make:
    """A chain of layers on images of one shape."""

    def make(b: Network) -> int:
        draw = np.random.default_rng([77, seed])
        found = [image(b), b.real("y")]
        for _ in range(7):
            x, y = (found[-1 - int(draw.integers(0, min(3, len(found))))] for _ in range(2))
            found.append(_layer(b, draw, x, y))
        return b.do("add", found[-1], found[-2])

    return make


def _layer(b: Network, draw: np.random.Generator, x: int, y: int) -> int:
    kind = int(draw.integers(0, 12))
    clamp = str(draw.choice(["none", "none", "relu", "relu6"]))
    if kind == 0:
        return filtered(b, x, 3, clamp, depthwise=bool(draw.integers(0, 2)))
    if kind == 1:
        return filtered(b, x, 1, clamp)
    if kind in (2, 3):
        operator = str(draw.choice(["relu", "relu6", "leaky_relu", "tanh", "logistic", "abs", "neg", "hard_swish"]))
        return b.do(operator, x, **({"alpha": 0.125} if operator == "leaky_relu" else {}))
    if kind in (4, 5):
        return b.do(str(draw.choice(["add", "sub", "mul", "maximum", "minimum"])), x, y)
    if kind in (6, 7):
        operator = str(draw.choice(["add", "sub", "mul", "maximum", "minimum"]))
        c = CONSTANTS[str(draw.choice([*CONSTANTS]))](b, 4)
        return b.do(operator, *((c, x) if draw.integers(0, 2) else (x, c)), shape=IMAGE)
    if kind == 8:
        window = {"filter_height": 3, "filter_width": 3, **SAME}
        return b.do(str(draw.choice(["max_pool_2d", "average_pool_2d"])), x, **window)
    if kind == 9:
        joined = b.do("concatenation", x, y, shape=(1, 5, 6, 8), axis=3)
        return b.do("conv_2d", joined, b.reals(4, 1, 1, 8), b.reals(4), shape=IMAGE, **SAME)
    if kind == 10:
        turned = b.do("transpose", x, b.whole(0, 2, 1, 3), shape=(1, 6, 5, 4))
        return b.do("transpose", b.do("relu", turned), b.whole(0, 2, 1, 3), shape=IMAGE)
    flat = b.do("reshape", x, b.whole(1, 30, 1, 4), shape=(1, 30, 1, 4))
    return b.do("reshape", b.do("leaky_relu", flat, alpha=0.25), b.whole(*IMAGE), shape=IMAGE)


def weights_of(step: float, low: int, high: int, bias: bool) -> Make:
    """A filter whose weights are whole multiples of a step, from the lowest to the highest."""

    def make(b: Network) -> int:
        weights = b.draw.integers(low, high + 1, (3, 2, 2, 4)).astype(np.float32) * np.float32(step)
        weights.reshape(-1)[:2] = low * step, high * step
        given = b.given(weights.astype(np.float32)), b.reals(3) if bias else -1
        return b.do("conv_2d", image(b), *given, shape=(1, 4, 5, 3), **WHOLE)

    return make


def widened(inputs: int, between: int, outputs: int) -> Make:
    """A filter of one pixel to few channels, then one to many."""

    def make(b: Network) -> int:
        x = b.real("x", (1, 2, 3, inputs))
        return b.conv(b.conv(x, between), outputs)

    return make


def alone(
    operator: str, shape: tuple[int, ...], *, positive: bool = False, rows: bool = False, **options: object
) -> Make:
    def make(b: Network) -> int:
        x = b.real("x", shape)
        x = b.do("fully_connected", x, b.reals(8, 8), b.reals(8), shape=shape, keep_num_dims=True) if rows else x
        x = b.do("add", b.do("abs", x), b.number(0.25)) if positive else x
        return b.do("neg", b.do(operator, x, **options))

    return make


def dense_image(clamp: str, bias: bool, shape: tuple[int, ...] = (1, 2, 3, 4)) -> Make:
    """Channels of an image times a matrix: a product that is reshaped and permuted."""

    def make(b: Network) -> int:
        given = b.reals(5, shape[-1]), b.reals(5) if bias else -1
        y = b.do("fully_connected", b.real("x", shape), *given, shape=(*shape[:-1], 5), keep_num_dims=True,
                 fused_activation_function=clamp)  # fmt: skip
        return b.do("tanh", y)

    return make


def transposed(bias: bool, stride: int, padding: str) -> Make:
    def make(b: Network) -> int:
        sides = [n * stride if padding == "same" else n * stride + max(3 - stride, 0) for n in (5, 6)]
        given = [b.whole(1, *sides, 3), b.reals(3, 3, 3, 4), image(b), *([b.reals(3)] if bias else [])]
        window = {"padding": padding, "stride_h": stride, "stride_w": stride}
        return b.do("tanh", b.do("transpose_conv", *given, shape=(1, *sides, 3), **window))

    return make


def multiplied(left: tuple[int, ...], right: tuple[int, ...], rectified: bool, **adjoint: bool) -> Make:
    def make(b: Network) -> int:
        x, y = b.real("x", left), b.real("y", right)
        x = b.do("relu", x) if rectified else x
        rows = left[-1] if adjoint.get("adj_x") else left[-2]
        columns = right[-2] if adjoint.get("adj_y") else right[-1]
        return b.do("tanh", b.do("batch_matmul", x, y, shape=(*left[:-2], rows, columns), **adjoint))

    return make


def repeated(*times: int) -> Make:
    shape = tuple(n * t for n, t in zip(IMAGE, times, strict=True))
    return lambda b: b.do("tanh", b.do("tile", filtered(b, image(b)), b.whole(*times), shape=shape))


def bordered(operator: str, *pads: tuple[int, int], value: float | None = None, **options: object) -> Make:
    def make(b: Network) -> int:
        shape = tuple(n + sum(p) for n, p in zip(IMAGE, pads, strict=True))
        fill = [] if value is None else [b.number(value)]
        return b.do("tanh", b.do(operator, filtered(b, image(b)), b.whole(*pads), *fill, shape=shape, **options))

    return make


def sloped(*slopes: float) -> Make:
    return lambda b: b.do("tanh", b.do("prelu", filtered(b, image(b)), b.given(np.array(slopes, np.float32))))


def of_many(operator: str, count: int) -> Make:
    return lambda b: b.do("tanh", b.do(operator, *(b.real(f"x{i}") for i in range(count))))


UNARY = ("abs", "ceil", "cos", "elu", "exp", "floor", "hard_swish", "logistic", "neg", "relu", "relu6", "relu_0_to_1",
         "relu_n1_to_1", "round", "sign", "sin", "square", "tanh")  # fmt: skip
OF_POSITIVE = ("log", "rsqrt", "sqrt")

VARIANTS: dict[str, Make] = {
    **{f"weights of {low} to {high} times {s}, bias {v}": weights_of(s, low, high, v) for s, low, high, v in (
        (1.0, -127, 127, True), (1.0, -128, 127, True), (1.0, -128, 128, True), (1.0, -129, 100, True),
        (1.0, 0, 255, False), (1.0, 0, 256, False), (1.0, 0, 127, True), (1.0, 0, 128, True),
        (0.5, -127, 127, True), (2.0**-6, -127, 127, False), (2.0**-7, -127, 127, True), (4.0, -31, 31, True))},
    **{f"from {i} to {m} to {o} channels": widened(i, m, o) for i, m, o in ((40, 1, 40), (41, 1, 40), (39, 1, 40))},
    **{f"{o} of {s}": alone(o, s) for o in UNARY for s in (IMAGE, ROWS)},
    **{f"{o} of rows behind a product": alone(o, (1, 5, 8), rows=True) for o in ("relu", "relu6", "tanh", "abs")},
    **{f"{o} of {s}": alone(o, s, positive=True) for o in OF_POSITIVE for s in (IMAGE, ROWS)},
    **{f"a product of an image's channels, {c}, bias {v}, {s}": dense_image(c, v, s)
       for c, v, s in (("none", True, (1, 2, 3, 4)), ("relu", True, (1, 2, 3, 4)), ("relu6", False, (1, 2, 3, 4)),
                       ("relu", True, (2, 3, 4)), ("relu", True, (6, 4)))},
    **{f"a transposed filter, bias {v}, stride {t}, {p}": transposed(v, t, p)
       for v in (False, True) for t, p in ((2, "same"), (1, "same"), (2, "valid"))},
    **{f"{a} times {c}, rectified {r}, {o}": multiplied(a, c, r, **o) for a, c, r, o in (
        ((2, 3, 4), (2, 4, 5), False, {}), ((2, 3, 4), (2, 4, 5), True, {}), ((1, 2, 3, 4), (1, 2, 4, 5), False, {}),
        ((2, 4, 3), (2, 4, 5), False, {"adj_x": True}), ((2, 3, 4), (2, 5, 4), False, {"adj_y": True}))},
    **{f"repeated {t}": repeated(*t) for t in ((1, 1, 1, 2), (1, 2, 1, 1), (1, 1, 1, 1))},
    "zeros around": bordered("pad", (0, 0), (1, 2), (0, 3), (0, 0)),
    "zeros behind channels": bordered("pad", (0, 0), (0, 0), (0, 0), (1, 2)),
    "numbers around": bordered("padv2", (0, 0), (1, 2), (0, 3), (0, 0), value=0.75),
    **{f"mirrored {p}, {m}": bordered("mirror_pad", *p, mode=m) for m in ("reflect", "symmetric")
       for p in (((0, 0), (1, 2), (0, 0), (0, 0)), ((0, 0), (0, 0), (2, 1), (0, 0)))},
    "equal slopes": sloped(0.25, 0.25, 0.25, 0.25),
    "equal slopes below 0": sloped(-0.25, -0.25, -0.25, -0.25),
    "slopes of 0": sloped(0.0, 0.0, 0.0, 0.0),
    **{f"slopes up to {s}": sloped(0.25, -0.125, s, 0.0) for s in (127 / 256, 127 / 128, 63.5, 0.3)},
    **{f"a sum of {n}": of_many("add_n", n) for n in (2, 3, 5)},
    **{f"{o} {'of' if f else 'and'} {c} behind {x}": paired(o, c, f, x)
       for o, c, f, x in product(PAIRS, CONSTANTS, (False, True), ("nothing", "a filter", "relu"))
       if x == "nothing" or (c != "a row" and o in ("add", "mul", "div") and not (f and o == "div"))},
    **{f"{o} of rows {s} and {c}": rows_of_two(o, c, s) for o in PAIRS
       for s, c in (((5, 8), (8,)), ((1, 5, 8), (8,)), ((1, 5, 8), (1, 5, 8)), ((1, 5, 8), (1, 5, 1)))},
    **{f"{o} from {a} {s}, stride {n}, mask {m}": cropped(o, a, s, n, m) for o, a, s, n, m in (
        ("slice", (0, 1, 1, 0), (1, 3, 4, 3), 1, 0), ("slice", (0, 1, 0, 0), (1, 4, 6, 3), 1, 0),
        ("slice", (0, 0, 1, 0), (1, 5, 5, 3), 1, 0), ("slice", (0, 2, 0, 0), (1, 3, 6, 3), 1, 0),
        ("slice", (0, 1, 1, 1), (1, 3, 4, 2), 1, 0), ("slice", (0, 1, 0, 0), (1, 2, 3, 3), 2, 0),
        ("strided_slice", (0, 1, 1, 0), (1, 3, 4, 3), 1, 0), ("strided_slice", (0, 0, 1, 0), (1, 4, 5, 3), 1, 2),
        ("strided_slice", (0, 1, 0, 0), (1, 3, 5, 3), 1, 4), ("strided_slice", (0, 0, 0, 0), (1, 5, 6, 3), 1, 6))},
    "every second row": every_second,
    **{f"rows {s} plus {c}, swapped {w}, bias {v}, then {n}": summed_rows(s, c, w, v, n) for s, c, w, v, n in (
        ((1, 4, 5), (5,), True, False, "fully_connected"), ((1, 4, 5), (5,), False, True, "fully_connected"),
        ((1, 4, 5), (1, 4, 5), False, False, "fully_connected"), ((1, 4, 5), (5,), False, False, "tanh"),
        ((2, 2, 5), (5,), False, False, "fully_connected"), ((2, 2, 5), (5,), False, False, "tanh"))},
    **{f"a slope, {w}": slope_of(w) for w in ("of another", "not negated", "computed", "clamped")},
    **{f"a norm, {w}": norm_of(w) for w in ("a sum", "swapped square", "several epsilons", "epsilon first", "swapped",
                                            "clamped", "computed gamma", "beta taken away")},
    **{f"a gate, {w}": gated(w) for w in ("right", "swapped", "of another", "clamped", "read")},
    **{f"a softsign, {w}": softsigned(w) for w in ("right", "one first", "of another", "channels", "two", "clamped")},
    **{f"{o} behind {c}, dense {d}": behind(o, clamp=c, dense=d)
       for o in ("neg", "abs") for c in ("none", "relu") for d in (False, True)},
    **{f"{o} {n} behind {c}, dense {d}": behind(o, n, clamp=c, dense=d)
       for o in ("mul", "div", "add", "pow") for n in (0.5, -2.0, 2.0) for c in ("none", "relu") for d in (False, True)
       if o != "pow" or n == 2.0 or (n == 0.5 and c == "relu")},
    **{f"{o} of {s} by {t}, {p}, rectified {r}, border {e}": pooled(o, r, p, s, t, e)
       for o in ("max_pool_2d", "average_pool_2d") for r in (False, True)
       for p, s, t, e in (("same", 3, 1, 0), ("valid", 2, 2, 0), ("valid", 2, 1, 0), ("same", 3, 2, 0),
                          ("valid", 3, 1, 1))},
    **{f"{o} over {a}, kept {k}, rectified {r}": reduced(o, a, k, r)
       for o in ("mean", "reduce_max", "sum", "reduce_min") for r in (False, True)
       for a, k in (((1, 2), True), ((1, 2), False), ((3,), True), ((1,), False))},
    **{f"softmax of {s}": softmax_of(s) for s in ((3, 5), (1, 3, 5), (1, 1, 1, 5), (1, 3, 2, 5))},
    **{f"nearest to {h} x {w}": enlarged("resize_nearest_neighbor", h, w) for h, w in ((10, 12), (15, 12), (5, 12))},
    "bilinear": enlarged("resize_bilinear", 10, 12, half_pixel_centers=True),
    "bilinear, aligned": enlarged("resize_bilinear", 9, 11, align_corners=True),
    **{f"gather {p} along {a}": gathered(a, *p) for a, p in ((1, (2,)), (3, (0,)), (3, (2, 0)), (2, (5, 1, 1)))},
    **{f"joined with {w}": joined_with(w)
       for w in ("a constant", "itself", "what is not negative", "another", "its pool")},
    "joined along rows": joined_with("another", 1),
    **{f"{o} of {x} and {y}": of_two(o, x, y)
       for o in ("add", "sub", "mul", "maximum", "minimum", "div")
       for x, y in (("tanh", "relu"), ("relu", "relu"), ("tanh", "tanh"), ("relu", "tanh"))
       if o != "div"},
    **{f"{o} of one twice": of_two(o, "tanh", "", True) for o in ("add", "sub", "mul", "maximum")},
    **{f"a sum of two products, signed {s}": of_two_products(s) for s in (False, True)},
    **{f"a sum with {f:g} times": far_apart(f) for f in (0.01, 0.2)},
    **{f"{last} behind {steps}": moved(*steps, last=last) for last in ("relu", "leaky_relu", "tanh") for steps in (
        ((1, 30, 4), (1, 4, 30), (1, 5, 6, 4)), ((0, 3, 1, 2), (0, 2, 1, 3)), ((1, 30, 1, 4), (1, 6, 5, 4)),
        ((0, 2, 1, 3), (1, 30, 4)), ((30, 4),), ((1, 30, 4), (0, 2, 1)), ((1, 3, 10, 4), (0, 3, 1, 2)))},
    **{f"{o} of parts along {a}": of_parts(o, a) for o, a in (("add", 3), ("maximum", 3), ("mul", 2))},
    **{f"drawn {seed}": drawn(seed) for seed in range(64)},
    **FRONT_END,
}  # fmt: skip
