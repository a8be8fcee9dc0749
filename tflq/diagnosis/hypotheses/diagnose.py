"""Diagnosis of a dump: finds the layers at fault, describes the differences, and tests every hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.diagnosis.compare.dumps import Dump
from tflq.diagnosis.compare.isolated import require_separate_nodes
from tflq.diagnosis.compare.sides import Running
from tflq.diagnosis.hypotheses.finding import Diagnosis, Finding
from tflq.diagnosis.hypotheses.hypothesis import Hypothesis
from tflq.diagnosis.hypotheses.regression import is_linear_of_input
from tflq.diagnosis.hypotheses.segment import mains_of, next_step
from tflq.diagnosis.hypotheses.suspect import Run, Suspect, unequal, window
from tflq.diagnosis.hypotheses.table import read_table
from tflq.diagnosis.hypotheses.trial import WORK, Trial, judge, predict
from tflq.errors import UnsupportedError

_MOST_LAYERS, _MOST_DIAGNOSED = 24, 4


def diagnose(
    model: Running, dump: Dump, samples: int, *, limit: int = WORK, table: Sequence[Hypothesis] | None = None
) -> Diagnosis | None:
    """Return place, form and cause of the first wrong layer, and of later ones that it does not explain.

    Args:
        model: Model with tensors in the dump.
        dump: The dump in the model's names and layouts.
        samples: Number of samples that both have.
        limit: Units of work for the hypotheses of a layer (trial.py).
        table: Hypotheses; by default all of them, including other packages'.

    Returns:
        None if no layer is at fault on its own inputs, or if layers cannot run one by one.
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
    return _Session(run, suspects, frozenset(exact), read_table() if table is None else table, limit).diagnose()


