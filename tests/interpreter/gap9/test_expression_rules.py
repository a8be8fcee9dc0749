"""EXPRESSION beside the rules of docs/rules/gap9/expressions.md, as tests/support/gap9_expression_rules.py has them.

NNTool's dumps hold these rules to the tool; drawn expressions then hold the kernel to the rules, of types, scales and
shapes that no dump has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.support.data import data_files
from tests.support.gap9_expression_rules import Refused, compute
from tests.support.gap9_expressions import Case
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.gap9.expressions.tree import CONSTANT, INPUT, Symbol, Tree

NAMES = [p.name.removesuffix(".json") for p in data_files("cases", "gap9_expressions", pattern="*.json")]
SHAPES: list[list[tuple[int, ...]]] = [[(1, 40)] * 3, [(2, 5, 4), (4,), (5, 1)], [(1, 4), (3, 1, 4), (3, 2, 1)]]
UNARY = ("relu", "relu6", "sqrt", "rsqrt", "exp", "abs", "logistic", "tanh", "sin", "cos")
WITHOUT_RANGE = ("relu", "relu6", "add", "sub", "maximum", "minimum")
BINARY = ("add", "sub", "maximum", "minimum", "mul", "div", "pow")
EXACT: dict[str, Any] = {
    "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6), "exp": lambda x: np.exp(np.minimum(x, 60)),
    "sqrt": lambda x: np.sqrt(np.maximum(x, 0)), "rsqrt": lambda x: 1 / np.sqrt(np.maximum(x, 1e-3)), "abs": np.abs,
    "logistic": lambda x: 1 / (1 + np.exp(-np.clip(x, -60, 60))), "tanh": np.tanh, "sin": np.sin, "cos": np.cos,
    "add": np.add, "sub": np.subtract, "maximum": np.maximum, "minimum": np.minimum, "mul": np.multiply,
    "div": lambda a, b: a / np.where(np.abs(b) < 1e-3, 1e-3, b), "pow": lambda a, p: np.abs(a) ** np.clip(p, 0, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES[::12])
def test_the_rules_are_those_of_nntool(name: str) -> None:
    case = Case.of(name, "nntool")
    for node in case.graph.nodes:
        if node.operator == "expression":
            types, outputs = ([case.graph.tensors[t].affine for t in ts] for ts in (node.inputs, node.outputs))
            feeds = [case.values[t] for t in node.inputs]
            rank = max(x.ndim for x in feeds)
            wide = [x.reshape(len(x), *(1,) * (rank - x.ndim), *x.shape[1:]) for x in feeds]
            found = compute(Tree.from_attributes(node.attributes), types, outputs, wide, "nntool")
            for codes, t in zip(found, node.outputs, strict=True):
                assert np.array_equal(codes.reshape(-1), case.values[t].reshape(-1))


@dataclass(frozen=True)
class Drawn:
    """An expression, and codes for its inputs."""

    tree: Tree
    types: list[Affine]
    outputs: list[Affine]
    shapes: list[tuple[int, ...]]
    codes: list[Array]

    def graph(self, numerics: str) -> Graph:
        b = GraphBuilder("drawn")
        inputs = [
            b.input(f"x{i}", s, dtype_of(k), k) for i, (s, k) in enumerate(zip(self.shapes, self.types, strict=True))
        ]
        shape = np.broadcast_shapes(*self.shapes)
        outputs = [b.tensor(f"y{i}", shape, dtype_of(kind), kind) for i, kind in enumerate(self.outputs)]
        b.node("expression", inputs, outputs, **self.tree.attributes(), numerics=numerics)
        return b.build(outputs)


def dtype_of(kind: Affine) -> DType:
    return DType(f"{'int' if kind.signed else 'uint'}{kind.bits}")


def wide(x: Array, rank: int) -> Array:
    return x.reshape(len(x), *(1,) * (rank + 1 - x.ndim), *x.shape[1:])


def drawn_type(draw: np.random.Generator, largest: float, bits: int) -> Affine:
    signed = bool(draw.integers(0, 3))
    zero_point = 0 if draw.integers(0, 2) else int(draw.integers(-100, 100)) + (0 if signed else 1 << (bits - 1))
    return Affine.per_tensor(max(largest, 1e-3) * 2.0 ** (1 - bits), zero_point, bits, signed)


def drawn(seed: int) -> Drawn:
    """One to five operators over one to three inputs; the ranges are those of the real numbers, or tighter."""
    draw = np.random.default_rng([22, seed])
    count = int(draw.integers(1, 4))
    shapes = SHAPES[int(draw.integers(0, len(SHAPES)))][:count]
    wides = 16 if draw.integers(0, 3) == 0 else 8
    types = [drawn_type(draw, float(2.0 ** draw.uniform(-2, 5)), wides if i == 0 else 8) for i in range(count)]
    codes = []
    for kind, shape in zip(types, shapes, strict=True):
        x = draw.integers(kind.minimum_code, kind.maximum_code, (3, *shape), endpoint=True)
        x.reshape(-1)[:2] = kind.minimum_code, kind.maximum_code
        codes.append(x.astype(dtype_of(kind).storage))
    rank = max(map(len, shapes))
    symbols = [Symbol(INPUT, "", (), float(i), ends_of(kind)) for i, kind in enumerate(types)]
    reals = [
        wide((x.astype(np.float64) - kind.zero_point[0]) * kind.scale[0], rank)
        for x, kind in zip(codes, types, strict=True)
    ]
    made = []
    for _ in range(int(draw.integers(1, 6))):
        is_binary = bool(draw.integers(0, 3))
        operator = str(draw.choice(BINARY if is_binary else UNARY))
        operands = [int(draw.integers(max(0, len(symbols) - 3), len(symbols)))]
        if symbols[operands[0]].operator == CONSTANT:
            operands = [0]
        if is_binary and (operator == "pow" or not draw.integers(0, 3)):
            c = float(draw.choice([0.5, 1.0, 2.0, 0.3])) if operator == "pow" else drawn_number(draw)
            symbols.append(Symbol(CONSTANT, "", (), c))
            reals.append(np.full((1,) * (rank + 1), c))
            operands.append(len(symbols) - 1)
            if operator != "pow" and draw.integers(0, 2):
                operands.reverse()
        elif is_binary:
            operands.append(int(draw.choice([i for i, s in enumerate(symbols) if s.operator != CONSTANT])))
        real = EXACT[operator](*(reals[o] for o in operands))
        ends = (float(real.min()), float(real.max()))
        has_range = operator not in WITHOUT_RANGE or bool(draw.integers(0, 2))
        symbols.append(Symbol(operator, f"n{len(symbols)}", tuple(operands), 0.0, ends if has_range else None))
        reals.append(real)
        made.append(len(symbols) - 1)
    results = sorted({made[-1], *([int(draw.choice(made))] if draw.integers(0, 4) == 0 else [])})
    outputs = [drawn_type(draw, float(np.abs(reals[r]).max()), 16 if draw.integers(0, 5) == 0 else 8) for r in results]
    return pruned(Drawn(Tree(tuple(symbols), tuple(results)), types, outputs, shapes, codes))


def pruned(whole: Drawn) -> Drawn:
    """Without what no result needs."""
    kept = set(whole.tree.outputs)
    for i in reversed(range(len(whole.tree.symbols))):
        kept |= set(whole.tree.symbols[i].operands) if i in kept else set()
    place = {old: new for new, old in enumerate(sorted(kept))}
    inputs = [i for i in range(len(whole.types)) if i in kept]
    symbols = [
        replace(
            s,
            operands=tuple(place[o] for o in s.operands),
            number=float(inputs.index(i)) if s.operator == INPUT else s.number,
        )
        for i, s in enumerate(whole.tree.symbols)
        if i in kept
    ]
    tree = Tree(tuple(symbols), tuple(place[o] for o in whole.tree.outputs))
    types, shapes, codes = ([of[i] for i in inputs] for of in (whole.types, whole.shapes, whole.codes))
    return Drawn(tree, types, whole.outputs, shapes, codes)


def drawn_number(draw: np.random.Generator) -> float:
    return float(
        draw.choice([0.0, 1.0, 0.5, 2.0, -1.0, -2.0, 4.0, float(draw.uniform(-3, 3)), float(draw.uniform(0, 9))])
    )


def ends_of(kind: Affine) -> tuple[float, float]:
    low, high = (
        (code - int(kind.zero_point[0])) * float(kind.scale[0]) for code in (kind.minimum_code, kind.maximum_code)
    )
    return low, high


@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("numerics", ["nntool", "exact"])
def test_drawn_expressions(numerics: str, block: int) -> None:
    taken = 0
    for seed in range(60 * block, 60 * block + 60):
        found = drawn(seed)
        rank = max(map(len, found.shapes))
        feeds = [wide(x, rank) for x in found.codes]
        try:
            graph = lower(found.graph(numerics), "gap9")
        except UnsupportedError:
            with pytest.raises(Refused):
                compute(found.tree, found.types, found.outputs, feeds, numerics)
            continue
        flaws = graph.nodes[0].params.flaws
        wanted = compute(found.tree, found.types, found.outputs, feeds, numerics, flaws)
        if not flaws:
            other = "exact" if numerics == "nntool" else "nntool"
            for codes, same in zip(wanted, compute(found.tree, found.types, found.outputs, feeds, other), strict=True):
                assert np.array_equal(codes, same), seed
        values = Engine(graph).run(found.codes)
        for t, codes in zip(graph.outputs, wanted, strict=True):
            assert np.array_equal(values[t], np.broadcast_to(codes, values[t].shape)), (seed, found.tree)
        taken += 1
    assert taken > 30


Border = tuple[list[tuple[str, float | None]], tuple[float, int, str], tuple[float, int, str], str]
FINE = (0.001, 0, "int16")
BORDERS: list[Border] = [
    ([("relu6", None)], (6 / 127, 0, "int8"), FINE, ""),
    ([("relu6", None)], (6 / 126, 0, "int8"), FINE, "22.4"),
    ([("relu6", None)], (6 / 255, 0, "uint8"), FINE, ""),
    ([("relu6", None)], (6 / 254, 0, "uint8"), FINE, "22.4"),
    ([("mul", -1.0), ("relu6", None)], (6 / 128, 0, "int8"), FINE, "22.3"),
    ([("mul", -1.0), ("relu6", None)], (6 / 126, 0, "int8"), FINE, "22.3"),
    ([("abs", None)], (0.1, -1, "int8"), FINE, ""),
    ([("abs", None)], (0.1, 0, "int8"), FINE, "22.5"),
    ([("abs", None)], (0.1, 0, "uint8"), FINE, ""),
    ([("abs", None)], (1e-3, 0, "int16"), FINE, "22.5"),
    ([("mul", 2.0), ("abs", None)], (0.05, 3, "int8"), FINE, ""),
    ([("mul", -2.0), ("abs", None)], (0.05, 3, "int8"), FINE, "22.3"),
    ([("mul", 2.0), ("maximum", 1.0)], (0.05, 0, "int8"), FINE, ""),
    ([("mul", -2.0), ("maximum", 1.0)], (0.05, 0, "int8"), FINE, "22.3"),
    ([("div", 2.0), ("minimum", 1.0)], (0.05, 0, "int8"), FINE, ""),
    ([("div", -2.0), ("minimum", 1.0)], (0.05, 0, "int8"), FINE, "22.3"),
    ([("sin", None)], (2 * np.pi / 128, 0, "int8"), FINE, ""),
    ([("sin", None)], (2.02 * np.pi / 128, 0, "int8"), FINE, "22.8"),
    ([("cos", None)], (2 * np.pi / 128, 1, "int8"), FINE, "22.8"),
    ([("cos", None)], (2 * np.pi / 256, 1, "uint8"), FINE, ""),
    ([("sin", None)], (2 * np.pi / 128, 0, "uint8"), FINE, "22.8"),
    ([("cos", None)], (np.pi / 128, 0, "uint8"), FINE, ""),
    ([("maximum", 18 / 128), ("pow", 0.5)], (1 / 128, 0, "int8"), FINE, ""),
    ([("maximum", 17 / 128), ("pow", 0.5)], (1 / 128, 0, "int8"), FINE, "22.9"),
    ([("pow", 0.5)], (1 / 32768, 0, "uint16"), FINE, "22.9"),
    ([("pow", 2.0)], (1 / 32768, 0, "uint16"), FINE, ""),
    ([("rsqrt", None)], (0.1, 0, "uint8"), FINE, "22.10"),
    ([("maximum", 0.1), ("rsqrt", None)], (0.1, 0, "uint8"), FINE, ""),
    ([("mul", 1.0)], (0.1, 0, "uint8"), (0.1, 0, "uint8"), ""),
    ([("mul", 1.0)], (0.1, 0, "uint8"), (0.1, 1, "uint8"), "22.6"),
    ([("mul", 1.0)], (0.1, 3, "uint16"), (0.1, 3, "uint16"), ""),
    ([("mul", 1.0)], (0.1, 3, "uint16"), (0.1, 4, "uint16"), "22.6"),
    ([("mul", 1.0)], (0.1, 3, "int8"), (0.1, 4, "int8"), ""),
    ([("mul", 1.0)], (0.1, 3, "int16"), (0.1, 4, "int16"), ""),
]  # fmt: skip
"""Expressions of one input on both sides of borders: operators with their constants, input, output, the flaw."""


@pytest.mark.parametrize("border", BORDERS)
def test_flaws_are_told_where_a_code_shows_them(border: Border) -> None:
    operators, kind, result, flaw = border
    types, outputs = ([Affine.per_tensor(k[0], k[1], DType(k[2]).bits, k[2][0] == "i")] for k in (kind, result))
    symbols = [Symbol(INPUT, "", (), 0.0, ends_of(types[0]))]
    for operator, number in operators:
        place = len(symbols) - 1
        if number is not None:
            symbols.append(Symbol(CONSTANT, "", (), number))
        operands = (place, place + 1) if number is not None else (place,)
        symbols.append(Symbol(operator, operator, operands, 0.0, (-30.0, 30.0) if operator != "relu6" else None))
    ends = np.iinfo(kind[2])
    codes = np.arange(ends.min, ends.max + 1).astype(kind[2])[None, None]
    tree = Tree(tuple(symbols), (len(symbols) - 1,))
    vendor, right = (compute(tree, types, outputs, [codes], n, ["RELU6"])[0] for n in ("nntool", "exact"))
    graph = Drawn(tree, types, outputs, [codes.shape[1:]], [codes]).graph("exact")
    flaws = lower(graph, "gap9").nodes[0].params.flaws
    assert [flaw] == [f[f.index("22.") : -1] for f in flaws] if flaw else not flaws
    assert np.array_equal(vendor, right) == (flaw in ("", "22.10"))  # where NNTool stops there are no integers


@pytest.mark.parametrize("scale", [0.25, 0.99, 1.0, 1.5, 2.0, 3.0, 4.0, 40.0])
@pytest.mark.parametrize("operator", ["add", "sub"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-32768.4, 32767.4),
        (-32768.6, 9.0),
        (-9.0, 32767.6),
        (-4e4, 32768.0),
        (-33e3, 5e4),
        (-5e4, 33e3),
        (-98304, 98301),
    ],
)
def test_ranges_beyond_16_bits(operator: str, scale: float, low: float, high: float) -> None:
    """Beyond, a scale of 1 and more loses bits, a smaller one becomes the range's."""
    types = [Affine.per_tensor(scale / 128, 0, 8, True), Affine.per_tensor(scale / 128, -5, 8, True)]
    outputs = [Affine.per_tensor(scale * 2.0**-13, 0, 16, True)]
    ends = (low * scale / 128, high * scale / 128)
    symbols = [Symbol(INPUT, "", (), float(i), ends_of(t)) for i, t in enumerate(types)]
    symbols += [
        Symbol(operator, "a", (0, 1), 0.0, ends),
        Symbol("tanh", "t", (2,)),
        Symbol("add", "b", (3, 2), 0.0, ends),
    ]
    codes = [np.random.default_rng(i).integers(-128, 128, (2, 1, 40)).astype(np.int8) for i in range(2)]
    for results in ((2,), (4,)):
        tree = Tree(tuple(symbols[: results[0] + 1]), results)
        found = Drawn(tree, types, outputs, [(1, 40)] * 2, codes)
        graph = lower(found.graph("nntool"), "gap9")
        (wanted,) = compute(tree, types, outputs, codes, "nntool")
        assert np.array_equal(Engine(graph).run(codes)[graph.outputs[0]], wanted)


