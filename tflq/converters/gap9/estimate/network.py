"""What a network costs: its layers' cycles together, time and energy at two points, memory in L2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.converters.estimate import (
    Estimate,
    Figure,
    Grade,
    LayerEstimate,
    at_least,
    exact,
    lower_bound,
    not_offered,
    total,
    within,
)
from tflq.converters.gap9.estimate.layers import (
    COUNT,
    L1_BYTES,
    L1_RESERVED_BYTES,
    LAYOUT,
    NETWORK_ERROR,
    layer_estimate,
)
from tflq.graph import Graph
from tflq.graph.arena import arena_of

L2_BYTES = 3 << 19
_ENERGY_ERROR = 0.2
_FIT = "three constants fitted on four published networks: -2..+4 %, left out up to 12 %"
_SINGLE = f"{_FIT}; kernels of the cluster from one network each, without a test"
_FLOW = "holds for GreenWaves' own flow (AutoTiler); another published flow took 1.6 times as long"


@dataclass(frozen=True)
class Point:
    """A published operating point: E = pj_per_cycle * cycles + pj_per_mac * MACs, fitted on four networks."""

    name: str
    megahertz: int
    pj_per_cycle: float
    pj_per_mac: float

    def energy(self, cycles: float, macs: float) -> float:
        """Return the energy of a run in uJ."""
        return (self.pj_per_cycle * cycles + self.pj_per_mac * macs) / 1e6


POINTS = (Point("0.80 V, 370 MHz", 370, 115.70787, 1.2300892), Point("0.65 V, 240 MHz", 240, 83.155447, 0.76697089))


def estimate_graph(graph: Graph, layers: Sequence[LayerEstimate] | None = None) -> Estimate:
    """Return what a quantised graph costs; shapes and types decide, values do not matter.

    Args:
        graph: quantised, lowered or not.
        layers: what its layers cost, where that is known already.
    """
    layers = tuple(layers or (layer_estimate(graph, index) for index in range(len(graph.nodes))))
    memory, remarks = _memory(graph, layers)
    cycles = _cycles(layers, memory)
    macs = total((layer.macs for layer in layers), "MACs", COUNT)
    jobs = [layer.engine_cycles for layer in layers if layer.engine_cycles is not None]
    totals = {"MACs": macs}
    if jobs and all(job.is_offered for job in jobs):
        totals["NE16 alone"] = total(jobs, "cycles", "its layers without transfers and set-up")
    if not cycles.is_offered:
        totals["at least"] = lower_bound(layers)
    for point in POINTS:
        totals |= _at(point, cycles, macs)
    return Estimate(cycles, layers, totals, memory, (*remarks, _FLOW))


def _cycles(layers: Sequence[LayerEstimate], memory: Mapping[str, Figure]) -> Figure:
    unknown = [layer for layer in layers if not layer.cycles.is_offered]
    if unknown:
        named = "; ".join(f"{layer.name}: {layer.cycles.basis}" for layer in unknown)
        return not_offered("cycles", named)
    if (memory["L2"].value or 0) > L2_BYTES:
        return not_offered(
            "cycles", "constants and activations do not fit L2; no public bandwidth of the memory behind it"
        )
    on_ne16 = [layer.cycles for layer in layers if layer.engine_cycles is not None]
    parts = [layer.cycles for layer in layers if layer.engine_cycles is None]
    if on_ne16:
        fitted = total(on_ne16, "cycles", _FIT)
        if fitted.grade is Grade.FITTED:
            fitted = within(fitted.value or 0, "cycles", Grade.FITTED, 1 - NETWORK_ERROR, 1 + NETWORK_ERROR, _FIT)
        parts.append(fitted)
    found = total(parts, "cycles", _FIT)
    return found if found.grade is not Grade.SINGLE_CASE else replace(found, basis=_SINGLE)


def _at(point: Point, cycles: Figure, macs: Figure) -> dict[str, Figure]:
    """Return time and energy at an operating point."""
    names = (f"time at {point.name}", f"energy at {point.name}")
    if cycles.value is None or cycles.low is None:
        reason = "the cycles of the network are not offered"
        return {names[0]: not_offered("us", reason), names[1]: not_offered("uJ", reason)}
    count, mhz = macs.value or 0, point.megahertz
    basis = f"{cycles.basis}; cycles / {mhz} MHz"
    energy = point.energy(cycles.value, count)
    words = (
        f"{point.pj_per_cycle:.1f} pJ a cycle and {point.pj_per_mac:.2f} pJ a MAC, fitted on four networks: -11..+8 %"
    )
    if cycles.high is None:
        time = at_least(cycles.value / mhz, "us", basis)
        return {names[0]: time, names[1]: at_least((1 - _ENERGY_ERROR) * energy, "uJ", words)}
    time = Figure(cycles.value / mhz, "us", cycles.grade, cycles.low / mhz, cycles.high / mhz, basis)
    low = min((1 - _ENERGY_ERROR) * energy, point.energy(cycles.low, count))
    high = max((1 + _ENERGY_ERROR) * energy, point.energy(cycles.high, count))
    return {names[0]: time, names[1]: Figure(energy, "uJ", cycles.grade, low, high, words)}


def _memory(graph: Graph, layers: Sequence[LayerEstimate]) -> tuple[dict[str, Figure], list[str]]:
    """Return constants, activations and their sum in L2, the largest layer in L1, and what does not fit."""
    arena = arena_of(graph)
    weights = total((layer.weights for layer in layers), "bytes", LAYOUT)
    activations = exact(
        arena.planned_bytes, "bytes", "tflq's plan of the tensors that live at a time; AutoTiler has its own"
    )
    l2 = total((weights, activations), "bytes", "constants and activations together")
    largest = max(layers, key=lambda layer: layer.working_set.value or 0, default=None)
    memory = {"constants": weights, "activations": activations, "L2": l2}
    if largest is not None:
        memory["largest layer"] = largest.working_set
    room = (L1_BYTES - L1_RESERVED_BYTES) >> 10
    remarks = [f"L1: 128 KiB, of which 16 KiB are taken to be the program's (assumed): {room} KiB for a layer"]
    tiled = [f"{layer.name} ({layer.remark})" for layer in layers if layer.remark]
    remarks.append("every layer fits L1 as a whole" if not tiled else f"tiled: {', '.join(tiled)}")
    fits = (l2.value or 0) <= L2_BYTES
    remarks.append(f"constants and activations {'fit' if fits else 'do not fit'} L2 (1.5 MiB)")
    return memory, remarks
