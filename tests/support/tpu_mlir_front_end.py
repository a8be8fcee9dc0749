"""Networks with the patterns of TPU-MLIR's front end, and networks one step away (converters/tpu_mlir/front_end.py)."""

from __future__ import annotations

from tests.support.float_networks import Make, Network, image
from tflq.graph import DType

WIDTH = 12
ROW = (1, WIDTH)


def row(b: Network, name: str = "x") -> int:
    """Return the tanh of an input."""
    return b.do("tanh", b.real(name, ROW))


def reshaped(b: Network, x: int, *shape: int) -> int:
    return b.do("reshape", x, b.whole(*shape), shape=shape)


def summed_after(*moves: tuple[int, ...], operator: str = "add", shared: bool = False) -> Make:
    """A gate a * b, moved, with another product: a highway layer; `shared`: a table reads the move, too."""

    def make(b: Network) -> int:
        a, c = row(b), row(b, "z")
        first = moved = b.do("mul", a, b.do("logistic", c))
        for shape in moves:
            moved = reshaped(b, moved, *shape)
        second = b.do("mul", b.do("logistic", a), c)
        y = b.do("tanh", b.do(operator, second, moved, shape=ROW))
        return b.do("add", y, b.do("tanh", moved), shape=ROW) if shared or first < 0 else y

    return make


def transposed(order: tuple[int, ...], *, first: bool) -> Make:
    """A product of two activations with a transposed operand."""

    def make(b: Network) -> int:
        x, z = (b.do("tanh", b.real(name, (1, 6, 4))) for name in "xz")
        axes = {"transposed": x, "other": z}
        shape = tuple((1, 6, 4)[a] for a in order)
        turned = b.do("transpose", axes["transposed"], b.whole(*order), shape=shape)
        if order == (0, 1, 2):
            return b.do("mul", turned, z)
        operands = (turned, z) if first else (z, turned)
        side = 4 if first else 6
        return b.do("batch_matmul", *operands, shape=(1, side, side), adj_x=False, adj_y=False)

    return make


def twins(kind: str) -> Make:
    """Two layers of one kind on the same operands."""

    def make(b: Network) -> int:
        x, z = row(b), row(b, "z")
        if kind == "square":
            d = b.do("sub", x, z)
            return b.do("add", b.do("squared_difference", x, z), b.do("tanh", d))
        operands = {"equal": ((x, z), (x, z)), "swapped": ((x, z), (z, x))}.get(kind, ((x, z), (x, z)))
        if kind == "numbers":
            pair = [b.do("mul", x, b.number(0.75)) for _ in range(2)]
        elif kind == "chains":
            pair = [b.do("exp", b.do("add", *o)) for o in operands]
        else:
            pair = [b.do("add", *o) for o in operands]
        return b.do("mul", b.do("tanh", pair[0]), b.do("logistic", pair[1]))

    return make


def nested(inner: int, outer: int, *, shared: bool = False) -> Make:
    """A concatenation of a concatenation."""

    def make(b: Network) -> int:
        parts = [b.do(o, image(b) if n == 0 else b.real(f"x{n}")) for n, o in enumerate(("tanh", "relu", "logistic"))]
        shape = [1, 5, 6, 4]
        shape[inner] *= 2
        first = b.do("concatenation", *parts[:2], shape=tuple(shape), axis=inner)
        third = (
            parts[2] if inner == outer else b.do("concatenation", parts[2], parts[2], shape=tuple(shape), axis=inner)
        )
        whole = list(shape)
        whole[outer] += b.shapes[third][outer]
        y = b.do("concatenation", first, third, shape=tuple(whole), axis=outer)
        if not shared:
            return b.do("tanh", y)
        padded = [[0, whole[a] - shape[a]] for a in range(4)]
        return b.do("add", y, b.do("pad", b.do("tanh", first), b.whole(*padded), shape=tuple(whole)))

    return make


