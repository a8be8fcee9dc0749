"""What convolutions and products take in from what follows them: crops, reshaped sums (docs/tpu_mlir.md, 4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.passes.patterns import constant_operand, fused_activation, only_reader
from tflq.converters.passes.rewrite import constant, without_nodes
from tflq.converters.tpu_mlir.passes.fusions import CONVOLUTIONS, filter_parameters, only_writer
from tflq.graph import Graph, Node
from tflq.interpreter.accumulate import window_of


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
        cuts = _cuts(graph, node)
        if cuts is None or only_reader(graph, node.inputs[0]) is None or host.attributes.integer("stride_h", 1) != 1:
            continue
        _, height, width, _ = graph.tensors[host.inputs[0]].shape
        _, rows, columns, _ = graph.tensors[host.inputs[1]].shape
        padding = window_of(host.attributes, (height, width), (rows, columns)).padding
        if host.attributes.integer("stride_w", 1) != 1 or any(c > p for c, p in zip(cuts, padding, strict=True)):
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
    if len(old) != 4 or len(new) != 4 or old[0] != new[0] or old[3] != new[3] or any(data is None for data in given):
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
        position = None if add is None else constant_operand(graph, graph.nodes[add])
        if add is None or position is None:
            continue
        total, (value, c) = graph.nodes[add], (graph.nodes[add].inputs[p] for p in (1 - position, position))
        between = only_writer(graph, value, "reshape")
        product = None if between is None else only_writer(graph, graph.nodes[between].inputs[0], "fully_connected")
        if between is None or product is None or filter_parameters(graph, graph.nodes[product])[1] is not None:
            continue
        shape, old = (graph.tensors[n.outputs[0]].shape for n in (total, node))
        data = graph.tensors[c].data
        assert data is not None
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


_WIDE = ("fully_connected", "batch_matmul", "layer_normalization")
