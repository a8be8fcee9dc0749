"""One trial: quantise, run all samples, count."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.compare.tally import sqnr_db
from tflq.analysis.executions import for_target
from tflq.analysis.inputs import GivenSamples
from tflq.converters.precision import find_mixed_precision
from tflq.errors import OptionError, UnsupportedError
from tflq.precision.exchange import exchanged
from tflq.precision.problem import Problem, Reals, real_outputs
from tflq.precision.trial import Floating, Result, Trial

_DECIMALS = 6
"""Of a ratio in dB: sums of squares may differ in their last bits from one processor to the next."""


def evaluate(problem: Problem, trial: Trial) -> Result:
    """Return what a trial gives; it depends on nothing but its arguments.

    right counts the samples whose highest output, the lowest index on ties, is their class. A setting that the target
    refuses is a result, too: a search goes on without it.
    """
    try:
        outputs = _outputs(problem, trial)
    except (UnsupportedError, OptionError) as error:
        return Result(trial, problem.count, None, math.nan, str(error))
    return _score(problem, trial, outputs)


def right_samples(problem: Problem, trial: Trial) -> NDArray[np.bool_]:
    """Return which samples a trial classifies right, bool[S].

    Raises:
        UnsupportedError, OptionError: the target refuses the setting.
    """
    assert problem.labels is not None
    return np.asarray(_outputs(problem, trial).argmax(axis=1) == problem.labels)


def reference_result(problem: Problem) -> Result:
    """Return what the reference gives, as the result of the widest trial."""
    return _score(problem, Trial(problem.widest), problem.reference)


def _score(problem: Problem, trial: Trial, outputs: Reals) -> Result:
    right = None if problem.labels is None else int(np.count_nonzero(outputs.argmax(axis=1) == problem.labels))
    signal, noise = (float(np.square(x).sum()) for x in (problem.reference, outputs - problem.reference))
    return Result(trial, problem.count, right, round(sqnr_db(signal, noise), _DECIMALS))


def _outputs(problem: Problem, trial: Trial) -> Reals:
    target = find_mixed_precision(problem.target)
    settings = problem.settings(trial)
    if problem.recovering is None:
        execution = for_target(problem.graph, target, settings)
    else:
        widths = {layer.index: bits for layer, bits in zip(problem.plan.layers, trial.bits, strict=True)}
        execution = problem.recovering.execution(target, settings, widths)
    samples = GivenSamples(problem.samples)
    if trial.floating is Floating.NONE:
        return real_outputs(execution, samples)
    name = problem.plan.layers[trial.layer].name
    return exchanged(execution, problem.graph, name, samples, is_float_outside=trial.floating is Floating.OTHERS)
