"""Rewrites of the float network before it becomes Caffe's layers.

`rejoin` and `pad_by_filters` write what Caffe has no layer for, and what a converter took apart, as operators with one:

    SPACE_TO_BATCH_ND, convolution, BATCH_TO_SPACE_ND   a convolution with dilation
    PAD of [N, L, C], EXPAND_DIMS                       EXPAND_DIMS, PAD of [N, 1, L, C], which a convolution takes in
    EXPAND_DIMS, TILE, RESHAPE, of rows and columns     RESIZE_NEAREST_NEIGHBOR
    RESHAPE, TRANSPOSE, RESHAPE that deal channels      a convolution of 1 x 1 of ones and zeros
    DEPTH_TO_SPACE, SPACE_TO_DEPTH                      (transposed) convolutions of ones and zeros
    STRIDED_SLICE with steps                            SLICE, a pool of 1 x 1 with these strides
    RESIZE_BILINEAR of one pixel                        TILE
    PAD of zeros that no convolution takes in           a depthwise convolution of 1 x 1 ones

In real numbers nothing changes: values are moved, and products by one are exact. On NNIE a convolution of ones and
zeros quantizes its input as every convolution does.

`fold_scales`: MUL, ADD and SUB by constants of channels, as of batch normalization, go into the convolution in front of
them. So NNIE's layer has one set of quantized weights, and how it would quantize a Scale does not arise
(docs/nnie.md, 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.nnie.caffe.elementwise import affine_of
from tflq.converters.passes.patterns import bias_of, constant_operand, only_reader
from tflq.converters.passes.rewrite import constant, derived_tensor, sorted_nodes, with_attributes, without_nodes
from tflq.converters.passes.take_in import foldable_padding
from tflq.errors import TflqError
from tflq.graph import ABSENT, Array, Attribute, Attributes, Graph, Node, pruned
from tflq.graph.operators import CONVOLUTIONS
from tflq.graph.rewriting import fused_activation
from tflq.interpreter.kernels.move.slices import lower_strided_slice
from tflq.interpreter.operands.windows import window_of_node

_VIEWS = ("reshape", "expand_dims", "squeeze")
_PART = "/part"
_PLAIN: dict[str, Attribute] = {"padding": "valid", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}


def rejoin(graph: Graph) -> Graph:
    """Return the graph with these rewrites; a pattern that does not fit stays, and is refused by its operator."""
    result = graph.copy()
    for rewrite in (_view_first, _view_last, _dilated, _enlarged, _dealt, _one_hot, _stepped, _spread):
        for node in reversed(graph.nodes) if rewrite is _view_first else tuple(result.nodes):
            if any(node is there for there in result.nodes):  # else it was rewritten with another one
                rewrite(result, node)
    if all(new is old for new, old in zip(result.nodes, graph.nodes, strict=False)):
        return graph
    known = {t for t, tensor in enumerate(result.tensors) if tensor.is_constant}.union(result.inputs)
    return pruned(replace(result, nodes=sorted_nodes(result.nodes, known)))


def pad_by_filters(graph: Graph) -> Graph:
    """Return the graph whose PADs of zeros around images are filters: for those that `fold_pad` leaves."""
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        amounts = foldable_padding(graph, index) if node.operator in ("pad", "padv2") else None
        if amounts is None or min(amounts) < 0:
            continue
        ones = np.ones((1, 1, 1, graph.tensors[node.outputs[0]].shape[3]))
        made = _filter(result, node, "depthwise_conv_2d", ones, 1, node.outputs)
        result.nodes[index] = replace(made, attributes=made.attributes.updated(explicit_padding=amounts))
    return pruned(result)


def origin(node: Node) -> str:
    """Return the name of the file's operator that a node comes from."""
    return node.name.removesuffix(_PART)


def _replace(graph: Graph, gone: Sequence[Node], *made: Node) -> None:
    graph.nodes = [node for node in graph.nodes if not any(node is old for old in gone)] + list(made)


def _reader(graph: Graph, node: Node) -> Node | None:
    found = only_reader(graph, node.outputs[0]) if node.outputs else None
    return None if found is None else graph.nodes[found]


def _data(graph: Graph, node: Node, position: int) -> Array | None:
    t = node.inputs[position] if position < len(node.inputs) else ABSENT
    return None if t == ABSENT else graph.tensors[t].data


def _tensor(graph: Graph, like: int, shape: Sequence[int], what: str) -> int:
    """Add a tensor as another one, in another shape."""
    t = derived_tensor(graph, like, f"{graph.tensors[like].name}/{what}")
    graph.tensors[t] = replace(graph.tensors[t], shape=tuple(shape), shape_signature=None)
    return t


