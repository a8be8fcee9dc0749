"""Sheets: one kind of operator in every form (axes, orders, borders, layouts), as many nodes of one float graph.

A format that other runtimes read is written once for each sheet, and its outputs are compared one by one.
Shapes of results follow from those of inputs and constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from tflq.converters.settled import settled_graph
from tflq.graph import Array, DType, Graph, GraphBuilder
from tflq.interpreter.execution.settle import settle

FLOAT, INT32, BOOL = DType.FLOAT32, DType.INT32, DType.BOOL
IMAGE = (2, 3, 4, 6)
FUSED = ("none", "relu", "relu6", "relu_n1_to_1")


class Sheet:
    """A graph of many nodes, all of whose results are outputs.

    Attributes:
        image: an input of four axes.
        plain: the same values, computed by an operator that leaves them in the model's own layout.
        rows: an input of three axes.
    """

    def __init__(self, name: str) -> None:
        self.b = GraphBuilder(name)
        self.draw = np.random.default_rng(len(name))
        self.image = self.b.input("image", IMAGE, FLOAT)
        self.rows = self.b.input("rows", IMAGE[1:], FLOAT)
        stacked = [self.b.input("next", IMAGE[1:], FLOAT), self.rows]
        self.plain = self.b.add("pack", stacked, IMAGE, FLOAT, axis=0)
        self.outputs = [self.plain]

    def values(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield computed values of every layout, with their shapes."""
        yield from ((self.image, IMAGE), (self.plain, IMAGE), (self.rows, IMAGE[1:]))

    def whole(self, *numbers: object) -> int:
        """A constant of int32."""
        return self.b.constant("whole", np.array(numbers, np.int32))

    def number(self, value: int) -> int:
        """A scalar of int32."""
        return self.b.constant("number", np.array(value, np.int32))

    def real(self, *shape: int, least: float = -2.0) -> int:
        """A constant of float32."""
        return self.b.constant("real", self.draw.uniform(least, 2.0, shape).astype(np.float32))

    def part(self, shape: tuple[int, ...], least: float = -2.0) -> int:
        """A computed value of a shape, of numbers that are not below `least` where that is positive."""
        x = self.add("slice", self.image, self.whole(*[0] * 4), self.whole(*(1,) * (4 - len(shape)), *shape))
        x = self.add("reshape", x, self.whole(*shape), new_shape=shape)
        return x if least < 0 else self.add("add", self.add("abs", x), self.b.constant("least", np.float32([least])))

    def add(self, operator: str, *inputs: int, dtype: DType = FLOAT, **options: object) -> int:
        """Add a node; its result is an output of the graph."""
        t = self.b.add(operator, inputs, (1,), dtype, **options)  # type: ignore[arg-type]
        self.outputs.append(t)
        return t

    def several(self, operator: str, inputs: Sequence[int], count: int, *dtypes: DType, **options: object) -> None:
        """Add a node of several outputs."""
        kinds = dtypes or (FLOAT,) * count
        found = [self.b.tensor(f"{operator}_{len(self.outputs)}_{i}", (1,), kind) for i, kind in enumerate(kinds)]
        self.b.node(operator, inputs, found, **options)  # type: ignore[arg-type]
        self.outputs += found

    def graph(self) -> Graph:
        """Return the graph with the shapes that follow."""
        graph = self.b.build(self.outputs)
        settle(graph)  # refuses what contradicts itself
        return settled_graph(graph)


def reductions(s: Sheet, operator: str) -> None:
    """Every set of axes, kept or not; of truth values where the operator is logical."""
    for (x, shape), keep in product(s.values(), (False, True)):
        kind = FLOAT
        if operator in ("reduce_any", "reduce_all"):
            x, kind = s.add("greater", x, s.real(), dtype=BOOL), BOOL
        for count in range(1, len(shape) + 1):
            for axes in combinations(range(len(shape)), count):
                s.add(operator, x, s.whole(*axes), dtype=kind, keep_dims=keep)
        s.add(operator, x, s.whole(-1, 1), dtype=kind, keep_dims=keep)
        s.add(operator, x, s.whole(), dtype=kind, keep_dims=keep)


def places(s: Sheet) -> None:
    """Places, orders and running sums along every axis."""
    for x, shape in s.values():
        for axis in range(-1, len(shape)):
            for operator in ("arg_max", "arg_min"):
                s.add(operator, x, s.number(axis), dtype=INT32, output_type="int32")
            for exclusive, reverse in product((False, True), repeat=2):
                s.add("cumsum", x, s.number(axis), exclusive=exclusive, reverse=reverse)
        for k in range(1, shape[-1] + 1):
            s.several("topk_v2", (x, s.number(k)), 2, FLOAT, INT32)


