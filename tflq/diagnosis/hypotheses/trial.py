"""Trial of the hypotheses on one layer, stage by stage, until one matches exactly; counts work instead of seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.hypotheses.evidence import CONSISTENT, NUMBER
from tflq.diagnosis.hypotheses.finding import Finding
from tflq.diagnosis.hypotheses.hypothesis import Hypothesis, NotApplicableError, Prediction
from tflq.diagnosis.hypotheses.suspect import NOT_COMPUTED, Suspect, unequal
from tflq.diagnosis.place import GROUPS, log2_choose
from tflq.graph import Array

WORK = 4 * 10**9
"""Units of work for the hypotheses of a layer. A unit is a multiply-accumulate or a result of the layer."""
WORTH = 0.2
"""Smallest share of the differing elements that a named hypothesis explains."""
_SCREENED = 2
"""Samples on which hypotheses are tried first; a hypothesis without effect there is not computed for the rest."""
_GROUP_BITS = 3.0

Mask = NDArray[np.bool_]


@dataclass
class Trial:
    """The hypotheses of a table on one layer.

    Attributes:
        suspect: The layer.
        limit: Units of work.
        found: Findings that explain a share worth naming.
        tried: Number of computed variants.
        untried: Names of the hypotheses beyond the limit, or refused by the kernel.
        failed: Names of the hypotheses that raised an unexpected exception: defects.
        spent: Units of work so far.
    """

    suspect: Suspect
    limit: int = WORK
    found: list[Finding] = field(default_factory=list)
    tried: int = 0
    untried: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    spent: int = 0
    _silent: dict[str, bool] = field(default_factory=dict)

    def run(self, table: Sequence[Hypothesis]) -> None:
        """Try the table's stages in order; no number is fitted if a rounding explains the form."""
        part = _few_samples(self.suspect)
        for stage in (1, 2, 3):
            if stage == 3 and "rounding" in self.suspect.form.names and not self.suspect.place.parts:
                return
            for h in table:
                if h.stage == stage and (self.suspect.nodes or h.anchor != "the-layer"):
                    self._try(h, part)
            if any(f.is_certain and not f.place for f in self.found):
                return

    def _try(self, h: Hypothesis, part: Suspect | None) -> None:
        if self.spent > self.limit:
            self.untried.append(h.name)
            return
        is_screened = part is not None and h.stage == 1 and h.anchor != "the-dump"
        try:
            if is_screened and part is not None and not any(f.share > WORTH for f in self._judge(h, part)):
                return
            self.found += [f for f in self._judge(h, self.suspect) if f.share > WORTH and f.gain >= CONSISTENT]
        except NotApplicableError:
            return
        except NOT_COMPUTED:
            self.untried.append(h.name)
        except Exception:
            self.failed.append(h.name)

    def _judge(self, h: Hypothesis, s: Suspect) -> list[Finding]:
        """Return every variant that changes anything; of exact variants with equal results, the first."""
        findings: list[Finding] = []
        exact: list[tuple[int, Array]] = []
        for p in predict(h, s):
            self.tried += 1
            self.spent += s.work
            judged = judge(h, p, s, self.tried)
            self._silent[h.name] = self._silent.get(h.name, True) and judged is None
            if judged is None or p.array is None:
                continue
            twin = next((i for i, a in exact if judged.is_exact and np.array_equal(a, p.array)), None)
            if twin is not None:
                findings[twin] = replace(findings[twin], alike=(*findings[twin].alike, judged.words))
                continue
            if judged.is_exact:
                exact.append((len(findings), p.array))
            findings.append(judged)
        return findings

    def ordered(self, table: Sequence[Hypothesis]) -> list[Finding]:
        """Return the exact findings, the largest gain first, then the three with the largest share."""
        order = {h.name: i for i, h in enumerate(table)}
        exact = sorted((f for f in self.found if f.is_exact), key=lambda f: (f.bits, order[f.hypothesis]))
        if any(not f.place for f in exact):
            exact = [f for f in exact if not f.place]
        partly = sorted((f for f in self.found if not f.is_exact), key=lambda f: -f.share)[:3]
        return [*exact, *partly]

    def absorb(self, part: Trial) -> None:
        """Add the counts of the same layer's trial with another main node."""
        self.tried, self.spent = part.tried, self.spent + part.spent
        self.untried += part.untried
        self.failed += part.failed
        for name, is_silent in part._silent.items():
            self._silent[name] = self._silent.get(name, True) and is_silent

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Names of the hypotheses that change no element on these samples."""
        return tuple(name for name, is_silent in self._silent.items() if is_silent)


def predict(h: Hypothesis, s: Suspect) -> Iterator[Prediction]:
    """Yield the predictions that have the shape of the result; the arithmetic of a wrong cause may overflow."""
    with np.errstate(all="ignore"):
        yield from (p for p in h.predict(s) if p.array is not None and p.array.shape == s.got.shape)


def judge(h: Hypothesis, p: Prediction, s: Suspect, tried: int) -> Finding | None:
    """Count the elements that a prediction explains, everywhere or in the simple place with all differences.

    Returns:
        None if the prediction changes no element, or if no differing element is in its samples.
    """
    assert p.array is not None
    got, sound, made, wrong = s.got[p.samples], s.sound[p.samples], p.array[p.samples], s.wrong[p.samples]
    count = int(wrong.sum())
    if not count or not unequal(made, sound).any():
        return None
    bits = p.bits + (
        p.fitted * NUMBER + log2_choose(s.got.shape[-1], min(p.fitted, s.got.shape[-1])) if p.fitted else 0
    )
    missed = unequal(got, made)
    left, place = int(missed.sum()), ""
    if left and not missed[wrong].any():
        for words, mask, cost in supports(s):
            inside = mask[p.samples]
            if not (wrong & ~inside).any() and not (missed & inside).any():
                left, place, bits = 0, words, bits + cost
                break
    untold = 0 if p.unknown is None else int((wrong & p.unknown).sum())
    share = 1 - (left + untold) / count
    gain = s.evidence.gain(left + untold + (s.evidence.differing - count), bits, tried)
    words = f"{p.words}, only in {place}" if place else p.words
    return Finding(
        h.name, words, left, wrong.size, share, h.advice, h.anchor, gain, bits, place, is_confirmed=p.is_confirmed
    )


def supports(s: Suspect) -> Iterator[tuple[str, Mask, float]]:
    """Yield simple places for a cause: places of the difference, then whole groups of channels without their tail."""
    yield from s.place.supports
    channels = s.got.shape[-1]
    for group in GROUPS:
        whole = channels // group * group
        if 0 < whole < channels:
            mask = np.broadcast_to(np.arange(channels) < whole, s.got.shape)
            yield f"channels 0..{whole - 1}, the whole groups of {group}", mask, _GROUP_BITS


def _few_samples(s: Suspect) -> Suspect | None:
    """Return the layer with the sample that differs most and the one next to it; None if there are no more."""
    if len(s.got) <= _SCREENED:
        return None
    begin = min(s.worst_sample, len(s.got) - _SCREENED)
    return s.part(range(begin, begin + _SCREENED))
