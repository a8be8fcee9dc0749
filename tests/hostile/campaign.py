"""Gives damaged files to tflq and to TFLite, and compares what they do."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tests.hostile.mutate import mutation
from tests.hostile.subject import SECONDS, Reaction, Subject
from tflq.errors import TflqError
from tflq.graph import Array
from tflq.oracle import Oracle
from tflq.oracle.results import OracleAborted, OracleRefused, OracleTimeout

_UNREGISTERED = ("Didn't find op for builtin opcode", "Registration failed", "unresolved custom op", "custom op")


_LARGEST_INPUT = 1 << 28


class TooLargeError(Exception):
    """The model asks for inputs that this program does not make."""


@dataclass(frozen=True)
class Trial:
    """One damaged file.

    Attributes:
        model: name of the file that was damaged.
        seed: of the mutation.
        mutation: its kind.
        ours: what tflq did.
        theirs: what TFLite did.
        agreement: "" unless both run: "same" or "differ".
    """

    model: str
    seed: int
    mutation: str
    ours: Reaction
    theirs: Reaction
    agreement: str = ""

    @property
    def failure(self) -> str:
        """What is wrong with tflq's reaction; empty where nothing is."""
        if self.ours.outcome in ("crash", "hang", "memory"):
            return self.ours.outcome
        if self.ours.outcome == "runs" and self.theirs.outcome == "refused" and not self.is_unregistered:
            return "runs what TFLite refuses"
        return ""

    @property
    def is_stricter(self) -> bool:
        """Whether tflq refuses what TFLite runs."""
        return self.ours.outcome == "refused" and self.theirs.outcome == "runs"

    @property
    def is_unregistered(self) -> bool:
        """Whether TFLite only lacks the operator or its version."""
        return any(words in self.theirs.words for words in _UNREGISTERED)


def trials(models: Sequence[tuple[str, bytes]], seeds: Sequence[int]) -> Iterator[Trial]:
    """Damage the models in turn, one for each seed, and yield what both sides did."""
    with Subject() as subject, Oracle(timeout_s=SECONDS) as oracle:
        for seed in seeds:
            name, content = models[seed % len(models)]
            kind, damaged = mutation(content, models[(seed // len(models)) % len(models)][1], seed)
            ours = subject.run(damaged)
            theirs = _tflite(oracle, damaged, ours)
            yield Trial(name, seed, kind, ours, theirs, _agreement(ours, theirs))


def _tflite(oracle: Oracle, content: bytes, ours: Reaction) -> Reaction:
    start = time.perf_counter()
    try:
        outputs = _run(oracle, content, ours)
        outcome, words = "runs", ""
    except OracleRefused as error:
        outcome, words, outputs = "refused", str(error), []
    except OracleAborted as error:
        outcome, words, outputs = "crash", str(error), []
    except OracleTimeout as error:
        outcome, words, outputs = "hang", str(error), []
    except TooLargeError:
        outcome, words, outputs = "memory", "inputs that are too large to give", []
    except TflqError as error:  # our own inputs do not fit what TFLite reads
        outcome, words, outputs = "refused", f"inputs: {error}", []
    return Reaction(outcome, words.replace("\n", " "), time.perf_counter() - start, [], outputs)


def _run(oracle: Oracle, content: bytes, ours: Reaction) -> list[Array]:
    """Run on tflq's inputs, or on zeros where tflq has not come so far."""
    model = oracle.describe(content)
    inputs = ours.inputs
    if len(inputs) != len(model.inputs):
        tensors = [model.tensors[t] for t in model.inputs]
        if any(math.prod(t.shape) > _LARGEST_INPUT for t in tensors):
            raise TooLargeError
        inputs = [np.zeros((1, *t.shape), object if t.dtype == "str" else t.dtype) for t in tensors]
    ran = oracle.run(content, inputs, tensors="outputs")
    return [ran.tensors[t] for t in model.outputs if t in ran.tensors]


def _agreement(ours: Reaction, theirs: Reaction) -> str:
    if ours.outcome != "runs" or theirs.outcome != "runs":
        return ""
    pairs = list(zip(ours.outputs, theirs.outputs, strict=False))
    equal = len(ours.outputs) == len(theirs.outputs) and all(_same(a, b) for a, b in pairs)
    return "same" if equal else "differ"


def _same(a: Array, b: Array) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return a.tobytes() == b.tobytes() if a.dtype != object else bool(np.all(a == b))


def without_arrays(trial: Trial) -> Trial:
    """Return the trial without inputs and outputs, to be passed on between processes."""
    bare = [Reaction(r.outcome, r.words, r.seconds) for r in (trial.ours, trial.theirs)]
    return Trial(trial.model, trial.seed, trial.mutation, bare[0], bare[1], trial.agreement)
