"""NE16 or the cluster for each filter, by the estimate of cycles (docs/guides/estimate.md)."""

from __future__ import annotations

from tflq.converters.engines import EngineChoice, EngineChoices, network_cycles, saved_cycles
from tflq.converters.estimate import Estimate, Figure, not_offered
from tflq.converters.gap9.estimate import estimate_graph
from tflq.converters.gap9.jobs.filters import is_on_ne16
from tflq.converters.gap9.quantize import quantize_graph
from tflq.converters.settings import LayerRule, Settings
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import Graph

_KEY = "use_ne16"
_TRIED = "cluster"


def engines_by_estimate(graph: Graph, settings: Settings) -> EngineChoices:
    """Return for each filter on NE16 whether the cluster's cores take fewer cycles, one layer after the other.

    A layer moves where the evidence decides: the most that the cluster takes, with what changes beside the layer, is
    less than the least that NE16 takes. Layers whose engine a rule of the settings names stay.

    Raises:
        UnsupportedError, OptionError: the graph cannot be quantized with these settings.
    """
    quantized = quantize_graph(graph, settings)
    on_ne16 = {node.name for node in quantized.nodes if is_on_ne16(node)}
    first = now = estimate_graph(quantized)
    layers = []
    for index, node in enumerate(graph.nodes):
        if node.name not in on_ne16 or settings.names(graph, index, (_KEY,)):
            continue
        tried = Settings(settings.values, (*settings.rules, LayerRule(str(index), {_KEY: False})))
        elsewhere, saved = _tried(graph, tried, now)
        is_moved = elsewhere is not None and saved.low is not None and saved.low > 0
        if elsewhere is not None and is_moved:
            now, settings = elsewhere, tried
        engine = _TRIED if is_moved else "NE16"
        layers.append(EngineChoice(index, node.name, engine, _TRIED, saved, f"{index}:{_KEY}=false"))
    return EngineChoices(settings, tuple(layers), network_cycles(first), network_cycles(now))


def _tried(graph: Graph, settings: Settings, now: Estimate) -> tuple[Estimate | None, Figure]:
    try:
        found = estimate_graph(quantize_graph(graph, settings))
    except (UnsupportedError, OptionError) as error:
        return None, not_offered("cycles", f"the cluster does not take it: {error}")
    return found, saved_cycles(now, found)
