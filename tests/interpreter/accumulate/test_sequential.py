"""Sums of float32 products in order: equal to one addition after the other, whatever way numpy takes."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.interpreter.accumulate import sequential, sequential_convolution, sequential_product
from tflq.interpreter.accumulate.sequential import RUN, SHORT
from tflq.interpreter.operands.sliding_windows import Window


@pytest.fixture(params=["einsum", "one by one"])
def way(request, monkeypatch):
    """Both ways to add, wherever numpy's einsum keeps the order."""
    if request.param == "einsum" and not sequential._einsum_is_in_order():
        pytest.skip("this numpy's einsum fuses products and sums")
    monkeypatch.setattr(sequential, "_einsum_is_in_order", lambda: request.param == "einsum")


def floats(rng, *shape):
    """Magnitudes far apart, so that another order or a fused product shows; some zeros of either sign."""
    x = rng.normal(0, 1, shape) * 10.0 ** rng.integers(-4, 5, shape)
    return np.where(rng.random(shape) < 0.05, np.copysign(0, x), x).astype(np.float32)


def one_by_one(x, weights):
    total = np.zeros((x.shape[0], weights.shape[0]), np.float32)
    for k in range(x.shape[1]):
        total = (total + (x[:, k, None] * weights[None, :, k]).astype(np.float32)).astype(np.float32)
    return total


@pytest.mark.parametrize(
    ("places", "depth", "outputs"),
    [
        (1, 3000, 1),
        (2, 3000, 1),
        (1, 3000, 3),
        (1, 640, 128),
        (64, 300, 64),
        (0, 5, 3),
        (3, 0, 5),
        (4097, 30, 1),
        (65, 30, SHORT - 1),
        (SHORT + 1, 20, 70),
        (5, 20, RUN + 9),
        (RUN + 9, 20, 17),
        (300, 64, 1),
        (1, 64, 2),
        (2, 64, 2),
    ],
)
def test_products(places, depth, outputs, way):
    rng = np.random.default_rng(places + depth + outputs)
    x, weights = floats(rng, places, depth), floats(rng, outputs, depth)
    got = sequential_product(x, weights)
    assert got.dtype == np.float32
    assert got.shape == (places, outputs)
    assert np.array_equal(got.view(np.uint32), one_by_one(x, weights).view(np.uint32))


@pytest.mark.parametrize("outputs", [3, SHORT // 4, SHORT * 2])
def test_infinity_times_zero_is_no_number(outputs):
    x, weights = np.ones((70, 4), np.float32), np.ones((outputs, 4), np.float32)
    x[7, 2], weights[1, 2] = np.inf, 0
    with np.errstate(invalid="ignore"):
        got = sequential_product(x, weights)
    assert np.isnan(got[7, 1])
    assert np.isinf(got[7, 2])
    assert np.isfinite(np.delete(got, 7, axis=0)).all()


@pytest.mark.parametrize("finite", [True, False])
@pytest.mark.parametrize(("groups", "multiplier"), [(1, 5), (2, 3), (6, 1), (6, 2)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
def test_convolutions_of_several_images(finite, groups, multiplier, stride, way):
    """Taps outside the image are skipped: an infinite weight there adds nothing."""
    rng = np.random.default_rng(groups + multiplier)
    window = Window((3, 2), stride, (1, 2), top=1, bottom=1, left=2, right=1)
    x, weights = floats(rng, 3, 2, 9, 11, 6), floats(rng, groups * multiplier, 3, 2, 6 // groups)
    if not finite:
        weights[1, 0, 0] = np.inf
    height, width = window.output_size((9, 11))
    wanted = np.zeros((3, 2, height, width, groups * multiplier), np.float32)
    with np.errstate(invalid="ignore"):
        got = sequential_convolution(x, weights, window, groups)
        for i, j, ky, kx in np.ndindex(height, width, 3, 2):
            y, c = i * stride[0] + ky - 1, j * stride[1] + 2 * kx - 2
            if 0 <= y < 9 and 0 <= c < 11:
                for d, o in np.ndindex(6 // groups, groups * multiplier):
                    seen = x[:, :, y, c, o // multiplier * (6 // groups) + d]
                    wanted[:, :, i, j, o] += seen * weights[o, ky, kx, d]
    assert np.array_equal(got, wanted, equal_nan=True)