@pytest.mark.parametrize(("least", "zero_point", "is_told"), [(-128, 0, True), (-127, 0, False), (-100, 28, False)])
def test_the_least_code_of_a_constant_is_known(least: int, zero_point: int, is_told: bool) -> None:
    """ABS of -128 (22.5): of a constant only the codes that it has count."""
    kind = Affine.per_tensor(0.1, zero_point, 8, True)
    b = GraphBuilder("constant")
    x, c = b.input("x", (1, 4), DType.INT8, kind), b.constant("c", np.array([[least, 3, 5, 100]], np.int8), kind)
    symbols = (Symbol(INPUT, "", (), 0.0), Symbol(INPUT, "", (), 1.0), Symbol("abs", "a", (1,)),
               Symbol("mul", "m", (0, 2)))  # fmt: skip
    y = b.tensor("y", (1, 4), DType.INT16, Affine.per_tensor(0.01, 0, 16, True))
    b.node("expression", [x, c], [y], **Tree(symbols, (3,)).attributes())
    assert bool(lower(b.build([y]), "gap9").nodes[0].params.flaws) == is_told


@pytest.mark.parametrize("largest", [0.01, 0.2, 0.45, 0.6, 0.9, 1.2, 1.7, 2.5, 4.0, 30.0])
@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0])
def test_roots_are_shifted_by_their_range(scale: float, largest: float) -> None:
    """By as many bits as the largest result of the range has beyond the least unit, and one."""
    kind, output = Affine.per_tensor(scale, 0, 8, False), Affine.per_tensor(2.0**-13, 0, 16, True)
    symbols = (Symbol(INPUT, "", (), 0.0, ends_of(kind)), Symbol("rsqrt", "r", (0,), 0.0, (0.0, largest)))
    codes = [np.arange(256, dtype=np.uint8)[None, None]]
    tree = Tree(symbols, (1,))
    graph = lower(Drawn(tree, [kind], [output], [(1, 256)], codes).graph("nntool"), "gap9")
    (wanted,) = compute(tree, [kind], [output], codes, "nntool")
    assert np.array_equal(Engine(graph).run(codes)[graph.outputs[0]], wanted)
