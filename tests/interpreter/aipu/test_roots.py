"""The table of reciprocal roots against the roots themselves."""

from __future__ import annotations

import numpy as np

from tflq.interpreter.kernels.aipu.normalization import reciprocal_root


def test_near_the_root_at_every_magnitude() -> None:
    """Within 2^-14 of the root, and one unit where it is cut off."""
    powers = [2**k + offset for k in range(31) for offset in (0, 2**k // 3, 2**k - 1)]
    values = np.unique(np.array([1, 2, 3, *powers], np.int64))
    wanted = 2.0**31 / np.sqrt(values)
    assert (np.abs(reciprocal_root(values) - wanted) <= wanted * 2.0**-14 + 1).all()


def test_zero_has_the_largest() -> None:
    assert reciprocal_root(np.zeros(1, np.int64)) == 32767 << 16
