"""The strategy of `tflq.search` that finds from which layer on a network needs more bits (docs/guides/search.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq.api.calibrate import calibrate
from tflq.api.convert import write_template
from tflq.api.options import Progress, SampleSource, TargetOptions
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import Result
from tflq.api.samples import open_samples, samples_or_calibration
from tflq.api.target import choose_target
from tflq.api.trials import JudgeOptions, Span, labels_in
from tflq.benchmarks.metrics import Labels, Metric, figure_of
from tflq.converters.settings import Settings, parse_settings
from tflq.converters.targets import Target, find_promotable
from tflq.diagnosis.similarity import measured_similarities, similarities
from tflq.errors import UsageError
from tflq.graph import Model
from tflq.parallel.executions import Execution, all_outputs, for_target, in_float
from tflq.precision.backward import Backward, BackwardSearch, Rules
from tflq.precision.strategy import follow
from tflq.report import Column, Table, Verdict
from tflq.report.precision import backward_table, backward_verdict
from tflq.sampling import Samples

DEFAULT_SAMPLES = 32


@dataclass(frozen=True)
class BackwardOptions(JudgeOptions):
    """The strategy that finds from which layer on a network needs more bits, with the fields of `JudgeOptions`.

    First the layers from there to the end get 16 bits; where that is not enough they run in floating point, which files
    cannot hold: that says how far the network is from what 16 bits give. The score is the accuracy in
    percent on labeled samples, or another `metric`; without any, the smallest cosine of the outputs and the float
    model's.

    Attributes:
        drop: how much worse than in floating point the score may be: percentage points with labels, in the unit of
            another metric, else a cosine; None for 1 point, or 0.01.
    """

    drop: float | None = None


@dataclass(frozen=True)
class Judge:
    """A metric on labeled samples.

    Attributes:
        metric: the figure.
        samples: in the model's encoding.
        labels: theirs.
        reference: outputs of the model in floating point, float64[S, elements].
    """

    metric: Metric
    samples: Samples
    labels: Labels
    reference: NDArray[np.float64]

    def score(self, execution: Execution) -> float:
        """Return the figure of a model."""
        return self.of(all_outputs(execution, self.samples))

    def of(self, outputs: NDArray[np.float64]) -> float:
        """Return the figure of outputs, float64[S, elements]."""
        return figure_of(self.metric, outputs, self.labels, self.reference)


@dataclass(frozen=True)
class Promoted:
    """A model whose last layers can be promoted.

    Attributes:
        original: as it was read.
        ranged: the same with ranges.
        target: promotable.
        options: the user's settings.
        samples: that outputs are compared on.
        judge: gives the score on labeled samples; None without any.
    """

    original: Model
    ranged: Model
    target: Target
    options: TargetOptions
    samples: Samples
    judge: Judge | None

    def settings(self, rules: Rules) -> Settings:
        """Return the settings with these rules behind the user's."""
        return parse_settings(self.target.settings, self.options.settings, (*self.options.layers, *rules))

    def execution(self, rules: Rules) -> Execution:
        """Quantize with these rules."""
        return for_target(self.ranged.main, self.target, self.settings(rules))

    def score(self, rules: Rules) -> float:
        """Return the metric on labeled samples; without any, the cosine of the outputs."""
        return self.cosine(rules) if self.judge is None else self.judge.score(self.execution(rules))

    def cosine(self, rules: Rules) -> float:
        """Return the smallest cosine of the outputs and the float model's."""
        tried = self.execution(rules)
        return similarities(tried, self.original, self.samples).of_outputs(tried)

    def write_template(self, path: str | Path, rules: Rules) -> None:
        """Write the template of the model with these rules."""
        measured = measured_similarities(self.execution(rules), self.ranged, self.samples)
        write_template(path, self.target, self.settings(rules), self.ranged, measured)


