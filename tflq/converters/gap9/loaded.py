"""The graph that NNTool's loader makes of a file, which its first search for transposes sees (docs/gap9.md, 17.15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.apply_types import apply_types
from tflq.converters.gap9.passes.choose_engines import choose_engines
from tflq.converters.gap9.passes.external_bias import take_in_biases
from tflq.converters.gap9.passes.global_pools import name_global_pools
from tflq.converters.gap9.passes.separate_activations import separate_activations
from tflq.converters.gap9.types.plan import InputPlace, TypePlan, for_software, loader_types
from tflq.errors import UnsupportedError
from tflq.graph import Graph


@dataclass(frozen=True)
class Loaded:
    """What the loader makes.

    Attributes:
        graph: fused and implied activations are nodes, and so are the Quantize nodes.
        typed: whether its types, and so its Quantize nodes, are known.
    """

    graph: Graph
    typed: bool


def loaded(graph: Graph, options: Mapping[str, LayerOptions], positive: frozenset[int]) -> Loaded:
    """Return what NNTool's loader makes of a file: before fusions, for SQ8 with 8 bits.

    Args:
        graph: the file's, all computed tensors having ranges.
        options: of each layer.
        positive: graph inputs whose range began above 0.
    """
    apart = name_global_pools(take_in_biases(separate_activations(graph, options), options))
    engined, plan = _typed(apart, options, positive)
    return Loaded(engined if plan is None else apply_types(engined, plan), plan is not None)


def loader_conversions(
    graph: Graph, options: Mapping[str, LayerOptions], positive: frozenset[int]
) -> frozenset[InputPlace]:
    """Return the operands in front of which NNTool's loader puts Quantize nodes; none where its types are not known.

    Args:
        graph: activations are nodes, nothing is fused.
        options: of each layer.
        positive: graph inputs whose range began above 0.
    """
    plan = _typed(graph, options, positive)[1]
    return frozenset() if plan is None else frozenset(plan.conversions)


def _typed(
    graph: Graph, options: Mapping[str, LayerOptions], positive: frozenset[int]
) -> tuple[Graph, TypePlan | None]:
    software = for_software(options)
    engined = choose_engines(graph, software)
    try:
        return engined, loader_types(engined, software, positive)
    except UnsupportedError:
        return engined, None