def strided(s: Sheet) -> None:
    """Every begin, end and stride of an axis of four; masks; axes that come and go."""
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")

    def cut(x: int, begin: Sequence[int], end: Sequence[int], stride: Sequence[int], *bits: int) -> None:
        stated = dict(zip(masks, (*bits, 0, 0, 0, 0, 0), strict=False))
        s.add("strided_slice", x, s.whole(*begin), s.whole(*end), s.whole(*stride), **stated, offset=False)

    size = IMAGE[2]
    for begin, end, step in product(range(-size - 1, size + 2), range(-size - 1, size + 2), (1, 2, -1, -2)):
        if len(range(size)[slice(begin, end, step)]) and (begin + end) % 2:
            cut(s.image, (0, 0, begin), (2, 3, end), (1, 1, step))
    for x in (s.image, s.plain):
        for bits in ((1, 0), (0, 1), (3, 2), (15, 15), (8, 8)):
            for step in (1, -1):
                cut(x, (1, 1, 1, 1), (2, 3, 3, 4) if step > 0 else (0, 0, 0, 0), (step,) * 4, *bits)
        for axis in range(4):
            cut(x, (0,) * 4, (9,) * 4, (1,) * 4, 0, 0, 0, 0, 1 << axis)
            cut(x, (1,) * 4, (1,) * 4, (1,) * 4, 0, 0, 1 << axis, 0, 15 - (1 << axis))
        for axis in range(3):
            cut(x, (0,) * 3, (9,) * 3, (2,) * 3, 0, 0, 0, 1 << axis, 0)
    for axis in range(4):
        cut(s.rows, (0,) * 4, (9,) * 4, (1,) * 4, 0, 0, 0, 1 << axis, 0)


def parts(s: Sheet) -> None:
    """Slices, splits, stacks and joints along every axis."""
    for x, shape in s.values():
        for axis, size in enumerate(shape):
            begin = [int(a == axis) for a in range(len(shape))]
            s.add("slice", x, s.whole(*begin), s.whole(*([-1] * len(shape))))
            s.add(
                "slice", x, s.whole(*([0] * len(shape))), s.whole(*(n - b for n, b in zip(shape, begin, strict=True)))
            )
            for a in (axis, axis - len(shape)):
                s.several("split", (s.number(a), x), size, num_splits=size)
                s.several("split_v", (x, s.whole(1, size - 1), s.number(a)), 2, num_splits=2)
                s.several("unpack", (x,), size, num=size, axis=a)
                s.add("concatenation", x, x, s.real(*shape), axis=a, fused_activation_function="none")
        if len(shape) < 4:
            for a in range(-1, len(shape) + 1):
                s.add("pack", x, s.real(*shape), x, values_count=3, axis=a)
    for axis in range(4):
        for operands in ((s.image, s.plain), (s.plain, s.image), (s.plain, s.plain)):
            s.add("concatenation", *operands, axis=axis, fused_activation_function="none")


def gathers(s: Sheet) -> None:
    """Every axis, indices of no, one and two axes, batch axes; n-dimensional indices; one-hot places."""
    for x, shape in s.values():
        for axis in range(-1, len(shape)):
            size = shape[axis]
            for indices in (size - 1, [0, size - 1, 0], [[0, 1], [size - 1, 0]]):
                s.add("gather", x, s.b.constant("i", np.array(indices, np.int32)), axis=axis, batch_dims=0)
        for batch in range(1, len(shape)):
            indices = s.draw.integers(0, shape[batch], (*shape[:batch], 2)).astype(np.int32)
            s.add("gather", x, s.b.constant("i", indices), axis=batch, batch_dims=batch)
        s.add("gather", x, s.b.constant("i", np.zeros(shape[:1], np.int32)), axis=1, batch_dims=-1 if shape[1] else 0)
        for depth in range(1, len(shape) + 1):
            columns = [s.draw.integers(0, n, 5) for n in shape[:depth]]
            s.add("gather_nd", x, s.b.constant("i", np.stack(columns, -1).astype(np.int32)))
    for axis in range(-1, 3):
        given = s.b.constant("i", np.array([[0, 3], [5, -1], [2, 1]], np.int32))
        s.add("one_hot", given, s.number(4), s.real(), s.real(), axis=axis)


