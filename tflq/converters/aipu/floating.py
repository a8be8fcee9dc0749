"""Layers that run in floating point inside the quantized graph, to see what they cost.

Source: docs/targets/aipu.md#tuning-accuracy.

The operators of the model that such a layer stands for run in arithmetic `float`, with their float weights. Quantized
values that they read are dequantized first; neighbors in floating point hand on their numbers as they are. What they
write becomes quantized values of the layer's own type for all other readers, so that the rest of the graph is what it
was.

Source: whitepaper ACN-AWP-1002A, 6.2; Compass Optimizer, fake_quant_scopes_for_debug. (As shipped, the Optimizer
truncates the float results to the integer type of the layer; here they are not.)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from tflq.converters.aipu.descriptor import ARITHMETIC
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Graph, Node, validate
from tflq.graph.model import source_tensors

DEQUANTIZE = "dequantize"
QUANTIZE = "quantize"
FLOAT = "float"


def with_float_layers(quantized: Graph, network: Graph, names: Collection[str]) -> Graph:
    """Return the quantized graph with some layers in floating point.

    Args:
        quantized: of this target, made of `network`.
        network: float TFLite graph, or the float layers of an IR.
        names: of the layers; all those that one operator became.

    Raises:
        UnsupportedError: a layer that stands for no tensor of the model.
    """
    work = _Islands(quantized, network)
    for node in quantized.nodes:
        if node.name in names:
            work.add_island(node)
        else:
            work.graph.nodes.append(node)
    validate(work.graph, "aipu graph with layers in float")
    return work.graph


def float_layers(graph: Graph) -> tuple[str, ...]:
    """Return the names of the layers that run in floating point."""
    return tuple(n.name for n in graph.nodes if n.operator == QUANTIZE and n.arithmetic == ARITHMETIC)


@dataclass
class _Islands:
    """A graph under construction.

    Attributes:
        quantized: what it is made of.
        network: where float operators come from.
        graph: what is being built.
        places: tensor of the network -> tensor of the quantized graph.
        floats: tensor of the network -> its float tensor in the graph.
    """

    quantized: Graph
    network: Graph
    graph: Graph = field(init=False)
    places: dict[int, int] = field(init=False)
    floats: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.graph = replace(self.quantized.copy(), nodes=[])
        self.places = {s: t for t, s in source_tensors(self.quantized).items()}

    def add_island(self, layer: Node) -> None:
        """Add the operators of the model that compute what the layer writes, then its quantized values."""
        known = {t: s for s, t in self.places.items()}
        ends = [(t, known[t]) for t in layer.outputs if t in known]
        for node in self._operators([s for _, s in ends]):
            inputs = tuple(t if t == ABSENT else self._float(t) for t in node.inputs)
            outputs = tuple(self._new(t) for t in node.outputs)
            self.graph.nodes.append(
                replace(node, inputs=inputs, outputs=outputs, arithmetic=node.arithmetic or FLOAT, params=None)
            )
        for t, s in ends:
            self.graph.nodes.append(Node(QUANTIZE, (self.floats[s],), (t,), name=layer.name, arithmetic=ARITHMETIC))

    def _operators(self, ends: list[int]) -> list[Node]:
        """Return the operators between the layers' tensors and these, in order; none that was added already."""
        producers = self.network.producers()
        found: set[int] = set()
        waiting = [s for s in ends if s not in self.floats]
        while waiting:
            index = producers.get(waiting.pop())
            if index is None or index in found:
                continue
            found.add(index)
            inputs = (t for t in self.network.nodes[index].inputs if t != ABSENT)
            waiting += [t for t in inputs if t not in self.places and t not in self.floats]
        return [self.network.nodes[i] for i in sorted(found)]

    def _float(self, s: int) -> int:
        """Return the float tensor of a tensor of the network: computed, constant, or dequantized here."""
        tensor = self.network.tensors[s]
        if s not in self.floats and tensor.is_constant:
            self.floats[s] = self.graph.add_tensor(tensor)
        if s not in self.floats:
            if s not in self.places:
                raise UnsupportedError(f"tensor '{tensor.name}' is none of a layer: it cannot be read in float")
            self._new(s)
            node = Node(DEQUANTIZE, (self.places[s],), (self.floats[s],), name=f"{tensor.name}/{DEQUANTIZE}")
            self.graph.nodes.append(replace(node, arithmetic=ARITHMETIC))
        return self.floats[s]

    def _new(self, s: int) -> int:
        tensor = self.network.tensors[s]
        self.floats[s] = self.graph.add_tensor(replace(tensor, name=f"{tensor.name}/{FLOAT}", range=None))
        return self.floats[s]
