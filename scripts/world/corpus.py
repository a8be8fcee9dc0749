"""Judges a .tflite file: read, written and read again; TFLite on what was written; every tensor against TFLite."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from tflq.arrays import is_same
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.diagnosis.verify import verify, written_tensors
from tflq.errors import OracleError, TflqError
from tflq.graph import Array, Model
from tflq.interpreter import Engine
from tflq.oracle import Oracle, OracleAborted, OracleRun
from tflq.sampling import RandomSamples


class Outcome(Enum):
    """What came out for a file; the last four fail."""

    EQUAL = "equal"
    KNOWN = "known differences"
    REFUSED_BY_BOTH = "refused by both"
    RUNS_ALONE = "runs alone"
    NOT_DRAWN = "no samples"
    DIFFERS = "differs"
    REFUSED = "refused"
    NOT_KEPT = "not kept"
    FAILED = "internal error"

    @property
    def is_failure(self) -> bool:
        """Whether TFLite runs the file, and tflq does not do the same."""
        return self in (Outcome.DIFFERS, Outcome.REFUSED, Outcome.NOT_KEPT, Outcome.FAILED)


@dataclass(frozen=True)
class Judgement:
    """One file.

    Attributes:
        file: its name.
        outcome: what came out.
        words: why, in one line; empty where all is equal.
        elements: that were compared.
        differing: of them.
        seconds: that it took, TFLite's part included.
    """

    file: str
    outcome: Outcome
    words: str = ""
    elements: int = 0
    differing: int = 0
    seconds: float = 0.0


def judge(path: Path, oracle: Oracle, samples: int = 2, seed: int = 1) -> Judgement:
    """Judge one file on random samples.

    Args:
        path: the file.
        oracle: TFLite, with the kernels that decide.
        samples: how many are run.
        seed: of the samples.
    """
    start = time.perf_counter()
    try:
        outcome, words, elements, differing = _judged(path.read_bytes(), path.name, oracle, samples, seed)
    except Exception as error:  # a corpus holds whatever the world wrote: the row says what happened
        outcome, words, elements, differing = Outcome.FAILED, f"{type(error).__name__}: {error}", 0, 0
    line = " ".join(words.split())
    return Judgement(path.name, outcome, line, elements, differing, time.perf_counter() - start)


def _judged(content: bytes, name: str, oracle: Oracle, samples: int, seed: int) -> tuple[Outcome, str, int, int]:
    try:
        model = model_from_bytes(content, name)
    except TflqError as error:
        return _refused(content, str(error), oracle)
    try:
        drawn = RandomSamples(model.main, samples, seed=seed)
    except TflqError as error:
        return Outcome.NOT_DRAWN, str(error), 0, 0
    written = model_to_bytes(model)
    if not is_same(model, model_from_bytes(written, "written")):
        return Outcome.NOT_KEPT, "read, written and read again it is another model", 0, 0
    inputs, tensors = drawn.take(0, samples), written_tensors(model.main)
    try:
        theirs = _run(oracle, content, inputs, tensors)
        changed = _changed(theirs, _run(oracle, written, inputs, tensors))
        if changed and not _changed(theirs, _run(oracle, content, inputs, tensors)):
            return Outcome.NOT_KEPT, f"TFLite computes other bits from the written file: {changed}", 0, 0
    except OracleError as error:  # TFLite that writes beyond a tensor may end in any of these runs
        return _without_tflite(model, inputs, str(error))
    try:
        verdict = verify(model, content, drawn, oracle)
    except TflqError as error:
        return Outcome.REFUSED, str(error), 0, 0
    total = verdict.total
    if verdict.is_equal:
        return Outcome.EQUAL, "", total.elements, 0
    if verdict.is_explained:
        reasons = "; ".join(f"{k.elements}: {k.reason}" for k in verdict.known)
        return Outcome.KNOWN, reasons, total.elements, total.differing
    first = next((t for t in verdict.compared if not t.is_explained), None)
    words = "TFLite returned no tensor" if first is None else f"tensor {first.index} '{first.name}': {first.words}"
    return Outcome.DIFFERS, words, total.elements, total.differing


def _run(oracle: Oracle, content: bytes, inputs: Sequence[Array], tensors: Sequence[int]) -> OracleRun:
    """Run TFLite; once more where its process ended, which models with resources make it do now and then."""
    try:
        return oracle.run(content, list(inputs), tensors=tensors, state="independent")
    except OracleAborted:
        return oracle.run(content, list(inputs), tensors=tensors, state="independent")


def _without_tflite(model: Model, inputs: Sequence[Array], why: str) -> tuple[Outcome, str, int, int]:
    try:
        Engine(model.main, "tflite", graphs=model.graphs, state="independent").run(inputs)
    except TflqError as error:
        return Outcome.REFUSED_BY_BOTH, f"{error} / {why}", 0, 0
    return Outcome.RUNS_ALONE, why, 0, 0


def _refused(content: bytes, why: str, oracle: Oracle) -> tuple[Outcome, str, int, int]:
    """Ask TFLite about a file that tflq does not read, on zeros of the shapes that TFLite states."""
    try:
        described = oracle.describe(content)
        arrays = [np.zeros((1, *described.tensors[t].shape), described.tensors[t].dtype) for t in described.inputs]
        oracle.run(content, arrays, state="independent")
    except OracleError as error:
        return Outcome.REFUSED_BY_BOTH, f"{why} / {error}", 0, 0
    return Outcome.REFUSED, why, 0, 0


def _changed(first: OracleRun, second: OracleRun) -> str:
    """Name the first tensor whose bits differ between two runs of TFLite; empty where none does."""
    for t, array in first.tensors.items():
        other = second.tensors.get(t)
        if other is None or not is_same(array, other):
            return f"tensor {t}"
    return ""
