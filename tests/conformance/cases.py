"""Generates and judges the cases of one cell: always the same ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
from hypothesis.internal.constants_ast import Constants

from tests.conformance.case import Case
from tests.conformance.judge import Outcome, Verdict, judge
from tests.conformance.table import Entry
from tflq.diagnosis.known_differences import Effect, rows_of
from tflq.oracle import Oracle

_ROUNDS = 4
"""How often as many cases are drawn as are wanted, where TFLite refuses some of them."""


_BACKEND = "without-local-constants"


class _WithoutLocalConstants(HypothesisProvider):
    """Draws no constants that stand in the loaded modules: with them cases would change with every edit of the code."""

    _local_constants = Constants()


AVAILABLE_PROVIDERS[_BACKEND] = f"{__name__}.{_WithoutLocalConstants.__name__}"


@dataclass(frozen=True)
class CellResult:
    """What came of a cell.

    Attributes:
        operator: name.
        kind: label of the type.
        outcomes: how many cases had which outcome.
        first: for each outcome but equal results, the words of its first case.
        listed: why the cell is not run; empty where it is.
    """

    operator: str
    kind: str
    outcomes: dict[str, int]
    first: dict[str, str]
    listed: str = ""

    @property
    def ran(self) -> int:
        """Cases that both sides ran, with equal results or a difference that is listed."""
        return sum(self.outcomes.get(o.value, 0) for o in (Outcome.EXACT, Outcome.STAND_IN, Outcome.LISTED))

    @property
    def failures(self) -> list[str]:
        """The first case of each kind of failure, and whether none ran."""
        found = [f"{o.value}: {self.first[o.value]}" for o in Outcome if o.is_failure and o.value in self.first]
        if not found and not self.ran and not self.listed:
            found = [f"no case ran: {next(iter(self.first.values()), 'none was drawn')}"]
        return found


def run_cell(oracle: Oracle, entry: Entry, cases: int) -> CellResult:
    """Judge cases until `cases` of them ran in TFLite."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    reason = _not_compared(entry)

    def add(case: Case) -> None:
        if _decided(counts) >= cases:
            return
        verdict: Verdict = judge(oracle, entry.cell, case)
        counts[verdict.outcome.value] += 1
        if verdict.outcome not in (Outcome.EXACT, Outcome.STAND_IN):
            first.setdefault(verdict.outcome.value, verdict.words)

    for turn in range(0 if reason else _ROUNDS):
        if _decided(counts) < cases:
            try:
                _draw_cases(entry, cases, turn, add)
            except Exception as error:
                counts[Outcome.CRASHED.value] += 1
                first.setdefault(
                    Outcome.CRASHED.value, f"the generator: {type(error).__name__}: {error}".split("\n")[0]
                )
    return CellResult(entry.cell.operator, str(entry.cell.kind), dict(counts), first, reason or "")


def _not_compared(entry: Entry) -> str | None:
    """Return why TFLite says nothing about a cell: its kernel leaves the result of every node open."""
    rows = rows_of(entry.cell.operator, str(entry.cell.kind))
    open_ = (r for r in rows if r.effect is Effect.UNDEFINED and not (r.when or r.elements or r.stand_in))
    return next((r.reason for r in open_), None)


def _decided(counts: Counter[str]) -> int:
    """How many cases say something: TFLite ran them, or we fell over."""
    refused = (Outcome.REFUSED_BY_BOTH.value, Outcome.REFUSED_BY_TFLITE.value)
    return sum(n for name, n in counts.items() if name not in refused)


def _draw_cases(entry: Entry, count: int, turn: int, add: object) -> None:
    """Call `add` with `count` cases; `turn` decides which."""

    @st.composite
    def strategy(draw: st.DrawFn) -> Case:
        return entry.generator(draw, entry.cell)

    @hypothesis.seed(turn)
    @settings(
        max_examples=count,
        backend=_BACKEND,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=strategy())
    def run(case: Case) -> None:
        add(case)

    run()
