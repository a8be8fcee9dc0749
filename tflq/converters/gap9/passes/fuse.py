"""Which nodes the hardware's generators take together: the name of the fusion stands in each of its nodes."""

from __future__ import annotations

from tflq.converters.gap9.operators import ACTIVATIONS, POOLS, RECTIFIERS
from tflq.converters.passes.patterns import only_reader
from tflq.converters.passes.rewrite import with_attributes
from tflq.graph import Graph

_ACTIVATION, _MAX, _AVERAGE = "activation", "max_pool_2d", "average_pool_2d"
_CONVOLUTION_CHAINS = (
    (_MAX, _ACTIVATION),
    (_AVERAGE, _ACTIVATION),
    (_ACTIVATION, _MAX),
    (_ACTIVATION,),
    (_MAX,),
    (_AVERAGE,),
)
_CHAINS: dict[str, tuple[tuple[str, ...], ...]] = {
    "conv_2d": _CONVOLUTION_CHAINS,
    "depthwise_conv_2d": _CONVOLUTION_CHAINS,
    "fully_connected": ((_ACTIVATION,),),
    "add": (("rectifier",),),
    "sub": (("rectifier",),),
}
"""First operator -> what may follow it in one fusion, the longest first."""


def fuse(graph: Graph) -> Graph:
    """Return the graph with the attribute `fusion` on each node of a fusion: <first node>_fusion.

    A node joins only if nobody else reads what it reads. An average pool does not join behind an activation.
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        members = next(
            (m for chain in _CHAINS.get(node.operator, ()) if (m := _follow(graph, index, chain)) is not None), None
        )
        for member in members or ():
            result.nodes[member] = with_attributes(graph.nodes[member], fusion=f"{node.name}_fusion")
    return result


def _follow(graph: Graph, index: int, chain: tuple[str, ...]) -> list[int] | None:
    members = [index]
    for kind in chain:
        reader = only_reader(graph, graph.nodes[members[-1]].outputs[0])
        if reader is None or kind not in _kinds(graph.nodes[reader].operator):
            return None
        members.append(reader)
    return members


def _kinds(operator: str) -> tuple[str, ...]:
    if operator in POOLS:
        return (operator,)
    return (_ACTIVATION, "rectifier") if operator in RECTIFIERS else (_ACTIVATION,) * (operator in ACTIVATIONS)
