"""`tflq.estimate`: what a network costs on a target, each figure with what it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tflq.api.calibrate import calibrate
from tflq.api.options import CalibrationOptions, Progress, TargetOptions, changed, silent
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import Result
from tflq.api.run_record import recorded
from tflq.api.target import choose_target, complete
from tflq.converters.estimate import Estimate, without_model
from tflq.parallel.executions import quantized
from tflq.report import Column, Table, Verdict
from tflq.report.estimate import estimate_verdict, figure, layers_table, network_table


@dataclass(frozen=True)
class EstimateOptions:
    """How a model is estimated.

    Attributes:
        calibration: ranges of its tensors, where a target needs them.
    """

    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)


@dataclass(frozen=True)
class EstimateResult(Result):
    """Cost of a network on a target.

    Attributes:
        model: how reports call it.
        target: that it was estimated for.
        estimate: its figures, each with its grade, its error and its basis.
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


@recorded
def estimate(
    model: ModelSource,
    target: TargetOptions | str,
    options: EstimateOptions = EstimateOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> EstimateResult:
    """Estimate cycles, time, energy and memory of a network on a target.

    Every figure carries its grade (exact, fitted, single case, lower bound, not offered), its error and its basis. A
    network with a layer that is not offered has no total. Targets without published evidence answer "not offered".

    Args:
        model: to estimate.
        target: with its settings, or its name.
        options: the calibration.
        progress: shows how far the calibration is.
        **changes: fields of the options.

    Raises:
        UsageError, OptionError, InputError, FormatError: options or files that do not fit.
        UnsupportedError: operators that the target cannot take, all at once.
    """
    options = changed(options, changes)
    wanted = complete(target, options.calibration)
    original = read_model(model)
    found, settings = choose_target(wanted.name or "", wanted)
    if isinstance(found.estimate, str):
        return EstimateResult(name_of(model), found.name, without_model(found.estimate))
    ranged = calibrate(original, options.calibration, target=found.name, progress=progress)
    return EstimateResult(name_of(model), found.name, found.estimate(quantized(ranged.main, found, settings)))
