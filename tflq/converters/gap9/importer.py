"""Files that NNTool's importer fails on for what is folded before a target sees a graph (docs/gap9.md, 17.24).

Operators on shapes and indices are constants by then (converters/settled.py); NNTool imports each of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters.settled import settled_graph
from tflq.graph import Graph, Node

READ = frozenset(
    {
        *("abs", "add", "div", "maximum", "mean", "minimum", "mul", "pow", "reduce_max", "relu", "sub", "sum"),
        *("cast", "concatenation", "fill", "gather", "pack", "pad", "reshape", "reverse_v2", "shape", "slice"),
        *("split", "split_v", "strided_slice", "tile", "transpose", "unpack", "dequantize", "quantize"),
    }
)
"""Operators on plain integers that the importer was seen to read; it fails on the other ones that were tried."""
_WAY = "`tflq cut MODEL --settled -o FILE.tflite` writes the file with them folded, for tflq and NNTool"


def unread_operators(graph: Graph) -> Mapping[str, str]:
    """Return the first operator that is folded and that NNTool fails on -> all of them by name, and the way out.

    Args:
        graph: of the file, as it stands.
    """
    if all(_is_read(graph, node) for node in graph.nodes):
        return {}
    kept = {node.name for node in settled_graph(graph).nodes}
    lost = [node for node in graph.nodes if node.name not in kept and not _is_read(graph, node)]
    named = ", ".join(dict.fromkeys(node.operator.upper() for node in lost))
    return {lost[0].name: f"NNTool's importer fails on {named}, which is folded here (17.24); {_WAY}"} if lost else {}


def _is_read(graph: Graph, node: Node) -> bool:
    """GATHER with a single index is not."""
    alone = node.operator == "gather" and graph.tensors[node.inputs[1]].shape == ()
    return node.operator in READ and not alone
