"""Networks around one condition of TPU-MLIR's front end, with drawn shapes and ranges on both sides of it.

A sweep is a function that draws the nodes of a small network. The range of each tensor is that of its values on random
inputs, times a factor of its own, since many conditions compare ranges: a file of ranges is written beside the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from tflq.converters.tflite.writer import write_model
from tflq.graph import Array, Attribute, DType, Graph, GraphBuilder
from tflq.interpreter import Engine

FLOAT = DType.FLOAT32
T = TypeVar("T")


class Sweep(GraphBuilder):
    """A builder that draws shapes, constants and ranges.

    Attributes:
        rng: Generator of the draw.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__("sweep")
        self.rng = rng
        self._shapes: dict[int, tuple[int, ...]] = {}

    def flip(self) -> bool:
        """Return True in half of the draws."""
        return bool(self.rng.integers(2))

    def choose(self, *options: T) -> T:
        """Return one of some options."""
        return options[self.rng.integers(len(options))]

    def shape(self, t: int) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self._shapes[t]

    def row(self) -> tuple[int, ...]:
        """Return a shape of two or three axes, the first of length 1."""
        return self.choose((1, int(self.rng.integers(2, 13))), (1, *(int(n) for n in self.rng.integers(2, 7, 2))))

    def keep(self, t: int, shape: tuple[int, ...]) -> int:
        """Keep the shape of a tensor."""
        self._shapes[t] = shape
        return t

    def real(self, shape: tuple[int, ...]) -> int:
        """Return the result of a table on an input."""
        x = self.keep(self.input(f"x{len(self._shapes)}", shape, FLOAT), shape)
        return self.do(self.choose("tanh", "tanh", "logistic"), x)

    def do(self, operator: str, *inputs: int, shape: tuple[int, ...] | None = None, **options: Attribute) -> int:
        """Add an operator with one result."""
        shape = self._shapes[inputs[0]] if shape is None else shape
        t = self.tensor(f"{operator}_{len(self._shapes)}", shape, FLOAT)
        self.node(operator, list(inputs), [t], **options)  # type: ignore[arg-type]
        return self.keep(t, shape)

    def values(self, *shape: int) -> int:
        """Return a constant of numbers of one or both signs."""
        low = self.choose(-2.0, 0.1)
        return self._constant(self.rng.uniform(low, 3.0, shape).astype(np.float32))

    def whole(self, *values: int) -> int:
        """Return a constant of integers."""
        return self._constant(np.array(values, np.int32))

    def number(self, value: float) -> int:
        """Return a constant of one number."""
        return self._constant(np.array(value, np.float32))

    def _constant(self, data: Array) -> int:
        t = self.constant(f"c{len(self._shapes)}", data)
        self._shapes[t] = data.shape
        return t

    def reshaped(self, x: int, *shape: int) -> int:
        """Add a reshape."""
        return self.do("reshape", x, self.whole(*shape), shape=shape)


def difference(s: Sweep) -> int:
    """Draw c - x, x - c or x - y; c is one number or several."""
    shape = s.row()
    x = s.real(shape)
    form = s.choose("number", "several", "two")
    other = {"number": lambda: s.number(float(s.rng.uniform(0.1, 4.0))), "several": lambda: s.values(*shape),
             "two": lambda: s.real(shape)}[form]()  # fmt: skip
    operands = (other, x) if form == "number" or s.flip() else (x, other)
    return s.do("sub", *operands, shape=shape)


def moves(s: Sweep) -> int:
    """Draw reshapes and transpositions between a product and a sum or another operator."""
    shape = s.row()
    x, z = s.real(shape), s.real(shape)
    moved = s.do("mul", x, z)
    size = int(np.prod(shape))
    for _ in range(s.rng.integers(1, 4)):
        if s.flip():
            moved = s.reshaped(moved, *s.choose(shape, (size,), (size, 1), shape[1:]))
        else:
            order = [int(a) for a in s.choose(np.arange(len(s.shape(moved))), s.rng.permutation(len(s.shape(moved))))]
            new = tuple(s.shape(moved)[a] for a in order)
            moved = s.do("transpose", moved, s.whole(*order), shape=new)
    if s.shape(moved) not in (shape, shape[1:]):
        moved = s.reshaped(moved, *shape)
    return s.do(
        s.choose("add", "add", "sub", "mul", "maximum"), s.do("mul", z, s.do("logistic", x)), moved, shape=shape
    )


def equal(s: Sweep) -> int:
    """Draw two layers that are equal, or differ in one respect."""
    shape = s.row()
    x, z = s.real(shape), s.real(shape)
    operator = s.choose("add", "sub", "mul", "maximum")
    pair = [s.do(operator, *operands) for operands in ((x, z), s.choose((x, z), (x, z), (z, x)))]
    if s.flip():
        pair = [s.do("exp", t) for t in pair]
    last = s.do("tanh", pair[0]), s.do(s.choose("tanh", "relu"), pair[1])
    return s.do("add", *last)


