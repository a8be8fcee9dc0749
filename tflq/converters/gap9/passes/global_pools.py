"""Pools over the whole map, with stride 1, are global pools: MEAN and REDUCE_MAX, which read channels first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.gap9.operators import GLOBAL_POOLS, POOLS
from tflq.converters.passes.patterns import TO_FIRST
from tflq.converters.passes.rewrite import constant
from tflq.graph import Attributes, Node
from tflq.graph.rewriting import GraphEditor

_GLOBAL = {"average_pool_2d": "mean", "max_pool_2d": "reduce_max"}


def name_global_pools(editor: GraphEditor) -> None:
    """Replace pools with a kernel of the map's size and stride 1 by MEAN or REDUCE_MAX.

    With another stride (kernel = map = stride, as in KWS) it stays a pool. A ReLU that the pool's range implies stays
    downstream, where a pool's would be seen as redundant.
    """
    for node in editor.nodes:
        if node.operator in _GLOBAL and _takes_whole_map(editor, node):
            axes = editor.add_tensor(constant(f"{node.name}_axes", np.array((1, 2), np.int32)))
            layer = {"layer": node.attributes.text("layer")} if "layer" in node.attributes else {}
            changed = replace(node, operator=_GLOBAL[node.operator], inputs=(node.inputs[0], axes), version=1)
            editor.replace(node, replace(changed, attributes=Attributes({**layer, "keep_dims": True})))


def _takes_whole_map(editor: GraphEditor, node: Node) -> bool:
    size = editor.shape(node.inputs[0])[1:3]
    number = node.attributes.integer
    kernel = (number("filter_height"), number("filter_width"))
    strides = (number("stride_h", 1), number("stride_w", 1))
    return kernel == size and strides == (1, 1) == editor.shape(node.outputs[0])[1:3]


def arrange_layout(editor: GraphEditor) -> None:
    """Insert [N, H, W, C] -> [N, C, H, W] transposes upstream of means over height and width.

    Downstream of an inserted Quantize the transpose is called <mean>_trans, otherwise <producer>_trans_out0. A reshape
    of the 1x1 map of a pool is called <pool>_reshape.
    """
    for node, producer in [(node, editor.writer(node.inputs[0])) for node in editor.nodes]:
        if node.operator in GLOBAL_POOLS and reduces_image(editor, node):
            _transpose(editor, node, producer)
        elif node.operator == "reshape" and producer is not None and _takes_pixel_of_pool(editor, node, producer):
            editor.restate(editor.change(node, layer=node.name), f"{_unit_name(producer)}_reshape")


def reduces_image(editor: GraphEditor, node: Node) -> bool:
    """Whether a reduction is over height and width."""
    shape, axes = editor.shape(node.inputs[0]), editor.constant(node.inputs[1])
    return len(shape) == 4 and axes is not None and {int(a) % 4 for a in axes.reshape(-1)} == {1, 2}


def _takes_pixel_of_pool(editor: GraphEditor, node: Node, producer: Node) -> bool:
    return producer.operator in POOLS and editor.shape(node.inputs[0])[1:3] == (1, 1)


def _unit_name(node: Node) -> str:
    return node.attributes.text("fusion", "") or node.name


def insert_transpose(editor: GraphEditor, node: Node, name: str, layer: str) -> Node:
    """Let a node read its first operand channels first and return it; the TRANSPOSE states this name."""
    n, h, w, c = editor.shape(node.inputs[0])
    turned = replace(editor.tensors[node.inputs[0]], name=name, shape=(n, c, h, w), data=None)
    added = editor.insert_before(node, 0, Node("transpose", (), (), _movement(layer), name), turned)
    order = editor.add_tensor(constant(f"{name}_order", np.array(TO_FIRST, np.int32)))
    editor.restate(editor.change(added, inputs=(*added.inputs, order)), name)
    return editor.node(node.name)


def _movement(layer: str) -> Attributes:
    return Attributes({"layer": layer, "engine": "", "engine_reason": "moves data: channels first"})


def _transpose(editor: GraphEditor, mean: Node, producer: Node | None) -> None:
    inserted = producer is None or (producer.operator == "quantize" and producer.name.endswith("_qin0"))
    name = f"{_unit_name(mean)}_trans" if producer is None or inserted else f"{_unit_name(producer)}_trans_out0"
    n, _, _, c = editor.shape(mean.inputs[0])
    mean = insert_transpose(editor, mean, name, mean.name)
    axes = editor.add_tensor(constant(f"{mean.name}_axes", np.array((2, 3), np.int32)))
    mean = editor.set_input(mean, 1, axes)
    if mean.attributes.boolean("keep_dims", False):
        mean = editor.change(mean, keep_dims=False)
        pixel = replace(editor.tensors[mean.outputs[0]], name=f"{mean.name}_pixel", shape=(n, c))
        added = editor.insert_after(mean, Node("reshape", (), (), _movement(mean.name), f"{mean.name}_reshape"), pixel)
        shape = editor.add_tensor(constant(f"{mean.name}_shape", np.array((n, 1, 1, c), np.int32)))
        editor.change(added, inputs=(*added.inputs, shape))
