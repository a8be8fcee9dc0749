"""`tflq.explain`: every step of one output element."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tflq.analysis.compare import Running, match
from tflq.analysis.explain import Explainer, Explanation, SideBySide, Step, side_by_side
from tflq.api.options import CalibrationOptions, Progress, SampleSource, TargetOptions, changed, silent
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import Json, TableResult, picked
from tflq.api.samples import samples as choose_samples
from tflq.api.sides import Quantising, Side, parse_side
from tflq.api.target import complete
from tflq.errors import OptionError, TflqError, UsageError


@dataclass(frozen=True)
class ExplainOptions:
    """Which computation is explained.

    Attributes:
        sample: number of the sample.
        target: the integers of this target.
        arithmetic: "tflite", the default without a target.
        against: another computation of the same element: a model, "@float", "@TARGET".
        calibration: ranges for targets.
    """

    sample: int = 0
    target: TargetOptions | str | None = None
    arithmetic: Literal["tflite"] | None = None
    against: ModelSource | None = None
    calibration: CalibrationOptions = CalibrationOptions()


@dataclass(frozen=True)
class ExplainResult(TableResult):
    """How an element came about.

    Attributes:
        names: of the computation, and of the one that it is held against.
        explanation: its steps.
        against: both computations side by side, or None.
    """

    names: tuple[str, ...]
    explanation: Explanation
    against: SideBySide | None

    @property
    def is_equal(self) -> bool:
        """Whether both computations end in the same value."""
        return self.against is None or self.against.first.stored == self.against.second.stored

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each step."""
        return [{"tensor": part.tensor, **_step(step)} for part in self.explanation.parts for step in part.steps]

    def report(self) -> Mapping[str, Json]:
        """Return the element, and all parts with their steps; of both computations where there are two."""
        found = self.against
        if found is None:
            return _explanation(self.explanation)
        parting = found.parting
        return {
            "equal": self.is_equal,
            "verdict": found.words(),
            "parting": None if parting is None else {"step": parting.label, "place": parting.place},
            "first": _explanation(found.first),
            "second": _explanation(found.second),
        }


def explain(
    model: ModelSource,
    tensor: str,
    index: Sequence[int],
    samples: SampleSource = None,
    options: ExplainOptions = ExplainOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> ExplainResult:
    """Show every step of one element: inputs, weights, products, bias, multiplier, roundings, clamp.

    Args:
        model: that computes it.
        tensor: its name, its number, or its operator's name.
        index: the element, in the model's own axes.
        samples: random ones where none are named.
        options: which sample, which arithmetic.
        progress: shows how far the calibration is.
        **changes: fields of the options.

    Raises:
        UsageError: options that contradict each other, or nothing that computes.
        InputError, OptionError, UnsupportedError: a tensor, element, sample or target that is not there.
        TflqError: the steps do not end in what the engine computed.
    """
    options = changed(options, changes)
    target = complete(options.target, options.calibration)
    if target.name is not None and options.arithmetic is not None:
        raise UsageError("--target brings its own arithmetic; leave --arithmetic away")
    a = _side(model, target.name)
    b = None if options.against is None else parse_side(options.against, may_lack_model=True)
    if a.is_dump or (b is not None and b.is_dump):
        raise UsageError("a dump has no computation to explain; name a model")
    quantising = Quantising(target, options.calibration, progress)
    quantising.refuse_unless(a, b)
    found = a.model()
    chosen = choose_samples(found, samples, count=options.sample + 1)
    if options.sample >= chosen.count:
        raise OptionError(f"--sample {options.sample}: there are {chosen.count} samples, counted from 0")
    left = quantising.running(a, found, chosen, found)
    explainer = _explainer(left, options.sample)
    t = explainer.find(tensor)
    first = _checked(explainer.explain(t, tuple(index)))
    if b is None:
        return ExplainResult((a.text,), first, None)
    right = quantising.running(b, b.model(found), chosen, found)
    other = _explainer(right, options.sample)
    second = _checked(other.explain(_counterpart(left, right, t, other), tuple(index)))
    return ExplainResult((a.text, b.text), first, side_by_side(first, second))


def _side(model: ModelSource, target: str | None) -> Side:
    if target is None:
        return parse_side(model)
    name = f"{name_of(model)}@{target}"
    return parse_side(name) if isinstance(model, (str, os.PathLike)) else Side(name, read_model(model), target)


def _explainer(side: Running, sample: int) -> Explainer:
    return Explainer(side.execution.engine, side.inputs(sample, sample + 1), sample)


def _counterpart(first: Running, second: Running, t: int, other: Explainer) -> int:
    """Return the tensor of the other graph that is the same one."""
    found = {m.first.index: m.second.index for m in match(first.columns, second.columns).matches}
    return found[t] if t in found else other.find(first.execution.graph.tensors[t].name)


def _checked(found: Explanation) -> Explanation:
    """Refuse to show a computation that does not end in what the engine computed."""
    for part in found.parts:
        if not part.is_sound:
            raise TflqError(
                f"the explanation of '{part.tensor}' {list(part.index)} ends in {part.steps[-1].value}, the "
                f"interpreter stores {part.stored}; please report it"
            )
    return found


def _explanation(found: Explanation) -> Mapping[str, Json]:
    parts: list[Json] = [
        {
            **picked(part, "tensor", "index", "node", "operator", "arithmetic", "source"),
            "steps": [_step(step) for step in part.steps],
        }
        for part in found.parts
    ]
    return {**picked(found, "tensor", "index", "sample", "stored", "real"), "parts": parts}


def _step(step: Step) -> Mapping[str, Json]:
    return {"step": step.label, "formula": step.formula, "value": step.value}
