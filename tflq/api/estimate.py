"""`tflq.estimate`: what a network costs on a target, each figure with what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tflq.api.calibrate import calibrate
from tflq.api.options import CalibrationOptions, Progress, TargetOptions, changed, silent
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import PageResult, TableResult, picked
from tflq.api.run_record import recorded
from tflq.api.target import choose_target, complete
from tflq.converters.estimate import Estimate, Figure, LayerEstimate, without_model
from tflq.parallel.executions import quantized
from tflq.quoting import Json
from tflq.report import Page
from tflq.report.estimate import estimate_page


@dataclass(frozen=True)
class EstimateOptions:
    """How a model is estimated.

    Attributes:
        calibration: ranges of its tensors, where a target needs them.
    """

    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)


@dataclass(frozen=True)
class EstimateResult(PageResult, TableResult):
    """What a network costs on a target.

    Attributes:
        model: how reports call it.
        target: that it was estimated for.
        estimate: its figures, each with its grade, its error and its basis.
    """

    model: str
    target: str
    estimate: Estimate

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each layer."""
        return [_layer(layer) for layer in self.estimate.layers]

    def report(self) -> Mapping[str, Json]:
        """Return the network's figures and those of its layers."""
        found = self.estimate
        return {
            "model": self.model,
            "target": self.target,
            "cycles": figure(found.cycles),
            "totals": {name: figure(f) for name, f in found.totals.items()},
            "memory": {name: figure(f) for name, f in found.memory.items()},
            "remarks": found.remarks,
            "layers": self.rows(),
        }

    def page(self) -> Page:
        """Return the page: the cycles of each layer, and a table."""
        return estimate_page(self.model, self.target, self.estimate)


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
    ranged = calibrate(original, options.calibration, progress=progress)
    return EstimateResult(name_of(model), found.name, found.estimate(quantized(ranged.main, found, settings)))


def figure(found: Figure) -> dict[str, Json]:
    """Return a figure as JSON; numbers to a tenth."""
    numbers = {key: _tenths(value) for key, value in picked(found, "value", "low", "high").items()}
    return {
        "value": numbers.pop("value"),
        "unit": found.unit,
        "grade": found.grade.value,
        **numbers,
        "basis": found.basis,
    }


def _layer(layer: LayerEstimate) -> dict[str, Json]:
    figures = ("macs", "cycles", "engine_cycles", "utilization", "weights", "working_set")
    found: dict[str, Json] = picked(layer, "index", "name", "operator", "engine")
    for name in figures:
        value: Figure | None = getattr(layer, name)
        found[name] = None if value is None else figure(value)
    return {**found, **picked(layer, "bound", "remark")}


def _tenths(value: Json) -> Json:
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 1)
    return value