def turns(s: Sheet) -> None:
    """Every order of axes, reversal of axes that stand together, and of sequences."""
    for x, shape in s.values():
        rank = len(shape)
        for order in permutations(range(rank)):
            s.add("transpose", x, s.whole(*order))
        s.add("transpose", x, s.whole(*range(-1, -rank - 1, -1)))
        for first, last in combinations(range(rank + 1), 2):
            s.add("reverse_v2", x, s.whole(*range(first, last)))
        s.add("reverse_v2", x, s.whole(-1))
        for batch, sequence in permutations(range(rank), 2):
            lengths = s.whole(*(1 + i % shape[sequence] for i in range(shape[batch])))
            s.add("reverse_sequence", x, lengths, seq_dim=sequence, batch_dim=batch)


def borders(s: Sheet) -> None:
    """Padding of every axis, with every kind of value; repetition; blocks."""
    for x, shape in s.values():
        rank = len(shape)
        for axis in range(rank):
            amounts = s.whole(*((1, 2) if a == axis else (0, 0) for a in range(rank)))
            s.add("pad", x, amounts)
            s.add("padv2", x, amounts, s.b.constant("v", np.array(0.5, np.float32)))
            s.add("tile", x, s.whole(*(2 + (a == axis) if a >= axis else 1 for a in range(rank))))
            for mode, (before, after) in product(("reflect", "symmetric"), ((1, 0), (0, 1), (1, 1))):
                less = before <= shape[axis] - 1 and after <= shape[axis] - 1
                if less or mode == "symmetric":
                    given = s.whole(*((before, after) if a == axis else (0, 0) for a in range(rank)))
                    s.add("mirror_pad", x, given, mode=mode)
        s.add("mirror_pad", x, s.whole(*((1, 1) if n > 1 else (0, 0) for n in shape)), mode="reflect")
    for x in (s.image, s.plain):
        s.add("space_to_batch_nd", x, s.whole(2, 3), s.whole((1, 0), (2, 0)))
        s.add("space_to_batch_nd", x, s.whole(3, 2), s.whole((0, 0), (0, 0)))
        s.add("batch_to_space_nd", x, s.whole(2, 1), s.whole((1, 2), (0, 1)))
        s.add("batch_to_space_nd", x, s.whole(1, 2), s.whole((0, 0), (0, 0)))
        s.add("space_to_depth", s.add("pad", x, s.whole((0, 0), (0, 1), (0, 0), (0, 0))), block_size=2)
        s.add("depth_to_space", s.add("pad", x, s.whole((0, 0), (0, 0), (0, 0), (0, 2))), block_size=2)
    s.add("space_to_batch_nd", s.rows, s.whole(3), s.whole((1, 1)))


OPERANDS: tuple[tuple[int, ...], ...] = (
    (), (1,), (6,), (1, 6), (4, 1), (4, 6), (3, 1, 1), (3, 4, 1), (1, 4, 6), (1, 1, 1, 1), (1, 1, 1, 6), (2, 1, 1, 6),
    (1, 3, 1, 1), (1, 3, 4, 6), (2, 3, 4, 1), (2, 1, 4, 6),
)  # fmt: skip


_DIVIDING = ("div", "floor_div", "floor_mod", "pow")
_COMPARING = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def pairs(s: Sheet, operator: str) -> None:
    """An image, in both layouts and on both sides, beside computed values and constants that broadcast."""
    how: dict[str, Any] = {"dtype": BOOL} if operator in _COMPARING else {}
    least = 0.5 if operator in _DIVIDING else -2.0
    images = [s.add("abs", x) if operator == "pow" else x for x in (s.image, s.plain)]
    shapes = OPERANDS if operator in ("sub", "less", "floor_mod") else OPERANDS[::5]
    for number, (shape, is_first) in enumerate(product(shapes, (False, True))):
        if operator in ("add", "sub", "mul", "div"):
            how = {"fused_activation_function": FUSED[number % len(FUSED)]}
        for x, other in product(images, (s.real(*shape, least=least), s.part(shape, least))):
            if is_first or operator not in _DIVIDING:
                s.add(operator, *((x, other) if is_first else (other, x)), **how)
    if operator not in _DIVIDING:
        s.add(operator, *images, **how)
        s.add(operator, *images[::-1], **how)


