"""A hypothesis: what it assumes, and what the dump would hold if it were true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.hypotheses.suspect import Suspect
from tflq.graph import Array


@dataclass(frozen=True, eq=False)
class Prediction:
    """What one variant of a hypothesis predicts.

    Attributes:
        words: the cause, in words that finish "the layer's ...".
        array: the whole tensor, dtype[S, *shape]; None where the variant cannot be computed.
        samples: those that it says something of; all but the ones that a shift wraps around.
        fitted: how many numbers were fitted to the dump.
        unknown: elements that it says nothing of and takes from the dump, bool[*shape] of a sample; None where none.
    """

    words: str
    array: Array | None
    samples: slice = field(default_factory=lambda: slice(None))
    fitted: int = 0
    unknown: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Hypothesis:
    """One row of the table.

    Attributes:
        name: short, unique: what `--json` gives.
        assumes: what must be so for it to hold, in words.
        predict: its variants for a layer; pure.
        advice: what to do about it.
        anchor: section of docs/diagnosis.md.
        stage: 1 for causes that are computed from the model alone, 2 for sets of elements that the dump itself names,
            3 for numbers that are fitted to the dump. A stage is tried where the one before found nothing.
    """

    name: str
    assumes: str
    predict: Callable[[Suspect], Iterator[Prediction]]
    advice: str
    anchor: str
    stage: int = 1
