"""True shapes and known values of a graph before it is lowered or quantized, also for other input shapes.

Of the stated shapes in a file, the shapes of inputs, constants and variables are used, as in TFLite. Each other one
follows from its operator (shapes.py, or the kernel run on zeros). A node with known inputs, or with a result that
depends on shapes only (SHAPE, RANK), is computed here: the chain SHAPE, STRIDED_SLICE, PACK that converters write
before RESHAPE becomes a constant. TFLite folds fewer operators; results are the same.

A tensor is *open* if its shape is known only at run time: after operators with a shape operand computed from data,
after control flow, and in graphs that others call with inputs of any shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tflq import limits
from tflq.errors import GraphError, LimitError, RuntimeOperandError, TflqError, UnsupportedError
from tflq.graph import ABSENT, Array, Graph, Node, Operands, Tensor
from tflq.interpreter.execution.control import CONTROL
from tflq.interpreter.execution.deferred import Deferred, placed
from tflq.interpreter.execution.memory import AliveBytes
from tflq.interpreter.execution.shapes import SHAPE_RULES, Shape, ShapeRule
from tflq.interpreter.operands.checks import require_result, require_sound_scales
from tflq.interpreter.registry import Kernel, arithmetic_of, kernel, kernel_name


@dataclass(frozen=True)
class Settled:
    """A graph with true shapes.

    Attributes:
        graph: Graph with true shapes; values known before the run are constant, and the node that wrote one has its
            params.
        open: tensors with shapes that are known only at run time; their stated shapes stay.
        refused: Errors of kernels that do not take a node; the outputs of such nodes keep their stated shapes.
    """

    graph: Graph
    open: frozenset[int]
    refused: tuple[UnsupportedError, ...]


def settle(graph: Graph, default_arithmetic: str = "tflite", is_called: bool = False) -> Settled:
    """Return the graph with the shapes that follow from its inputs, and with known values folded.

    Nodes that name their arithmetic were written by a quantizer: their shapes are final.

    Args:
        graph: any graph.
        default_arithmetic: Arithmetic of the kernels that run nodes that name none.
        is_called: whether other graphs run this one, with inputs of any shape.

    Raises:
        GraphError: shapes that contradict an operator.
        UnsupportedError: constants larger than the limit `max_memory`.
    """
    settled = graph.copy()
    opened = set(graph.inputs) if is_called else set[int]()
    refused: list[UnsupportedError] = []
    folded, count = 0, AliveBytes(settled)
    for index, node in enumerate(settled.nodes):
        operands = settled.operands(index)
        name = arithmetic_of(node, operands, default_arithmetic)
        if node.operator in CONTROL or not opened.isdisjoint(node.inputs):
            opened.update(node.outputs)
        else:
            try:
                found = kernel(name, kernel_name(node))
                with limits.count_live_bytes(folded + count.alive):
                    if _is_known(operands, found):
                        folded = _fold(settled, index, name, found, folded)
                    elif node.arithmetic is None and not _give_shapes(settled, index, name, found):
                        opened.update(node.outputs)
            except LimitError as error:
                raise placed(error, settled.where(index)) from None
            except UnsupportedError as error:
                refused.append(error)
        limits.current().require("max_memory", folded, f"bytes of constants computed up to {settled.where(index)}")
        count.write(index)
        count.release(index)
    return Settled(settled, frozenset(opened), tuple(refused))


def lower_node(graph: Graph, index: int, arithmetic: str, found: Kernel, is_open: bool = False) -> Node:
    """Return one node with its arithmetic and params.

    Args:
        graph: the graph.
        index: Index of the node.
        arithmetic: Arithmetic of the kernel.
        found: the kernel.
        is_open: whether the shapes of its inputs may change at run time: operands that do not fit now may fit then.

    Raises:
        UnsupportedError, GraphError: the kernel refuses the operands.
    """
    node, operands = graph.nodes[index], graph.operands(index)
    params: object
    try:
        if found.reads_scales:
            require_sound_scales(operands)
        params = found.lower(node, operands)
        if found.per_sample and not all(t is None or t.is_constant for t in operands.inputs):
            params = Deferred("the shape of its result depends on values")
    except RuntimeOperandError as error:
        params = Deferred(f"input {error.position} is computed at run time")
    except (GraphError, UnsupportedError) as error:
        if not is_open:
            raise placed(error, operands.where) from None
        params = Deferred(str(error))
    return replace(node, arithmetic=arithmetic, params=params)


def shared(data: Array) -> Array:
    """Add the leading axis of length 1 that kernels expect to a constant."""
    return data[None]


def _is_known(operands: Operands, found: Kernel) -> bool:
    constant = all(t is None or t.is_constant for t in operands.inputs)
    return bool(operands.inputs) and not found.stateful and (found.shared_result or constant)


def _fold(graph: Graph, index: int, arithmetic: str, found: Kernel, folded: int) -> int:
    """Make the outputs of a node constants; return the bytes of all that was folded, `folded` before it."""
    node = graph.nodes[index] = lower_node(graph, index, arithmetic, found)
    if isinstance(node.params, Deferred):
        return folded
    arrays = (shared(t.data) if t and t.data is not None else None for t in graph.operands(index).inputs)
    for t, result in zip(node.outputs, found.run(node.params, *arrays), strict=True):
        value = result[0]
        value.setflags(write=False)
        graph.tensors[t] = replace(graph.tensors[t], data=value, shape=value.shape)
        folded += value.nbytes
    return folded


def _give_shapes(graph: Graph, index: int, arithmetic: str, found: Kernel) -> bool:
    """Set the shapes of a node's outputs; return whether they are known before the run."""
    node = graph.nodes[index]
    rule = SHAPE_RULES.get(node.operator)
    if rule is not None:
        shapes = _by_rule(rule, graph, index, arithmetic, found)
    else:
        node = lower_node(graph, index, arithmetic, found)
        shapes = _by_running(graph, node, found)
    is_as_stated = True
    for t, shape in zip(node.outputs, shapes or (), strict=False):
        require_result(shape, graph.tensors[t].dtype)
        if graph.tensors[t].shape != shape:
            graph.tensors[t] = replace(graph.tensors[t], shape=shape)
            is_as_stated = False
    if is_as_stated:
        graph.nodes[index] = node  # if it was lowered, its params stay true
    return shapes is not None


