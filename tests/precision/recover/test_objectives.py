"""Objectives of Compass in the engine: rounding to either side of a weight, by the error that the tool sums."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.precision.recover.test_network import recovered, sqnr
from tflq.converters.aipu.options import GLOBAL_METHODS
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.precision.recover.descent import Grid, find_neighbors
from tflq.precision.recover.moments import Moments, Observed, moments_of
from tflq.precision.recover.records import RECOVERY, Objective, objective_of

AIPU = find_target("aipu")
ADAROUND, ADAQUANT = (
    objective_of(parse_settings(AIPU.settings, [f"global_calibration={name}"])) for name in ("adaround", "adaquant_zy")
)
INPUT_SCALE = 0.02
Problem = tuple[Moments, Grid, np.ndarray, np.ndarray, np.ndarray]


def problem(seed: int, shape: tuple[int, int, int], per_tensor: bool, objective: Objective) -> Problem:
    """Draw windows, what they should give without the bias, and weights on a grid of 4 bits."""
    random = np.random.default_rng(seed)
    groups, depth, _ = shape
    windows = random.integers(-20, 90, (groups, 60, depth)) @ random.integers(-1, 2, (groups, depth, depth))
    weights = random.normal(size=shape)
    wanted = windows * INPUT_SCALE @ (weights + 0.03 * random.normal(size=shape))
    peak = np.abs(weights).max(1)
    scale = (np.full_like(peak, peak.max()) if per_tensor else peak) / 7
    grid = Grid(7, -7, per_tensor, np.rint(weights / scale[:, None]), scale)
    return moments_of([Observed(windows, wanted)], INPUT_SCALE, weights, 7, objective), grid, weights, windows, wanted


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 4)),
    st.booleans(),
    st.sampled_from((ADAROUND, ADAQUANT)),
)
def test_weights_go_to_one_of_two_neighbors_and_the_error_falls(
    seed: int, shape: tuple[int, int, int], per_tensor: bool, objective: Objective
) -> None:
    moments, grid, weights, windows, wanted = problem(seed, shape, per_tensor, objective)
    found = find_neighbors(moments, weights, grid, objective)
    ratio = weights / grid.scale[:, None]
    assert ((found.q >= np.floor(ratio) - 1e-9) & (found.q <= np.floor(ratio) + 1)).all()
    stays = np.abs(weights) == grid.peak(weights)[:, None]
    assert np.array_equal(found.q[stays], grid.q[stays])
    assert objective.moves_scale or np.array_equal(found.scale, grid.scale)

    def error(q: np.ndarray, scale: np.ndarray) -> np.ndarray:
        missing = windows * INPUT_SCALE @ (q * scale[:, None]) - wanted
        missing = missing - missing.mean(1, keepdims=True) * objective.moves_bias
        return np.square(missing).mean(1)

    before, after = error(grid.q, grid.scale), error(found.q, found.scale)
    assert after.sum() <= before.sum() * (1 + 1e-6) + 1e-9
    gained = (moments.loss(found.q, found.scale) - moments.loss(grid.q, grid.scale)) * moments.step
    assert np.allclose(gained, after - before, rtol=1e-4, atol=1e-5 * (1 + before.max()))


def test_rounding_ends_where_no_single_weight_can_lower_the_error() -> None:
    """Against all roundings of four weights: never below the least, and no neighbor in one weight is better."""
    least = 0
    for seed in range(20):
        moments, grid, weights, _, _ = problem(seed, (1, 4, 1), False, ADAROUND)
        found = find_neighbors(moments, weights, grid, ADAROUND)
        low = np.floor(weights[0, :, 0] / grid.scale[0, 0])
        fixed = np.abs(weights[0, :, 0]) == np.abs(weights).max()
        ends = [np.where(fixed, grid.q[0, :, 0], low + up)[None, :, None] for up in product((0.0, 1.0), repeat=4)]
        losses = [float(moments.loss(q, grid.scale)[0, 0]) for q in ends]
        mine = float(moments.loss(found.q, grid.scale)[0, 0])
        single = [loss for q, loss in zip(ends, losses, strict=True) if (q != found.q).sum() <= 1]
        assert mine <= min(single) + 1e-9
        least += mine <= min(losses) + 1e-9
    assert least >= 15


def test_adaround_changes_weights_by_a_step_and_nothing_else() -> None:
    found = recovered("aipu", ("weight_bits=4", "global_calibration=adaround"))
    assert {layer.kept for layer in found.layers} <= {"weights", "nothing"}
    moved = 0
    pairs = zip(found.plain_execution.graph.tensors, found.execution.graph.tensors, strict=True)
    for old, new in pairs:
        assert (old.name, old.dtype, old.quantization) == (new.name, new.dtype, new.quantization)
        if old.data is not None:
            steps = np.abs(np.asarray(old.data).astype(np.int64) - np.asarray(new.data).astype(np.int64))
            assert steps.max(initial=0) <= (1 if len(old.shape) > 1 else 0)
            moved += int(steps.sum())
    assert moved
    before, after = sqnr(found)
    assert after > before + 1


def test_adaquant_moves_scales_and_biases() -> None:
    found = recovered("aipu", ("weight_bits=4", "global_calibration=adaquant_zy"))
    assert "weights and bias" in {layer.kept for layer in found.layers}
    assert any(layer.bias_steps > 0 for layer in found.layers)
    pairs = zip(found.plain_execution.graph.tensors, found.execution.graph.tensors, strict=True)
    weights = [(a, b) for a, b in pairs if a.data is not None and len(a.shape) > 1]
    assert any(not np.array_equal(a.affine.scale, b.affine.scale) for a, b in weights)
    before, after = sqnr(found)
    assert after > before + 1


def test_objectives_by_name() -> None:
    assert objective_of(parse_settings(find_target("gap9-ne16").settings)) == RECOVERY
    names = {
        name: objective_of(parse_settings(AIPU.settings, [f"global_calibration={name}"])) for name in GLOBAL_METHODS
    }
    assert len(set(names.values())) == len(GLOBAL_METHODS)
    assert names["none"] == RECOVERY
