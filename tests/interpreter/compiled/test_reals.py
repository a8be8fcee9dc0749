"""QUANTIZE of real numbers by thresholds: the kernels' own results on both sides of each, and on any numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support import c_compiler
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine
from tflq.interpreter.compiled.reals import by_thresholds

SHAPES = ((1, 5, 3, 1), (1, 2, 9, 4), (1, 1, 1, 40), (37,))


def quantiser(seed: int) -> Graph:
    """A QUANTIZE, of an image or not."""
    rng = np.random.default_rng(seed)
    shape, dtype = SHAPES[seed % len(SHAPES)], (DType.INT8, DType.UINT8)[seed // 4 % 2]
    scale = np.float32(2.0 ** rng.integers(-6, 3) if seed % 3 else 2.0 ** rng.uniform(-12, 6))
    zero_point = int(rng.integers(dtype.minimum, dtype.maximum + 1))
    builder = GraphBuilder("quantiser")
    x = builder.input("x", shape, DType.FLOAT32)
    affine = Affine.per_tensor(scale, zero_point, 8, dtype.is_signed)
    return builder.build([builder.add("quantize", [x], shape, dtype, affine)])


def numbers(graph: Graph, seed: int) -> Array:
    """Any float32 numbers: ties and their neighbours, any bits, infinities, NaN."""
    rng, affine = np.random.default_rng(seed), graph.tensors[graph.outputs[0]].affine
    size = int(np.prod(graph.tensors[graph.inputs[0]].shape))
    ties = ((np.arange(-300, 300) / 2) * np.float64(affine.scale[0])).astype(np.float32)
    beside = [np.nextafter(ties, np.float32(end)) for end in (-np.inf, np.inf)]
    bits = rng.integers(0, 1 << 32, 2000, np.uint32).view(np.float32)
    every = np.concatenate([ties, *beside, bits, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)])
    every = every[rng.permutation(every.size)]
    return np.resize(every, (-(-every.size // size), *graph.tensors[graph.inputs[0]].shape))


@pytest.mark.parametrize("arithmetic", ["tpu_mlir", "openvino"])
@pytest.mark.parametrize("seed", range(12))
def test_compiled_results_are_the_kernels(arithmetic: str, seed: int) -> None:
    c_compiler.compiler()
    graph = quantiser(seed - seed // 4 % 2 * 4 if arithmetic == "openvino" else seed)  # its integers are signed
    plain = Engine(graph, arithmetic)
    compiled = Engine(graph, arithmetic, backend="c")
    x, (y,) = numbers(graph, seed), graph.outputs
    assert np.array_equal(compiled.run([x])[y], plain.run([x])[y])
    assert not compiled.in_numpy()


def rounded(x: np.ndarray, scale: float, offset: float) -> np.ndarray:
    return np.clip(np.rint(np.nan_to_num(x.astype(np.float64) * scale, nan=0.0) + offset), 0, 255).astype(np.int64)


@pytest.mark.parametrize(
    ("rule", "is_found"),
    [
        (lambda x: (x > 0).astype(np.int64), False),  # one step: no line goes through it alone
        (lambda x: np.where(x > 0, 255, 0), False),
        (lambda x: rounded(x, 1e30, 7), True),
        (lambda x: rounded(x, 1e-37, 200), False),  # thresholds beyond float32
        (lambda x: rounded(x, 1.0, -1e4), True),
    ],
)
def test_rules_of_few_or_far_thresholds(rule: Callable[[np.ndarray], np.ndarray], is_found: bool) -> None:
    found = by_thresholds(rule)
    assert (found is not None) == is_found
    x = np.random.default_rng(5).integers(0, 1 << 32, 20000, np.uint32).view(np.float32)
    x = x[~np.isnan(x)]
    if found is not None:
        assert np.array_equal(found.of(x), rule(x))


def test_a_rule_whose_steps_are_no_line_is_refused() -> None:
    def square(x: np.ndarray) -> np.ndarray:
        return rounded(np.sign(x) * x.astype(np.float64) ** 2, 0.02, 90)

    assert by_thresholds(square) is None
