"""The widths that Zhouyi's layers can have: 8 or 16 bits for weights and output together (docs/aipu.md)."""

from __future__ import annotations

from tflq.converters.precision import PrecisionPlan, Quantise, probed_plan
from tflq.converters.settings import Settings
from tflq.graph import Graph

_OFFERED = tuple((bits, {"activation_bits": bits, "weight_bits": bits}) for bits in (16, 8))


def precision_plan(quantise: Quantise, graph: Graph, settings: Settings) -> PrecisionPlan:
    """Return the choices for each layer whose output has a type of its own."""
    return probed_plan(quantise, graph, settings, _OFFERED, "weights, biases and activations")