def joined(s: Sweep) -> int:
    """Draw concatenations of concatenations, with another reader or without."""
    side = int(s.rng.integers(2, 6))
    shape = (1, side, side)
    parts = [s.real(shape) for _ in range(int(s.rng.integers(2, 4)))]
    inner, outer = (int(a) for a in s.rng.integers(1, 3, 2))
    wide = list(shape)
    wide[inner] *= len(parts)
    first = s.do("concatenation", *parts, shape=tuple(wide), axis=inner)
    second = s.do("concatenation", *(s.real(shape) for _ in parts), shape=tuple(wide), axis=inner)
    whole = list(wide)
    whole[outer] *= 2
    operands = (first, second) if s.flip() else (second, first)
    y = s.do("concatenation", *operands, shape=tuple(whole), axis=outer)
    if s.flip():
        return s.do("tanh", y)
    tiled = s.do("concatenation", *[s.do("tanh", first)] * 2, shape=tuple(whole), axis=outer)
    return s.do("add", y, tiled)


def products(s: Sweep) -> int:
    """Draw a product that slices read: a partition, a gap, an overlap, or another reader; or one of two activations."""
    if s.flip():
        return _transposed_product(s)
    depth, width = (int(n) for n in s.rng.integers(4, 13, 2))
    x = s.real((1, depth))
    y = s.do("fully_connected", x, s.values(width, depth), *((s.values(width),) if s.flip() else ()),
             shape=(1, width), fused_activation_function="none")  # fmt: skip
    cut = int(s.rng.integers(1, width))
    shift = int(s.choose(0, 0, 0, 1, -1)) if 1 < cut < width - 1 else 0
    ends = [(0, cut), (cut + shift, width)]
    parts = [s.do("slice", y, s.whole(0, a), s.whole(1, b - a), shape=(1, b - a)) for a, b in ends]
    parts = parts[::-1] if s.flip() else parts
    gates = [s.do(s.choose("tanh", "logistic"), part) for part in parts]
    total = s.do("concatenation", *gates, shape=(1, sum(b - a for a, b in ends)), axis=1)
    if s.rng.integers(4) or shift:
        return total
    return s.do("mul", total, y)


def _transposed_product(s: Sweep) -> int:
    rows, depth, columns = (int(n) for n in s.rng.integers(2, 7, 3))
    x = s.real((1, rows, depth))
    z = s.real((1, columns, depth))
    if s.flip():
        return s.do("batch_matmul", x, z, shape=(1, rows, columns), adj_x=False, adj_y=True)
    turned = s.do("transpose", z, s.whole(0, 2, 1), shape=(1, depth, columns))
    y = s.do("batch_matmul", x, turned, shape=(1, rows, columns), adj_x=False, adj_y=False)
    if s.flip():
        return y
    return s.do("concatenation", y, s.do("tanh", turned), shape=(1, rows + depth, columns), axis=1)


def choice(s: Sweep) -> int:
    """Draw a choice between two activations by a comparison."""
    shape = s.row()
    x = s.real(shape)
    truth = s.tensor("truth", shape, DType.BOOL)
    s.node(s.choose("greater", "less"), [x, s.number(0.2) if s.flip() else s.real(shape)], [truth])
    low = s.do(s.choose("elu", "tanh"), x)
    y = s.do("select", truth, s.choose(x, s.do("mul", x, s.number(1.05))), low, shape=shape)
    return s.do("add", s.do("tanh", y), low) if s.flip() else s.do("tanh", y)


SWEEPS: dict[str, Callable[[Sweep], int]] = {
    "choice": choice,
    "difference": difference,
    "equal": equal,
    "joined": joined,
    "moves": moves,
    "products": products,
}


def draw_sweeps(names: Sequence[str], count: int, seed: int, folder: Path) -> Iterator[tuple[str, Path, None]]:
    """Yield name, file and no samples of `count` networks of each sweep; NAME.ranges has the ranges."""
    for name in names:
        for index in range(count):
            s = Sweep(np.random.default_rng([seed, sorted(SWEEPS).index(name), index]))
            y = SWEEPS[name](s)
            graph = s.build([s.do("tanh", y)])
            path = folder / f"{name}_{seed}_{index}.tflite"
            write_model(graph, path)
            path.with_suffix(".ranges").write_text("\n".join([*_ranges(graph, s.rng), ""]), encoding="utf-8")
            yield path.stem, path, None


def _ranges(graph: Graph, rng: np.random.Generator) -> Iterator[str]:
    """Yield `name,minimum,maximum` of each tensor of reals."""
    inputs: list[Array] = [rng.normal(0.2, 1.5, (8, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]
    computed = [*graph.inputs, *(t for node in graph.nodes for t in node.outputs)]
    for t, value in Engine(graph, "float").run(inputs, computed).items():
        if graph.tensors[t].dtype is FLOAT and not graph.tensors[t].is_constant:
            low, high = (
                float(bound(value)) * float(rng.choice([1.0, rng.uniform(0.4, 1.6)])) for bound in (np.min, np.max)
            )
            yield f"{graph.tensors[t].name},{min(low, high):.9g},{max(low, high):.9g}"