def choices(s: Sheet) -> None:
    """Conditions, and what they choose, of shapes that broadcast."""
    for shape in OPERANDS[::3]:
        for condition in (
            s.add("greater", s.part(shape), s.real(), dtype=BOOL),
            s.b.constant("c", s.draw.random(shape) < 0.5),
        ):
            for x in (s.image, s.plain):
                s.add("select_v2", condition, x, s.real(*shape))
                s.add("select_v2", condition, s.part(shape), x)
    for x, shape in s.values():
        condition = s.add("greater", x, s.real(), dtype=BOOL)
        s.add("select", condition, x, s.real(*shape))
        s.add("select", s.add("greater", s.part(shape[:1]), s.real(), dtype=BOOL), x, s.real(*shape))
        s.add("select_v2", condition, condition, s.add("logical_not", condition, dtype=BOOL), dtype=BOOL)
        for operator in ("logical_and", "logical_or"):
            s.add(operator, condition, s.add("less", s.real(), x, dtype=BOOL), dtype=BOOL)


_FUNCTIONS = (
    "abs", "ceil", "cos", "elu", "exp", "floor", "hard_swish", "logistic", "neg", "relu", "relu6", "relu_0_to_1",
    "relu_n1_to_1", "round", "sign", "sin", "square", "tanh", "l2_normalization", "log_softmax",
)  # fmt: skip
_OF_POSITIVE = ("log", "rsqrt", "sqrt")


def functions(s: Sheet) -> None:
    """Functions of one operand, with their options."""
    for x, shape in (*s.values(), (s.part((6,)), (6,)), (s.part((4, 6)), (4, 6))):
        for operator in _FUNCTIONS:
            s.add(operator, x)
        positive = s.add("add", s.add("abs", x), s.b.constant("half", np.array(0.5, np.float32)))
        for operator in _OF_POSITIVE:
            s.add(operator, positive)
        for approximate in (False, True):
            s.add("gelu", x, approximate=approximate)
        for beta in (1.0, 0.5):
            s.add("softmax", x, beta=beta)
        s.add("leaky_relu", x, alpha=0.25)
        s.add("prelu", x, s.real(shape[-1]))
        s.add("prelu", x, s.real(1))
        s.add("add_n", x, x, s.real(*shape))
        s.add("squared_difference", x, s.real(*shape[-1:]))
        s.add("expand_dims", x, s.number(0))
        for dtype in (DType.INT32, DType.INT64, BOOL):
            y = s.add("cast", s.add("round", x), dtype=dtype)
            s.add("cast", y)
    for x in (s.image, s.plain):
        for radius in (0, 1, 3, 9):
            s.add("local_response_normalization", x, radius=radius, bias=1.5, alpha=0.25, beta=0.75)


def windows(s: Sheet) -> None:
    """Filters and pools of every kernel, stride, padding and dilation, with and without a bias; resized images."""
    kernels, strides = ((1, 1), (2, 1), (2, 3), (3, 4)), ((1, 1), (2, 1), (1, 3), (2, 2))
    for x, padding in ((s.image, "same"), (s.image, "valid"), (s.plain, "same")):
        for (height, width), (down, right) in product(kernels, strides[:: 1 if x == s.image else 3]):
            where: dict[str, Any] = {"padding": padding, "stride_h": down, "stride_w": right}
            fused = FUSED[(height + right) % len(FUSED)]
            for operator in ("average_pool_2d", "max_pool_2d"):
                kernel: dict[str, Any] = {
                    "filter_height": height,
                    "filter_width": width,
                    "fused_activation_function": fused,
                }
                s.add(operator, x, **where, **kernel)
            dilation: dict[str, Any] = {"dilation_h_factor": 1 + (height == 2 and down == 1), "dilation_w_factor": 1}
            more: dict[str, Any] = {**where, **dilation, "fused_activation_function": fused}
            s.add("conv_2d", x, s.real(5, height, width, 6), s.real(5), **more)
            s.add("conv_2d", x, s.real(4, height, width, 3), **more)
            s.add("depthwise_conv_2d", x, s.real(1, height, width, 6), s.real(6), depth_multiplier=1, **more)
            s.add("depthwise_conv_2d", x, s.real(1, height, width, 12), depth_multiplier=2, **more)
    for x, (corners, centers) in product((s.image, s.plain), ((False, False), (True, False), (False, True))):
        for size in ((1, 1), (3, 4), (5, 9), (2, 2)):
            for operator in ("resize_bilinear", "resize_nearest_neighbor"):
                s.add(operator, x, s.whole(*size), align_corners=corners, half_pixel_centers=centers)


