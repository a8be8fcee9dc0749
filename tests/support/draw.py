"""What hypothesis draws for kernels: scales, zero points, shapes; and the graphs of one operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tflq.graph import Affine, Attribute, DType, Graph, GraphBuilder

kernel_settings = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
"""Few examples, always the same: each runs thousands of elements in another process."""


def scales(low: int = -12, high: int = 3) -> st.SearchStrategy[np.float32]:
    """float32 between 2^low and 2^high, some of them powers of two."""
    free = st.builds(lambda m, e: np.float32(m * 2.0**e), st.floats(1, 2), st.integers(low, high - 1))
    return st.one_of(free, free, st.builds(lambda e: np.float32(2.0**e), st.integers(low, high)))


def affine(dtype: DType, scale: float | np.floating, zero_point: int = 0) -> Affine:
    return Affine.per_tensor(np.float32(scale), zero_point, dtype.bits, dtype.is_signed)


def zero_points(dtype: DType) -> st.SearchStrategy[int]:
    """Any code of an 8-bit type; 0 for wider ones, which TFLite demands."""
    return st.integers(dtype.minimum, dtype.maximum) if dtype.bits <= 8 else st.just(0)


def quantizations(dtype: DType, low: int = -12, high: int = 3) -> st.SearchStrategy[Affine]:
    return st.builds(lambda s, z: affine(dtype, s, z), scales(low, high), zero_points(dtype))


def shapes(rank: int = 4, size: int = 5) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(1, size), min_size=1, max_size=rank).map(tuple)


seeds = st.integers(0, 2**32 - 1)
activations = st.sampled_from(["none", "relu", "relu6", "relu_n1_to_1"])


def one_input(
    operator: str,
    shape: Sequence[int],
    source: tuple[DType, Affine | None],
    target: tuple[DType, Affine | None],
    output_shape: Sequence[int] | None = None,
    **attributes: Attribute,
) -> Graph:
    """A graph of one operator with one input and one output."""
    b = GraphBuilder(operator)
    x = b.input("x", shape, *source)
    return b.build([b.add(operator, [x], shape if output_shape is None else output_shape, *target, **attributes)])


def with_constants(
    operator: str,
    shape: Sequence[int],
    output_shape: Sequence[int],
    constants: Sequence[np.ndarray],
    dtype: DType,
    quantization: Affine | None = None,
    target: Affine | None = None,
    **attributes: Attribute,
) -> Graph:
    """A graph of one operator with one input, plain constants after it, and one output of the same type."""
    b = GraphBuilder(operator)
    x = b.input("x", shape, dtype, quantization)
    rest = [b.constant(f"constant_{i}", value) for i, value in enumerate(constants)]
    return b.build([b.add(operator, [x, *rest], output_shape, dtype, target or quantization, **attributes)])


def two_inputs(
    operator: str,
    sizes: tuple[Sequence[int], Sequence[int]],
    sources: tuple[tuple[DType, Affine | None], tuple[DType, Affine | None]],
    target: tuple[DType, Affine | None],
    **attributes: Attribute,
) -> Graph:
    """A graph of one operator with two inputs and one output, shapes broadcast."""
    b = GraphBuilder(operator)
    x, y = b.input("x", sizes[0], *sources[0]), b.input("y", sizes[1], *sources[1])
    return b.build([b.add(operator, [x, y], np.broadcast_shapes(*sizes), *target, **attributes)])


def all_pairs(dtype: DType) -> list[np.ndarray]:
    """Every pair of 8-bit quantized values, as 256 samples of 256 elements."""
    codes = np.arange(dtype.minimum, dtype.maximum + 1).astype(dtype.storage)
    return [np.repeat(codes[:, None], 256, 1), np.tile(codes, (256, 1))]


def every_code(dtype: DType) -> np.ndarray:
    """Every code of an 8 or 16-bit type, as one sample."""
    return np.arange(dtype.minimum, dtype.maximum + 1).astype(dtype.storage)[None]


@st.composite
def broadcast_shapes(draw: st.DrawFn, rank: int = 6, size: int = 3) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast, of up to `rank` axes."""
    full = draw(st.lists(st.integers(1, size), min_size=1, max_size=rank))
    pair = []
    for _ in range(2):
        kept = draw(st.integers(0, len(full)))
        pair.append(tuple(draw(st.sampled_from([1, n])) for n in full[len(full) - kept :]))
    return pair[0], pair[1]
