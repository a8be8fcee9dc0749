"""A hypothesis: a cause with the tensor that it predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.hypotheses.suspect import Suspect
from tflq.graph import Array


class NotApplicableError(Exception):
    """The hypothesis has no meaning for this layer."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The prediction of one variant of a hypothesis.

    Attributes:
        words: The cause, in words that finish "the layer's ...".
        array: The whole tensor, dtype[S, *shape]; None if the variant cannot be computed.
        samples: Samples that it predicts; samples into which a shift wraps around are left out.
        fitted: Number of biases, weights and factors that were fitted to the dump.
        bits: Bits of the places and codes taken from the dump.
        unknown: Elements that it does not predict and copies from the dump, bool[*shape] of a sample; None if none.
        is_confirmed: Whether each fitted number is supported by two samples.
    """

    words: str
    array: Array | None
    samples: slice = field(default_factory=lambda: slice(None))
    fitted: int = 0
    bits: float = 0.0
    unknown: NDArray[np.bool_] | None = None
    is_confirmed: bool = True


@dataclass(frozen=True)
class Hypothesis:
    """One row of the table.

    Attributes:
        name: Short and unique: the key in `--json`.
        predict: Function from a layer to its predictions; pure.
        advice: Sentence with the check of the cause.
        anchor: Section of docs/guides/diagnosis.md.
        stage: 1 for causes computed from the model only, 2 for sets of elements that the dump determines, 3 for
            numbers fitted to the dump. A stage is tried if earlier stages had no exact cause.
    """

    name: str
    predict: Callable[[Suspect], Iterator[Prediction]]
    advice: str
    anchor: str
    stage: int = 1
