"""What one layer costs: NE16's jobs by the formula that is its RTL, with the fitted cost of a layer around them."""

from __future__ import annotations

from tflq.converters.estimate import (
    Figure,
    Grade,
    LayerEstimate,
    at_least,
    exact,
    not_offered,
    within,
)
from tflq.converters.gap9.estimate.cluster import cluster_cycles
from tflq.converters.gap9.jobs.cycles import Cycles, cycles_of
from tflq.converters.gap9.jobs.filters import Filter, ceil, filter_of, is_on_ne16
from tflq.converters.gap9.operators import FILTERS
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Graph
from tflq.graph.arena import macs, tensor_bytes

LAYER_CYCLES = 2260.2015
"""Set-up, transfers of activations and synchronisation of an NE16 layer: fitted on four published networks."""
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


def layer_estimate(graph: Graph, index: int) -> LayerEstimate:
    """Return what a node of a quantised graph costs."""
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
    used = 100 * (count.value or 0) / (layer.macs_per_cycle * found.total)
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
        "outputs": found.normalise + found.sums,
        "DMA of weights": transfer,
        "set-up": LAYER_CYCLES,
    }
    return max(parts, key=lambda name: parts[name])


def tiles_of(working: Figure) -> int:
    """Return the least number of tiles: every byte of a layer must come into L1."""
    return ceil(int(working.value or 0), L1_BYTES - L1_RESERVED_BYTES)


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