def _constant(graph: Graph, node: Node, what: str, values: Array) -> int:
    return graph.add_tensor(constant(f"{node.name}/{what}", values))


def _view(graph: Graph, node: Node, x: int, y: int) -> Node:
    shape = _constant(graph, node, "shape", np.array(graph.tensors[y].shape, np.int32))
    return Node("reshape", (x, shape), (y,), name=node.name)


def _as_image(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], 1, *shape[1:])


def _of_images(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return the constant operands of an operator on [N, L, C] for [N, 1, L, C]."""
    found = []
    for position in range(1, len(node.inputs)):
        data = _data(graph, node, position)
        assert data is not None
        before = data[:1] if node.operator == "pad" else data[:0]
        row = np.full((1, *data.shape[1:]), 1 if data.ndim == 1 else 0, data.dtype)
        found.append(_constant(graph, node, f"image{position}", np.concatenate([before, row, data[len(before) :]])))
    return tuple(found)


def _is_on_rows(graph: Graph, node: Node, operators: Sequence[str]) -> bool:
    """Whether a node is one of some operators, on [N, L, C], with constants."""
    if node.operator not in operators or len(graph.tensors[node.inputs[0]].shape) != 3:
        return False
    return all(_data(graph, node, position) is not None for position in range(1, len(node.inputs)))


def _view_first(graph: Graph, node: Node) -> None:
    """PAD or SPACE_TO_BATCH_ND of rows, then their view as images: the view first. Last nodes go first."""
    if not _is_on_rows(graph, node, ("pad", "space_to_batch_nd")):
        return
    view, x = _reader(graph, node), node.inputs[0]
    if view is None or view.operator not in _VIEWS:
        return
    if graph.tensors[view.outputs[0]].shape != _as_image(graph.tensors[node.outputs[0]].shape):
        return
    image = _tensor(graph, x, _as_image(graph.tensors[x].shape), "image")
    moved = replace(node, inputs=(image, *_of_images(graph, node)), outputs=view.outputs)
    _replace(graph, (node, view), _view(graph, view, x, image), moved)


def _view_last(graph: Graph, node: Node) -> None:
    """Images viewed as rows, then BATCH_TO_SPACE_ND: the view last."""
    back = _reader(graph, node) if node.operator in _VIEWS else None
    if back is None or not _is_on_rows(graph, back, ("batch_to_space_nd",)):
        return
    y = back.outputs[0]
    if graph.tensors[node.inputs[0]].shape != _as_image(graph.tensors[node.outputs[0]].shape):
        return
    image = _tensor(graph, y, _as_image(graph.tensors[y].shape), "image")
    moved = replace(back, inputs=(node.inputs[0], *_of_images(graph, back)), outputs=(image,))
    _replace(graph, (node, back), moved, _view(graph, node, image, y))


def _dilated(graph: Graph, node: Node) -> None:
    """Blocks of b become a dilation of b, what they add and cut becomes padding.

    A convolution of phases reads rows that lie b apart, and q rows of padding of each phase are b q rows of the image:
    in all p + b q - c, with p of SPACE_TO_BATCH_ND and c of BATCH_TO_SPACE_ND.
    """
    back = _reader(graph, node) if node.operator in CONVOLUTIONS else None
    producer = None if back is None else graph.producers().get(node.inputs[0])
    if producer is None or back is None or _reader(graph, graph.nodes[producer]) is not node:
        return
    apart = graph.nodes[producer]
    if (apart.operator, back.operator) != ("space_to_batch_nd", "batch_to_space_nd"):
        return
    operands = [_data(graph, n, p) for n in (apart, back) for p in (1, 2)]
    if any(data is None or len(data) != 2 for data in operands):
        return
    blocks, added, same, cut = (np.asarray(data) for data in operands)
    window = window_of_node(node, *(graph.tensors[t].shape for t in node.inputs[:2]))
    if (blocks != same).any() or (window.stride, window.dilation) != ((1, 1), (1, 1)):
        return
    padding = added + blocks[:, None] * np.array(window.padding).reshape(2, 2) - cut
    if (padding < 0).any():
        return
    attributes = node.attributes.updated(
        padding="valid",
        explicit_padding=tuple(padding.reshape(-1).tolist()),
        dilation_h_factor=int(blocks[0]),
        dilation_w_factor=int(blocks[1]),
    )
    dilated = replace(node, inputs=(*apart.inputs[:1], *node.inputs[1:]), outputs=back.outputs, attributes=attributes)
    _replace(graph, (node, apart, back), dilated)


def _enlarged(graph: Graph, node: Node) -> None:
    """Rows repeated, then columns."""
    rows = _repetition(graph, node, 1)
    columns = None if rows is None else _reader(graph, rows[-1])
    found = None if columns is None else _repetition(graph, columns, 2)
    if rows is None or found is None:
        return
    y = found[-1].outputs[0]
    size = _constant(graph, node, "size", np.array(graph.tensors[y].shape[1:3], np.int32))
    made = Node("resize_nearest_neighbor", (node.inputs[0], size), (y,), name=node.name)
    _replace(graph, (node, *rows[1:], *found), made)


def _repetition(graph: Graph, view: Node, axis: int) -> tuple[Node, ...] | None:
    """Return the nodes that repeat each row or column; None where these are others."""
    tile = _reader(graph, view) if view.operator in _VIEWS else None
    last = _reader(graph, tile) if tile is not None and tile.operator == "tile" else None
    if tile is None or last is None or last.operator not in _VIEWS or view is tile:
        return None
    before, after = graph.tensors[view.inputs[0]].shape, graph.tensors[last.outputs[0]].shape
    spread, counts = graph.tensors[view.outputs[0]].shape, _data(graph, tile, 1)
    if len(before) != 4 or counts is None or spread != (*before[: axis + 1], 1, *before[axis + 1 :]):
        return None
    times = int(counts.reshape(-1)[axis + 1])
    only = counts.reshape(-1).tolist() == [times if a == axis + 1 else 1 for a in range(5)]
    is_longer = after == tuple(n * times if a == axis else n for a, n in enumerate(before))
    return (view, tile, last) if only and is_longer else None


def _filter(graph: Graph, node: Node, operator: str, weights: Array, stride: int, outputs: tuple[int, ...]) -> Node:
    """Return a convolution, or a transposed one, of ones and zeros."""
    attributes = Attributes(_PLAIN | {"stride_h": stride, "stride_w": stride})
    factors = _constant(graph, node, "ones", weights.astype(np.float32))
    inputs: tuple[int, ...] = (node.inputs[0], factors)
    if operator == "transpose_conv":
        shape = np.array(graph.tensors[outputs[0]].shape, np.int32)
        inputs = (_constant(graph, node, "shape", shape), factors, node.inputs[0])
    return Node(operator, inputs, outputs, attributes, name=node.name)


def _dealt(graph: Graph, node: Node) -> None:
    """Channels in g groups of c, then group by group: output j g + i is input i c + j."""
    turn = _reader(graph, node) if node.operator in _VIEWS else None
    last = _reader(graph, turn) if turn is not None and turn.operator == "transpose" else None
    if turn is None or last is None or last.operator not in _VIEWS:
        return
    image, groups = graph.tensors[node.inputs[0]].shape, graph.tensors[node.outputs[0]].shape
    order = _data(graph, turn, 1)
    is_dealt = order is not None and order.reshape(-1).tolist() == [0, 1, 2, 4, 3]
    if not is_dealt or len(image) != 4 or graph.tensors[last.outputs[0]].shape != image or groups[:3] != image[:3]:
        return
    source = np.arange(image[3]).reshape(groups[3:]).T.reshape(-1)
    weights = np.eye(image[3])[source][:, None, None, :]
    _replace(graph, (node, turn, last), _filter(graph, node, "conv_2d", weights, 1, last.outputs))


def _one_hot(graph: Graph, node: Node) -> None:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH: channel (i b + j) C + c is channel c at row i, column j of a block."""
    if node.operator not in ("depth_to_space", "space_to_depth"):
        return
    block = node.attributes.integer("block_size")
    deep = node.inputs[0] if node.operator == "depth_to_space" else node.outputs[0]
    depth = graph.tensors[deep].shape[3]
    places = np.eye(depth).reshape(depth, block, block, -1)  # [deep channel, i, j, channel]
    is_deep = node.operator == "depth_to_space"
    operator = "transpose_conv" if is_deep else "conv_2d"
    weights = places.transpose(3, 1, 2, 0) if is_deep else places
    _replace(graph, (node,), _filter(graph, node, operator, weights, block, node.outputs))


def _stepped(graph: Graph, node: Node) -> None:
    """Every s-th row or column: a slice that ends with the last one, and a pool of 1 x 1."""
    if node.operator != "strided_slice" or len(graph.tensors[node.inputs[0]].shape) != 4:
        return
    index = next(i for i, n in enumerate(graph.nodes) if n is node)
    try:
        picks = lower_strided_slice(node, graph.operands(index)).picks
    except TflqError:
        return  # quantize says what is wrong
    shape = graph.tensors[node.inputs[0]].shape
    if len(picks) != 4 or any(not isinstance(pick, tuple) for pick in picks):
        return
    ranges = [range(n)[slice(*pick)] for n, pick in zip(shape, picks, strict=True) if isinstance(pick, tuple)]
    steps = [r.step if len(r) > 1 else 1 for r in ranges]
    if min(map(len, ranges)) == 0 or min(steps) < 1 or steps[0] != 1 or steps[3] != 1 or max(steps) == 1:
        return
    begin = np.array([r.start for r in ranges], np.int32)
    size = np.array([r[-1] - r.start + 1 for r in ranges], np.int32)
    part = _tensor(graph, node.outputs[0], size.tolist(), "part")
    bounds = (_constant(graph, node, "begin", begin), _constant(graph, node, "size", size))
    cut = Node("slice", (node.inputs[0], *bounds), (part,), name=f"{node.name}{_PART}")
    window: dict[str, Attribute] = {"stride_h": steps[1], "stride_w": steps[2], "filter_height": 1, "filter_width": 1}
    pool = Node("max_pool_2d", (part,), node.outputs, Attributes(_PLAIN | window), name=node.name)
    _replace(graph, (node,), cut, pool)


def _spread(graph: Graph, node: Node) -> None:
    """One pixel, enlarged in any way, is repeated."""
    shape = graph.tensors[node.inputs[0]].shape if node.inputs else ()
    if node.operator not in ("resize_bilinear", "resize_nearest_neighbor") or shape[1:3] != (1, 1):
        return
    counts = np.array([1, *graph.tensors[node.outputs[0]].shape[1:3], 1], np.int32)
    made = Node("tile", (node.inputs[0], _constant(graph, node, "counts", counts)), node.outputs, name=node.name)
    _replace(graph, (node,), made)


_CHANNEL_AXES = {"conv_2d": 0, "depthwise_conv_2d": 3, "fully_connected": 0}
"""Axis of the output channels of the weights."""


def fold_scales(graph: Graph) -> Graph:
    """Return the graph with w[o] * factor[o] and b[o] * factor[o] + addend[o] in its filters."""
    result, gone = graph.copy(), set[int]()
    for index in range(len(graph.nodes)):
        while (reader := _scaling_reader(result, index)) is not None and reader not in gone:
            node = _scaled(result, result.nodes[index], result.nodes[reader])
            if node is None:
                break
            result.nodes[index] = node
            result.nodes[reader] = replace(result.nodes[reader], inputs=(), outputs=())
            gone.add(reader)
    return without_nodes(result, gone)


def _scaling_reader(graph: Graph, index: int) -> int | None:
    node = graph.nodes[index]
    if node.operator not in _CHANNEL_AXES or fused_activation(node) != "none" or not node.outputs:
        return None
    reader = only_reader(graph, node.outputs[0])
    return reader if reader is not None and graph.nodes[reader].operator in ("mul", "add", "sub") else None


def _scaled(graph: Graph, node: Node, scaling: Node) -> Node | None:
    """Return the filter with the constant in it; None where that is no constant of channels."""
    position, weights = constant_operand(graph, scaling), graph.tensors[node.inputs[1]]
    if position is None or weights.data is None:
        return None
    value = np.asarray(graph.tensors[scaling.inputs[position]].data, np.float32)
    channels = weights.shape[_CHANNEL_AXES[node.operator]]
    if value.size not in (1, channels) or (value.size > 1 and value.shape[-1] != channels):
        return None
    given = bias_of(graph, node)
    if given is not None and given.data is None:
        return None
    factor, addend = affine_of(scaling.operator, np.broadcast_to(value.reshape(-1), channels), position == 0)
    shape = [channels if a == _CHANNEL_AXES[node.operator] else 1 for a in range(weights.data.ndim)]
    bias = np.zeros(channels) if given is None or given.data is None else np.asarray(given.data, float).reshape(-1)
    scaled = np.asarray(weights.data, float) * factor.reshape(shape)
    inputs = (
        node.inputs[0],
        graph.add_tensor(constant(weights.name, scaled.astype(np.float32))),
        graph.add_tensor(constant(f"{weights.name}/bias", np.asarray(bias * factor + addend, np.float32))),
    )
    fused = with_attributes(node, fused_activation_function=fused_activation(scaling))
    return replace(fused, inputs=inputs, outputs=scaling.outputs)
