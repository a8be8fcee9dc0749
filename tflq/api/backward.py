"""The backward strategy of `tflq.search`: find the layer from which on more bits are needed (docs/guides/search.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq.api.calibrate import calibrate
from tflq.api.conversion import write_template
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
    """Options of the backward strategy, with the fields of `JudgeOptions`.

    The strategy finds the last layer from which on all layers need more bits. It first tries 16 bits for the layers
    from there to the end. If no such setting is accurate enough, it tries floating point for them; target files cannot
    store this second stage, it only shows the remaining distance to the 16-bit result. The score is the accuracy in
    percent on labeled samples, or another `metric`; without labels, the smallest cosine between the outputs and the
    float model's outputs.

    Attributes:
        drop: Largest allowed drop of the score below floating point: percentage points with labels, the unit of
            another metric, else a cosine (default: 1 point with labels, 0.01 for a cosine).
    """

    drop: float | None = None


@dataclass(frozen=True)
class Judge:
    """A metric on labeled samples.

    Attributes:
        metric: Figure to compute.
        samples: Samples in the encoding of the model.
        labels: Labels of the samples.
        reference: Outputs of the model in floating point, float64[S, elements].
    """

    metric: Metric
    samples: Samples
    labels: Labels
    reference: NDArray[np.float64]

    def score(self, execution: Execution) -> float:
        """Return the figure of a model."""
        return self.score_outputs(all_outputs(execution, self.samples))

    def score_outputs(self, outputs: NDArray[np.float64]) -> float:
        """Return the figure of outputs, float64[S, elements]."""
        return figure_of(self.metric, outputs, self.labels, self.reference)


@dataclass(frozen=True)
class Promoted:
    """A model with last layers that can be promoted.

    Attributes:
        original: Model as read from its file.
        ranged: Same model with ranges.
        target: Target with layers that can be promoted.
        options: Settings of the user.
        samples: Samples on which outputs are compared.
        judge: Score on labeled samples; None without labels.
    """

    original: Model
    ranged: Model
    target: Target
    options: TargetOptions
    samples: Samples
    judge: Judge | None

    def settings(self, rules: Rules) -> Settings:
        """Return the settings of the user, followed by these rules."""
        return parse_settings(self.target.settings, self.options.settings, (*self.options.layers, *rules))

    def execution(self, rules: Rules) -> Execution:
        """Return the model quantized with these rules."""
        return for_target(self.ranged.main, self.target, self.settings(rules))

    def score(self, rules: Rules) -> float:
        """Return the metric on labeled samples; without labels, the cosine of the outputs."""
        return self.cosine(rules) if self.judge is None else self.judge.score(self.execution(rules))

    def cosine(self, rules: Rules) -> float:
        """Return the smallest cosine between the outputs and the float model's outputs."""
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
        model: Name of the model in reports.
        search: All trials, and the selected one.
        subject: Model that was searched.
    """

    FACTS = (
        Column("model", "model"),
        Column("target", "target", get="subject.target.name"),
        Column("metric", "score", get="search.score_name"),
        Column("reference", "score in floating point", get="search.reference"),
        Column("largest_drop", "largest drop", get="search.largest_drop"),
        Column("first", get="search.chosen.first"),
        Column("stage", get="search.chosen.stage"),
        Column("score", get=lambda r: (r.search.chosen or r.search.best).score),
        Column("layers", get="search.rules"),
    )

    model: str
    search: BackwardSearch
    subject: Promoted

    @property
    def is_kept(self) -> bool:
        """Whether a setting is close enough to floating point."""
        return self.search.chosen is not None

    @property
    def layers(self) -> tuple[str, ...]:
        """The setting in the form of `TargetOptions.layers`."""
        return (*self.subject.options.layers, *self.search.rules)

    @property
    def verdict(self) -> Verdict:
        """Drop of the score, and the first layer that needs more bits."""
        return backward_verdict(self.search, self.subject.samples.count)

    @property
    def title(self) -> str:
        """Model and target."""
        return f"{self.model} for {self.subject.target.name}: the last layers with more bits"

    @property
    def notes(self) -> Sequence[str]:
        """The rule, as an option."""
        if not self.search.rules or self.search.chosen is None:
            return ()
        node = self.subject.original.main.nodes[self.search.chosen.first]
        return [f"the first one is {node.operator} '{node.name}'", f"--layer {self.search.rules[0]}"]

    def tables(self) -> Sequence[Table]:
        """Return every trial."""
        return [backward_table(self.search)]

    def write_template(self, path: str | Path) -> None:
        """Write the setting for --template of `tflq convert`; no file is written if no setting is close enough.

        Raises:
            OutputError: The file cannot be written.
        """
        if self.search.chosen is not None:
            self.subject.write_template(path, self.search.rules)


def backward(
    model: ModelSource, wanted: TargetOptions, samples: SampleSource, options: BackwardOptions, progress: Progress
) -> BackwardResult:
    """Search backward; arguments and errors as for `search`. `wanted` contains the merged settings."""
    target = find_promotable(wanted.name or "")
    choose_target(target.name, wanted)
    metric = options.resolve_metric()
    if metric.is_against_reference:
        raise UsageError(
            f"--metric {metric.name} compares with floating point and is infinite for the float model; choose another "
            "metric"
        )
    if options.drop is None and metric.unit != "%":
        raise UsageError(f"--metric {metric.name}: the allowed drop is missing; set it with --drop")
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
    reference, usual = (1.0, 0.01) if judge is None else (judge.score_outputs(judge.reference), 1.0)
    drop = usual if options.drop is None else options.drop
    strategy = Backward(len(original.main.nodes), target.promotions, reference, drop, metric if judge else None)
    search = follow(strategy, lambda _, settings: [subject.score(rules) for rules in settings])
    return BackwardResult(name_of(model), search, subject)
