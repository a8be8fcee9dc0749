"""Where the pixels of a resized axis lie in the source, in float64, from the sizes alone (docs/aipu.md, 5).

Source: Compass Optimizer, ops/interp.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
MODES = (
    "HALF_PIXEL",
    "HALF_PIXEL_SYMMETRIC",
    "PYTORCH_HALF_PIXEL",
    "TF_HALF_PIXEL_FOR_NN",
    "ALIGN_CORNERS",
    "ASYMMETRIC",
)


def coordinates(old: int, new: int, mode: str) -> Doubles:
    """Return v[i] of each of `new` pixels.

    HALF_PIXEL, and HALF_PIXEL_SYMMETRIC without a ratio, (i + 0.5) * old / new - 0.5;
    TF_HALF_PIXEL_FOR_NN (i + 0.5) * old / new; ALIGN_CORNERS i * (old - 1) / (new - 1); ASYMMETRIC i * old / new;
    PYTORCH_HALF_PIXEL as HALF_PIXEL. ALIGN_CORNERS and PYTORCH_HALF_PIXEL give 0 for one pixel.
    """
    i = np.arange(new, dtype=np.float64)
    if new == 1 and mode in ("ALIGN_CORNERS", "PYTORCH_HALF_PIXEL"):
        return np.zeros(1)
    if mode == "ALIGN_CORNERS":
        v: Doubles = i * (old - 1) / (new - 1)
    elif mode == "ASYMMETRIC":
        v = i * old / new
    elif mode == "TF_HALF_PIXEL_FOR_NN":
        v = (i + 0.5) * old / new
    else:
        v = (i + 0.5) * old / new - 0.5
    return v
