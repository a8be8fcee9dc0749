"""`tflq.estimate`: cost of a network on a target, each figure with its reliability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tflq.api.calibrate import calibrate
from tflq.api.options import CalibrationOptions, Progress, TargetOptions, replace_options, silent
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import Result
from tflq.api.run_record import record_call
from tflq.api.target import choose_target, merge_settings
from tflq.converters.estimate import Estimate, without_model
from tflq.parallel.executions import quantized
from tflq.report import Column, Table, Verdict
from tflq.report.estimate import estimate_verdict, figure, layers_table, network_table

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import EstimateKeywords


@dataclass(frozen=True)
class EstimateOptions:
    """Options of an estimate.

    Attributes:
        calibration: Ranges of the tensors, if the target needs them.
    """

    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)


@dataclass(frozen=True)
class EstimateResult(Result):
    """Cost of a network on a target.

    Attributes:
        model: Name of the model in reports.
        target: Name of the target.
        estimate: Figures, each with its grade, its error and its basis.
    """

    FACTS = (
        Column("model", "model"),
        Column("target", "target"),
        Column("cycles", get=lambda r: figure(r.estimate.cycles)),
        Column("totals", get=lambda r: {name: figure(f) for name, f in r.estimate.totals.items()}),
        Column("memory", get=lambda r: {name: figure(f) for name, f in r.estimate.memory.items()}),
        Column("remarks", get="estimate.remarks"),
    )

    model: str
    target: str
    estimate: Estimate

    @property
    def verdict(self) -> Verdict:
        """Cycles of the network."""
        return estimate_verdict(self.estimate)

    @property
    def title(self) -> str:
        """Model and target."""
        return f"{self.model} for {self.target}"

    def tables(self) -> Sequence[Table]:
        """Return the figures of the network and of each layer."""
        return [layers_table(self.estimate), network_table(self.estimate)]


@record_call
def estimate(
    model: ModelSource,
    target: TargetOptions | str,
    options: EstimateOptions = EstimateOptions(),
    *,
    progress: Progress = silent,
    **changes: Unpack[EstimateKeywords],
) -> EstimateResult:
    """Estimate cycles, time, energy and memory of a network on a target.

    Every figure has a grade (exact, fitted, single case, lower bound, not offered), an error and a basis. If a layer is
    not offered, the network has no total. Targets without published evidence return "not offered".

    Args:
        model: Model to estimate.
        target: Target with its settings, or its name.
        options: Calibration.
        progress: Progress callback of the calibration.
        **changes: Fields of the options, by name.

    Raises:
        UsageError, OptionError, InputError, FormatError: Options or files that do not fit.
        UnsupportedError: Operators that the target does not support; the message lists all of them.
    """
    options = replace_options(options, changes)
    wanted = merge_settings(target, options.calibration)
    original = read_model(model)
    chosen, settings = choose_target(wanted.name or "", wanted)
    if isinstance(chosen.estimate, str):
        return EstimateResult(name_of(model), chosen.name, without_model(chosen.estimate))
    ranged = calibrate(original, options.calibration, target=chosen.name, progress=progress)
    return EstimateResult(name_of(model), chosen.name, chosen.estimate(quantized(ranged.main, chosen, settings)))
