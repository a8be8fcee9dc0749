"""What a search makes small: bytes, or a target's estimate of cycles or energy (docs/guides/search.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tflq.converters.estimate import Estimate, Estimator, Figure, LayerEstimate, exact, lower_bound
from tflq.converters.precision import Costs
from tflq.converters.targets import find_mixed_precision
from tflq.errors import OptionError
from tflq.graph import Graph
from tflq.parallel.executions import quantized
from tflq.precision.problem import Problem
from tflq.precision.trial import Bits, Trial

OBJECTIVES = ("bytes", "cycles", "energy")


@dataclass(frozen=True)
class Objective:
    """What a search makes small.

    Attributes:
        name: one of OBJECTIVES.
        unit: of its figures.
        costs: what decides which of two settings is the smaller.
        figure: returns the same cost of a setting with its grade, its error and its basis.
    """

    name: str
    unit: str
    costs: Costs
    figure: Callable[[Bits], Figure] = field(compare=False)


def objective_of(problem: Problem, name: str = "bytes") -> Objective:
    """Return an objective for a problem.

    cycles is the target's estimate of the network, or its lower bound where the estimate offers no total; energy the
    estimate's first figure in uJ. A layer's share is what the figure changes by where that layer alone is narrower.

    Args:
        problem: of the settings.
        name: one of OBJECTIVES.

    Raises:
        OptionError: the target, or a layer with a choice, has too little evidence for an estimate; the message says it.
    """
    if name == "bytes":
        sizes = problem.plan.sizes
        return Objective(name, "bytes", sizes, lambda bits: exact(sizes.of(bits), "bytes", problem.plan.counted))
    estimate = find_mixed_precision(problem.target).estimate
    if isinstance(estimate, str):
        raise OptionError(f"target {problem.target} offers no {name}: {estimate}; allowed is --objective bytes")
    figure = _figures(problem, estimate, name)
    base = figure(problem.widest)
    layers = []
    for position, layer in enumerate(problem.plan.layers):
        alone = {w.bits: figure(problem.alone(position, w.bits)) for w in layer.widths}
        layers.append({bits: _value(found) - _value(base) for bits, found in alone.items()})
    return Objective(name, base.unit, Costs(_value(base), tuple(layers)), figure)


def _figures(problem: Problem, estimate: Estimator, name: str) -> Callable[[Bits], Figure]:
    """Return bits -> figure; a layer's estimate depends on its own bits, so that each width is quantized once."""
    graphs = {bits: _quantized(problem, problem.uniform(bits)) for bits in problem.widths}
    widest = _quantized(problem, problem.widest)
    base = estimate(widest)
    found = {bits: {layer.name: layer for layer in estimate(graph).layers} for bits, graph in graphs.items()}
    places = {layer.name: place for place, layer in enumerate(base.layers)}
    for layer in problem.plan.layers:
        _require_cycles(layer.name, base.layers[places[layer.name]] if layer.name in places else None)
    if name == "energy" and not (base.energy.is_offered and base.cycles.is_offered):
        why = base.energy.basis if base.cycles.is_offered else base.cycles.basis
        raise OptionError(f"energy is not offered: {why}; --objective cycles compares a lower bound")

    def figure(bits: Bits) -> Figure:
        layers = list(base.layers)
        for layer, width in zip(problem.plan.layers, bits, strict=True):
            layers[places[layer.name]] = found[width][layer.name]
        return _chosen(estimate(widest, layers), name, is_whole=base.cycles.is_offered)

    return figure


def _quantized(problem: Problem, bits: Bits) -> Graph:
    return quantized(problem.graph, find_mixed_precision(problem.target), problem.settings(Trial(bits)))


def _require_cycles(name: str, layer: LayerEstimate | None) -> None:
    if layer is None:
        raise OptionError(f"layer '{name}': the estimate has no layer of that name; allowed is --objective bytes")
    if not layer.cycles.is_offered and not (layer.engine_cycles and layer.engine_cycles.is_offered):
        raise OptionError(
            f"layer '{name}': no cycles are offered: {layer.cycles.basis}; allowed is --objective bytes, or a width "
            f"for this layer by --layer"
        )


def _chosen(estimate: Estimate, name: str, *, is_whole: bool) -> Figure:
    """Return the figure; of one kind for all settings, so that they can be compared."""
    if name == "energy":
        return estimate.energy
    least = lower_bound(estimate.layers)
    return estimate.cycles if is_whole else replace(least, basis=f"{least.basis}; {estimate.cycles.basis}")


def _value(figure: Figure) -> float:
    assert figure.value is not None
    return figure.value
