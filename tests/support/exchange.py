"""Random single operators (tests/conformance) in a format that other runtimes read: converted, run, compared."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.conformance.case import Case
from tests.conformance.cases import _draw_cases
from tests.conformance.table import Entry, entries
from tflq.converters.settled import settled_graph, settled_model
from tflq.converters.targets import Target
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import TflqError
from tflq.graph import Array, Attributes, Graph, Model
from tflq.interpreter import Engine
from tflq.interpreter.execution.settle import settle

FLOAT_SHARE = 1e-5
"""Largest difference of real numbers, as a share of their range; integers are equal."""
Run = Callable[[Graph, Model, Sequence[Array]], list[Array]]
"""Runs a target's graph on samples in the other runtime: its outputs [S, *shape] in the model's own layout."""


@dataclass(frozen=True)
class Found:
    """What came of one case: refused in words, or the largest difference as a share of the range; inf for integers."""

    operator: str
    kind: str
    refusal: str = ""
    share: float = 0.0
    words: str = ""

    @property
    def is_wrong(self) -> bool:
        return self.share > FLOAT_SHARE or bool(self.words)


def cells(operators: Sequence[str], kinds: Sequence[str]) -> list[Entry]:
    """Return the table's cells of these operators and types."""
    return [e for e in entries() if e.cell.operator in operators and str(e.cell.kind) in kinds]


def cases_of(entry: Entry, count: int, turn: int) -> list[Case]:
    """Return drawn cases of a cell; another turn gives others."""
    found: list[Case] = []
    _draw_cases(entry, count, turn, found.append)
    return found


def judged(
    entry: Entry, target: Target, quantize: Callable[[Graph], Graph], run: Run, count: int, turn: int
) -> Iterator[Found]:
    """Yield what came of each case that tflq itself runs."""
    for case in cases_of(entry, count, turn):
        label = (entry.cell.operator, str(entry.cell.kind))
        try:
            with np.errstate(all="ignore"):
                Engine(case.model.main, graphs=case.model.graphs, state=case.state).run(case.inputs)
        except TflqError:
            continue
        case = replace(case, inputs=tuple(_small(x, entry.cell.operator) for x in case.inputs))
        model = settled_model(case.model)
        if not model.main.nodes or any(
            t.data is not None for t in map(model.main.tensors.__getitem__, model.main.outputs)
        ):
            continue
        try:
            graph = quantize(model.main)
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                # a written network begins each run with zeros
                ours = Engine(graph, target.arithmetic, state="independent").run(case.inputs)
        except TflqError as error:
            yield Found(*label, refusal=str(error))
            continue
        try:
            theirs = run(graph, model, case.inputs)
        except Exception as error:
            yield Found(*label, words=f"{type(error).__name__}: {error}".split("\n")[0])
            continue
        yield Found(*label, *_compared([ours[t] for t in graph.outputs], theirs))


def _small(x: Array, operator: str) -> Array:
    """Return plain integers whose sums and products do not overflow: formats leave open what then comes out."""
    if operator.startswith("non_max_suppression"):  # boxes with an area and scores that differ: TFLite repeats others
        draw = np.random.default_rng(x.size)
        corners = np.sort(draw.random((*x.shape[:-1], 2, 2)), axis=-2).reshape(x.shape) if x.ndim == 3 else None
        return (draw.random(x.shape) if corners is None else corners).astype(np.float32) if x.ndim > 1 else x
    if operator == "where":
        return x[:1]  # the number of places differs from sample to sample
    if operator == "cast" and x.dtype == np.float32:
        return np.nan_to_num(np.abs(x), posinf=9).clip(0, 100)  # casts beyond a type are left open, too
    most = 2 if operator == "reduce_prod" else 100
    return np.clip(x, -most, most) if x.dtype in (np.int32, np.int64) else x


def _compared(ours: Sequence[Array], theirs: Sequence[Array]) -> tuple[str, float, str]:
    worst = 0.0
    for mine, other in zip(ours, theirs, strict=True):
        if mine.dtype == object:
            mine = np.concatenate([np.asarray(m)[None] for m in mine]) if len(mine) == 1 else mine
        if mine.shape != other.shape:
            return "", np.inf, f"shape {other.shape}, ours {mine.shape}"
        if mine.dtype.kind != "f":
            if not np.array_equal(mine, other):
                return "", np.inf, f"{np.count_nonzero(mine != other)} of {mine.size} integers differ"
            continue
        mine = np.where(np.abs(mine) == np.finfo(np.float32).max, np.copysign(np.inf, mine), mine)  # TFLite's clamp
        finite = np.isfinite(mine)
        if not np.array_equal(mine[~finite], other[~finite], equal_nan=True):
            return "", np.inf, "values that are not finite differ"
        if finite.any():
            span = max(float(np.abs(mine[finite]).max()), 1e-30)
            worst = max(worst, float(np.abs(mine[finite].astype(float) - other[finite]).max()) / span)
    return "", worst, ""


def wrongly_refused(found: Sequence[Found], words: Mapping[str, str]) -> list[Found]:
    """Return the cases that are refused for other reasons than the regular expression of their operator."""
    return [f for f in found if f.refusal and not re.search(words.get(f.operator, "$^"), f.refusal)]


def reasons(found: Sequence[Found]) -> Counter[str]:
    """Count refusals by operator and reason, without the operator's number and name."""
    return Counter(f"{f.operator}: {f.refusal.split(': ', 1)[-1]}" for f in found if f.refusal)


def without_options(graph: Graph) -> tuple[Graph, Graph]:
    """Return a graph whose nodes state no option, and the same as a file of TFLite has it: with the format's defaults.

    Raises:
        TflqError: one without options cannot be written as a file, or contradicts itself.
    """
    bare = replace(graph, nodes=[replace(node, attributes=Attributes({})) for node in graph.nodes])
    read = model_from_bytes(model_to_bytes(bare), "bare.tflite").main
    for one in (bare, read):
        settle(one)
    return settled_graph(bare), settled_graph(read)


def differs_by_default(entry: Entry, target: Target, quantize: Callable[[Graph], Graph]) -> list[str]:
    """Return the cases of a cell that are written in another way where an option is not stated."""
    found = []
    for case in cases_of(entry, 2, 5):
        try:
            bare, read = without_options(case.model.main)
            wanted = target.emit(quantize(read), Model([read], source="bare.tflite"))
        except TflqError:
            continue
        try:
            if target.emit(quantize(bare), Model([bare], source="bare.tflite")) != wanted:
                found.append(f"{entry.cell}: another file")
        except TflqError as error:
            if "found nothing" not in str(error):  # an option that must be stated
                found.append(f"{entry.cell}: {error}")
    return found
