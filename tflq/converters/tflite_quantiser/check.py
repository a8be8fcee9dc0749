"""What the target `tflite` refuses: all at once, each with its way out."""

from __future__ import annotations

from tflq.graph import Graph

_RUNS_OTHERS = ("if", "while", "call", "call_once", "stablehlo_case", "stablehlo_composite")


def problems_of(graph: Graph) -> tuple[str, ...]:
    """Return one line for each operator that runs other graphs; those without integer kernels stay in float."""
    return tuple(
        f"{graph.where(index)}: it runs other graphs, whose tensors are not calibrated; cut the graph in front of it"
        for index, node in enumerate(graph.nodes)
        if node.operator in _RUNS_OTHERS
    )
