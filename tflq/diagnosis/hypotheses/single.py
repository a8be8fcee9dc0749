"""Every single change of a layer's constants, searched in full: each bias set to 0, each bit of each weight flipped.

The layer may lie anywhere between two dumped tensors: a candidate changes one output channel of the layer, and the
nodes after it run on all candidates at once, stacked along the axis of samples. Candidates are tested on the sample
that differs most; the survivors are tested on all samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

import numpy as np

from tflq.arrays import Integers
from tflq.diagnosis.compare.isolated import run_node
from tflq.diagnosis.hypotheses.fitted import taps_of
from tflq.diagnosis.hypotheses.hypothesis import NotApplicableError, Prediction
from tflq.diagnosis.hypotheses.linear import Linear
from tflq.diagnosis.hypotheses.suspect import Suspect
from tflq.graph import Array

_BATCH = 128
MOST_CANDIDATES = 40_000
"""Candidates of a layer; layers with more weights are searched for biases alone."""


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
    if s.linear is None or s.nodes[-1] == s.main:
        raise NotApplicableError
    order = np.argsort(-s.wrong.reshape(len(s.got), -1).sum(axis=1), kind="stable")
    worst = s.part([int(order[0])])
    candidates = list(_list_candidates(s, s.linear))
    survivors = list(_filter(worst, candidates))
    bits = log2(max(len(candidates), 2))
    for candidate in survivors:
        made = _results(s, [candidate])
        if made is not None:
            yield Prediction(candidate.words, made[0], bits=bits)


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


def _filter(s: Suspect, candidates: list[Candidate]) -> Iterator[Candidate]:
    for begin in range(0, len(candidates), _BATCH):
        batch = candidates[begin : begin + _BATCH]
        made = _results(s, batch)
        if made is None:
            return
        yield from (candidate for candidate, y in zip(batch, made, strict=True) if np.array_equal(y, s.got))


def _results(s: Suspect, candidates: list[Candidate]) -> Array | None:
    """Return the tensor for each candidate, dtype[K, S, *shape]."""
    linear = s.linear
    taps = None if linear is None else taps_of(s, linear)
    if linear is None or taps is None:
        return None
    zero = s.zero_point(s.graph.nodes[s.main].inputs[0])
    outputs = linear.totals.shape[-1]
    totals: Integers = np.repeat(linear.totals.reshape(1, -1, outputs), len(candidates), axis=0)
    columns: dict[int, Integers] = {}
    for k, candidate in enumerate(candidates):
        c = candidate.channel
        if candidate.tap is None:
            totals[k, :, c] += candidate.amount
        else:
            if c not in columns:
                columns[c] = np.asarray(taps(c).astype(np.int64) - zero)
            totals[k, :, c] += candidate.amount * columns[c][:, candidate.tap]
    stacked = linear.result(totals.reshape(-1, *linear.totals.shape[1:]))
    return _run_on(s, stacked, len(candidates))


def _run_on(s: Suspect, stacked: Array, count: int) -> Array:
    """Run the nodes after the main one on results stacked along the axis of samples; split them again."""
    t = s.graph.nodes[s.main].outputs[0]
    tensor = s.graph.tensors[t]
    samples = len(s.got)
    held = {
        i: a if s.graph.tensors[i].is_constant or len(a) != samples else np.tile(a, (count, *[1] * (a.ndim - 1)))
        for i, a in s.values.items()
    }
    held[t] = stacked.astype(tensor.dtype.storage).reshape(count * samples, *tensor.shape)
    for n in s.nodes[s.nodes.index(s.main) + 1 :]:
        held.update(run_node(s.graph.nodes[n], held))
    return np.asarray(held[s.tensor].reshape(count, samples, *s.got.shape[1:]))