def parts_of_a_product(*cuts: tuple[int, int], split: bool = False, bias: bool = True, unread: bool = False) -> Make:
    """A product, of which slices are read, as in an unrolled recurrent cell."""

    def make(b: Network) -> int:
        given = (b.reals(WIDTH, WIDTH), *((b.reals(WIDTH),) if bias else ()))
        y = b.do("fully_connected", row(b), *given, fused_activation_function="none")
        if split:
            pieces = [
                b._known(b.tensor(f"piece{n}", (1, WIDTH // 3), DType.FLOAT32), (1, WIDTH // 3)) for n in range(3)
            ]
            b.node("split", [b.whole(1), y], pieces, num_splits=3)
            pieces = pieces[: 2 if unread else 3]
        else:
            pieces = [b.do("slice", y, b.whole(0, a), b.whole(1, z - a), shape=(1, z - a)) for a, z in cuts]
        total = b.do("tanh", pieces[0])
        for piece in pieces[1:]:
            size = b.shapes[total][1], b.shapes[piece][1]
            total = b.do("concatenation", total, b.do("logistic", piece), shape=(1, sum(size)), axis=1)
        return b.do("mul", total, y) if unread and not split else total

    return make


def chosen(*, shared: bool) -> Make:
    """A choice by the sign, as in SELU; `shared`: another layer reads a branch."""

    def make(b: Network) -> int:
        x = row(b)
        low = b.do("elu", x)
        truth = b._known(b.add("greater", [x, b.number(0.1)], ROW, DType.BOOL), ROW)
        y = b.do("select", truth, b.do("mul", x, b.number(1.05)), low)
        return b.do("add", b.do("tanh", y), low) if shared else b.do("tanh", y)

    return make


def reversed_part(b: Network) -> int:
    """The backward half of a bidirectional layer: reversed and joined."""
    x, z = (b.do("tanh", b.real(name, (1, 4, 6))) for name in "xz")
    turned = b.do("reverse_v2", z, b.whole(1))
    return b.do("tanh", b.do("concatenation", x, turned, shape=(1, 4, 12), axis=2))


def least(number: float, size: int) -> Make:
    """A minimum with a number."""
    return lambda b: b.do("tanh", b.do("minimum", b.do("exp", b.real("x", (1, size))), b.number(number)))


def tiny(bias: bool) -> Make:
    """A convolution on values near 0."""

    def make(b: Network) -> int:
        x = b.do("mul", b.do("tanh", image(b)), b.number(1e-7))
        given = (b.reals(3, 1, 1, 4), *((b.reals(3),) if bias else ()))
        return b.do("conv_2d", x, *given, shape=(1, 5, 6, 3), padding="valid", stride_h=1, stride_w=1)

    return make


def clamped(b: Network) -> int:
    """A product whose RELU_N1_TO_1 is fused in the file."""
    y = b.do("fully_connected", row(b), b.reals(5, WIDTH), b.reals(5), shape=(1, 5),
             fused_activation_function="relu_n1_to_1")  # fmt: skip
    return b.do("tanh", y)


FRONT_END: dict[str, Make] = {
    "a product and a flat one": summed_after((WIDTH,)),
    "a product and a flat one that is read": summed_after((WIDTH,), shared=True),
    "a product and one reshaped to its shape": summed_after(ROW),
    "a product and one reshaped back": summed_after((3, 4), ROW),
    "a product and one reshaped twice": summed_after((3, 4), (WIDTH,)),
    **{f"{o} of a product and a flat one": summed_after((WIDTH,), operator=o) for o in ("sub", "mul", "maximum")},
    **{f"operands {o}, transposed first {f}": transposed(o, first=f)
       for o in ((0, 2, 1), (0, 1, 2)) for f in (True, False)},
    **{f"twins, {k}": twins(k) for k in ("square", "equal", "swapped", "numbers", "chains")},
    **{f"joined along {i}, then {o}, read {s}": nested(i, o, shared=s) for i, o, s in (
        (3, 3, False), (3, 3, True), (1, 3, False), (1, 1, False))},
    "a product in three": parts_of_a_product((0, 4), (4, 8), (8, 12)),
    "a product in two, the last first": parts_of_a_product((5, 12), (0, 5), bias=False),
    "a product with a gap": parts_of_a_product((0, 4), (6, 12)),
    "a product that overlaps": parts_of_a_product((0, 6), (4, 12)),
    "a product that is also read": parts_of_a_product((0, 4), (4, 12), unread=True),
    "a product that is split": parts_of_a_product(split=True),
    "a product of which a part is not read": parts_of_a_product(split=True, unread=True),
    **{f"a choice, read {s}": chosen(shared=s) for s in (True, False)},
    "a reversed part": reversed_part,
    **{f"least of {n} and {c:g}": least(c, n) for n, c in ((1, 300.0), (1, 1e12), (6, 1e12), (6, 2.0))},
    **{f"values near 0, bias {b}": tiny(b) for b in (True, False)},
    "a fused clamp at -1 and 1": clamped,
}  # fmt: skip
