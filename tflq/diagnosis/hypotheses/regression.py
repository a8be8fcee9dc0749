"""A least-squares test: is the dump a correct linear layer of this input with some weights and bias?

For an output channel, regress the dump on the windows of the layer's input (taps and a constant) over the positions
with a code between the clamps. f = positions - taps - 1 degrees of freedom, e = sqrt(sum of squares / f) in codes.
With only rounding, e = sqrt(1/12) = 0.29: then weights, bias or scales differ. If e is well above 0.29, no weights and
no bias explain the dump.
"""

from __future__ import annotations

import numpy as np

from tflq.diagnosis.hypotheses.fitted import taps_of
from tflq.diagnosis.hypotheses.suspect import Suspect

LEAST_FREEDOM = 20
_MOST_CHANNELS, _MOST_POSITIONS = 12, 4000
_SOUND = 0.4
"""Residual up to which rounding explains it; 0.29 in theory, spread by few degrees of freedom."""


def residuals(s: Suspect) -> list[float]:
    """Return e of some output channels, in codes; empty if the layer is not linear or has too few positions."""
    linear = s.linear
    if linear is None or linear.steps is None or s.nodes[-1] != s.main:
        return []
    taps = taps_of(s, linear)
    if taps is None:
        return []
    channels = s.got.shape[-1]
    got = s.got.reshape(-1, channels).astype(np.float64)
    low, high = linear.steps.low, linear.steps.high
    result = []
    for c in np.unique(np.linspace(0, channels - 1, min(channels, _MOST_CHANNELS)).astype(int)).tolist():
        rows = np.flatnonzero((got[:, c] > low) & (got[:, c] < high))[:_MOST_POSITIONS]
        x = taps(c)[rows].astype(np.float64)
        freedom = len(rows) - x.shape[1] - 1
        if freedom < LEAST_FREEDOM:
            continue
        design = np.concatenate([x, np.ones((len(x), 1))], axis=1)
        solution = np.linalg.lstsq(design, got[rows, c], rcond=None)[0]
        result.append(float(np.sqrt(np.square(design @ solution - got[rows, c]).sum() / freedom)))
    return result


def is_linear_of_input(s: Suspect) -> bool | None:
    """Whether some weights and bias explain the dump; None if there are too few positions."""
    errors = residuals(s)
    return float(np.median(errors)) < _SOUND and float(np.mean(np.array(errors) < 1)) > 0.9 if errors else None