def upwards(s: Sheet) -> None:
    """Transposed filters, and filters of volumes."""
    for x, padding in product((s.image, s.plain), ("same", "valid")):
        for (height, width), (down, right) in product(((1, 1), (2, 3), (3, 2)), ((1, 1), (2, 1), (2, 3))):
            where: dict[str, Any] = {"padding": padding, "stride_h": down, "stride_w": right}
            for more in range(min(2, down, right)):
                less = (height, width) if padding == "valid" else (1, 1)
                size = [(n - 1) * step + k + more * (step > 1)
                        for n, step, k in zip(IMAGE[1:3], (down, right), less, strict=True)]  # fmt: skip
                given = [s.whole(2, *size, 5), s.real(5, height, width, 6), x]
                s.add("transpose_conv", *given, **where)
                s.add("transpose_conv", *given, s.real(5), **where, fused_activation_function="relu")
    volume = s.add("expand_dims", s.image, s.number(0))
    for padding, kernel, stride in product(("same", "valid"), ((1, 1, 1), (2, 2, 3)), ((1, 1, 1), (2, 1, 2))):
        where: dict[str, Any] = {
            "padding": padding,
            **dict(zip(("stride_d", "stride_h", "stride_w"), stride, strict=True)),
        }
        s.add("conv_3d", volume, s.real(*kernel, 6, 4), **where)
        s.add("conv_3d", volume, s.real(*kernel, 6, 4), s.real(4), **where, fused_activation_function="relu6")


def products(s: Sheet) -> None:
    """Products of rows and matrices, of values of all ranks; reshapes in front of them."""
    for x, shape in (*s.values(), (s.part((6,)), (6,)), (s.part((1, 6)), (1, 6)), (s.part((4, 6)), (4, 6))):
        depth, count = shape[-1], int(np.prod(shape))
        for number, keep in enumerate((False, True)):
            fused: dict[str, Any] = {"fused_activation_function": FUSED[number], "keep_num_dims": keep}
            if len(shape) > 1:
                s.add("fully_connected", x, s.real(5, depth), **fused)
            s.add("fully_connected", x, s.real(3, depth), s.real(3), **{**fused, "keep_num_dims": False})
        s.add("fully_connected", x, s.real(2, count), s.real(2), keep_num_dims=False)
        for target in ((count,), (1, count), (shape[0], count // shape[0]), (1, 1, count), (1, 2, 3, count // 6)):
            flat = s.add("reshape", x, s.whole(*target), new_shape=target)
            if len(target) > 1:
                s.add("fully_connected", flat, s.real(3, target[-1]), s.real(3), keep_num_dims=False)
    hidden = s.b.add("reshape", [s.image, s.whole(2, 72)], (2, 72), FLOAT, new_shape=(2, 72))
    s.add("fully_connected", hidden, s.real(3, 72), s.real(3), keep_num_dims=False)
    s.add("fully_connected", hidden, s.real(4, 72), keep_num_dims=False)
    for (x, shape), turned, is_second in product(s.values(), (False, True), (False, True)):
        other = (shape[-2] if turned else shape[-1], 5)
        other = other[::-1] if is_second else other
        for y in (s.real(*other), s.real(*(1,) * (len(shape) - 2), *other)):
            s.add("batch_matmul", x, y, adj_x=turned, adj_y=is_second)
        s.add("batch_matmul", x, x, adj_x=turned, adj_y=not turned)
    s.add("batch_matmul", s.image, s.rows, adj_y=True, adj_x=False)


SHEETS: dict[str, Callable[[Sheet], None]] = {
    **{f"{o} of all axes": partial(reductions, operator=o) for o in (
        "mean", "sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_any", "reduce_all")},
    **{f"{o} of two": partial(pairs, operator=o) for o in (
        "add", "sub", "mul", "div", "maximum", "minimum", "pow", "floor_div", "floor_mod", *_COMPARING)},
    **{f.__name__: f for f in (
        places, strided, parts, gathers, turns, borders, choices, functions, windows, upwards, products)},
}  # fmt: skip


def sheet(name: str) -> tuple[Graph, list[Array]]:
    """Return a sheet's graph, and two samples of its inputs."""
    s = Sheet(name)
    SHEETS[name](s)
    graph = s.graph()
    draw = np.random.default_rng(7)
    return graph, [draw.normal(size=(2, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]
