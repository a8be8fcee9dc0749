"""Pools over the whole map, with stride 1, are global pools: MEAN and REDUCE_MAX, which read channels first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.gap9.operators import GLOBAL_POOLS, POOLS
from tflq.converters.passes.patterns import TO_FIRST
from tflq.converters.passes.rewrite import constant, derived_tensor, with_attributes
from tflq.graph import Attributes, Graph, Node

_GLOBAL = {"average_pool_2d": "mean", "max_pool_2d": "reduce_max"}


def name_global_pools(graph: Graph) -> Graph:
    """Return the graph with MEAN or REDUCE_MAX in place of pools whose kernel is the map and whose strides are 1.

    With another stride (kernel = map = stride, as in KWS) it stays a pool. A ReLU that the pool's range implies stays
    behind it, where a pool's would be seen as redundant.
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        if node.operator in _GLOBAL and _takes_whole_map(graph, node):
            axes = result.add_tensor(constant(f"{node.name}_axes", np.array((1, 2), np.int32)))
            attributes = Attributes({**_kept(node), "keep_dims": True})
            changed = replace(node, operator=_GLOBAL[node.operator], inputs=(node.inputs[0], axes))
            result.nodes[index] = replace(changed, attributes=attributes, version=1)
    return result


def _kept(node: Node) -> dict[str, str]:
    return {name: node.attributes.text(name) for name in ("layer",) if name in node.attributes}


def _takes_whole_map(graph: Graph, node: Node) -> bool:
    size = graph.tensors[node.inputs[0]].shape[1:3]
    number = node.attributes.integer
    kernel = (number("filter_height"), number("filter_width"))
    strides = (number("stride_h", 1), number("stride_w", 1))
    return kernel == size and strides == (1, 1) and graph.tensors[node.outputs[0]].shape[1:3] == (1, 1)


def arrange_layout(graph: Graph) -> Graph:
    """Return the graph with [N, H, W, C] -> [N, C, H, W] transposes in front of means over height and width.

    Behind an inserted Quantize the transpose is called <mean>_trans, else <producer>_trans_out0. A reshape that takes
    the 1x1 map of a pool is called <pool>_reshape.
    """
    result = graph.copy()
    result.nodes = []
    written = {t: n for n in graph.nodes for t in n.outputs}
    for node in graph.nodes:
        producer = written.get(node.inputs[0])
        if node.operator in GLOBAL_POOLS and reduces_image(graph, node):
            result.nodes += _transposed(result, node, producer)
        elif node.operator == "reshape" and producer is not None and _takes_pixel_of_pool(graph, node, producer):
            renamed = with_attributes(node, layer=node.name)
            result.nodes.append(replace(renamed, name=f"{_unit_name(producer)}_reshape"))
        else:
            result.nodes.append(node)
    return result


def reduces_image(graph: Graph, node: Node) -> bool:
    """Whether a reduction goes over height and width."""
    shape, axes = graph.tensors[node.inputs[0]].shape, graph.tensors[node.inputs[1]].data
    return len(shape) == 4 and axes is not None and {int(a) % 4 for a in axes.reshape(-1)} == {1, 2}


def _takes_pixel_of_pool(graph: Graph, node: Node, producer: Node) -> bool:
    return producer.operator in POOLS and graph.tensors[node.inputs[0]].shape[1:3] == (1, 1)


def _unit_name(node: Node) -> str:
    return node.attributes.text("fusion", "") or node.name


def _transposed(graph: Graph, mean: Node, producer: Node | None) -> list[Node]:
    inserted = producer is None or (producer.operator == "quantize" and producer.name.endswith("_qin0"))
    unit = _unit_name(mean)
    name = f"{unit}_trans" if producer is None or inserted else f"{_unit_name(producer)}_trans_out0"
    source = mean.inputs[0]
    turned = derived_tensor(graph, source, name)
    n, h, w, c = graph.tensors[source].shape
    graph.tensors[turned] = replace(graph.tensors[turned], shape=(n, c, h, w))
    order = graph.add_tensor(constant(f"{name}_order", np.array(TO_FIRST, np.int32)))
    axes = graph.add_tensor(constant(f"{mean.name}_axes", np.array((2, 3), np.int32)))
    attributes = Attributes({"layer": mean.name, "engine": "", "engine_reason": "moves data: channels first"})
    first = Node("transpose", (source, order), (turned,), attributes, name)
    pooled = replace(mean, inputs=(turned, axes))
    if not mean.attributes.boolean("keep_dims", False):
        return [first, pooled]
    written = mean.outputs[0]
    flat = derived_tensor(graph, written, f"{mean.name}_pixel")
    graph.tensors[flat] = replace(graph.tensors[flat], shape=(n, c))
    shape = graph.add_tensor(constant(f"{mean.name}_shape", np.array((n, 1, 1, c), np.int32)))
    last = Node("reshape", (flat, shape), (written,), attributes, f"{mean.name}_reshape")
    return [first, replace(with_attributes(pooled, keep_dims=False), outputs=(flat,)), last]
