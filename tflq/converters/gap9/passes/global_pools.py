"""Pools over the whole map, with stride 1, are global pools: NNTool computes them as MEAN and REDUCE_MAX."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.passes.rewrite import constant
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
