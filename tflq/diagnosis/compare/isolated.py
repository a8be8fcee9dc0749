"""Execution of each layer of one graph on the other side's tensors: its own error, without that of earlier layers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.arrays import Doubles
from tflq.converters.targets import Target
from tflq.diagnosis.compare.matching import Match
from tflq.diagnosis.compare.sides import Running
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Affine, Array, Graph, Node, Tensor
from tflq.interpreter.execution.control import CONTROL
from tflq.interpreter.execution.deferred import Deferred
from tflq.interpreter.registry import kernel, kernel_name
from tflq.parallel.executions import real_values


class Isolated:
    """The first side, each layer of which gets the reference's inputs."""

    def __init__(self, side: Running, matches: Mapping[int, Match]) -> None:
        """Check that it can be done.

        Args:
            side: the model in question.
            matches: Counterpart in the reference, by tensor of the side's graph.

        Raises:
            UnsupportedError: a node with integers that depend on values computed at run time, or a node that runs
                other graphs or keeps state.
        """
        self._side = side
        self._graph = side.execution.graph
        self._matches = matches
        require_separate_nodes(self._graph, "; compare without --isolated")

    def run(self, inputs: list[Array], reference: Mapping[str, Array]) -> dict[int, Array]:
        """Return each node's output for the reference's tensors as inputs.

        If the reference lacks a tensor (between a target's convolution and its ReLU), the value just computed is used.

        Args:
            inputs: Inputs of the graph, in its encoding; used if the reference has none.
            reference: Values of the second side by column name.
        """
        graph = self._graph
        values = constants_of(graph)
        values.update(zip(graph.inputs, inputs, strict=True))
        for t in graph.inputs:
            self._feed(values, t, reference)
        results: dict[int, Array] = {}
        for node in graph.nodes:
            if all(graph.tensors[t].is_constant for t in node.outputs):
                continue
            for t, array in run_node(node, values).items():
                samples = max(len(inputs[0]) if inputs else 1, len(array))
                values[t] = results[t] = np.broadcast_to(array, (samples, *array.shape[1:]))
                self._feed(values, t, reference)
        return results

    def _feed(self, values: dict[int, Array], t: int, reference: Mapping[str, Array]) -> None:
        counterpart = self._matches.get(t)
        if counterpart is not None:
            array, source = reference[counterpart.second.name], counterpart.second.tensor
            values[t] = encoded(array, source, self._graph.tensors[t], self._side.execution.target)


def require_separate_nodes(graph: Graph, way_out: str) -> None:
    """Check that each node can be run on arrays that are given.

    Args:
        graph: lowered.
        way_out: ends the message.

    Raises:
        UnsupportedError: a node with integers that depend on values computed at run time, or a node that runs other
            graphs or keeps state.
    """
    for index, node in enumerate(graph.nodes):
        keeps = any(t != ABSENT and graph.tensors[t].is_variable for t in node.inputs)
        if isinstance(node.params, Deferred) or node.operator in CONTROL or keeps:
            raise UnsupportedError(
                f"{graph.where(index)} depends on values or state of the run: layers cannot be fed one by one{way_out}"
            )


def constants_of(graph: Graph) -> dict[int, Array]:
    """Return the constants of a graph by tensor: dtype[1, *shape]."""
    return {i: t.data[None] for i, t in enumerate(graph.tensors) if t.data is not None}


def run_node(node: Node, values: Mapping[int, Array]) -> dict[int, Array]:
    """Run one lowered node on the values of its inputs, dtype[S or 1, *shape]; return its outputs by tensor."""
    arrays = [None if t == ABSENT else values[t] for t in node.inputs]
    outputs = kernel(node.arithmetic or "", kernel_name(node)).run(node.params, *arrays)
    return dict(zip(node.outputs, outputs, strict=False))


def encoded(array: Array, source: Tensor | None, tensor: Tensor, target: Target | None) -> Array:
    """Convert values to a tensor's encoding, by way of floating point if encodings differ.

    Args:
        array: dtype[S, ...] of as many elements as the tensor has.
        source: Tensor with the encoding of the values; None if they have `tensor`'s encoding.
        tensor: Tensor with the requested encoding.
        target: Target that rounds floating-point values for the tensor; None to round as TFLite's QUANTIZE does.
    """
    shaped = array.reshape(len(array), *tensor.shape)
    if source is None or (source.dtype is tensor.dtype and source.quantization == tensor.quantization):
        return shaped
    real = real_values(array, source).reshape(shaped.shape)
    if target is not None and isinstance(tensor.quantization, Affine):
        return target.encode(real, tensor)
    if not isinstance(tensor.quantization, Affine) or not tensor.dtype.is_integer:
        return np.asarray(real.astype(tensor.dtype.storage))
    return encode_reals(real, tensor)


def encode_reals(real: Doubles, tensor: Tensor) -> Array:
    """Return clamp(round_half_away(x / scale) + zero_point) in double precision: dtype[S, *shape].

    Args:
        real: float64[S, *shape].
        tensor: Tensor of integers with an affine quantization.
    """
    scale, zero_point = tensor.affine.along(len(tensor.shape))
    ratio = real / scale
    codes = np.trunc(ratio + np.copysign(0.5, ratio)) + zero_point
    return np.asarray(np.clip(codes, tensor.dtype.minimum, tensor.dtype.maximum).astype(tensor.dtype.storage))