@dataclass(frozen=True)
class BackwardResult(Result):
    """The first layer from which on more bits are needed.

    Attributes:
        model: how reports call it.
        found: every trial, and the chosen one.
        subject: that was searched.
    """

    FACTS = (
        Column("model", "model"),
        Column("target", "target", get="subject.target.name"),
        Column("metric", "score", get="found.score_name"),
        Column("reference", "score in floating point", get="found.reference"),
        Column("largest_drop", "largest drop", get="found.largest_drop"),
        Column("first", get="found.chosen.first"),
        Column("stage", get="found.chosen.stage"),
        Column("score", get=lambda r: (r.found.chosen or r.found.best).score),
        Column("layers", get="found.rules"),
    )

    model: str
    found: BackwardSearch
    subject: Promoted

    @property
    def is_kept(self) -> bool:
        """Whether a setting is near enough to floating point."""
        return self.found.chosen is not None

    @property
    def layers(self) -> tuple[str, ...]:
        """The setting, as `TargetOptions.layers` takes it."""
        return (*self.subject.options.layers, *self.found.rules)

    @property
    def verdict(self) -> Verdict:
        """Drop of the score, and the first layer that needs more bits."""
        return backward_verdict(self.found, self.subject.samples.count)

    @property
    def title(self) -> str:
        """Model and target."""
        return f"{self.model} for {self.subject.target.name}: the last layers with more bits"

    @property
    def notes(self) -> Sequence[str]:
        """The rule, as an option."""
        if not self.found.rules or self.found.chosen is None:
            return ()
        node = self.subject.original.main.nodes[self.found.chosen.first]
        return [f"the first one is {node.operator} '{node.name}'", f"--layer {self.found.rules[0]}"]

    def tables(self) -> Sequence[Table]:
        """Return every trial."""
        return [backward_table(self.found)]

    def write_template(self, path: str | Path) -> None:
        """Write what was found for --template of `tflq convert`; nothing where nothing is near enough.

        Raises:
            OutputError: the file cannot be written.
        """
        if self.found.chosen is not None:
            self.subject.write_template(path, self.found.rules)


def backward(
    model: ModelSource, wanted: TargetOptions, samples: SampleSource, options: BackwardOptions, progress: Progress
) -> BackwardResult:
    """Search backward; arguments and errors as for `search`, `wanted` complete."""
    target = find_promotable(wanted.name or "")
    choose_target(target.name, wanted)
    metric = options.found_metric()
    if metric.is_against_reference:
        raise UsageError(f"--metric {metric.name} compares with floating point, to which it is infinite")
    if options.drop is None and metric.unit != "%":
        raise UsageError(f"--metric {metric.name}: say by how much it may be worse, with --drop")
    original = read_model(model)
    span, judge = options.span, None
    count = span.stop if span else DEFAULT_SAMPLES
    labeled = open_samples(original, samples, labels=options.labels, data=options.data) if options.is_labeled else None
    others = None if options.data is not None else samples
    chosen = samples_or_calibration(original, others, options.calibration, count, all_given=True)
    ranged = calibrate(original, options.calibration, target=target.name, progress=progress)
    if labeled is not None and labeled.labels is not None:
        taken = span or Span(0, labeled.samples.count)
        judged, labels = taken.select(labeled.samples), labels_in(taken, labeled.labels)
        judge = Judge(metric, judged, labels, all_outputs(in_float(original), judged))
    elif span is not None:
        chosen = span.select(chosen)
    subject = Promoted(original, ranged, target, wanted, chosen, judge)
    reference, usual = (1.0, 0.01) if judge is None else (judge.of(judge.reference), 1.0)
    drop = usual if options.drop is None else options.drop
    strategy = Backward(len(original.main.nodes), target.promotions, reference, drop, metric if judge else None)
    found = follow(strategy, lambda _, settings: [subject.score(rules) for rules in settings])
    return BackwardResult(name_of(model), found, subject)
