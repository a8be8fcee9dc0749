"""What TPU-MLIR makes of several nodes before it reads the calibration table (docs/tpu_mlir.md, 4)."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Singles
from tflq.converters.passes.patterns import fused_activation, only_reader
from tflq.converters.passes.rewrite import constant, without_nodes
from tflq.converters.tpu_mlir.passes.forms import (
    Form,
    constant_of,
    form_of,
    is_channels_last,
    is_constant_first,
    scalar_of,
)
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Graph, Node
from tflq.interpreter.operands.sliding_windows import window_of
from tflq.interpreter.operands.windows import window_of_node

Factors = NDArray[np.float32] | NDArray[np.float64]
MOST_GROWTH = 20
CONVOLUTIONS = ("conv_2d", "depthwise_conv_2d")
_WIDE = ("fully_connected", "batch_matmul", "layer_normalization")


def fuse_silu(graph: Graph) -> Graph:
    """Return the graph with x * logistic(x) as one operator `silu`, where nothing else reads the gate."""
    result, writers, gone = graph.copy(), graph.producers(), set[int]()
    for index, node in enumerate(graph.nodes):
        gate = _gate(graph, writers, node)
        if gate is not None:
            result.nodes[index] = replace(node, operator="silu", inputs=(graph.nodes[gate].inputs[0],))
            gone.add(gate)
    return without_nodes(result, gone)


def _gate(graph: Graph, writers: dict[int, int], node: Node) -> int | None:
    """Return the logistic function of one factor that the other factor is multiplied with."""
    if node.operator != "mul" or fused_activation(node) != "none":
        return None
    for gated, x in (node.inputs, node.inputs[::-1]):
        writer = writers.get(gated)
        if writer is None or graph.nodes[writer].operator != "logistic":
            continue
        if graph.nodes[writer].inputs[0] == x and only_reader(graph, gated) is not None:
            return writer
    return None


def fuse_softsign(graph: Graph) -> Graph:
    """Return the graph with x / (1 + |x|) as one operator `softsign`, where nothing else reads what is between."""
    result, gone = graph.copy(), set[int]()
    for index, node in enumerate(graph.nodes):
        if node.operator != "div" or fused_activation(node) != "none":
            continue
        total = only_writer(graph, node.inputs[1], "add")
        if total is None or form_of(graph, graph.nodes[total]) is not Form.SCALAR:
            continue
        magnitude = only_writer(graph, graph.nodes[total].inputs[0], "abs")
        if magnitude is None or scalar_of(graph, graph.nodes[total]) != 1:
            continue
        if graph.nodes[magnitude].inputs[0] == node.inputs[0]:
            result.nodes[index] = replace(node, operator="softsign", inputs=node.inputs[:1])
            gone.update((total, magnitude))
    return without_nodes(result, gone)


def only_writer(graph: Graph, t: int, operator: str, is_rectified: bool = False) -> int | None:
    """Return the node of an operator that writes a tensor which one node alone reads; a rectifier where it may be."""
    found = graph.producers().get(t)
    if found is None or graph.nodes[found].operator != operator or only_reader(graph, t) is None:
        return None
    return found if is_rectified or fused_activation(graph.nodes[found]) == "none" else None


def fold_constants(graph: Graph) -> Graph:
    """Return the graph without products and sums of one constant for each channel of an image.

    Behind a convolution without activation, which nothing else reads, they go into its weights and bias, in float32,
    and so does a product with one number; elsewhere they are a 1x1 depthwise convolution, into which the next ones go.
    """
    result, gone = graph.copy(), set[int]()
    for index in range(len(graph.nodes)):
        node = result.nodes[index]
        found = _scale_and_offset(result, node)
        if found is None:
            continue
        host = _host(result, node)
        if host is not None:
            result.nodes[index] = _folded(result, result.nodes[host], node, *found)
            gone.add(host)
        elif node.operator != "neg" and form_of(result, node) is Form.CHANNEL:
            result.nodes[index] = _depthwise(result, node, *found)
    return without_nodes(result, gone)


def merge_pointwise(graph: Graph) -> Graph:
    """Return the graph with a convolution of 1x1 in the one behind it, w = w2 w1 and b = b2 + w2 b1, in float32.

    Neither is padded or grouped, no activation between, and nothing else reads what is between; where the merged
    weights are more than 20 times the two, both stay.

    Source: docs/tpu_mlir.md, 4

    Raises:
        UnsupportedError: a stride of the first, which TPU-MLIR loses; a window of the second that is not square.
    """
    result, gone = graph.copy(), set[int]()
    for index in range(len(graph.nodes)):
        node = result.nodes[index]
        writer = result.producers().get(node.inputs[0]) if _is_plain(result, node) else None
        if writer is None or not _is_plain(result, result.nodes[writer]):
            continue
        host = result.nodes[writer]
        (w1, b1), (w2, b2) = (filter_parameters(result, n) for n in (host, node))
        if w1.shape[1:3] != (1, 1) or fused_activation(host) != "none" or only_reader(result, node.inputs[0]) is None:
            continue
        outputs, inputs, window = len(w2), w1.shape[3], w2.shape[1:3]
        if outputs * inputs * prod(window) > MOST_GROWTH * (w2.size + w1.size):
            continue
        sides = (result.tensors[t].shape[1:3] for t in (host.inputs[0], node.inputs[0]))
        if len(set(sides)) > 1 or window[0] != window[1]:
            raise UnsupportedError(
                f"target tpu-mlir: {node.operator} {node.name}: the convolution of one pixel in front has a stride, or "
                f"its own window is not square; TPU-MLIR merges the two wrongly: put an activation between them"
            )
        weights = _in_order(w2.reshape(-1, w2.shape[3]), w1.reshape(len(w1), -1))
        terms = w2.transpose(0, 3, 1, 2).reshape(outputs, -1)  # input channels first, then rows and columns
        first = None if b1 is None else _in_order(terms, np.repeat(b1, prod(window))[:, None])[:, 0]
        bias = b2 if first is None else first if b2 is None else first + b2
        name = result.tensors[node.inputs[1]].name
        given = (
            host.inputs[0],
            result.add_tensor(constant(name, weights.reshape(outputs, *window, inputs))),
            ABSENT if bias is None else result.add_tensor(constant(f"{name}_bias", bias.astype(np.float32))),
        )
        result.nodes[index] = replace(node, inputs=given)
        gone.add(writer)
    return without_nodes(result, gone)


def _in_order(rows: Singles, columns: Singles) -> Singles:
    """Return the product of two matrices, each sum in order and in float32."""
    total = np.zeros((rows.shape[0], columns.shape[1]), np.float32)
    for k in range(rows.shape[1]):
        total += rows[:, k, None] * columns[None, k]
    return total


def _is_plain(graph: Graph, node: Node) -> bool:
    """Whether it is a convolution without groups and padding."""
    if node.operator != "conv_2d":
        return False
    x, weights = (graph.tensors[t].shape for t in node.inputs[:2])
    return weights[3] == x[3] and not any(window_of_node(node, x, weights).padding)


def filter_parameters(graph: Graph, node: Node) -> tuple[Singles, Singles | None]:
    """Return weights and bias of a filter, which are constants; None where it has no bias."""
    found = []
    for t in (*node.inputs[1:], ABSENT)[:2]:
        data = None if t == ABSENT else graph.tensors[t].data
        found.append(None if data is None else data.astype(np.float32))
    assert found[0] is not None
    return found[0], found[1]


def fold_factors(graph: Graph) -> Graph:
    """Return the graph with products with one positive number in the convolution in front, which has a rectifier."""
    result, gone = graph.copy(), set[int]()
    for index in range(len(graph.nodes)):
        node = result.nodes[index]
        found = _scale_and_offset(result, node)
        if (
            found is None
            or node.operator == "neg"
            or form_of(result, node) is not Form.SCALAR
            or fused_activation(node) != "none"
        ):
            continue
        host = _host(result, node, is_rectified=True)
        if host is not None and float(found[0][0]) > 0:
            folded = _folded(result, result.nodes[host], node, *found)
            attributes = folded.attributes.updated(fused_activation_function=fused_activation(result.nodes[host]))
            result.nodes[index] = replace(folded, attributes=attributes)
            gone.add(host)
    return without_nodes(result, gone)


def _scale_and_offset(graph: Graph, node: Node) -> tuple[Factors, Singles | None] | None:
    """Return c, d of a node x * c + d, one float32 for each channel, or one in all for a product without d.

    A quotient with one number is a product with its inverse in float64.
    """
    if node.operator == "neg":
        return np.array([-1], np.float32), None
    if node.operator not in ("add", "mul", "div") or form_of(graph, node) not in (Form.CHANNEL, Form.SCALAR):
        return None
    operand = constant_of(graph, node)
    assert operand is not None
    value = operand[0].reshape(-1)
    if node.operator == "add":
        return (np.ones_like(value), value) if form_of(graph, node) is Form.CHANNEL else None
    if node.operator == "div":
        if is_constant_first(graph, node) or not np.all(value):
            return None
        return (np.float32(1) / value if value.size > 1 else 1 / value.astype(np.float64)), None
    return value, None


def _host(graph: Graph, node: Node, is_rectified: bool = False) -> int | None:
    x = node.inputs[0]
    writer = graph.producers().get(x)
    if writer is None or only_reader(graph, x) is None:
        return None
    is_number = node.operator == "neg" or form_of(graph, node) is Form.SCALAR
    if graph.nodes[writer].operator not in (*CONVOLUTIONS, *(("fully_connected",) if is_number else ())):
        return None
    host = graph.nodes[writer]
    return writer if (fused_activation(host) != "none") == is_rectified else None


def _folded(graph: Graph, host: Node, node: Node, scale: Factors, offset: Singles | None) -> Node:
    """Return the convolution with w * c and b * c + d in place of w and b."""
    weights = graph.tensors[host.inputs[1]]
    assert weights.data is not None
    depthwise = host.operator == "depthwise_conv_2d"
    factor = scale if depthwise or scale.size == 1 else scale.reshape(-1, *(1,) * (weights.data.ndim - 1))
    channels = weights.shape[3 if depthwise else 0]
    old = filter_parameters(graph, host)[1]
    bias = np.zeros(channels, np.float32) if old is None else old
    total = (bias * scale + (np.float32(0) if offset is None else offset)).astype(np.float32)
    inputs = (
        host.inputs[0],
        graph.add_tensor(constant(weights.name, (weights.data.astype(np.float32) * factor).astype(np.float32))),
        ABSENT if old is None and offset is None else graph.add_tensor(constant(f"{weights.name}_bias", total)),
    )
    attributes = host.attributes.updated(fused_activation_function=fused_activation(node))
    return replace(host, inputs=inputs, outputs=node.outputs, attributes=attributes, name=node.name)


def _depthwise(graph: Graph, node: Node, scale: Factors, offset: Singles | None) -> Node:
    if is_channels_last(node):
        raise UnsupportedError(
            f"target tpu-mlir: {node.operator} {node.name}: one number for each place along axis 1 of a tensor that is "
            f"no image in TPU-MLIR, which makes a convolution of it; write the constant in the tensor's full shape"
        )
    x, c = node.inputs
    name = graph.tensors[c].name
    inputs = (
        x,
        graph.add_tensor(constant(f"{name}_weights", scale.reshape(1, 1, 1, -1))),
        graph.add_tensor(constant(f"{name}_bias", np.zeros_like(scale) if offset is None else offset)),
    )
    attributes = node.attributes.updated(padding="valid", stride_h=1, stride_w=1, depth_multiplier=1)
    return replace(node, operator="depthwise_conv_2d", inputs=inputs, attributes=attributes)


def fold_crops(graph: Graph) -> Graph:
    """Return the graph with less padding on convolutions of stride 1, whose only reader is a slice of their inside.

    No more may be cut off than the padding has rows and columns.
    """
    result, gone = graph.copy(), set[int]()
    for index, node in enumerate(graph.nodes):
        writer = graph.producers().get(node.inputs[0]) if node.operator in ("strided_slice", "slice") else None
        if writer is None or graph.nodes[writer].operator not in CONVOLUTIONS:
            continue
        host = graph.nodes[writer]
        cuts, strides = _cuts(graph, node), [host.attributes.integer(f"stride_{side}", 1) for side in "hw"]
        if cuts is None or only_reader(graph, node.inputs[0]) is None or strides != [1, 1]:
            continue
        _, height, width, _ = graph.tensors[host.inputs[0]].shape
        _, rows, columns, _ = graph.tensors[host.inputs[1]].shape
        padding = window_of(host.attributes, (height, width), (rows, columns)).padding
        if any(c > p for c, p in zip(cuts, padding, strict=True)):
            continue
        left = tuple(p - c for p, c in zip(padding, cuts, strict=True))
        attributes = host.attributes.updated(explicit_padding=left)
        result.nodes[index] = replace(host, outputs=node.outputs, attributes=attributes)
        gone.add(writer)
    return without_nodes(result, gone)


def _cuts(graph: Graph, node: Node) -> tuple[int, int, int, int] | None:
    """Return what a slice cuts off an image: top, bottom, left, right; None where it does something else."""
    old, new = (graph.tensors[t].shape for t in (node.inputs[0], node.outputs[0]))
    given = [graph.tensors[t].data for t in node.inputs[1:]]
    if len(new) != 4 or old[0] != new[0] or old[3] != new[3] or any(data is None for data in given):
        return None
    if node.operator == "strided_slice" and (given[2] != 1).any():  # type: ignore[union-attr]
        return None
    begin = np.asarray(given[0]).reshape(-1)
    if node.operator == "strided_slice":
        mask = node.attributes.integer("begin_mask", 0)
        begin = np.array([0 if mask >> axis & 1 else b % old[axis] for axis, b in enumerate(begin)])
    if len(begin) != 4:
        return None
    top, left = int(begin[1]), int(begin[2])
    return top, old[1] - new[1] - top, left, old[2] - new[2] - left


def fold_bias(graph: Graph) -> Graph:
    """Return the graph with x w, reshaped, + c, reshaped back, as x w + c: what one reader each reads, c a constant.

    The sum's shape is that of the product behind a leading 1; or c has as many numbers as the sum, and a product or a
    normalisation follows. In the first case TPU-MLIR calls the result as the sum, else as what shapes it back.
    """
    result, gone = graph.copy(), set[int]()
    for index, node in enumerate(graph.nodes):
        if node.operator != "reshape":
            continue
        add = only_writer(graph, node.inputs[0], "add", True)
        if add is None:
            continue
        total = graph.nodes[add]
        value, c = total.inputs
        data = graph.tensors[c].data
        if data is None:
            continue
        between = only_writer(graph, value, "reshape")
        product = None if between is None else only_writer(graph, graph.nodes[between].inputs[0], "fully_connected")
        if between is None or product is None or filter_parameters(graph, graph.nodes[product])[1] is not None:
            continue
        shape, old = (graph.tensors[n.outputs[0]].shape for n in (total, node))
        wide = np.broadcast_to(data.astype(np.float32), shape).reshape(-1, old[-1])
        if graph.tensors[graph.nodes[product].outputs[0]].shape != old or np.any(wide != wide[0]):
            continue
        is_named_sum = shape == (1, *old)
        readers = {graph.nodes[r].operator for r in graph.consumers().get(node.outputs[0], ())}
        if not is_named_sum and (data.size != wide.size or not readers & set(_WIDE)):
            continue
        host = graph.nodes[product]
        inputs = (*host.inputs[:2], result.add_tensor(constant(graph.tensors[c].name, wide[0].copy())))
        attributes = host.attributes.updated(fused_activation_function=fused_activation(total))
        target = total.outputs if is_named_sum else node.outputs
        result.nodes[add] = replace(host, inputs=inputs, outputs=target, attributes=attributes, name=total.name)
        gone.update((product, between))
        if is_named_sum:
            result.tensors[target[0]] = replace(graph.tensors[target[0]], shape=old)
        else:
            gone.add(index)
    return without_nodes(result, gone)
