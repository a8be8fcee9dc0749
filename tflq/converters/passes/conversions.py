"""Changes of type: those of a file go, constants of float16 widen, and they come back where types meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.converters.passes.rewrite import without_nodes
from tflq.graph import DType, Graph, Node, Quantization, Tensor
from tflq.graph.operators import CONVERSIONS
from tflq.graph.rewriting import GraphEditor


def remove_conversions(editor: GraphEditor, is_typed: Callable[[Tensor], bool]) -> None:
    """Remove the QUANTIZE and DEQUANTIZE operators of the file, and unread nodes.

    Readers of the output read the input. An input without `is_typed`, such as a float input of the graph, gets type,
    quantization and range of the output.
    """
    for name in [node.name for node in editor.nodes if node.operator in CONVERSIONS]:
        node = editor.node(name)
        source, typed = node.inputs[0], editor.tensors[node.outputs[0]]
        if not is_typed(editor.tensors[source]):
            editor.tensors[source] = replace(
                editor.tensors[source], dtype=typed.dtype, quantization=typed.quantization, range=typed.range
            )
        editor.bypass(node)
    editor.remove_dead()


@dataclass
class Conversions:
    """Tensors of a graph under construction in other types: each made once, by a node in front of its first reader.

    Attributes:
        graph: gets the tensors, and the nodes at its end.
    """

    graph: Graph
    _made: dict[tuple[int, DType, Quantization | None], int] = field(default_factory=dict)

    def convert(self, source: int, wanted: Tensor, node: Node) -> int:
        """Return the tensor that holds `source` in the type of `wanted`.

        Args:
            source: index of the tensor.
            wanted: name and type of the new tensor, if it is made now.
            node: the operator that makes it; reads `source`.
        """
        key = (source, wanted.dtype, wanted.quantization)
        if key not in self._made:
            self._made[key] = self.graph.add_tensor(wanted)
            self.graph.nodes.append(replace(node, inputs=(source,), outputs=(self._made[key],)))
        return self._made[key]


def widen_halves(graph: Graph) -> Graph:
    """Return the graph with such constants as float32, which is exact, and without the DEQUANTIZE.

    The graph itself where it has none. Tensors keep their numbers.
    """
    result, gone = graph.copy(), set[int]()
    for index, node in enumerate(graph.nodes):
        source = graph.tensors[node.inputs[0]] if node.operator == "dequantize" else None
        if source is None or source.data is None or source.dtype is not DType.FLOAT16:
            continue
        data = source.data.astype(np.float32)
        data.setflags(write=False)
        (t,) = node.outputs
        result.tensors[t] = replace(graph.tensors[t], data=data, shape=data.shape)
        gone.add(index)
    return without_nodes(result, gone) if gone else graph
