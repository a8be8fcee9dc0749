"""From a graph to ONNX's: one rule an operator; what has none is refused, all at once."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

import numpy as np

from tflq.converters import exchange
from tflq.converters.exchange.emitter import Emitter, Rule
from tflq.converters.onnx.model import OnnxGraph, OnnxNode, OnnxValue
from tflq.converters.onnx.options import STATIC, OnnxOptions
from tflq.converters.onnx.writer import Writer
from tflq.converters.passes.batch import open_constant, open_shape, twice_the_batch
from tflq.converters.passes.requirements import refuse
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph

SYMBOL = "N"


def layer_normalization(e: Emitter) -> None:
    """LayerNormalization over the last axis: no operator of TFLite; targets recognize its parts."""
    x, epsilon = e.plain(0), e.node.attributes.real("epsilon")
    constants = [e.in_layout(t, False) for t in e.node.inputs[1:]]
    e.result(e.add("LayerNormalization", [x, *constants], axis=x.rank - 1, epsilon=epsilon))


_RULES: dict[str, Rule] = {**exchange.RULES, "layer_normalization": layer_normalization}


def supported_operators() -> tuple[str, ...]:
    """Return the operators that can be written, all or in part."""
    return tuple(sorted(_RULES))


def unsupported(graph: Graph, options: OnnxOptions | None = None) -> tuple[str, ...]:
    """Return one line for each operator that cannot be written: which, why, and the way out."""
    writer, problems = _translated(graph, options)
    if problems or writer.options.batch == STATIC:
        return problems
    try:
        translate(graph, options)
    except UnsupportedError as error:
        return (str(error),)
    return ()


def translate(graph: Graph, options: OnnxOptions | None = None) -> OnnxGraph:
    """Return the ONNX graph of a float graph, or with QuantizeLinear and DequantizeLinear of a quantized one.

    Args:
        graph: float32, or integers with scales; [N, H, W, C] where tensors have 4 axes.
        options: opset and layout.

    Raises:
        UnsupportedError: operators, types or operands that cannot be written, all at once.
    """
    writer, problems = _translated(graph, options)
    refuse(problems)
    found = writer.finish()
    if writer.options.batch == STATIC:
        return found
    return open_batch(found, _translated(twice_the_batch(graph), options)[0].finish())


def _translated(graph: Graph, options: OnnxOptions | None) -> tuple[Writer, tuple[str, ...]]:
    writer = Writer(graph, options)
    return writer, writer.write(_RULES)


def open_batch(one: OnnxGraph, two: OnnxGraph) -> OnnxGraph:
    """Return a graph for any batch: in shapes of Reshape the axis that differs is -1, in those of ports it is "N".

    Args:
        one: for the file's batch.
        two: for twice the batch, otherwise the same.

    Raises:
        UnsupportedError: a constant that holds the batch and is no shape of a Reshape.
    """
    shapes = {n.inputs[1] for n in one.nodes if n.op_type == "Reshape"}
    sizes = {n.inputs[3] for n in one.nodes if n.op_type == "Resize"}
    readers = {name: node for node in one.nodes for name in node.inputs if name in one.constants}
    constants, resized = dict(one.constants), set[str]()
    for name, reader in readers.items():
        value, other = one.constants[name], two.constants[name]
        if name in sizes and not np.array_equal(value, other):
            constants[name] = value[2:]
            resized.add(name)
        else:
            where = f"{reader.op_type} '{reader.outputs[0]}'"
            constants[name] = open_constant(value, other, name in shapes, where)
    nodes = tuple(made for node in one.nodes for made in _resized(node, resized, constants))
    inputs, outputs = (
        tuple(_open(a, b) for a, b in zip(mine, theirs, strict=True))
        for mine, theirs in ((one.inputs, two.inputs), (one.outputs, two.outputs))
    )
    return replace(one, nodes=nodes, constants=constants, inputs=inputs, outputs=outputs)


def _resized(node: OnnxNode, names: Set[str], constants: dict[str, Array]) -> Iterator[OnnxNode]:
    """Yield a node; in front of a Resize whose size named the batch: its sizes from batch and channels of its input."""
    if node.op_type == "Resize" and node.inputs[3] in names:
        base = node.inputs[3]
        shape, front, whole, start, stop = (f"{base}_{part}" for part in ("shape", "front", "whole", "start", "stop"))
        constants[start], constants[stop] = np.array([0]), np.array([2])
        yield OnnxNode("Shape", node.inputs[:1], (shape,))
        yield OnnxNode("Slice", (shape, start, stop), (front,))
        yield OnnxNode("Concat", (front, base), (whole,), {"axis": 0})
        node = replace(node, inputs=(*node.inputs[:3], whole))
    yield node


def _open(one: OnnxValue, two: OnnxValue) -> OnnxValue:
    return replace(one, shape=open_shape(one.shape, two.shape, SYMBOL))
