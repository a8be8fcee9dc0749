"""The words for what an array holds, the same in every package."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]
Reals = NDArray[np.floating]
Integers = NDArray[np.int64]
