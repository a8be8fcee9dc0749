"""What a layer's constants are fitted to, and which of them may move: tflq's own way, and objectives of vendors' tools.

The engine is one: moments of a filter's windows, and descent over its quantized weights. An objective of a tool says
what is summed and what may move; the tool's training, random and by gradients, is not repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.converters.precision import GLOBAL_CALIBRATION
from tflq.converters.settings import Settings


@dataclass(frozen=True)
class Objective:
    """How the constants of a filter are found.

    Attributes:
        reads_float: the filter reads the float network's values in the target's own type of its input; else what the
            target's earlier layers wrote.
        rounds: each weight becomes one of the two quantized values around it, single output positions alone count, and
            nothing draws towards the model's own weights; at any width.
        moves_scale: scales of weights move.
        moves_bias: biases move.
    """

    reads_float: bool = False
    rounds: bool = False
    moves_scale: bool = True
    moves_bias: bool = True


RECOVERY = Objective()
"""tflq's own (docs/recover.md)."""

_OBJECTIVES = {
    "none": RECOVERY,
    "adaround": Objective(rounds=True, moves_scale=False, moves_bias=False),
    "adaquant_zy": Objective(reads_float=True, rounds=True),
}
"""Source: Compass Optimizer, features/calibration/global_calibration, as docs/aipu.md has them."""


def objective_of(settings: Settings) -> Objective:
    """Return the objective that complete settings name; tflq's own for targets without that key."""
    return _OBJECTIVES[str(settings.values.get(GLOBAL_CALIBRATION, "none"))]
