"""A filter of the float network in a target's graph: where its weights stand there, in which layout, on which grid."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.graph import ABSENT, Affine, Graph, Node
from tflq.graph.float_view import dequantise
from tflq.precision.recover.descent import Grid
from tflq.precision.recover.filters import Filter

_PASSED = 3
"""Nodes behind a filter that may write its result: an activation, a change of type, a reshape."""

_SLACK = 1e-4
"""Share of a scale that the target's own arithmetic may add to half a step of rounding."""


@dataclass(frozen=True)
class Placed:
    """A filter's weights in a target's graph.

    Attributes:
        tensor: index of the weights.
        name: of that tensor; they are the same weights in another graph of the target where it is the same.
        axes: order of the target's axes longer than 1, in the file's order.
        bits: of its quantized values.
    """

    tensor: int
    name: str
    axes: tuple[int, ...]
    bits: int

    def read(self, graph: Graph, of: Filter) -> NDArray[np.int64]:
        """Return the quantized weights less their zero point, in the file's shape: int64.

        Raises:
            ValueError: the target's graph is another one now.
        """
        if self.tensor >= len(graph.tensors) or graph.tensors[self.tensor].name != self.name:
            raise ValueError(f"the target's graph holds weights '{self.name}' no longer")
        tensor = graph.tensors[self.tensor]
        assert tensor.data is not None
        q = tensor.data.astype(np.int64) - tensor.affine.along(len(tensor.shape))[1]
        return _in_file_order(q, self.axes, of.shape)

    def grid(self, graph: Graph, of: Filter) -> Grid:
        """Return what the target's own rounding made of the weights."""
        tensor = graph.tensors[self.tensor]
        q = self.read(graph, of)
        scales = np.broadcast_to(tensor.affine.along(len(tensor.shape))[0].astype(np.float64), tensor.shape)
        per_weight = of.matrix(_in_file_order(scales, self.axes, of.shape))
        matrix = np.ascontiguousarray(of.matrix(q)).astype(np.float64)
        largest = max(1, int(q.max()) if -q.min() == q.max() + 1 else int(np.abs(q).max()))
        least = -largest - int(-q.min() == q.max() + 1)
        return Grid(largest, least, not tensor.affine.is_per_axis, matrix, per_weight[:, 0].copy())


def place(graph: Graph, of: Filter, weights: NDArray[np.float32], output: int | None) -> Placed | str:
    """Find the weights of a filter in a target's graph; in words why they cannot be recovered.

    Args:
        graph: the target's.
        of: the filter.
        weights: the model's own, float32.
        output: the target's tensor that means the filter's result; None where there is none.
    """
    found = _weights_of(graph, of, output)
    if found is None:
        return "the target's graph has no such layer"
    tensor = graph.tensors[found]
    quantisation = tensor.quantisation
    if not isinstance(quantisation, Affine) or tensor.data is None or not tensor.dtype.is_integer:
        return "the target keeps its weights in another form than quantized values with a scale"
    long = [n for n in tensor.shape if n != 1]
    wanted = [n for n in of.shape if n != 1]
    real = dequantise(tensor.data, quantisation).astype(np.float64)
    step = np.broadcast_to(quantisation.along(len(tensor.shape))[0].astype(np.float64), tensor.shape)
    for axes in permutations(range(len(long))):
        if [long[a] for a in axes] != wanted:
            continue
        near = np.abs(_in_file_order(real, axes, of.shape) - weights)
        if (near <= (0.5 + _SLACK) * _in_file_order(step, axes, of.shape)).all():
            return Placed(found, tensor.name, axes, quantisation.bits)
    return "the target changes its weights by more than rounding to nearest (it joins, cuts, scales or clips them)"


def _in_file_order(array: NDArray[Any], axes: tuple[int, ...], shape: tuple[int, ...]) -> NDArray[Any]:
    return np.transpose(array.reshape([n for n in array.shape if n != 1]), axes).reshape(shape)


def _weights_of(graph: Graph, of: Filter, output: int | None) -> int | None:
    """Return the constant weights of the node that computes the filter: by its name, else by what it writes."""
    for node in graph.nodes:
        if node.name == of.node.name and _has_weights(graph, node):
            return node.inputs[1]
    writers = {t: n for n in graph.nodes for t in n.outputs}
    for _ in range(_PASSED):
        writer = None if output is None else writers.get(output)
        if writer is None or _has_weights(graph, writer):
            return None if writer is None else writer.inputs[1]
        output = writer.inputs[0] if writer.inputs else None
    return None


def _has_weights(graph: Graph, node: Node) -> bool:
    tensor = graph.tensors[node.inputs[1]] if len(node.inputs) > 1 and node.inputs[1] != ABSENT else None
    return tensor is not None and tensor.is_constant and len(tensor.shape) > 1
