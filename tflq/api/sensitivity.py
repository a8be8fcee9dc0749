"""`tflq.sensitivity`: what each layer alone does to accuracy and outputs at each of its widths (docs/search.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tflq.api.options import Progress, SampleSource, TargetOptions, changed, silent
from tflq.api.read_model import ModelSource, name_of
from tflq.api.result import PageResult, TableResult, picked
from tflq.api.run_record import recorded
from tflq.api.target import complete
from tflq.api.trials import TrialOptions, open_evaluator, read_subject, with_labels
from tflq.converters.precision import LayerWidths
from tflq.precision import sensitivity as precision
from tflq.precision.trial import Result
from tflq.quoting import Json
from tflq.report import Page
from tflq.report.precision import sensitivity_page


@dataclass(frozen=True)
class SensitivityOptions(TrialOptions):
    """How layers are measured, with the fields of `TrialOptions`.

    Attributes:
        spared: the reverse: all layers have the bits, each alone is left at its widest.
    """

    spared: bool = False


@dataclass(frozen=True)
class SensitivityResult(PageResult, TableResult):
    """What each layer alone does.

    Attributes:
        model: how reports call it.
        sensitivity: the results.
    """

    model: str
    sensitivity: precision.Sensitivity

    def report(self) -> Mapping[str, Json]:
        """Return the results of every layer at every width."""
        found = self.sensitivity
        return {
            "model": self.model,
            **picked(found, "target", "samples"),
            "spared": found.is_spared,
            "float": found.in_float,
            "metric": found.metric.name,
            "without": {str(bits): result_report(found.bases[bits]) for bits in found.widths},
            "layers": [
                {**layer_report(row.layer), "results": {str(bits): result_report(r) for bits, r in row.results.items()}}
                for row in found.rows
            ],
            **picked(found, "evaluated", "known"),
        }

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each layer and width."""
        return [
            {**layer_report(row.layer), "bits": bits, **result_report(result)}
            for row in self.sensitivity.rows
            for bits, result in row.results.items()
        ]

    def page(self) -> Page:
        """Return the page: a drawing for each width, and a table."""
        return sensitivity_page(self.model, self.sensitivity)


@recorded
def sensitivity(
    model: ModelSource,
    target: TargetOptions | str,
    samples: SampleSource = None,
    options: SensitivityOptions = SensitivityOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> SensitivityResult:
    """Measure accuracy and signal-to-noise ratio with each layer alone at each of its widths.

    The other layers are at their widest. The ratio compares the outputs with those of the model as it is and needs no
    labels.

    Args:
        model: to measure.
        target: one with a choice of bits, and its settings.
        samples: that judge, 64 random ones where none are named; or labeled ones by `data`.
        options: what is measured, and where.
        progress: shows how far it is.
        **changes: fields of the options.

    Raises:
        UsageError, OptionError, InputError, FormatError, UnsupportedError: options, samples or a model that do not fit.
    """
    samples, options = with_labels(samples, changed(options, changes))
    wanted = complete(target, options.calibration)
    subject = read_subject(model, wanted, samples, options, progress, options.span)
    with open_evaluator(subject.problem(options.span), options, progress) as evaluator:
        found = precision.sensitivity(evaluator, is_spared=options.spared)
    return SensitivityResult(name_of(model), found)


def result_report(result: Result) -> dict[str, Json]:
    """Return a result as JSON; with its score where the metric is no share of right answers."""
    figures = picked(result, "right", "samples", "accuracy_percent", "sqnr_db")
    figures |= {} if result.score is None else {"score": result.score}
    return {**figures, "refused": result.refused or None}


def layer_report(layer: LayerWidths) -> dict[str, Json]:
    """Return a layer as JSON, without its widths."""
    return picked(layer, "index", "name", "operator")
