"""Closed forms of thresholds: held to the rule itself on both sides of every threshold."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.graph import DType
from tflq.interpreter.accumulate.products import FLOAT32_EXACT
from tflq.interpreter.kernels.aipu.activation import Fused
from tflq.interpreter.kernels.aipu.linear import FilterParams as AipuFilter
from tflq.interpreter.kernels.aipu.multiplier import Multiplier as AipuMultiplier
from tflq.interpreter.kernels.aipu.multiplier import OutputCodes
from tflq.interpreter.kernels.gap9.linear import Rescaling
from tflq.interpreter.kernels.gap9.mul_bias import MulBias
from tflq.interpreter.kernels.tflite.rescale import Rescale, Rounding, Rule
from tflq.interpreter.kernels.tpu_mlir.linear import FilterParams as TpuFilter
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier as TpuMultiplier
from tflq.interpreter.numerics.fixed_point import quantize_multiplier
from tflq.interpreter.numerics.thresholds import find_thresholds

INT8 = np.dtype(np.int8)
CHANNELS = 24
WEIGHTS = np.zeros((CHANNELS, 1), np.int64)


def hold(rule, codes, bound):
    """Both sides of every threshold, where a 32-bit accumulator has such a side: at least one code has one."""
    reached = rule.reach(codes)
    assert reached.dtype == np.int64
    inside = np.abs(reached) < bound
    assert inside.any()
    assert np.all((rule.exact(np.where(inside, reached, 0)) >= codes) | ~inside)
    assert np.all((rule.exact(np.where(inside, reached - 1, 0)) < codes) | ~inside)
    assert np.all((rule.exact(np.full_like(reached, bound)) < codes) | (reached <= bound))
    assert np.all((rule.exact(np.full_like(reached, -bound)) >= codes) | (reached > -bound))


def codes_between(minimum, maximum):
    return np.arange(minimum + 1, maximum + 1)[:, None]


@pytest.mark.parametrize("zero_point", [-128, -1, 0, 5, 127])
@pytest.mark.parametrize("seed", range(4))
def test_tflite_multiplier_rounded_twice(zero_point, seed):
    rng = np.random.default_rng(seed)
    scale = np.concatenate(
        [2.0 ** rng.uniform(-20, 3, 12), 2.0 ** rng.integers(-12, 4, 8), [0, 1e-12, 1e-30, 2.0**-31]]
    )
    bias = rng.integers(-(2**18), 2**18, CHANNELS)
    rule = Rule(Rounding.DOUBLE, scale, *quantize_multiplier(scale), 32, zero_point, -128, 127, DType.INT8)
    hold(Rescale(rule, bias, None), codes_between(-128, 127), 2**26)


@pytest.mark.parametrize("pre", [0, 3, 8])
@pytest.mark.parametrize("seed", range(4))
def test_gap9_product_and_two_shifts(pre, seed):
    rng = np.random.default_rng(seed)
    shift = rng.integers(pre, 25, CHANNELS)
    mul_bias = MulBias(rng.integers(0, 256, CHANNELS), shift, np.ones(CHANNELS))
    hold(Rescaling(rng.integers(-(2**20), 2**20, CHANNELS), mul_bias, pre, 0, 255), codes_between(0, 255), 2**31)


@pytest.mark.parametrize("zero_point", [-128, 0, 9])
@pytest.mark.parametrize("seed", range(4))
def test_tpu_mlir_product_and_shift(zero_point, seed):
    rng = np.random.default_rng(seed)
    rescale = TpuMultiplier(rng.integers(1, 2**31, CHANNELS), rng.integers(0, 49, CHANNELS), np.ones(CHANNELS))
    bias = rng.integers(-(2**20), 2**20, CHANNELS)
    hold(TpuFilter(WEIGHTS, bias, rescale, 0, zero_point, -128, 127, INT8), codes_between(-128, 127), 2**31)


@pytest.mark.parametrize("kind", ["NONE", "RELU", "RELU6"])
@pytest.mark.parametrize("seed", range(4))
def test_aipu_ties_to_even(kind, seed):
    """Even multipliers make ties; the bound is that of float32, through which RELU goes."""
    rng = np.random.default_rng(seed)
    rescale = AipuMultiplier(
        1 << rng.integers(0, 15, CHANNELS) | rng.integers(0, 2, CHANNELS), rng.integers(0, 32, CHANNELS)
    )
    codes = OutputCodes(int(rng.integers(-128, 128)), -128, 127, INT8)
    bias = rng.integers(-(2**20), 2**20, CHANNELS)
    hold(AipuFilter(WEIGHTS, bias, rescale, Fused(kind), 0, codes, INT8), codes_between(-128, 127), FLOAT32_EXACT // 2)


@pytest.mark.parametrize("away", [0.0, 0.6, 40.0])
def test_thresholds_from_the_rule_do_not_depend_on_the_guess(away):
    def exact(acc):
        return np.clip((acc * 5 + 8) >> 4, -20, 20)

    lower, upper = np.array([-100, -3]), np.array([50, 90])
    codes = codes_between(-20, 20)
    every = np.clip(np.arange(-101, 92)[:, None], lower, upper + 1)
    wanted = [
        [min([a for a in every[:, o] if a <= upper[o] and exact(a) >= k], default=upper[o] + 1) for o in (0, 1)]
        for k in codes[:, 0]
    ]
    found = find_thresholds(exact, codes, codes * 3.2 + away + np.zeros(2), lower, upper)
    assert found.tolist() == wanted
