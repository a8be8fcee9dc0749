"""What a network costs on GAP9: cycles, memory, energy, each figure with what it is worth (docs/guides/estimate.md).

A layer on NE16 takes its jobs' cycles, by the formula that is its RTL, with the fitted cost of a layer around them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.converters.estimate import (
    AT_LEAST,
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
from tflq.converters.gap9.cluster_cycles import cluster_cycles
from tflq.converters.gap9.jobs.cycles import Cycles, cycles_of
from tflq.converters.gap9.jobs.filters import Filter, ceil, filter_of, is_on_ne16
from tflq.converters.gap9.operators import FILTERS
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Graph
from tflq.graph.arena import arena_of, macs, tensor_bytes

LAYER_CYCLES = 2260.2015
"""Set-up, transfers of activations and synchronization of an NE16 layer: fitted on four published networks."""
BYTES_PER_CYCLE = 8
"""Of weights from L2 to L1, not hidden: the width of the port."""
LAYER_ERROR, NETWORK_ERROR = 0.13, 0.12
"""Of single layers against one published log; of networks that were left out of the fit."""
L1_BYTES, L1_RESERVED_BYTES = 128 << 10, 16 << 10
"""Memory of NE16 and the cluster, and what the user's program is taken to keep of it."""

RTL = "formula equal to NE16's open RTL in 150 of 150 random filters and 85 of networks, memory never refusing"
FIT = "NE16 + weight bytes / 8 + 2260 cycles a layer; layers of one published log were -13..+2 % off"
COUNT = "counted"
LAYOUT = "size of the arrays in hardware.bin"
TAPS = (
    "tap by tap: set-up of the jobs, borders and the cluster's clip are not in the evidence (a published log has "
    "412289 cycles where the jobs of KWS' first convolution take 219924)"
)
_EIGHT_BITS = "16-bit features: every published case has 8"
_ONE_IMAGE = "several images or rows at a time: every published case has one"
_IN_MEMORY = "padding that the cluster must put into memory first: no public cycles of GAP9 for it"


def _known(figure: Figure) -> float:
    """Return the value of a figure that is offered."""
    assert figure.value is not None
    return figure.value


def layer_estimate(graph: Graph, index: int) -> LayerEstimate:
    """Return what a node of a quantized graph costs."""
    node = graph.nodes[index]
    count = exact(macs(graph, index), "MACs", COUNT)
    if is_on_ne16(node):
        try:
            return _on_ne16(graph, index, filter_of(graph, index), count)
        except UnsupportedError as error:
            cycles = not_offered("cycles", str(error))
    else:
        cycles = cluster_cycles(graph, index)
    constant, moving = (0, 0) if cycles.grade is Grade.EXACT else _bytes(graph, index)
    weights, working = exact(constant, "bytes", LAYOUT), exact(constant + moving, "bytes", COUNT)
    engine = node.attributes.text("engine", "") and ("NE16" if is_on_ne16(node) else "cluster")
    return LayerEstimate(
        index, node.name, node.operator, engine, count, cycles, None, None, "", weights, working, remark_of(working)
    )


def _on_ne16(graph: Graph, index: int, layer: Filter, count: Figure) -> LayerEstimate:
    node, found = graph.nodes[index], cycles_of(layer)
    transfer = weight_bytes(layer) / BYTES_PER_CYCLE
    weights = exact(layer.planes_bytes + layer.parameter_bytes, "bytes", LAYOUT)
    working = exact(layer.working_set_bytes, "bytes", COUNT)
    used = 100 * _known(count) / (layer.macs_per_cycle * found.total)
    return LayerEstimate(
        index,
        node.name,
        node.operator,
        "NE16",
        count,
        _network_cycles(layer, found.total + transfer + LAYER_CYCLES, working),
        exact(found.total, "cycles", RTL) if not layer.wide else not_offered("cycles", _EIGHT_BITS),
        exact(used, "%", f"MACs / ({layer.macs_per_cycle:.4g} MACs a cycle of mode {layer.mode} x cycles); {RTL}"),
        bound_of(found, transfer),
        weights,
        working,
        remark_of(working),
    )


def _network_cycles(layer: Filter, cycles: float, working: Figure) -> Figure:
    """Return the cycles of a layer within a network."""
    reasons = (
        (layer.wide, _EIGHT_BITS),
        (layer.mode == "taps", TAPS),
        (any(layer.padded_in_memory), _IN_MEMORY),
        (layer.images > 1, _ONE_IMAGE),
    )
    for holds, reason in reasons:
        if holds:
            return not_offered("cycles", reason)
    if tiles_of(working) > 1:
        return at_least(cycles, "cycles", f"it is tiled, and tiles cost more than the whole; {FIT}")
    return within(cycles, "cycles", Grade.FITTED, 1 - LAYER_ERROR, 1 + LAYER_ERROR, FIT)


