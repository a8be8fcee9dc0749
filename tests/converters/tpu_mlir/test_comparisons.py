"""Comparisons: 0 or 1 of raw quantized values; what the tool is not known to do with truth values is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import FLOAT, IMAGE, quantized, ranged, run
from tflq.errors import UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder

RULES = {
    "equal": np.equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
}
RANGES = {"a": (-1.0, 3.0), "b": (-2.0, 2.0)}


def compared(operator: str, number: float | None = None, *, number_first: bool = False) -> Graph:
    b = GraphBuilder(operator)
    operands = [b.input("a", IMAGE, FLOAT)]
    operands.append(b.input("b", IMAGE, FLOAT) if number is None else b.constant("c", np.float32(number)))
    y = b.tensor("y", IMAGE, DType.BOOL)
    b.node(operator, operands[::-1] if number_first else operands, [y])
    return ranged(b.build([y]), RANGES)


@pytest.mark.parametrize("asymmetric", ["true", "false"])
@pytest.mark.parametrize("operator", RULES)
def test_two_tensors_have_the_range_of_both(operator: str, asymmetric: str) -> None:
    rng = np.random.default_rng(3)
    low, high = (-2.0, 3.0) if asymmetric == "true" else (-3.0, 3.0)
    scale = (high - low) / (255 if asymmetric == "true" else 254)
    codes = [rng.integers(-20, 21, (2, *IMAGE)) for _ in "ab"]
    found = run(
        quantized(compared(operator), [f"asymmetric={asymmetric}"]), [(c * scale).astype(np.float32) for c in codes]
    )
    truth = next(value for name, value in found.items() if name.endswith("_f32"))
    assert truth.astype(bool).tolist() == RULES[operator](*codes).tolist()
    assert set(np.unique(truth).tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize("operator", RULES)
@pytest.mark.parametrize("first", [False, True])
def test_a_number_is_compared_as_a_quantized_value(operator: str, first: bool) -> None:
    """0.5 lies between two quantized values of scale 4 / 255; the nearer one stands for it."""
    graph = quantized(compared(operator, 0.5, number_first=first), ["asymmetric=true"])
    scale = 4 / 255
    steps = int(np.floor(0.5 / scale + 0.5))
    codes = np.resize(np.arange(steps - 2, steps + 3), (1, *IMAGE))
    found = run(graph, [(codes * scale).astype(np.float32)])
    truth = next(value for name, value in found.items() if name.endswith("_f32"))
    wanted = RULES[operator](steps, codes) if first else RULES[operator](codes, steps)
    assert truth.astype(bool).tolist() == wanted.tolist()


def test_truth_values_are_joined_by_and() -> None:
    b = GraphBuilder("and")
    x = [b.input(name, IMAGE, FLOAT) for name in "ab"]
    truths = [b.tensor(f"t{i}", IMAGE, DType.BOOL) for i in (0, 1)]
    for t, value in zip(truths, x, strict=True):
        b.node("greater", [value, b.constant(f"zero{t}", np.float32(0))], [t])
    y = b.tensor("y", IMAGE, DType.BOOL)
    b.node("logical_and", truths, [y])
    values = [np.random.default_rng(i).uniform(-1, 1, (2, *IMAGE)).astype(np.float32) for i in (1, 2)]
    found = run(quantized(ranged(b.build([y]), RANGES)), values)
    scales = (3 / 127, 2 / 127)
    codes = [np.rint(v / s) for v, s in zip(values, scales, strict=True)]
    assert found["y_And_f32"].astype(bool).tolist() == ((codes[0] > 0) & (codes[1] > 0)).tolist()


@pytest.mark.parametrize(
    ("operator", "message"), [("where", "no mapping"), ("cast", "no mapping"), ("reshape", "truth values")]
)
def test_other_readers_of_truth_values_are_refused(operator: str, message: str) -> None:
    b = GraphBuilder(operator)
    a = b.input("a", IMAGE, FLOAT)
    t = b.add("greater", [a, b.constant("zero", np.float32(0))], IMAGE, DType.BOOL)
    more = {"where": [], "cast": [], "reshape": [b.constant("shape", np.array([1, 32], np.int32))]}[operator]
    shape = (1, 32) if operator == "reshape" else IMAGE
    y = b.add(operator, [t, *more], shape, DType.BOOL if operator == "reshape" else FLOAT)
    with pytest.raises(UnsupportedError, match=message):
        quantized(ranged(b.build([y]), RANGES))


def test_comparisons_with_several_numbers_are_refused() -> None:
    b = GraphBuilder("several")
    y = b.add("greater", [b.input("a", IMAGE, FLOAT), b.constant("c", np.float32([1, 2]))], IMAGE, DType.BOOL)
    with pytest.raises(UnsupportedError, match="a constant of several numbers"):
        quantized(ranged(b.build([y]), RANGES))


@pytest.mark.parametrize("is_read_again", [False, True])
def test_a_product_whose_multiplier_is_lost_is_refused(is_read_again: bool) -> None:
    """Seen: rescaled for a concatenation beside a zero point, a product is shifted by the rescaling's numbers alone.

    A product that others read, too, keeps its own.
    """
    rng = np.random.default_rng(2)
    b = GraphBuilder("join")
    x = b.input("x", (1, 6), FLOAT)
    parts = []
    for i, activation in enumerate(("relu", "none")):
        weights = b.constant(f"w{i}", rng.standard_normal((4, 6)).astype(np.float32))
        part = b.tensor(f"p{i}", (1, 4), FLOAT)
        b.node("fully_connected", [x, weights, -1], [part], fused_activation_function=activation)
        parts.append(part)
    y = b.tensor("y", (1, 8), FLOAT)
    b.node("concatenation", parts, [y], axis=1, fused_activation_function="none")
    outputs = [y]
    if is_read_again:
        outputs.append(b.tensor("other", (1, 4), FLOAT))
        b.node("add", parts, outputs[1:], fused_activation_function="none")
    ranges = {"x": (-1, 1), "p0": (0, 4), "p1": (-3, 2), "y": (-3, 4), "other": (-3, 6)}
    graph = ranged(b.build(outputs), ranges)
    quantized(graph)
    if is_read_again:
        quantized(graph, ["asymmetric=true"])
        return
    with pytest.raises(UnsupportedError, match="put the rescaling in place of the product's own multiplier"):
        quantized(graph, ["asymmetric=true"])
