"""`tflq.sensitivity`: what each layer alone does to accuracy and outputs at each of its widths.

Source: docs/guides/search.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.api.options import Progress, SampleSource, TargetOptions, changed, silent
from tflq.api.read_model import ModelSource, name_of
from tflq.api.result import Result
from tflq.api.run_record import recorded
from tflq.api.target import complete
from tflq.api.trials import TrialOptions, open_evaluator, read_subject, with_labels
from tflq.precision import sensitivity as precision
from tflq.report import Column, Table, Verdict
from tflq.report.precision import result_report, sensitivity_notes, sensitivity_table, sensitivity_verdict


@dataclass(frozen=True)
class SensitivityOptions(TrialOptions):
    """How layers are measured, with the fields of `TrialOptions`.

    Attributes:
        spared: the reverse: all layers have the bits, each alone is left at its widest.
    """

    spared: bool = False


@dataclass(frozen=True)
class SensitivityResult(Result):
    """Effect of each layer in isolation.

    Attributes:
        model: how reports call it.
        sensitivity: the results.
    """

    FACTS = (
        Column("model", "model"),
        Column("target", "target", get="sensitivity.target"),
        Column("samples", "samples", get="sensitivity.samples"),
        Column("spared", get="sensitivity.is_spared"),
        Column("float", get="sensitivity.in_float"),
        Column("metric", get="sensitivity.metric.name"),
        Column("without", get=lambda r: {str(b): result_report(x) for b, x in r.sensitivity.bases.items()}),
        Column("evaluated", get="sensitivity.evaluated"),
        Column("known", get="sensitivity.known"),
    )

    model: str
    sensitivity: precision.Sensitivity

    @property
    def verdict(self) -> Verdict:
        """The layer that matters most."""
        return sensitivity_verdict(self.sensitivity)

    @property
    def title(self) -> str:
        """Model and target."""
        return f"Sensitivity of {self.model} for {self.sensitivity.target}"

    @property
    def notes(self) -> Sequence[str]:
        """How layers were measured, refusals, the number of settings."""
        return list(sensitivity_notes(self.sensitivity))

    def tables(self) -> Sequence[Table]:
        """Return a row for each layer."""
        return [sensitivity_table(self.sensitivity)]


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