def weight_bytes(layer: Filter) -> float:
    """Return the bytes of a layer's weights without the channels that fill up groups."""
    inputs = 1 if layer.mode == "3x3dw" else layer.size_in[2]
    return layer.window.taps * layer.size_out[2] * inputs * layer.bits / 8


def bound_of(found: Cycles, transfer: float) -> str:
    """Return what most cycles of an NE16 layer go to."""
    parts = {
        "compute": found.products,
        "features": found.features,
        "weights": found.weights,
        "outputs": found.normalize + found.sums,
        "DMA of weights": transfer,
        "set-up": LAYER_CYCLES,
    }
    return max(parts, key=lambda name: parts[name])


def tiles_of(working: Figure) -> int:
    """Return the least number of tiles: every byte of a layer must come into L1."""
    return ceil(int(_known(working)), L1_BYTES - L1_RESERVED_BYTES)


def remark_of(working: Figure) -> str:
    """Return what does not fit."""
    tiles = tiles_of(working)
    return f"does not fit L1: >= {tiles} tiles" if tiles > 1 else ""


def _bytes(graph: Graph, index: int) -> tuple[int, int]:
    """Return the bytes of a node's constants, and of what it reads and writes."""
    node = graph.nodes[index]
    read = [graph.tensors[t] for t in node.inputs if t != ABSENT]
    constant = sum(tensor_bytes(t) for t in read if t.is_constant)
    if node.operator in FILTERS:  # int8 weights; multiplier, shift and bias of each output channel
        constant = graph.tensors[node.inputs[1]].size + 6 * graph.tensors[node.inputs[2]].size
    moving = [t for t in read if not t.is_constant] + [graph.tensors[t] for t in node.outputs]
    return constant, sum(map(tensor_bytes, moving))


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
    """Return what a quantized graph costs; shapes and types decide, values do not matter.

    Args:
        graph: quantized, lowered or not.
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
    known = cycles
    if not cycles.is_offered:
        known = totals[AT_LEAST] = lower_bound(layers)
    for point in POINTS:
        totals |= _at(point, known, macs)
    return Estimate(cycles, layers, totals, memory, (*remarks, _FLOW))


def _cycles(layers: Sequence[LayerEstimate], memory: Mapping[str, Figure]) -> Figure:
    unknown = [layer for layer in layers if not layer.cycles.is_offered]
    if unknown:
        named = "; ".join(f"{layer.name}: {layer.cycles.basis}" for layer in unknown)
        return not_offered("cycles", named)
    if _known(memory["L2"]) > L2_BYTES:
        return not_offered(
            "cycles", "constants and activations do not fit L2; no public bandwidth of the memory behind it"
        )
    on_ne16 = [layer.cycles for layer in layers if layer.engine_cycles is not None]
    parts = [layer.cycles for layer in layers if layer.engine_cycles is None]
    if on_ne16:
        fitted = total(on_ne16, "cycles", _FIT)
        if fitted.grade is Grade.FITTED:
            fitted = within(_known(fitted), "cycles", Grade.FITTED, 1 - NETWORK_ERROR, 1 + NETWORK_ERROR, _FIT)
        parts.append(fitted)
    found = total(parts, "cycles", _FIT)
    return found if found.grade is not Grade.SINGLE_CASE else replace(found, basis=_SINGLE)


def _at(point: Point, cycles: Figure, macs: Figure) -> dict[str, Figure]:
    """Return time and energy at an operating point."""
    names = (f"time at {point.name}", f"energy at {point.name}")
    count, mhz = _known(macs), point.megahertz
    basis = f"{cycles.basis}; cycles / {mhz} MHz"
    energy = point.energy(_known(cycles), count)
    words = (
        f"{point.pj_per_cycle:.1f} pJ a cycle and {point.pj_per_mac:.2f} pJ a MAC, fitted on four networks: -11..+8 %"
    )
    if cycles.high is None or cycles.low is None:
        time = at_least(_known(cycles) / mhz, "us", basis)
        return {names[0]: time, names[1]: at_least((1 - _ENERGY_ERROR) * energy, "uJ", words)}
    time = Figure(_known(cycles) / mhz, "us", cycles.grade, cycles.low / mhz, cycles.high / mhz, basis)
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
    largest = max(layers, key=lambda layer: _known(layer.working_set), default=None)
    memory = {"constants": weights, "activations": activations, "L2": l2}
    if largest is not None:
        memory["largest layer"] = largest.working_set
    room = (L1_BYTES - L1_RESERVED_BYTES) >> 10
    remarks = [f"L1: 128 KiB, of which 16 KiB are taken to be the program's (assumed): {room} KiB for a layer"]
    tiled = [f"{layer.name} ({layer.remark})" for layer in layers if layer.remark]
    remarks.append("every layer fits L1 as a whole" if not tiled else f"tiled: {', '.join(tiled)}")
    fits = _known(l2) <= L2_BYTES
    remarks.append(f"constants and activations {'fit' if fits else 'do not fit'} L2 (1.5 MiB)")
    return memory, remarks
