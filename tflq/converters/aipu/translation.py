"""A graph of Compass's layers under construction."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tflq.graph import Array, Attributes, DType, Graph, Node, Tensor

RESERVED = str.maketrans(dict.fromkeys("=,[] \n", "_"))
FUSED = {"none": "NONE", "relu": "RELU", "relu6": "RELU6"}


@dataclass
class Translation:
    """A graph of Compass's layers under construction.

    Attributes:
        source: float TFLite graph.
        graph: what is being built.
        places: tensor of the source -> tensor of the graph.
        names: of the layers so far.
    """

    source: Graph
    graph: Graph
    places: dict[int, int] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def sources(self) -> dict[str, int]:
        """Return tensor name of the graph -> tensor of the source."""
        return {self.graph.tensors[new].name: old for old, new in self.places.items()}

    def layer_name(self, wanted: str) -> str:
        """Return a name that no layer has."""
        name = base = wanted.translate(RESERVED) or "layer"
        number = 1
        while name in self.names:
            name = f"{base}_{number}"
            number += 1
        self.names.add(name)
        return name

    def tensor(self, t: int, layer: str) -> int:
        """Add the tensor that a layer writes."""
        old = self.source.tensors[t]
        self.places[t] = self.graph.add_tensor(replace(old, name=f"{layer}_0", extra=None))
        return self.places[t]

    def constant(self, layer: str, key: str, data: Array) -> int:
        """Add a constant of a layer."""
        value = np.ascontiguousarray(data, np.float32)
        value.setflags(write=False)
        return self.graph.add_tensor(Tensor(f"{layer}/{key}", value.shape, DType.FLOAT32, data=value))

    def append(
        self,
        node: Node,
        operator: str,
        constants: dict[str, Array],
        attributes: Attributes | None = None,
        reads: int = 1,
    ) -> None:
        """Add the layer of a node that reads its first `reads` inputs."""
        layer = self.layer_name(self.source.tensors[node.outputs[0]].name)
        inputs = tuple(self.places[t] for t in node.inputs[:reads])
        inputs += tuple(self.constant(layer, k, v) for k, v in constants.items())
        output = self.tensor(node.outputs[0], layer)
        self.graph.nodes.append(Node(operator, inputs, (output,), attributes or Attributes(), layer))