def _by_rule(rule: ShapeRule, graph: Graph, index: int, arithmetic: str, found: Kernel) -> list[Shape] | None:
    """Return the shape that follows from the operands; if they contradict it, the kernel raises its own error."""
    try:
        return [rule(graph.nodes[index], graph.operands(index))]
    except RuntimeOperandError:
        return None
    except LimitError:
        raise
    except (GraphError, UnsupportedError, ValueError, IndexError):
        lower_node(graph, index, arithmetic, found)
        return [graph.tensors[graph.nodes[index].outputs[0]].shape]


def _by_running(graph: Graph, node: Node, found: Kernel) -> list[Shape] | None:
    """Return the shapes of the results for zeros, or for ones if zeros are refused (for example as a divisor)."""
    if isinstance(node.params, Deferred):
        return None
    for fill in (0, 1):
        arrays = [None if t == ABSENT else _filled(graph.tensors[t], fill) for t in node.inputs]
        state = [None] if found.stateful else []
        try:
            results = found.run(node.params, *arrays, *state)
        except LimitError:
            raise
        except (TflqError, ValueError, IndexError, TypeError):
            continue  # values that the kernel does not take do not determine the result for other values
        return [result.shape[1:] for result in results]
    return None


def _filled(tensor: Tensor, fill: int) -> Array:
    if tensor.data is not None:
        return shared(tensor.data)
    # Zeros that are not read take no memory.
    return (np.ones if fill else np.zeros)((1, *tensor.shape), tensor.dtype.storage)


def resize(graph: Graph, shapes: Mapping[int, tuple[int, ...]], default_arithmetic: str = "tflite") -> Graph:
    """Return the graph for other input shapes; shapes that are known only at run time keep their stated values.

    Args:
        graph: a graph that is not lowered.
        shapes: graph input -> new shape.
        default_arithmetic: Arithmetic of the kernels that determine the shapes.

    Raises:
        GraphError: a tensor is no input of the graph, or the new shapes do not fit an operator.
        UnsupportedError: an operator or type without a kernel.
    """
    resized = graph.copy()
    for t, shape in shapes.items():
        if t not in graph.inputs:
            raise GraphError(f"tensor {t} is no input of the graph; inputs are {list(graph.inputs)}")
        if min(shape, default=0) < 0:
            raise GraphError(f"input '{graph.tensors[t].name}': shape {shape}, sizes must be 0 or more")
        resized.tensors[t] = replace(graph.tensors[t], shape=tuple(shape))
    try:
        settled = settle(resized, default_arithmetic)
    except GraphError as error:
        where, colon, reason = str(error).partition("): ")
        raise GraphError(f"{where}{colon}the new input shapes do not fit: {reason}") from None
    if settled.refused:
        raise settled.refused[0]
    return replace(
        resized,
        tensors=[
            replace(tensor, shape=found.shape)
            for tensor, found in zip(resized.tensors, settled.graph.tensors, strict=True)
        ],
    )
