"""Tables of float32 step functions: equal to the function on both sides of every change, and anywhere else."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.interpreter.kernels.nnie import logarithm
from tflq.interpreter.numerics.float_steps import tabulate


def numbers(seed):
    """Random bits, but for infinities; some numbers near 1 too."""
    rng = np.random.default_rng(seed)
    any_bits = rng.integers(0, 2**32, 200_000, np.uint32).view(np.float32)
    near = rng.normal(0, 1, 50_000).astype(np.float32)
    special = np.array([0, -0.0, np.nan, 1, -1, np.finfo(np.float32).max, np.finfo(np.float32).tiny], np.float32)
    x = np.concatenate([any_bits, near, special])
    return x[~np.isinf(x)]


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("formula", ["library", "page", "mqbench"])
@pytest.mark.parametrize("z", [-511, -120, -40, 0, 7, 200])
def test_logarithmic_grid(bits, formula, z):
    scheme = logarithm.scheme_of(bits)
    grid = logarithm.magnitudes(z, scheme)
    bound = (grid[:-1] * np.sqrt(grid[1:] / grid[:-1])).view(np.int32)[:, None] + np.arange(-3, 4, dtype=np.int32)
    sides = bound.astype(np.int32).view(np.float32).reshape(-1)
    x = np.concatenate([numbers(z + 511), sides, -sides, np.zeros(logarithm.TABULATED, np.float32)])
    got = logarithm.fake_quantize(x, z, scheme, formula)
    sign, codes = logarithm.quantize(x, z, scheme, formula)
    assert got.view(np.uint32).tolist() == logarithm.dequantize(sign, codes, z, scheme).view(np.uint32).tolist()


def test_every_eight_bit_grid_has_a_table():
    scheme = logarithm.scheme_of(8)
    assert all(logarithm._steps(z, scheme, "library") is not None for z in range(-300, 300, 37))


def test_a_bucket_that_changes_twice_has_none():
    assert tabulate(lambda x: np.floor(np.clip(np.nan_to_num(x), -9, 9) * np.float32(1e6))) is None


def test_infinity_is_refused_among_many():
    x = np.ones(logarithm.TABULATED, np.float32)
    x[77] = -np.inf
    with pytest.raises(logarithm.InputError, match="infinity"):
        logarithm.fake_quantize(x, 0, logarithm.scheme_of(8))
