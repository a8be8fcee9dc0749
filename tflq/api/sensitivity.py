"""`tflq.sensitivity`: effect of each layer in isolation on accuracy and outputs, at each of its widths.

Source: docs/guides/search.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflq.api.options import Progress, SampleSource, TargetOptions, replace_options, silent
from tflq.api.read_model import ModelSource, name_of
from tflq.api.result import Result
from tflq.api.run_record import record_call
from tflq.api.target import merge_settings
from tflq.api.trials import TrialOptions, open_evaluator, read_subject, with_labels
from tflq.precision import sensitivity as precision
from tflq.report import Column, Table, Verdict
from tflq.report.precision import result_report, sensitivity_notes, sensitivity_table, sensitivity_verdict

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import SensitivityKeywords


@dataclass(frozen=True)
class SensitivityOptions(TrialOptions):
    """Options of the measurement, with the fields of `TrialOptions`.

    Attributes:
        spared: True for the reverse: all layers have the bits, and each layer in turn has its widest setting.
    """

    spared: bool = False


@dataclass(frozen=True)
class SensitivityResult(Result):
    """Effect of each layer in isolation.

    Attributes:
        model: Name of the model in reports.
        sensitivity: Results of the layers.
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
        """The layer with the largest effect."""
        return sensitivity_verdict(self.sensitivity)

    @property
    def title(self) -> str:
        """Model and target."""
        return f"Sensitivity of {self.model} for {self.sensitivity.target}"

    @property
    def notes(self) -> Sequence[str]:
        """Method of the measurement, refusals, the number of settings."""
        return list(sensitivity_notes(self.sensitivity))

    def tables(self) -> Sequence[Table]:
        """Return a row for each layer."""
        return [sensitivity_table(self.sensitivity)]


@record_call
def sensitivity(
    model: ModelSource,
    target: TargetOptions | str,
    samples: SampleSource = None,
    options: SensitivityOptions = SensitivityOptions(),
    *,
    progress: Progress = silent,
    **changes: Unpack[SensitivityKeywords],
) -> SensitivityResult:
    """Measure accuracy and signal-to-noise ratio with each layer in isolation at each of its widths.

    The other layers have their widest setting. The ratio compares the outputs with the unchanged model's outputs and
    needs no labels.

    Args:
        model: Model to measure.
        target: Target with selectable bits, and its settings.
        samples: Samples that judge a setting (default: 64 random ones); or labeled samples by `data`.
        options: Measurement, samples, workers.
        progress: Progress callback.
        **changes: Fields of the options, by name.

    Raises:
        UsageError, OptionError, InputError, FormatError, UnsupportedError: Options, samples or a model that do not fit.
    """
    samples, options = with_labels(samples, replace_options(options, changes))
    wanted = merge_settings(target, options.calibration)
    subject = read_subject(model, wanted, samples, options, progress, options.span)
    with open_evaluator(subject.problem(options.span), options, progress) as evaluator:
        result = precision.sensitivity(evaluator, is_spared=options.spared)
    return SensitivityResult(name_of(model), result)
