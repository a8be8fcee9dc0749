"""Drawn chains of moves, sums, products and rectifiers, which the Compass Parser rewrites in many steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.support.float_forms import NONE, filter_then, following, hard_sigmoid, over, product, row, step, to, turn
from tests.support.float_networks import IMAGE, ROWS, WHOLE, Make, Network
from tflq.graph import Array

Shape = tuple[int, ...]
Step = tuple[Any, ...]
Rng = np.random.Generator
STARTS: tuple[Shape, ...] = (IMAGE, (2, 3, 4), (1, 12, 1, 5), (4, 6), (1, 6, 1, 4), (2, 1, 6, 2), (6, 8), (1, 3, 4, 2))


def _divided(draw: Rng, size: int, rank: int) -> Shape:
    """A shape of so many axes, some of them 1."""
    found = []
    for _ in range(rank - 1):
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        found.append(int(draw.choice(divisors[: max(2, len(divisors) - 1)])))
        size //= found[-1]
    return tuple(int(n) for n in draw.permutation([*found, size]))


def _reshaped(draw: Rng, shape: Shape) -> Step:
    """Axes split, joined, made of nothing, or all of them anew."""
    kind, place = int(draw.integers(0, 4)), int(draw.integers(0, len(shape)))
    if kind == 0 and len(shape) > 1:
        place = min(place, len(shape) - 2)
        return to(*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
    if kind == 1 and len(shape) < 5:
        first = int(draw.choice([d for d in range(1, shape[place] + 1) if shape[place] % d == 0]))
        return to(*shape[:place], first, shape[place] // first, *shape[place + 1 :])
    if kind == 2 and 1 in shape and len(shape) > 1:
        place = shape.index(1)
        left = [*shape[:place], *shape[place + 1 :]]
        left.insert(int(draw.integers(0, len(left) + 1)), 1)
        return to(*(left if draw.integers(0, 2) else shape[:place] + shape[place + 1 :]))
    return to(*_divided(draw, int(np.prod(shape)), int(draw.integers(1, 5))))


def _turned(draw: Rng, shape: Shape) -> Step:
    return turn(shape, *(int(a) for a in draw.permutation(len(shape))))


def _constant(draw: Rng, shape: Shape) -> Array:
    """One number, one a channel, one a row, as many as there are, the same everywhere, or along the last axes."""
    last = int(draw.integers(1, len(shape) + 1))
    sizes = ((), shape[-1:], (*shape[:-1], 1), shape, (1,) * len(shape), shape[-last:])
    size = sizes[int(draw.integers(0, len(sizes)))]
    if draw.integers(0, 4) == 0:
        return np.full(size, draw.choice([0.0, 1.0, 0.5, 2.0]), np.float32)
    return draw.uniform(0.25, 1.5, size).astype(np.float32)


def _summed(draw: Rng, shape: Shape) -> Step:
    operator = str(draw.choice(["add", "sub", "mul", "div", "mul", "add"]))
    behind = bool(draw.integers(0, 4) == 0) and operator != "div"
    constant = _constant(draw, shape)
    constant = constant + np.float32(0.25) if operator == "div" else constant
    return step(operator, constant, new=shape, behind=behind, **NONE)


def _limited(draw: Rng, _shape: Shape) -> Step:
    return step(str(draw.choice(["minimum", "maximum"])), float(draw.choice([0.0, 0.5, 6.0, 1.0])))


def _sloped(draw: Rng, shape: Shape) -> Step:
    if len(shape) == 1:
        return step("leaky_relu", alpha=0.25)
    size = shape[1:] if draw.integers(0, 2) else (*(1,) * (len(shape) - 2), shape[-1])
    return step("prelu", draw.uniform(-0.5, 0.5, size).astype(np.float32))


def _alone(draw: Rng, _shape: Shape) -> Step:
    operator = str(draw.choice(["relu", "relu", "relu6", "leaky_relu", "tanh", "abs", "logistic", "neg"]))
    options: dict[str, Any] = {"alpha": 0.3} if operator == "leaky_relu" else {}
    return step(operator, **options)


def _reduced(draw: Rng, shape: Shape) -> Step:
    axes = tuple(sorted(int(a) for a in draw.choice(len(shape), int(draw.integers(1, len(shape) + 1)), replace=False)))
    operator = str(draw.choice(["mean", "sum", "reduce_max"]))
    return over(operator, axes, shape, bool(len(axes) == len(shape) or draw.integers(0, 2)))


def _idle(draw: Rng, shape: Shape) -> Step:
    """What changes nothing, or nearly so."""
    kind, rank = int(draw.integers(0, 3)), len(shape)
    if kind == 0:
        return step("pad", np.zeros((rank, 2), np.int32), new=shape)
    if kind == 1:
        return step("tile", np.ones(rank, np.int32), new=shape)
    return step("slice", np.zeros(rank, np.int32), np.array(shape, np.int32), new=shape)


KINDS: tuple[Callable[[Rng, Shape], Step], ...] = (
    *(_reshaped,) * 5,
    *(_turned,) * 4,
    *(_summed,) * 4,
    *(_alone,) * 3,
    *(_limited, _sloped, _reduced, _idle),
)


def _steps(b: Network, draw: Rng, t: int, count: int) -> int:
    for _ in range(count):
        operator, constants, new, options = KINDS[int(draw.integers(0, len(KINDS)))](draw, b.shapes[t])
        t = following(b, t, operator, constants, new, options)
    return t


def _linear(b: Network, draw: Rng, t: int) -> int:
    """Behind a filter of images, or rows times a matrix."""
    shape = b.shapes[t]
    if len(shape) == 4 and draw.integers(0, 2):
        given = (b.reals(3, 1, 1, shape[3]), b.reals(3))
        return b.do("conv_2d", t, *given, shape=(*shape[:3], 3), **WHOLE, **NONE)
    if len(shape) > 1:
        given = (b.reals(4, shape[-1]), b.reals(4))
        return b.do("fully_connected", t, *given, shape=(*shape[:-1], 4), keep_num_dims=True, **NONE)
    return t


def _joined(b: Network, draw: Rng, t: int, other: int) -> int:
    """Two values of one shape, or the second brought to it."""
    shape = b.shapes[t]
    if b.shapes[other] != shape and np.prod(b.shapes[other]) == np.prod(shape):
        other = b.do("reshape", other, b.whole(*shape), shape=shape)
    if b.shapes[other] != shape:
        return t
    operands = (t, other) if draw.integers(0, 2) else (other, t)
    operator = str(draw.choice(["add", "sub", "mul", "maximum"]))
    return b.do(operator, *operands, shape=shape, **({} if operator == "maximum" else NONE))


def drawn(seed: int) -> Make:
    def make(b: Network) -> int:
        draw = np.random.default_rng(seed)
        shape = STARTS[int(draw.integers(0, len(STARTS)))]
        t = x = b.real("x", shape)
        t = _linear(b, draw, t) if draw.integers(0, 2) else t
        fork = _steps(b, draw, t, int(draw.integers(1, 4)))
        t = _steps(b, draw, fork, int(draw.integers(1, 4)))
        if draw.integers(0, 3) == 0:
            t = _joined(b, draw, t, [x, fork][int(draw.integers(0, 2))])
        t = _linear(b, draw, t) if draw.integers(0, 3) == 0 else t
        t = _steps(b, draw, t, int(draw.integers(1, 3)))
        return b.do("tanh", t) if draw.integers(0, 2) else t

    return make


SEEDS: Sequence[int] = range(240)
CHAINS: dict[str, Make] = {f"chain {seed}": drawn(seed) for seed in SEEDS}


def also_read(*path: str, place: int, **keys: Any) -> Make:
    """A chain of layers of ROWS; what the layer at `place` writes is read once more at the end."""

    def make(b: Network) -> int:
        t = b.real("x", ROWS)
        values = []
        for operator in path:
            options = keys.get(operator, {})
            if operator in ("sum", "mean"):
                t = b.do(operator, t, b.whole(2), shape=(1, 5, 1), keep_dims=True)
            elif operator in ("add", "mul", "maximum", "minimum"):
                t = b.do(operator, t, b.number(options.get("number", 0.75)))
            else:
                t = b.do(operator, t)
            values.append(t)
        return b.do("add", t, b.do("tanh", values[place]), shape=tuple(np.broadcast_shapes(b.shapes[t], ROWS)))

    return make


def dense_scaled(*steps: Step, rows: Shape = (2, 3, 5), keeps: bool = True) -> Make:
    """Rows of more axes times a matrix, and constants behind them."""

    def make(b: Network) -> int:
        new = (*rows[:-1], 6) if keeps else (int(np.prod(rows[:-1])), 6)
        given = (b.reals(6, rows[-1]), b.reals(6))
        t = b.do("fully_connected", b.real("x", rows), *given, shape=new, keep_num_dims=keeps, **NONE)
        for operator, constants, changed, options in steps:
            t = following(b, t, operator, constants, changed, options)
        return t

    return make


def normed(axes: Shape, others: Shape, gamma: Shape) -> Make:
    """(x - m) / sqrt(v + eps) * gamma + beta over any axes; the variance may have others."""

    def make(b: Network) -> int:
        x = b.real("x", ROWS)
        kept, of_others = (tuple(1 if a in over else n for a, n in enumerate(ROWS)) for over in (axes, others))
        mean = b.do("mean", x, b.whole(*axes), shape=kept, keep_dims=True)
        d = b.do("sub", x, mean)
        v = b.do("mean", b.do("square", d), b.whole(*others), shape=of_others, keep_dims=True)
        root = b.do("rsqrt", b.do("add", v, b.number(1e-3)))
        return b.do("tanh", b.do("add", b.do("mul", b.do("mul", d, root), b.reals(*gamma)), b.reals(*gamma)))

    return make


def blocks_apart(there: Shape, back: Shape, new: Shape) -> Make:
    """A filter between blocks of two sizes, which is no dilated one."""

    def make(b: Network) -> int:
        zeros = b.whole([0, 0], [0, 0])
        x = b.do("space_to_batch_nd", b.real("x", (1, 4, 8, 3)), b.whole(*there), zeros, shape=(4, 2, 4, 3))
        y = b.do("conv_2d", x, b.reals(2, 1, 1, 3), b.reals(2), shape=(4, 2, 4, 2), **WHOLE)
        return b.do("tanh", b.do("batch_to_space_nd", y, b.whole(*back), b.whole([0, 0], [0, 0]), shape=new))

    return make


BEHIND: dict[str, Step] = {
    "mul of each": step("mul", np.arange(1, 7, dtype=np.float32) / 4, **NONE),
    "mul of one": step("mul", 0.75, **NONE),
    "add of each": step("add", np.arange(1, 7, dtype=np.float32) / 4, **NONE),
    "sub of one": step("sub", 0.75, **NONE),
    "one minus": step("sub", 0.75, behind=True, **NONE),
    "mul of rows": step("mul", np.arange(1, 4, dtype=np.float32).reshape(3, 1), **NONE),
}
FORMS_MORE: dict[str, Make] = {
    **{f"dense, {n}, keeps {k}": dense_scaled(s, rows=(2, 3, 5) if k else (3, 5), keeps=k)
       for n, s in BEHIND.items() for k in (True, False)},
    **{
        f"{o} between a sum and a product with {f}": row(step("add", 0.5, **NONE), step(o), step("mul", f, **NONE))
        for o in ("relu_0_to_1", "relu_n1_to_1", "relu6")
        for f in (1.0, 0.5, 1 / 6)
    },
    "dense, both": dense_scaled(BEHIND["mul of each"], BEHIND["add of each"]),
    "dense of rows, moved": dense_scaled(to(3, 2, 6), BEHIND["mul of each"], step("tanh")),
    "dense, other rows": dense_scaled(to(4, 9), step("mul", 0.75, **NONE)),
    **{f"{'-'.join(p)}, {k} read": also_read(*p, place=k)
       for p in (("abs", "sum"), ("square", "sum", "sqrt"), ("square", "sum", "rsqrt"), ("relu", "minimum"),
                 ("maximum", "minimum"), ("mul", "add"), ("exp", "add", "log"), ("add", "relu6", "mul"))
       for k in range(len(p) - 1)},
    **{f"norm {a}, {o}, {g}": normed(a, o, g)
       for a, o, g in (((2,), (2,), (8,)), ((1, 2), (1, 2), (5, 8)), ((1,), (1,), (5, 1)), ((2,), (1, 2), (8,)),
                       ((2,), (2,), (5, 1)), ((2,), (2,), (1,)))},
    **{f"hard sigmoid {v}": hard_sigmoid(*v)
       for v in ((2.0, 0.0, 4.0, 0.25), (1.0, 0.5, 2.0, 0.5), (3.0, 0.0, 6.0, 1 / 6), (2.0, 0.0, 4.0, 0.3),
                 (0.0, -1.0, 1.0, 1.0))},
    **{f"blocks {t}, {k}": blocks_apart(t, k, n)
       for t, k, n in (((2, 2), (2, 2), (1, 4, 8, 2)), ((2, 2), (4, 1), (1, 8, 4, 2)))},
    **{f"limits of RELU, {n}": filter_then(step("relu"), step("minimum", n)) for n in (0.0, -1.0, 6.0, 3.0)},
    **{f"product, {a}": product((3, 4), (3, 5) if a[0] else (4, 5), adj=a, constant=True)
       for a in ((False, False), (True, False))},
    **{f"moved ones, {n}": row(*s, shape=x)
       for n, x, s in (
           ("behind", IMAGE, (turn(IMAGE, 0, 3, 1, 2), to(4, 1, 5, 6), step("tanh"))),
           ("in front", (5, 1, 6, 4), (to(1, 5, 6, 4), turn((1, 5, 6, 4), 0, 2, 1, 3), step("tanh"))),
           ("over a row", (5, 6, 1), (to(1, 6, 5), turn((1, 6, 5), 0, 2, 1), step("tanh"))),
           ("split to ones", (4, 6), (turn((4, 6), 1, 0), to(6, 4, 1), step("tanh"))),
           ("ones in front", (4, 6), (turn((4, 6), 1, 0), to(1, 6, 4), step("tanh"))),
       )},
    **{f"slopes behind {s}": row(to(*s), step("prelu", np.linspace(-0.5, 0.5, s[-1], dtype=np.float32)), to(2, 60),
                                 step("tanh"))
       for s in ((5, 24), (1, 30, 4), (2, 5, 12))},
}  # fmt: skip
CHAINS |= {f"form, {name}": make for name, make in FORMS_MORE.items()}
