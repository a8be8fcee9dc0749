"""Small float networks of what only the Compass Parser writes anew, beside those of all targets (float_forms.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.converters.aipu.drawn_networks import CHAINS
from tests.support.float_forms import (
    FORMS,
    NONE,
    built_of,
    dense_then,
    filter_then,
    indexed,
    length,
    moved,
    product,
    reals,
    row,
    sliced,
    step,
    to,
    turn,
    typed,
    zeros_then_filter,
)
from tests.support.float_networks import FLOAT, IMAGE, ROWS, WHOLE, Make, Network, image
from tflq.converters.passes.rewrite import with_attributes
from tflq.graph import Array, DType, Graph

Shape = tuple[int, ...]


def dense(shape: Shape, keeps: bool, clamp: str = "none") -> Make:
    """Rows of an input of more axes."""

    def make(b: Network) -> int:
        new = (*shape[:-1], 3) if keeps else (int(np.prod(shape[:-1])), 3)
        keys = {"fused_activation_function": clamp, "keep_num_dims": keeps}
        return b.do("fully_connected", b.real("x", shape), b.reals(3, shape[-1]), b.reals(3), shape=new, **keys)

    return make


def several(operator: str, new: Shape, count: int, *constants: object, **options: Any) -> Make:
    """Every output of an operator that has several, each with an operator of its own, in one sum."""

    def make(b: Network) -> int:
        x = image(b)
        given = [b.given(np.asarray(c)) for c in constants]
        parts = [b.tensor(f"part{i}", new, FLOAT) for i in range(count)]
        order = [*given, x] if operator == "split" else [x, *given]
        b.node(operator, order, parts, **options)
        b.shapes.update(dict.fromkeys(parts, new))
        each = [b.do("softmax", part, beta=1.0) for part in parts]
        total = each[0]
        for one in each[1:]:
            total = b.do("sub", total, one)
        return total

    return make


def parts_of_sizes(axis: int, sizes: Sequence[int]) -> Make:
    def make(b: Network) -> int:
        x = image(b)
        shapes = [tuple(n if a == axis % 4 else m for a, m in enumerate(IMAGE)) for n in sizes]
        parts = [b.tensor(f"part{i}", shape, FLOAT) for i, shape in enumerate(shapes)]
        b.node("split_v", [x, b.whole(*sizes), b.given(np.int32(axis))], parts, num_splits=len(sizes))
        b.shapes.update(zip(parts, shapes, strict=True))
        turned = [b.do("tanh", parts[0]), *parts[:0:-1]]
        return b.do("concatenation", *turned, shape=IMAGE, axis=axis, **NONE)

    return make


def spread_by(indices: tuple[tuple[int, ...], ...], shape: Shape, new: Shape) -> Make:
    def make(b: Network) -> int:
        given = b.given(np.array(indices, np.int32))
        return b.do("scatter_nd", given, b.real("x", shape), b.whole(*new), shape=new)

    return make


def masked(places: tuple[Shape, Shape, Shape, Shape], masks: Mapping[str, int]) -> Make:
    first, last, steps, new = places
    keys = {f"{key}_mask": masks.get(key, 0) for key in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}

    def make(b: Network) -> int:
        given = [b.whole(*v) for v in (first, last, steps)]
        return b.do("tanh", b.do("strided_slice", image(b), *given, shape=new, **keys))

    return make


def blocks(operator: str, shape: Shape, new: Shape, sizes: Shape, around: Sequence[Sequence[int]]) -> Make:
    return lambda b: b.do("tanh", b.do(operator, b.real("x", shape), b.whole(*sizes), b.whole(*around), shape=new))


def spread_filter(operator: str, block: int, pads: Sequence[Sequence[int]], crops: Sequence[Sequence[int]]) -> Make:
    """A filter of pixels that lie a block apart, as TensorFlow writes a dilated one."""

    def make(b: Network) -> int:
        wide, high = (n + sum(p) for n, p in zip((5, 6), pads, strict=True))
        apart = (block * block, wide // block, high // block, 4)
        x = b.do("space_to_batch_nd", image(b), b.whole(block, block), b.whole(*pads), shape=apart)
        given = (b.reals(3, 2, 2, 4), b.reals(3)) if operator == "conv_2d" else (b.reals(1, 2, 2, 4), b.reals(4))
        new = (apart[0], apart[1] - 1, apart[2] - 1, 3 if operator == "conv_2d" else 4)
        keys = {} if operator == "conv_2d" else {"depth_multiplier": 1}
        y = b.do(operator, x, *given, shape=new, **WHOLE, **keys)
        back = [n * block - sum(c) for n, c in zip(new[1:3], crops, strict=True)]
        return b.do("batch_to_space_nd", y, b.whole(block, block), b.whole(*crops), shape=(1, *back, new[3]))

    return make


def divided(operator: str, second: Shape | float) -> Make:
    """Whole quotients and what they leave, by numbers above 0."""

    def make(b: Network) -> int:
        x = image(b)
        y = b.number(second) if isinstance(second, float) else b.do("exp", b.real("y", second))
        return b.do(operator, x, y, shape=IMAGE)

    return make


def running(axis: int, exclusive: bool, reverse: bool, shape: Shape = IMAGE) -> Make:
    return row(step("cumsum", np.int32(axis), exclusive=exclusive, reverse=reverse), shape=shape)


def truths(operator: str, axes: Shape, keep: bool) -> Make:
    def make(b: Network) -> int:
        kept = tuple(1 if a in axes else n for a, n in enumerate(IMAGE) if keep or a not in axes)
        which = typed(b, "greater", (image(b), b.number(0.25)), IMAGE, DType.BOOL)
        found = typed(b, operator, (which, b.whole(*axes)), kept, DType.BOOL, keep_dims=keep)
        return b.do("select_v2", found, b.real("y", kept), b.reals(*kept), shape=kept)

    return make


def summed(count: int, twice: bool = False) -> Make:
    def make(b: Network) -> int:
        x = [b.real(f"x{i}") for i in range(count)]
        return b.do("tanh", b.do("add_n", *x, *(x[:1] if twice else ())))

    return make


def suppressed(limit: int, sigma: float | None = None) -> Make:
    """Boxes of numbers in 0..1 as corners, their scores, and what is left of both."""

    def make(b: Network) -> int:
        boxes, scores = b.do("logistic", b.real("boxes", (9, 4))), b.do("logistic", b.real("scores", (9,)))
        given = [b.given(np.int32(limit)), b.number(0.4), b.number(0.3)]
        chosen = b.tensor("chosen", (limit,), DType.INT32)
        kept, count = b.tensor("kept", (limit,), FLOAT), b.tensor("count", (), DType.INT32)
        b.shapes.update({chosen: (limit,), kept: (limit,), count: ()})
        if sigma is None:
            b.node("non_max_suppression_v4", [boxes, scores, *given], [chosen, count])
            return b.do("gather", scores, chosen, shape=(limit,), axis=0, batch_dims=0)
        b.node("non_max_suppression_v5", [boxes, scores, *given, b.number(sigma)], [chosen, kept, count])
        both = b.do("add", kept, b.do("gather", scores, chosen, shape=(limit,), axis=0, batch_dims=0))
        return both if sigma else b.do("tanh", kept)

    return make


def joined(axis: int, clamp: str, count: int = 3) -> Make:
    def make(b: Network) -> int:
        parts = [b.do("tanh", b.real("x0")), *(b.real(f"x{i}") for i in range(1, count))]
        new = tuple(n * count if a == axis % 4 else n for a, n in enumerate(IMAGE))
        return b.do("concatenation", *parts, shape=new, axis=axis, fused_activation_function=clamp)

    return make


def rectified_pair(operator: str, second: Shape, clamp: str) -> Make:
    return lambda b: b.do(operator, image(b), b.real("y", second), shape=IMAGE, fused_activation_function=clamp)


def sized(n: int, *steps: tuple[Any, ...]) -> Make:
    """A filter of a batch."""

    def make(b: Network) -> int:
        x = b.real("x", (n, 5, 6, 4))
        y = b.do("conv_2d", x, b.reals(3, 2, 3, 4), b.reals(3), shape=(n, 4, 4, 3), **WHOLE)
        for operator, constants, new, options in steps:
            y = b.do(operator, y, *(b.given(np.asarray(c)) for c in constants), shape=new or b.shapes[y], **options)
        return y

    return make


def powers(base: str, exponent: float | Shape) -> Make:
    """abs: bases above 0; exponents of one number, or of as many as the shape says, computed."""

    def make(b: Network) -> int:
        x = image(b)
        x = b.do("add", b.do("abs", x), b.number(0.5)) if base == "abs" else x
        p = b.number(exponent) if isinstance(exponent, float) else b.do("tanh", b.real("p", exponent))
        return b.do("pow", x, p, shape=IMAGE)

    return make


OWN: dict[str, Make] = {
    **{
        f"rows of {len(s)} axes, keeps {k}, {c}": dense(s, k, c)
        for s, k, c in (
            (ROWS, False, "relu"),
            ((2, 3, 8), False, "relu6"),
            ((2, 3, 2, 4), False, "none"),
        )
    },
    **{
        f"product of rows {s} with constants, {steps}": product(s, w, adj=(False, t), constant=True)
        for s, w, t, steps in (((3, 4, 5), (5, 2), False, "plain"), ((2, 3, 4, 5), (2, 5), True, "turned"))
    },
    **{
        f"{o} behind four paddings": zeros_then_filter(o, ((0, 0), (1, 2), (3, 4), (0, 0)))
        for o in ("conv_2d", "depthwise_conv_2d")
    },
    "conv_2d behind zeros of a batch": zeros_then_filter("conv_2d", ((0, 1), (1, 0), (0, 1), (0, 0))),
    **{
        f"{o} of pixels {n} apart, {p}, {c}": spread_filter(o, n, p, c)
        for o in ("conv_2d", "depthwise_conv_2d")
        for n, p, c in ((2, ((1, 2), (0, 2)), ((0, 0), (0, 0))), (3, ((1, 3), (2, 4)), ((1, 0), (0, 2))))
    },
    **{
        f"split along {a}": several("split", s, n, np.int32(a), num_splits=n)
        for a, n, s in ((2, 3, (1, 5, 2, 4)), (-1, 4, (1, 5, 6, 1)))
    },
    **{
        f"unpacked along {a}": several("unpack", s, n, axis=a, num=n)
        for a, n, s in ((1, 5, (1, 6, 4)), (3, 4, (1, 5, 6)), (-2, 6, (1, 5, 4)), (0, 1, (5, 6, 4)))
    },
    **{f"parts of {s} along {a}": parts_of_sizes(a, s) for a, s in ((2, (1, 3, 2)), (-1, (3, 1)), (1, (2, 2, 1)))},
    **{
        f"masked {v}": masked(v, m)
        for v, m in (
            (((0, 3, 1, 1), (1, 4, 2, 3), (1, 1, 1, 1), (1, 4, 1, 2)), {"begin": 2}),
            (((0, 1, 2, 0), (1, 2, 3, 3), (1, 1, 2, 1), (1, 1, 2, 4)), {"end": 12}),
            (((0, -2, -4, 1), (1, 5, -1, -1), (1, 1, 1, 1), (1, 2, 3, 2)), {}),
            (((0, 4, 5, 0), (1, 0, 0, 4), (1, -1, -2, 2), (1, 4, 3, 2)), {}),
            (((0, -1, 0, 2), (1, 9, 6, 9), (1, 1, 1, 1), (1, 6, 2)), {"shrink_axis": 2}),
            (((0, 1, -2, 3), (1, 2, -1, 4), (1, 1, 1, 1), (1, 5)), {"shrink_axis": 12, "begin": 2, "end": 2}),
        )
    },
    **{
        f"slice from {b} of {n}": moved("slice", n, b, n)
        for b, n in (((0, 1, 2, 0), (1, 3, 4, 4)), ((0, 0, 5, 3), (1, 5, 1, 1)))
    },
    **{
        f"{o} {s} by {k}, {a}": blocks(o, s, n, k, a)
        for o, s, n, k, a in (
            ("space_to_batch_nd", IMAGE, (4, 3, 4, 4), (2, 2), ((1, 0), (0, 2))),
            ("space_to_batch_nd", IMAGE, (6, 3, 2, 4), (2, 3), ((0, 1), (0, 0))),
            ("space_to_batch_nd", (2, 6, 3), (4, 4, 3), (2,), ((1, 1),)),
            ("space_to_batch_nd", (2, 6, 4, 3), (6, 2, 4, 3), (3, 1), ((0, 0), (0, 0))),
            ("batch_to_space_nd", (4, 3, 2, 3), (1, 5, 2, 3), (2, 2), ((1, 0), (0, 2))),
            ("batch_to_space_nd", (12, 2, 3, 2), (2, 3, 8, 2), (2, 3), ((0, 1), (1, 0))),
            ("batch_to_space_nd", (4, 3, 5), (2, 4, 5), (2,), ((1, 1),)),
            ("batch_to_space_nd", (6, 2, 3, 2), (2, 6, 3, 2), (3, 1), ((0, 0), (0, 0))),
        )
    },
    **{f"{o} by {v}": divided(o, v) for o in ("floor_div", "floor_mod") for v in (0.75, IMAGE, (1, 1, 6, 1))},
    **{
        f"running sums along {a}, {e}, {r}": running(a, e, r)
        for a, e, r in ((1, False, False), (-1, True, False), (2, False, True), (3, True, True))
    },
    **{
        f"{o} over {a}, keeps {k}": truths(o, a, k)
        for o, a, k in (("reduce_any", (3,), True), ("reduce_all", (1, 2), True), ("reduce_any", (2,), False))
    },
    **{
        f"products over {a}, keeps {k}": row(
            step("reduce_prod", np.array([a], np.int32), new=s, keep_dims=k), shape=(1, 3, 4, 2)
        )
        for a, k, s in ((3, True, (1, 3, 4, 1)), (-2, False, (1, 3, 2)))
    },
    **{f"sum of {n}, twice {t}": summed(n, t) for n, t in ((2, False), (3, False), (4, False), (2, True))},
    **{
        f"response of radius {r}, {bias}, {alpha}, {beta}": row(
            step("local_response_normalization", radius=r, bias=bias, alpha=alpha, beta=beta), shape=(1, 3, 4, 7)
        )
        for r, bias, alpha, beta in ((1, 1.0, 0.5, 0.75), (2, 2.0, 0.1, 0.5), (3, 1.0, 1.0, 1.0))
    },
    **{
        f"lengths of rows {s}": row(step("l2_normalization", fused_activation_function="none"), shape=s)
        for s in (ROWS, IMAGE, (2, 8))
    },
    **{
        f"reversed parts {n}, {b} and {s}": row(
            step("reverse_sequence", np.array(n, np.int32), seq_dim=s, batch_dim=b), shape=(3, 5, 4)
        )
        for n, b, s in (((5, 1, 3), 0, 1), ((2, 3, 1, 0, 3), 1, 0))
    },
    **{
        f"chosen by rows of indices {i}": row(step("gather_nd", np.array(i, np.int32), new=s), shape=(3, 5, 4))
        for i, s in ((((2, 1), (0, 4)), (2, 4)), (((2, 4, 3),), (1,)))
    },
    **{
        f"spread by indices {i}": spread_by(i, s, n)
        for i, s, n in ((((4,), (1,), (4,)), (3, 6), (5, 6)), (((0, 2), (1, 1)), (2, 3), (2, 3, 3)))
    },
    **{
        f"segments {s}": row(step("segment_sum", np.array(s, np.int32), new=(max(s) + 1, 4)), shape=(5, 4))
        for s in ((0, 0, 1, 2, 2), (0, 1, 1, 1, 3))
    },
    "looked up": lambda b: b.do("embedding_lookup", b.whole(3, 0, 3), b.real("x", (4, 6)), shape=(3, 6)),
    **{f"the best {n} boxes, {s}": suppressed(n, s) for n, s in ((4, None), (9, None), (5, 0.0), (4, 0.5))},
    **{f"joined along {a}, {c}": joined(a, c) for a, c in ((0, "none"), (1, "relu"), (-1, "relu6"), (2, "none"))},
    **{
        f"{o} of {s}, {c}": rectified_pair(o, s, c)
        for o in ("add", "sub", "mul")
        for s, c in ((IMAGE, "relu"), ((1, 1, 1, 4), "relu"), (IMAGE, "relu6"), ((6, 1), "relu6"))
    },
    **{f"a filter of {n} images": sized(n) for n in (2, 3)},
    "a filter of images, rows of them": sized(2, to(2, 48), step("tanh")),
    "a filter of images, joined": sized(2, to(32, 3), step("add", reals(3))),
    "a filter of images, means": sized(2, step("mean", np.array([1, 2], np.int32), new=(2, 3), keep_dims=False)),
    **{f"power {e} of {k}": powers(k, e) for k in ("x", "abs") for e in (2.0, 3.0, 0.5, -1.0) if k == "abs" or e > 1},
    **{f"powers {e}": powers("abs", e) for e in (IMAGE, (1, 1, 1, 4))},
    "powers of a tensor that reaches 0": powers("x", IMAGE),
    **{
        f"slopes of {len(s)} axes, {len(p)}": row(step("prelu", reals(*p)), shape=s)
        for s, p in ((IMAGE, (4,)), (IMAGE, (1, 6, 1)), (ROWS, (8,)), ((2, 8), (8,)), ((2, 3, 4, 2), (3, 4, 2)))
    },
    **{f"rectified by {a}": row(step("leaky_relu", alpha=a)) for a in (0.1, 1.5, -0.25)},
    **{f"a filter rectified by {a}": filter_then(step("leaky_relu", alpha=a)) for a in (0.1, 1.5)},
    **{f"rows, {o} first": dense_then(step(o, 0.75, behind=True)) for o in ("sub", "add")},
    **{
        f"{o} {v} of a filter": filter_then(step(o, v), step("tanh"))
        for o in ("maximum", "minimum", "pow")
        for v in (0.0, 2.0)
    },
    **{
        f"limits {low} to {high}": row(step("maximum", low), step("minimum", high))
        for low, high in ((0.0, 1.0), (1.0, 2.0), (0.5, 6.0), (-6.0, 6.0))
    },
    **{f"rectified below {n} of a filter": filter_then(step("relu"), step("minimum", n)) for n in (0.5, 6.0)},
    **{f"lengths {f}, {a}": length(a, f) for a in ((1,),) for f in ("sizes", "limited", "quotient", "sqrt")},
    **{
        f"moved, {n}": row(*s, shape=x)
        for n, x, s in (
            ("a batch in front", (2, 3, 4), (turn((2, 3, 4), 1, 0, 2), to(3, 8), step("tanh"))),
            ("two axes at once", (2, 3, 4, 5), (turn((2, 3, 4, 5), 2, 3, 0, 1), turn((4, 5, 2, 3), 2, 3, 1, 0))),
            ("rows as columns", (4, 6), (turn((4, 6), 1, 0), to(2, 3, 4), turn((2, 3, 4), 2, 0, 1))),
            ("split behind", (2, 12), (turn((2, 12), 1, 0), to(3, 4, 2), step("tanh"))),
            ("joined behind", (2, 3, 4), (turn((2, 3, 4), 2, 0, 1), to(4, 6), step("tanh"))),
            ("one row", (1, 12), (turn((1, 12), 1, 0), to(3, 4), step("tanh"))),
            ("three axes of ones", (1, 1, 6, 1), (turn((1, 1, 6, 1), 2, 3, 0, 1), step("tanh"))),
        )
    },
    **{
        f"{o} in front of a Reshape": row(step(o, *c), to(5, 24), step("tanh"))
        for o, c in (("add", (reals(1, 6, 1),)), ("tanh", ()), ("maximum", (0.5,)))
    },
    **{f"places of {k}, seen": indexed(k) for k in ("arg_max", "arg_min")},
    **{
        f"one slice {v}": sliced(*v)
        for v in (((0, 4, 0, 0), (1, 5, 6, 4), (1, 1, 1, 1), 2), ((0, 0, 5, 3), (1, 5, 6, 4), (1, 1, 1, 1), 12))
    },
}
NETWORKS = {**FORMS, **OWN, **CHAINS}


def built(name: str) -> tuple[Graph, list[Array]]:
    """The network without ranges, and samples of its inputs."""
    graph, samples = built_of(NETWORKS[name])
    return as_converters_write(graph), samples


def as_converters_write(graph: Graph) -> Graph:
    """The same with what the Parser reads of a converter's file.

    That is the new shape of RESHAPE, the version of rows that are kept, and DEPTHWISE_CONV_2D's multiplier.
    """
    for index, node in enumerate(graph.nodes):
        if node.operator == "reshape" and not node.attributes.get("new_shape"):
            graph.nodes[index] = with_attributes(node, new_shape=graph.tensors[node.outputs[0]].shape)
        elif node.operator == "fully_connected" and node.attributes.get("keep_num_dims"):
            graph.nodes[index] = replace(node, version=5)
        elif node.operator == "depthwise_conv_2d" and not node.attributes.get("depth_multiplier"):
            channels = [graph.tensors[t].shape[-1] for t in (node.outputs[0], node.inputs[0])]
            graph.nodes[index] = with_attributes(node, depth_multiplier=channels[0] // channels[1])
    return graph
