"""The cause of a wrong layer in the words of `compare`: the ranking, and the command to go on with."""

from __future__ import annotations

import shlex
from dataclasses import replace

from tflq.analysis.compare import Comparison, Running
from tflq.analysis.compare.causes import Cause
from tflq.analysis.compare.dumps import wanted_of
from tflq.analysis.diagnosis.finding import Diagnosis
from tflq.api.options import SampleOptions, SampleSource
from tflq.api.sides import Side


def with_cause(found: Comparison, cause: Diagnosis) -> Comparison:
    """Return a comparison whose tensor that is wrong by itself has its cause in the words of the diagnosis."""
    words = Cause("layer", cause.words, cause.advice)
    tensors = tuple(
        replace(
            t,
            cause=words if t.cause is None else replace(words, kind=t.cause.kind),
            group=min(t.group, 1),
            node=t.node or t.name,
        )
        if t.match.first.index == cause.number
        else t
        for t in found.tensors
    )
    return replace(found, tensors=tensors)


def explain_line(model: Running, cause: Diagnosis, samples: SampleSource, named: Side) -> str:
    """Return the command that shows every step of the first element that differs."""
    wanted = next((w for w in wanted_of(model) if w.name == cause.tensor or w.tensor.name == cause.tensor), None)
    tensor = cause.tensor if wanted is None or wanted.index is None else str(wanted.index)
    path, target = str(named.source), []
    if named.is_target:
        target = ["-t", named.what]
    index = ",".join(map(str, cause.index))
    words = ["tflq", "explain", path, "--tensor", tensor, "--index", index, "--sample", str(cause.sample)]
    return shlex.join([*words, *_samples(samples), *target])


def _samples(samples: SampleSource) -> list[str]:
    """Return the samples as options of a command; what is no file is named as one to write."""
    if not isinstance(samples, SampleOptions):
        given = (samples,) if isinstance(samples, str) else ()
        return [part for path in given for part in ("-i", path)] or ["-i", "SAMPLES.npy"]
    if samples.is_random:
        return ["-n", str(samples.count), "--seed", str(samples.seed)] if samples.count else ["-i", "SAMPLES.npy"]
    files = [str(path) for path in samples.inputs] if isinstance(samples.inputs, (tuple, list)) else ["SAMPLES.npy"]
    return [part for path in files for part in ("-i", path)] + ["--real"] * samples.real
