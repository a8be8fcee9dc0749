"""Finds the first layer that is wrong by itself, and holds every hypothesis against its dump."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.compare.dumps import Dump
from tflq.diagnosis.compare.isolated import require_separate_nodes
from tflq.diagnosis.compare.sides import Running
from tflq.diagnosis.hypotheses.finding import Diagnosis, Finding
from tflq.diagnosis.hypotheses.hypothesis import Hypothesis, Prediction
from tflq.diagnosis.hypotheses.suspect import NOT_COMPUTED, Run, Suspect, unequal, window
from tflq.diagnosis.hypotheses.table import HYPOTHESES
from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.units import listed

LIMIT_SECONDS = 6.0
"""Of one processor; what is not tried by then is reported as not tried."""
WORTH = 0.2
"""A hypothesis that explains less of the differing elements is not named."""
_SCREENED = 2
"""Samples on which hypotheses are tried first; what fails there is not computed for the others."""
_MOST_LAYERS = 24
_FREE, _EACH = 4, 8
"""Numbers that may be fitted to any dump, and the differing elements that each further one needs."""


def diagnose(
    model: Running, dump: Dump, samples: int, *, limit: float = LIMIT_SECONDS, table: Sequence[Hypothesis] = HYPOTHESES
) -> Diagnosis | None:
    """Tell why the first layer that is wrong by itself is wrong.

    Args:
        model: whose samples the dump is of.
        dump: as the model understands it.
        samples: how many both have.
        limit: seconds for the hypotheses.
        table: of hypotheses.

    Returns:
        None where no layer is wrong by itself, or where layers cannot be run one by one.
    """
    graph = model.execution.graph
    try:
        require_separate_nodes(graph, "")
    except UnsupportedError:
        return None
    whole = {c.index: c.name for c in dump.columns if c.name not in dump.short}
    exact = {t: n for t, n in whole.items() if dump.arrays[n].dtype == graph.tensors[t].dtype.storage}
    start, count = window(model, dump, exact, samples)
    if count == 0:
        return None
    run = Run(model, dump, exact, start, count)
    suspects = list(run.suspects())
    if not suspects:
        return None
    trial = _Trial(suspects[0], limit)
    trial.run(table)
    found = trial.ordered(table)
    if any(f.is_exact for f in found) and len(suspects) > 1:
        found = _repeated(found, suspects[1:_MOST_LAYERS], table, limit)
    return _told(run, suspects, trial, found, set(exact))


def _told(run: Run, suspects: Sequence[Suspect], trial: _Trial, found: Sequence[Finding], exact: set[int]) -> Diagnosis:
    """Put together what was found about the first suspect; `exact`: tensors that the dump has whole."""
    first, graph = suspects[0], run.graph
    place = tuple(int(i) for i in np.argwhere(first.wrong)[0])
    read = {t for n in first.nodes for t in graph.nodes[n].inputs if t in first.values}
    wanted = {t for t in read if not graph.tensors[t].is_constant and t not in run.made_within(first)}
    return Diagnosis(
        first.tensor,
        graph.tensors[first.tensor].name,
        graph.nodes[first.main].name if first.nodes else "",
        first.operator if first.nodes else "input",
        run.start,
        run.count,
        int(first.wrong.sum()),
        first.wrong.size,
        run.start + place[0],
        place[1:],
        first.got[place].item(),
        first.sound[place].item(),
        wanted <= exact,
        tuple(found),
        trial.tried,
        trial.without_effect,
        tuple(trial.untried),
        _correlation(first.got, first.sound),
        first.weights is not None if first.nodes else False,
        tuple(graph.tensors[s.tensor].name for s in suspects[1:]),
        first.wrong,
    )


@dataclass
class _Trial:
    """Holds hypotheses against one layer, stage by stage, until one holds exactly.

    Attributes:
        found: what explains anything worth naming.
        tried: variants that were computed.
        untried: hypotheses that were not reached in time.
    """

    suspect: Suspect
    limit: float
    found: list[Finding] = field(default_factory=list)
    tried: int = 0
    untried: list[str] = field(default_factory=list)
    _silent: dict[str, bool] = field(default_factory=dict)

    def run(self, table: Sequence[Hypothesis]) -> None:
        """Try the table's stages in order."""
        began = time.thread_time()
        part = _few(self.suspect)
        for stage in (1, 2, 3):
            for h in table:
                if h.stage != stage or (not self.suspect.nodes and h.anchor == "the-layer"):
                    continue
                if time.thread_time() - began > self.limit:
                    self.untried.append(h.name)
                    continue
                screened = (
                    self._tolerant(h, part) if part is not None and stage == 1 and h.anchor != "the-dump" else None
                )
                if screened is None or any(f.share > WORTH for f in screened):
                    self.found += [f for f in self._tolerant(h, self.suspect) if f.share > WORTH]
            if any(f.is_exact and not f.is_local for f in self.found):
                return

    def _tolerant(self, h: Hypothesis, s: Suspect) -> list[Finding]:
        """Judge a hypothesis; one that cannot be computed for a layer of a kind that nobody had is not tried."""
        try:
            return self._judge(h, s)
        except NOT_COMPUTED:
            self.untried.append(h.name)
            return []

    def _judge(self, h: Hypothesis, s: Suspect) -> list[Finding]:
        """Return every variant that changes anything; of those that hold exactly and give the same, the first."""
        found: list[Finding] = []
        exact: list[tuple[int, Array]] = []
        for p in _predictions(h, s):
            self.tried += 1
            judged = _judged(h, p, s)
            self._silent[h.name] = self._silent.get(h.name, True) and judged is None
            if judged is None or p.array is None:
                continue
            twin = next((i for i, a in exact if judged.is_exact and np.array_equal(a, p.array)), None)
            if twin is not None:
                found[twin] = replace(found[twin], alike=(*found[twin].alike, judged.words))
                continue
            if judged.is_exact:
                exact.append((len(found), p.array))
            found.append(judged)
        return found

    def ordered(self, table: Sequence[Hypothesis]) -> list[Finding]:
        """Return what holds exactly in the order of the table, then the three that explain most."""
        order = {h.name: i for i, h in enumerate(table)}
        exact = sorted((f for f in self.found if f.is_exact), key=lambda f: (f.is_local, order[f.hypothesis]))
        if any(not f.is_local for f in exact):
            exact = [f for f in exact if not f.is_local]
        partly = sorted((f for f in self.found if not f.is_exact), key=lambda f: -f.share)[:3]
        return [*exact, *partly]

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Hypotheses that change nothing on these samples."""
        return tuple(name for name, is_silent in self._silent.items() if is_silent)


def _few(s: Suspect) -> Suspect | None:
    """Return the layer with the sample that differs most and the one beside it; None where there are no more."""
    if len(s.got) <= _SCREENED:
        return None
    counts = s.wrong.reshape(len(s.got), -1).sum(axis=1)
    first = int(np.argmax(counts))
    begin = min(first, len(s.got) - _SCREENED)
    return s.part(range(begin, begin + _SCREENED))


def _predictions(h: Hypothesis, s: Suspect) -> Iterator[Prediction]:
    """Yield what can be computed; the arithmetic of a wrong assumption may overflow."""
    with np.errstate(all="ignore"):
        yield from (p for p in h.predict(s) if p.array is not None and p.array.shape == s.got.shape)


def _judged(h: Hypothesis, p: Prediction, s: Suspect) -> Finding | None:
    """Count what a prediction explains; None where it changes nothing, or says nothing of what differs."""
    assert p.array is not None
    got, sound, made = s.got[p.samples], s.sound[p.samples], p.array[p.samples]
    wrong = s.wrong[p.samples]
    count = int(wrong.sum())
    if not count or not unequal(made, sound).any() or _is_loose(p, count):
        return None
    left = unequal(got, made)
    remaining = int(left.sum())
    words = p.words
    if remaining and h.stage == 1 and h.anchor != "the-dump":
        local = _local(left, wrong)
        if local:
            words, remaining = f"{words}, in {local} alone", 0
    untold = 0 if p.unknown is None else int((wrong & p.unknown).sum())
    share = 1 - (remaining + untold) / count
    is_local = words != p.words
    return Finding(h.name, words, remaining, wrong.size, share, h.advice, h.anchor, is_local=is_local)


def _is_loose(p: Prediction, differing: int) -> bool:
    """Whether so many numbers were fitted that they would explain anything: over 4, with less than 8 elements each."""
    return p.fitted > _FREE and differing < _EACH * p.fitted


def _local(left: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> str:
    """Name the channels or samples that a prediction explains fully, if all that differs lies there."""
    for axis, name in ((-1, "channel"), (0, "sample")):
        if wrong.ndim < 3 or wrong.shape[axis] < 2:
            continue
        others = tuple(i for i in range(wrong.ndim) if i != axis % wrong.ndim)
        differing, open_ = (np.asarray(a.any(axis=others)) for a in (wrong, left))
        if not differing.all() and not open_[differing].any():
            numbers = np.flatnonzero(differing).tolist()
            return f"{name}{'s' * (len(numbers) > 1)} {listed(numbers)}"
    return ""


def _repeated(
    found: Sequence[Finding], others: Sequence[Suspect], table: Sequence[Hypothesis], limit: float
) -> list[Finding]:
    """Count the further wrong layers that a hypothesis explains, too; those that explain more stand first."""
    began = time.thread_time()
    by_name = {h.name: h for h in table}
    result = []
    for f in found:
        layers = 0
        if f.is_exact:
            for s in others:
                if time.thread_time() - began > limit / 2:
                    break
                told = (_judged(by_name[f.hypothesis], p, s) for p in _predictions(by_name[f.hypothesis], s))
                layers += any(j is not None and j.is_exact and _kin(j.words, f.words) for j in told)
        result.append(replace(f, layers=layers))
    return result


def _kin(a: str, b: str) -> bool:
    """Whether two causes say the same but for their numbers."""
    return "".join(c for c in a if not c.isdigit()) == "".join(c for c in b if not c.isdigit())


def _correlation(a: Array, b: Array) -> float:
    x, y = (np.nan_to_num(v.astype(np.float64)).ravel() for v in (a, b))
    if x.std() == 0 or y.std() == 0:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
