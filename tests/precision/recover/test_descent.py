"""Coordinate descent over quantized weights: every step is exact, none raises the loss, and the end is a minimum."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.precision.recover.descent import Grid, descend, find_rounding
from tflq.precision.recover.moments import Moments, Observed, exact_product, moments_of, on_grid

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 60), st.integers(1, 4))
problems = given(st.integers(0, 1 << 30), SHAPES, st.sampled_from((1, 3, 7)), st.booleans())


def problem(seed: int, shape: tuple[int, int, int], largest: int, per_tensor: bool) -> tuple[Moments, Grid, np.ndarray]:
    """Draw a filter whose inputs depend on each other, its weights and their nearest rounding."""
    random = np.random.default_rng(seed)
    groups, depth, channels = shape
    mixed = random.integers(-40, 41, (groups, 200, depth)) @ random.integers(-2, 3, (groups, depth, depth))
    weights = random.normal(size=shape)
    targets = mixed * 0.01 @ (weights + 0.05 * random.normal(size=shape)) + random.normal(size=(groups, 1, channels))
    peak = np.abs(weights).max(1)
    scale = (np.full_like(peak, peak.max()) if per_tensor else peak) / largest
    nearest = np.clip(np.rint(weights / scale[:, None]), -largest, largest)
    grid = Grid(largest, -largest, per_tensor, nearest, scale)
    return moments_of([Observed(mixed, targets)], 0.01, weights, largest), grid, weights


@settings(max_examples=40, deadline=None)
@problems
def test_descent_never_raises_the_loss_and_ends_where_no_single_weight_can_lower_it(
    seed: int, shape: tuple[int, int, int], largest: int, per_tensor: bool
) -> None:
    moments, grid, _ = problem(seed, shape, largest, per_tensor)
    before = moments.loss(grid.q, grid.scale)
    q, scale = descend(moments, grid.q, grid.scale, grid, 1)
    assert np.abs(q).max() <= largest
    after = moments.loss(q, scale)
    tolerance = 1e-9 * (np.abs(before).sum() + 1)  # of the sums in float64 that are compared, not of what they sum
    assert after.sum() <= before.sum() + tolerance if per_tensor else (after <= before + tolerance).all()
    again, found = descend(moments, q, scale, grid, 1)
    if np.array_equal(again, q) and np.array_equal(found, scale):  # it had ended before its last sweep
        for change in (-1, 1):
            for k in range(shape[1]):
                other = q.copy()
                other[:, k] = np.clip(other[:, k] + change, -largest, largest)
                assert (moments.loss(other, scale) >= after - tolerance).all()


@settings(max_examples=30, deadline=None)
@problems
def test_what_is_found_is_no_worse_than_nearest_and_gives_its_scale_back(
    seed: int, shape: tuple[int, int, int], largest: int, per_tensor: bool
) -> None:
    moments, grid, weights = problem(seed, shape, largest, per_tensor)
    found = find_rounding(moments, weights, grid)
    old, new = moments.loss(grid.q, grid.scale), moments.loss(found.q, found.scale)
    assert (new.sum() <= old.sum()) if per_tensor else (new <= old).all()
    written = (found.q * found.scale[:, None]).astype(np.float32)
    peak = np.abs(written).max() if per_tensor else np.abs(written).max(1, keepdims=True)
    given_back = np.rint(written / (np.maximum(peak, 1e-30) / largest))
    assert np.array_equal(given_back, np.where(found.is_plain[:, None] & (peak == 0), 0, found.q))


def test_weights_that_are_on_the_grid_stay() -> None:
    random = np.random.default_rng(3)
    q = random.integers(-3, 4, (1, 20, 5)).astype(np.float64)
    q[0, 0] = 3
    scale = np.full((1, 5), 0.25)
    inputs = random.integers(-100, 101, (1, 400, 20))
    moments = moments_of([Observed(inputs, (inputs * 0.5) @ (q * 0.25))], 0.5, q * 0.25, 3)
    found = find_rounding(moments, q * 0.25, Grid(3, -3, False, q, scale))
    assert np.array_equal(found.q, q)


def test_two_weights_against_all_their_values() -> None:
    for seed in range(20):
        moments, grid, weights = problem(seed, (1, 2, 2), 1, False)
        found = find_rounding(moments, weights, grid)
        ends = [np.array([a, b], float) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
        for c in range(2):
            one = Moments(moments.h, moments.r[:, :, [c]], 1.0, moments.mu, moments.target_mean, moments.target_power)
            losses = []
            for end in ends:
                linear, square = end @ moments.r[0, :, c], end @ moments.h[0] @ end
                losses.append(-(linear**2) / square if linear > 0 else 0.0)
            mine = float(one.loss(found.q[:, :, [c]], found.scale[:, [c]])[0, 0])
            assert mine <= 0.5 * min(losses)  # descent finds a minimum, not always the least


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 300))
def test_products_on_a_grid_do_not_depend_on_the_order_of_addition(seed: int, depth: int) -> None:
    random = np.random.default_rng(seed)
    rows, weights = random.normal(size=(2, 5, depth)), random.normal(size=(2, depth, 3))
    order = random.permutation(depth)
    found = exact_product(rows, weights)
    assert np.array_equal(found, exact_product(rows[:, :, order], weights[:, order]))
    assert np.allclose(found, rows @ weights, rtol=0, atol=1e-4 * depth)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 30))
def test_moments_do_not_depend_on_the_order_of_rows(seed: int) -> None:
    random = np.random.default_rng(seed)
    windows = random.integers(-255, 256, (3, 500, 9)).astype(np.int32)
    targets, weights = random.normal(size=(3, 500, 2)), random.normal(size=(3, 9, 2))
    order = random.permutation(500)
    first, second = (
        moments_of([Observed(windows[:, o], targets[:, o])], 0.1, weights, 3) for o in (np.arange(500), order)
    )
    assert np.array_equal(first.h, second.h)
    assert np.array_equal(first.r, second.r)
    assert np.array_equal(first.mu, second.mu)
    assert np.array_equal(first.target_mean, second.target_mean)
    centered = windows * 0.1 - (windows * 0.1).mean(1, keepdims=True)
    h = centered.transpose(0, 2, 1) @ centered / 500
    assert np.allclose(first.h * first.step - h, np.eye(9) * (first.h * first.step - h), atol=1e-6)


def test_a_grid_keeps_what_fits_it() -> None:
    n, step = on_grid(np.array([[3.0, -1.5], [0.0, 0.0]]), 8, (1,))
    assert np.array_equal(n * step, [[3.0, -1.5], [0.0, 0.0]])
    assert np.abs(n).max() <= 256
