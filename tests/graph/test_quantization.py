"""The kinds of quantization compare by content and bits."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.errors import GraphError
from tflq.graph import Affine, Blockwise, DType, FakeQuantize, GraphBuilder, Logarithmic, Range, dequantize
from tflq.graph.float_view import dequantize_blocks

F32 = np.float32


def per_axis(scales: list[float], axis: int = 0) -> Affine:
    return Affine(np.array(scales, F32), np.zeros(len(scales), np.int64), axis)


def fake(high: float) -> FakeQuantize:
    return FakeQuantize(255, F32([0]), F32([high]), F32([0]), F32([high]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (per_axis([1, 2]), per_axis([1, 2], axis=1)),
        (per_axis([1, 2]), per_axis([2, 1])),
        (Affine.per_tensor(F32(0.5)), Affine.per_tensor(0.5)),
        (Affine.per_tensor(F32(0.5)), Affine.per_tensor(F32(0.5), 1)),
        (Affine.per_tensor(F32(0.5)), Affine.per_tensor(F32(0.5), bits=4)),
        (Affine.per_tensor(F32(0.5)), Affine.per_tensor(F32(0.5), signed=False)),
        (Affine.per_tensor(F32(0.5)), Affine.per_tensor(F32(0.5), narrow_range=True)),
        (Affine.per_tensor(F32(0.0)), Affine.per_tensor(F32(-0.0))),
        (Blockwise(1, -1, 32), Blockwise(1, -1, 32, (1, 32))),
        (Logarithmic(4.0), Logarithmic(4.0, 16)),
        (fake(1), fake(2)),
        (Range(F32([0]), F32([1])), Range(F32([0]), F32([2]))),
        (Affine.per_tensor(F32(0.5)), Logarithmic(0.5)),
    ],
)
def test_what_differs_is_not_equal(one: object, other: object) -> None:
    assert one != other
    assert one == one


def test_equal_content_is_equal_and_hashes_alike() -> None:
    for build in (
        lambda: per_axis([1, 2]),
        lambda: fake(3),
        lambda: Range(F32([0]), F32([1])),
        lambda: Blockwise(1, 2, 4),
    ):
        assert build() == build()
        assert hash(build()) == hash(build())
    assert Affine.per_tensor(F32("nan")) == Affine.per_tensor(F32("nan"))


def test_scales_keep_their_precision() -> None:
    assert Affine.per_tensor(F32(0.1)).scale.dtype == np.float32
    assert Affine.per_tensor(0.1).scale.dtype == np.float64


@pytest.mark.parametrize(
    ("affine", "codes"),
    [
        (Affine.per_tensor(1.0), (-128, 127)),
        (Affine.per_tensor(1.0, narrow_range=True), (-127, 127)),
        (Affine.per_tensor(1.0, bits=4), (-8, 7)),
        (Affine.per_tensor(1.0, bits=4, signed=False), (0, 15)),
        (Affine.per_tensor(1.0, bits=16, signed=False, narrow_range=True), (1, 65535)),
    ],
)
def test_codes(affine: Affine, codes: tuple[int, int]) -> None:
    assert (affine.minimum_code, affine.maximum_code) == codes


def test_scales_lie_along_their_axis() -> None:
    scale, zero_point = per_axis([1, 2, 3], axis=1).along(4)
    assert scale.shape == zero_point.shape == (1, 3, 1, 1)
    assert Affine.per_tensor(1.0).along(2)[0].shape == (1, 1)


def test_dequantize_along_an_axis() -> None:
    affine = Affine(np.array([0.5, 2], F32), np.array([1, -1]), axis=1)
    assert dequantize(np.array([[1, 1], [127, -128]], np.int8), affine).tolist() == [[0, 4], [63, -254]]


def blocks(codes: np.ndarray, scales: np.ndarray, zero_points: np.ndarray | None = None, size: int = 2):
    b = GraphBuilder()
    s = b.constant("s", scales)
    z = -1 if zero_points is None else b.constant("z", zero_points)
    return dequantize_blocks(b.build([]), codes, Blockwise(s, z, size))


def test_dequantize_blocks() -> None:
    codes = np.array([[1, 2, 3, -4], [5, 6, 7, -8]], np.int8)
    scales = np.array([[0.5, 2], [1, 0.25]], np.float16)
    assert blocks(codes, scales).tolist() == [[0.5, 1, 6, -8], [5, 6, 1.75, -2]]
    shifted = blocks(codes, scales, np.array([[1, 0], [0, -1]], np.int8))
    assert shifted.tolist() == [[0, 0.5, 6, -8], [5, 6, 2, -1.75]]


@pytest.mark.parametrize(("count", "size"), [(3, 2), (4, 3), (4, 1)])
def test_blocks_that_do_not_fit_are_refused(count: int, size: int) -> None:
    with pytest.raises(GraphError, match=f"blocks of {size} along the last axis of .* do not fit 's'"):
        blocks(np.zeros((2, 4), np.int8), np.ones(count, np.float16), size=size)


def test_scales_that_are_computed_are_refused() -> None:
    b = GraphBuilder()
    s = b.input("s", (2,), DType.FLOAT16)
    with pytest.raises(GraphError, match="its scales, tensor 's', are no constant"):
        dequantize_blocks(b.build([]), np.zeros((1, 4), np.int8), Blockwise(s, -1, 2))