@dataclass
class _Session:
    """The diagnosis of one dump.

    Attributes:
        run: The samples through the network, and the dump.
        suspects: Layers at fault on their own inputs, in order of execution.
        exact: Tensors that the dump contains whole and in the graph's type.
        table: Hypotheses.
        limit: Units of work for a layer.
    """

    run: Run
    suspects: Sequence[Suspect]
    exact: frozenset[int]
    table: Sequence[Hypothesis]
    limit: int
    _repeated: dict[tuple[str, str, int], bool] = field(default_factory=dict)

    def diagnose(self) -> Diagnosis:
        """Diagnose the first suspect, then the suspects that its cause does not explain."""
        first = self._examine(self.suspects[0], self.suspects[1:_MOST_LAYERS])
        if self.suspects[0].nodes == ():
            return first
        wrong = [s for s in self.suspects[1:_MOST_LAYERS] if unequal(s.got, s.own).any()]
        open_ = [s for s in wrong if not self._explains(first, s)]
        others = tuple(self._examine(s, ()) for s in open_[: _MOST_DIAGNOSED - 1])
        return replace(first, others=others)

    def _examine(self, s: Suspect, later: Sequence[Suspect]) -> Diagnosis:
        mains = mains_of(s)
        if len(mains) > 1:
            return self._examine_segment(s, mains)
        trial = Trial(s, self.limit)
        trial.run(self.table)
        causes = trial.ordered(self.table)
        if any(f.is_exact for f in causes) and later:
            causes = self._count_layers(causes, later)
        return self._assemble(s, trial, causes)

    def _examine_segment(self, s: Suspect, mains: Sequence[int]) -> Diagnosis:
        """Try every hypothesis on each layer between the dumped tensors; the causes are ranked by their gain."""
        trial = Trial(s, self.limit // len(mains))
        trial.run([h for h in self.table if h.anchor in ("the-dump", "the-input")])
        causes = trial.ordered(self.table)
        for main in mains:
            part = Trial(replace(s, main=main), self.limit // len(mains), tried=trial.tried)
            part.run([h for h in self.table if h.anchor not in ("the-dump", "the-input")])
            name = self.run.graph.nodes[main].name
            causes += [replace(f, node=name) for f in part.ordered(self.table)]
            trial.absorb(part)
        exact = sorted((f for f in causes if f.is_exact), key=lambda f: -f.gain)
        partly = sorted((f for f in causes if not f.is_exact), key=lambda f: -f.share)
        ranked = [*exact, *([] if exact else partly[:3])]
        return self._assemble(s, trial, ranked, next_step(s, ranked))

    def _count_layers(self, causes: Sequence[Finding], later: Sequence[Suspect]) -> list[Finding]:
        """Count the later layers that each exact cause explains; causes that explain fewer than another are dropped."""
        counted = [replace(f, layers=sum(self._repeats(f, s) for s in later)) if f.is_exact else f for f in causes]
        most = max((f.layers for f in counted if f.is_exact), default=0)
        return [f for f in counted if not f.is_exact or f.layers == most]

    def _explains(self, first: Diagnosis, s: Suspect) -> bool:
        return first.status == "version" or any(self._repeats(f, s) for f in first.exact if f.layers)

    def _repeats(self, f: Finding, s: Suspect) -> bool:
        """Whether a cause, with any numbers, explains another layer; each pair is computed once."""
        key = (f.hypothesis, f.words, s.tensor)
        if key not in self._repeated:
            hypothesis = next(h for h in self.table if h.name == f.hypothesis)
            judged = (judge(hypothesis, p, s, 1) for p in predict(hypothesis, s))
            self._repeated[key] = any(j is not None and j.is_exact and _is_kin(j.words, f.words) for j in judged)
        return self._repeated[key]

    def _assemble(self, s: Suspect, trial: Trial, causes: Sequence[Finding], step: str = "") -> Diagnosis:
        graph = self.run.graph
        place = tuple(int(i) for i in np.argwhere(s.wrong)[0])
        read = {t for n in s.nodes for t in graph.nodes[n].inputs if t in s.values}
        wanted = {t for t in read if not graph.tensors[t].is_constant and t not in self.run.made_within(s)}
        is_told = any(f.is_exact for f in causes)
        later = self.suspects[self.suspects.index(s) + 1 :]
        return Diagnosis(
            number=s.tensor,
            tensor=graph.tensors[s.tensor].name,
            node=_name_node(s, causes),
            operator=s.operator if s.nodes else "input",
            first_sample=self.run.start,
            samples=self.run.count,
            differing=int(s.wrong.sum()),
            elements=s.wrong.size,
            sample=self.run.start + place[0],
            index=place[1:],
            got=s.got[place].item(),
            wanted=s.sound[place].item(),
            inputs_seen=wanted <= self.exact,
            found=tuple(causes),
            tried=trial.tried,
            without_effect=trial.without_effect,
            untried=tuple(trial.untried),
            failed=tuple(trial.failed),
            place=s.place,
            form=s.form,
            is_linear=None if is_told or not s.nodes else is_linear_of_input(s),
            version=self._count_weighted(),
            segment=tuple(graph.nodes[n].name for n in s.nodes),
            later=tuple(graph.tensors[x.tensor].name for x in later),
            next_step=step,
            others=(),
            wrong=s.wrong,
        )

    def _count_weighted(self) -> tuple[int, int]:
        """Return the number of layers with weights that are at fault, and of all such layers in the dump."""
        wrong = sum(s.weights is not None for s in self.suspects if s.nodes)
        return wrong, self.run.count_weighted()


def _name_node(s: Suspect, causes: Sequence[Finding]) -> str:
    """Return the accused node; the last one of a segment if the causes are in several nodes."""
    accused = {f.node for f in causes if f.is_exact and f.node}
    if len(accused) == 1:
        return accused.pop()
    return s.graph.nodes[s.main].name if s.nodes else ""


def _is_kin(a: str, b: str) -> bool:
    """Whether two causes are equal except for their numbers."""
    return "".join(c for c in a if not c.isdigit()) == "".join(c for c in b if not c.isdigit())
