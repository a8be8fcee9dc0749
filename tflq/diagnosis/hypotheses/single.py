"""Every single change of a layer's constants, searched in full: each bias set to 0, each bit of each weight flipped.

The layer may be anywhere between two dumped tensors: a candidate changes one output channel of the layer, and the
nodes after it run on all candidates at once, stacked along the axis of samples. Candidates are tested on the sample
that differs most; the survivors are tested on all samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from tflq.arrays import Integers
from tflq.diagnosis.hypotheses.fitted import taps_of
from tflq.diagnosis.hypotheses.hypothesis import NotApplicableError, Prediction
from tflq.diagnosis.hypotheses.linear import Linear
from tflq.diagnosis.hypotheses.suspect import Suspect
from tflq.graph import Array

_BATCH = 128
MOST_CANDIDATES = 40_000
"""Candidates of a layer; in layers with more weights only biases are searched."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A change of one output channel.

    Attributes:
        words: The cause.
        channel: Output channel.
        tap: Tap of the changed weight; None for a bias.
        amount: Number added to the weight or bias.
    """

    words: str
    channel: int
    tap: int | None
    amount: int


def single_changes(s: Suspect) -> Iterator[Prediction]:
    """One bias is 0, or one bit of one weight is flipped; the layer's result is not in the dump."""
    linear = s.linear
    if linear is None or s.nodes[-1] == s.main:
        raise NotApplicableError
    candidates = list(_list_candidates(s, linear))
    worst, whole = _Replay(s.part([s.worst_sample])), _Replay(s)
    bits = log2(max(len(candidates), 2))
    for begin in range(0, len(candidates), _BATCH):
        batch = candidates[begin : begin + _BATCH]
        for candidate, made in zip(batch, worst.run(batch), strict=True):
            if np.array_equal(made, worst.suspect.got):
                yield Prediction(candidate.words, whole.run([candidate])[0], bits=bits)


def _list_candidates(s: Suspect, linear: Linear) -> Iterator[Candidate]:
    if s.bias is not None:
        for c, value in enumerate(np.asarray(s.graph.tensors[s.bias].data).reshape(-1).tolist()):
            if value and linear.totals.shape[-1] > c:
                yield Candidate(f"bias of channel {c} is 0, not {value}", c, None, -int(value))
    weights = linear.weights.reshape(len(linear.weights), -1)
    if weights.size * 8 > MOST_CANDIDATES:
        return
    for c, row in enumerate(weights.tolist()):
        for t, w in enumerate(row):
            for bit in range(8):
                flipped = int(np.array((w & 0xFF) ^ (1 << bit), np.uint8).view(np.int8))
                words = f"weight {t} of channel {c} is {flipped}, not {w}: bit {bit} is flipped"
                yield Candidate(words, c, t, flipped - w)


class _Replay:
    """A layer with candidates in place of its constants; the taps of a channel are computed once.

    Attributes:
        suspect: The layer, with some or all samples.
    """

    def __init__(self, suspect: Suspect) -> None:
        if suspect.linear is None:
            raise NotApplicableError
        self.suspect, self._linear = suspect, suspect.linear
        self._zero = suspect.zero_point(suspect.graph.nodes[suspect.main].inputs[0])
        self._taps = taps_of(suspect, self._linear)
        self._columns: dict[int, Integers] = {}

    def run(self, candidates: Sequence[Candidate]) -> Array:
        """Return the tensor for each candidate, dtype[K, S, *shape]."""
        totals = self._linear.totals
        flat: Integers = np.repeat(totals.reshape(1, -1, totals.shape[-1]), len(candidates), axis=0)
        for k, candidate in enumerate(candidates):
            change = candidate.amount if candidate.tap is None else candidate.amount * self._column(candidate)
            flat[k, :, candidate.channel] += change
        stacked = self._linear.result(flat.reshape(-1, *totals.shape[1:]))
        made = self.suspect.repeated(len(candidates)).after_main(stacked)
        return made.reshape(len(candidates), *self.suspect.got.shape)

    def _column(self, candidate: Candidate) -> Integers:
        """Return the inputs of a weight minus the zero point, int64[positions]."""
        c = candidate.channel
        if self._taps is None:
            raise NotApplicableError
        if c not in self._columns:
            self._columns[c] = np.asarray(self._taps(c).astype(np.int64) - self._zero)
        return np.asarray(self._columns[c][:, candidate.tap])
