"""Builds graphs in Python: for tests, for targets, and for users whose network is in no file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tflq.arrays import Array
from tflq.graph.attributes import Attribute, Attributes
from tflq.graph.dtypes import DType
from tflq.graph.graph import Graph, Node, Tensor, validate
from tflq.graph.quantization import Quantization


class GraphBuilder:
    """Adds tensors and nodes one by one; `build` checks and returns the graph.

    Example:
        b = GraphBuilder("tiny")
        x = b.input("x", (1, 8), DType.INT8, Affine.per_tensor(np.float32(0.5)))
        y = b.add("relu", [x], (1, 8), DType.INT8, Affine.per_tensor(np.float32(0.5)))
        graph = b.build([y])
    """

    def __init__(self, name: str = "") -> None:
        self._graph = Graph([], [], (), (), name)

    def input(self, name: str, shape: Sequence[int], dtype: DType, quantization: Quantization | None = None) -> int:
        """Add a graph input and return its tensor index."""
        index = self._graph.add_tensor(Tensor(name, tuple(shape), dtype, quantization))
        self._graph.inputs += (index,)
        return index

    def constant(
        self, name: str, data: Array, quantization: Quantization | None = None, dtype: DType | None = None
    ) -> int:
        """Add a constant and return its tensor index; `dtype` names the types that share a storage type."""
        kind = dtype or DType.of(data.dtype)
        value = np.ascontiguousarray(data, kind.storage).reshape(np.shape(data))
        value.setflags(write=False)
        return self._graph.add_tensor(Tensor(name, value.shape, kind, quantization, data=value))

    def variable(self, name: str, shape: Sequence[int], dtype: DType, quantization: Quantization | None = None) -> int:
        """Add a tensor that keeps its value between invocations and starts with zeros; return its index."""
        return self._graph.add_tensor(Tensor(name, tuple(shape), dtype, quantization, is_variable=True))

    def tensor(self, name: str, shape: Sequence[int], dtype: DType, quantization: Quantization | None = None) -> int:
        """Add a tensor that some node will write, and return its index."""
        return self._graph.add_tensor(Tensor(name, tuple(shape), dtype, quantization))

    def node(
        self,
        operator: str,
        inputs: Iterable[int],
        outputs: Iterable[int],
        version: int = 1,
        intermediates: tuple[int, ...] | None = None,
        **attributes: Attribute,
    ) -> None:
        """Add a node between tensors that exist."""
        name = f"{operator.upper()}_0_{len(self._graph.nodes)}"
        self._graph.nodes.append(
            Node(
                operator,
                tuple(inputs),
                tuple(outputs),
                Attributes(attributes),
                name,
                version,
                intermediates=intermediates,
            )
        )

    def add(
        self,
        operator: str,
        inputs: Iterable[int],
        shape: Sequence[int],
        dtype: DType,
        quantization: Quantization | None = None,
        version: int = 1,
        **attributes: Attribute,
    ) -> int:
        """Add a node with one new output and return the output's tensor index."""
        output = self.tensor(f"{operator}_{len(self._graph.nodes)}", shape, dtype, quantization)
        self.node(operator, inputs, (output,), version, None, **attributes)
        return output

    def build(self, outputs: Iterable[int]) -> Graph:
        """Return the graph.

        Raises:
            GraphError: an index is out of range, or a node reads what no earlier node writes.
        """
        graph = self._graph.copy()
        graph.outputs = tuple(outputs)
        validate(graph)
        return graph
