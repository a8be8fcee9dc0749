"""Runs many cells, on several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from functools import cache

from tests.conformance.cases import CellResult, run_cell
from tests.conformance.table import Entry, entries
from tflq.oracle import Oracle


def chosen(operators: Sequence[str] = (), kinds: Sequence[str] = ()) -> list[Entry]:
    """Return the cells of some operators and types; of all where none is named."""
    return [
        e
        for e in entries()
        if (not operators or e.cell.operator in operators) and (not kinds or str(e.cell.kind) in kinds)
    ]


def run_cells(cells: Sequence[Entry], cases: int, jobs: int) -> Iterator[CellResult]:
    """Yield the result of each cell, in order."""
    if jobs == 1:
        for entry in cells:
            yield _run((str(entry.cell), cases))
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_run, [(str(e.cell), cases) for e in cells], chunksize=1)


def _run(task: tuple[str, int]) -> CellResult:
    name, cases = task
    entry = _by_name()[name]
    return run_cell(_oracle(entry.kernels), entry, cases)


@cache
def _by_name() -> dict[str, Entry]:
    return {str(e.cell): e for e in entries()}


@cache
def _oracle(kernels: str) -> Oracle:
    return Oracle(kernels=kernels)
