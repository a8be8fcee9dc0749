"""Rewrites of the float network before it becomes Caffe's layers (docs/rules/nnie.md#layers).

`PASSES` lists them in order. The values of the network do not change: values are moved, and products by one are exact.
On NNIE a convolution of ones and zeros quantizes its input as every convolution does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.nnie.caffe.elementwise import affine_of
from tflq.converters.passes.patterns import bias_of, constant_operand
from tflq.converters.passes.requirements import float_network
from tflq.converters.passes.rewrite import constant
from tflq.converters.passes.take_in import fold_padding, foldable_padding
from tflq.errors import TflqError
from tflq.graph import Array, Attribute, Attributes, Node, Operands
from tflq.graph.operators import Trait, has_trait, row_of
from tflq.graph.rewriting import (
    ANY,
    Constant,
    GraphEditor,
    Match,
    Op,
    Pass,
    Value,
    find_matches,
    fused_activation,
    graph_pass,
    match,
    op,
)
from tflq.graph.rewriting.pattern import Pattern
from tflq.interpreter.kernels.move.slices import lower_strided_slice
from tflq.interpreter.operands.windows import window_of_node

_PART = "/part"
_PLAIN: dict[str, Attribute] = {"padding": "valid", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}
_IMAGE = Value("x", lambda tensor: len(tensor.shape) == 4)
_ROWS = Value("x", lambda tensor: len(tensor.shape) == 3)


def origin(node: Node) -> str:
    """Return the name of the operator in the file that became a node."""
    return node.name.removesuffix(_PART)


def _view_pattern(x: Pattern, name: str) -> Op:
    return op(Trait.RESHAPE, x, name=name)


def _constant_pattern(name: str) -> Constant:
    return Constant(name, single=False)


def _substitute(editor: GraphEditor, nodes: Iterable[Node], *substitutes: Node) -> None:
    """Remove nodes and append their substitutes; the order of execution is restored at the end."""
    for node in nodes:
        editor.remove(node)
    for node in substitutes:
        editor.add(node)


def _build_pass(pattern: Op, build: Callable[[GraphEditor, Match], tuple[Node, ...]]) -> Callable[[GraphEditor], None]:
    """Return the pass that substitutes all nodes of each match by the nodes that `build` returns, if any."""

    def run(editor: GraphEditor) -> None:
        for place in find_matches(editor, pattern):
            if nodes := build(editor, place):
                _substitute(editor, (place.root, *place.inner), *nodes)

    return run


def _tensor(editor: GraphEditor, like: int, shape: Sequence[int], suffix: str) -> int:
    """Add a computed tensor with the type of another one and a different shape."""
    old = editor.tensors[like]
    made = replace(old, name=f"{old.name}/{suffix}", data=None, shape=tuple(shape), shape_signature=None)
    return editor.add_tensor(made)


def _constant(editor: GraphEditor, node: Node, suffix: str, values: Array) -> int:
    return editor.add_tensor(constant(f"{node.name}/{suffix}", values))


def _view_node(editor: GraphEditor, node: Node, x: int, y: int) -> Node:
    shape = _constant(editor, node, "shape", np.array(editor.shape(y), np.int32))
    return Node("reshape", (x, shape), (y,), name=node.name)


def _image_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], 1, *shape[1:])


def _image_operands(editor: GraphEditor, node: Node) -> tuple[int, ...]:
    """Return the constant operands of an operator on [N, L, C] for [N, 1, L, C]; none if one is computed."""
    operands = []
    for position, data in enumerate(map(editor.constant, node.inputs[1:]), 1):
        if data is None:
            return ()
        before = data[:1] if has_trait(node, Trait.PAD) else data[:0]
        row = np.full((1, *data.shape[1:]), 1 if data.ndim == 1 else 0, data.dtype)
        operands.append(_constant(editor, node, f"image{position}", np.concatenate([before, row, data[len(before) :]])))
    return tuple(operands)


_VIEW_OF_ROWS = _view_pattern(op(("pad", "space_to_batch_nd"), _ROWS, name="rows"), "view")


def _hoist_views(editor: GraphEditor) -> None:
    """Rewrite view(PAD(x)) as PAD(view(x)), also for SPACE_TO_BATCH_ND; the last nodes first, so that both follow."""
    for node in reversed(editor.nodes):
        view = editor.current(node)
        while view is not None and (place := match(editor, view, _VIEW_OF_ROWS)) is not None:
            view = _hoist_view(editor, place)


def _hoist_view(editor: GraphEditor, place: Match) -> Node | None:
    view, rows, x = place.nodes["view"], place.nodes["rows"], place.values["x"]
    if editor.shape(view.outputs[0]) != _image_shape(editor.shape(rows.outputs[0])):
        return None
    operands = _image_operands(editor, rows)
    if not operands:
        return None
    image = _tensor(editor, x, _image_shape(editor.shape(x)), "image")
    hoisted = _view_node(editor, view, x, image)
    _substitute(editor, (rows, view), hoisted, replace(rows, inputs=(image, *operands), outputs=view.outputs))
    return hoisted


_ROWS_OF_VIEW = op("batch_to_space_nd", _view_pattern(Value("x"), "view"), name="back")


def _lower_view(editor: GraphEditor, place: Match) -> tuple[Node, ...]:
    view, back, x = place.nodes["view"], place.root, place.values["x"]
    y, rows = back.outputs[0], editor.shape(view.outputs[0])
    if len(rows) != 3 or editor.shape(x) != _image_shape(rows) or not (operands := _image_operands(editor, back)):
        return ()
    image = _tensor(editor, y, _image_shape(editor.shape(y)), "image")
    return replace(back, inputs=(x, *operands), outputs=(image,)), _view_node(editor, view, image, y)


_PHASES = op("space_to_batch_nd", Value("x"), _constant_pattern("blocks"), _constant_pattern("added"))
_DILATED = op(
    "batch_to_space_nd",
    op(Trait.CONVOLUTION, _PHASES, name="filter", activation=ANY),
    _constant_pattern("same"),
    _constant_pattern("cut"),
)


def _dilate(editor: GraphEditor, place: Match) -> tuple[Node, ...]:
    """Blocks of b become a dilation of b; added and cut rows become padding.

    A convolution of phases reads rows at distance b, and q rows of padding of each phase are b q rows of the image:
    p + b q - c in total, with p of SPACE_TO_BATCH_ND and c of BATCH_TO_SPACE_ND.
    """
    blocks, added, same, cut = (place.constants[name] for name in ("blocks", "added", "same", "cut"))
    if any(len(data) != 2 for data in (blocks, added, same, cut)) or (blocks != same).any():
        return ()
    node = place.nodes["filter"]
    window = window_of_node(node, *map(editor.shape, node.inputs[:2]))
    padding = added + blocks[:, None] * np.array(window.padding).reshape(2, 2) - cut
    if (window.stride, window.dilation) != ((1, 1), (1, 1)) or (padding < 0).any():
        return ()
    attributes = node.attributes.updated(
        padding="valid",
        explicit_padding=tuple(padding.reshape(-1).tolist()),
        dilation_h_factor=int(blocks[0]),
        dilation_w_factor=int(blocks[1]),
    )
    inputs = (place.values["x"], *node.inputs[1:])
    return (replace(node, inputs=inputs, outputs=place.root.outputs, attributes=attributes),)


def _repetition(x: Pattern, axis: int) -> Op:
    """Return the pattern that repeats the rows (axis 1) or columns (axis 2) of an image."""
    tile = op("tile", _view_pattern(x, f"first{axis}"), _constant_pattern(f"counts{axis}"))
    return _view_pattern(tile, f"last{axis}")


_ENLARGED = _repetition(_repetition(_IMAGE, 1), 2)


def _enlarge(editor: GraphEditor, place: Match) -> tuple[Node, ...]:
    if not (_is_repetition(editor, place, 1) and _is_repetition(editor, place, 2)):
        return ()
    node, y = place.nodes["first1"], place.root.outputs[0]
    size = _constant(editor, node, "size", np.array(editor.shape(y)[1:3], np.int32))
    return (Node("resize_nearest_neighbor", (place.values["x"], size), (y,), name=node.name),)


def _is_repetition(editor: GraphEditor, place: Match, axis: int) -> bool:
    first, counts = place.nodes[f"first{axis}"], place.constants[f"counts{axis}"].reshape(-1)
    before, spread = editor.shape(first.inputs[0]), editor.shape(first.outputs[0])
    if len(before) != 4 or spread != (*before[: axis + 1], 1, *before[axis + 1 :]):
        return False
    times = int(counts[axis + 1])
    after = tuple(n * times if a == axis else n for a, n in enumerate(before))
    is_single = counts.tolist() == [times if a == axis + 1 else 1 for a in range(5)]
    return is_single and editor.shape(place.nodes[f"last{axis}"].outputs[0]) == after


def _filter(editor: GraphEditor, node: Node, operator: str, weights: Array, stride: int, y: int) -> Node:
    """Return a convolution, or a transposed one, of ones and zeros."""
    attributes = Attributes(_PLAIN | {"stride_h": stride, "stride_w": stride})
    factors = _constant(editor, node, "ones", weights.astype(np.float32))
    inputs: tuple[int, ...] = (node.inputs[0], factors)
    if operator == "transpose_conv":
        shape = np.array(editor.shape(y), np.int32)
        inputs = (_constant(editor, node, "shape", shape), factors, node.inputs[0])
    return Node(operator, inputs, (y,), attributes, name=node.name)


_DEALT = _view_pattern(op("transpose", _view_pattern(_IMAGE, "groups"), _constant_pattern("order")), "last")


def _deal(editor: GraphEditor, place: Match) -> tuple[Node, ...]:
    """Channels in g groups of c, then group by group: output j g + i is input i c + j."""
    node, y = place.nodes["groups"], place.root.outputs[0]
    image, groups = editor.shape(place.values["x"]), editor.shape(node.outputs[0])
    is_dealt = place.constants["order"].reshape(-1).tolist() == [0, 1, 2, 4, 3]
    if not is_dealt or editor.shape(y) != image or groups[:3] != image[:3]:
        return ()
    source = np.arange(image[3]).reshape(groups[3:]).T.reshape(-1)
    return (_filter(editor, node, "conv_2d", np.eye(image[3])[source][:, None, None, :], 1, y),)


def _convolve_blocks(editor: GraphEditor, place: Match) -> tuple[Node, ...]:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH: channel (i b + j) C + c is channel c at row i, column j of a block."""
    node, y = place.root, place.root.outputs[0]
    block, is_deep = node.attributes.integer("block_size"), node.operator == "depth_to_space"
    depth = editor.shape(place.values["x"] if is_deep else y)[3]
    places = np.eye(depth).reshape(depth, block, block, -1)  # [deep channel, i, j, channel]
    if is_deep:
        return (_filter(editor, node, "transpose_conv", places.transpose(3, 1, 2, 0), block, y),)
    return (_filter(editor, node, "conv_2d", places, block, y),)


def _pool_steps(editor: GraphEditor, place: Match) -> tuple[Node, ...]:
    """Every s-th row or column: a slice that ends with the last one, and a pool of 1 x 1."""
    node = place.root
    try:
        picks = lower_strided_slice(node, Operands.from_node(editor.tensors, node)).picks
    except TflqError:
        return ()  # quantize reports the error
    slices = [pick for pick in picks if isinstance(pick, tuple)]
    if len(picks) != 4 or len(slices) != 4:
        return ()
    ranges = [range(n)[slice(*pick)] for n, pick in zip(editor.shape(node.inputs[0]), slices, strict=True)]
    steps = [r.step if len(r) > 1 else 1 for r in ranges]
    if min(map(len, ranges)) == 0 or min(steps) < 1 or steps[0] != 1 or steps[3] != 1 or max(steps) == 1:
        return ()
    begin = np.array([r.start for r in ranges], np.int32)
    size = np.array([r[-1] - r.start + 1 for r in ranges], np.int32)
    part = _tensor(editor, node.outputs[0], size.tolist(), "part")
    bounds = (_constant(editor, node, "begin", begin), _constant(editor, node, "size", size))
    cut = Node("slice", (node.inputs[0], *bounds), (part,), name=f"{node.name}{_PART}")
    window: dict[str, Attribute] = {"stride_h": steps[1], "stride_w": steps[2], "filter_height": 1, "filter_width": 1}
    return cut, Node("max_pool_2d", (part,), node.outputs, Attributes(_PLAIN | window), name=node.name)


_SPREAD = op(Trait.RESIZE, Value("x", lambda tensor: tensor.shape[1:3] == (1, 1)))


def _repeat_pixel(editor: GraphEditor, place: Match) -> tuple[Node, ...]:
    node = place.root
    counts = np.array([1, *editor.shape(node.outputs[0])[1:3], 1], np.int32)
    operands = (place.values["x"], _constant(editor, node, "counts", counts))
    return (Node("tile", operands, node.outputs, name=node.name),)


def _pad_by_filters(editor: GraphEditor) -> None:
    """Write the PADs of zeros that `fold_padding` leaves as depthwise convolutions of 1 x 1 ones."""
    for node in editor.nodes:
        amounts = foldable_padding(editor.tensors, node)
        if amounts is not None and min(amounts) >= 0:
            ones = np.ones((1, 1, 1, editor.shape(node.outputs[0])[3]))
            padding = _filter(editor, node, "depthwise_conv_2d", ones, 1, node.outputs[0])
            editor.change(editor.replace(node, padding), explicit_padding=amounts)


def _fold_scales(editor: GraphEditor) -> None:
    """Fold MUL, ADD and SUB by constants of channels into the convolution: w[o] * factor[o], b[o] * factor[o] + a[o].

    NNIE's layer then has one set of quantized weights; how it would quantize a Scale is irrelevant.
    """
    for node in editor.nodes:
        scaled = node if has_trait(node, Trait.LINEAR) else None
        while scaled is not None:
            scaled = _fold_scale(editor, scaled)


def _fold_scale(editor: GraphEditor, node: Node) -> Node | None:
    """Fold the reader of a filter into it and return the filter; None if its reader adds or multiplies no constant."""
    scaling = editor.only_reader(node.outputs[0]) if fused_activation(node) == "none" else None
    if scaling is None or scaling.operator not in ("mul", "add", "sub"):
        return None
    position, axis = constant_operand(editor, scaling), row_of(node).channel_axis
    weights, bias = editor.tensors[node.inputs[1]], bias_of(editor, node)
    if position is None or weights.data is None or axis is None or (bias is not None and bias.data is None):
        return None
    value = np.asarray(editor.constant(scaling.inputs[position]), np.float32)
    channels = weights.shape[axis]
    if value.size not in (1, channels) or (value.size > 1 and value.shape[-1] != channels):
        return None
    factor, addend = affine_of(scaling.operator, np.broadcast_to(value.reshape(-1), channels), position == 0)
    shape = [channels if a == axis else 1 for a in range(weights.data.ndim)]
    old = np.zeros(channels) if bias is None else np.asarray(bias.data, float).reshape(-1)
    scaled = np.asarray(weights.data, float) * factor.reshape(shape)
    inputs = (
        node.inputs[0],
        editor.add_tensor(constant(weights.name, scaled.astype(np.float32))),
        editor.add_tensor(constant(f"{weights.name}/bias", np.asarray(old * factor + addend, np.float32))),
    )
    editor.remove(scaling)
    activation = fused_activation(scaling)
    return editor.change(node, inputs=inputs, outputs=scaling.outputs, fused_activation_function=activation)


_LAYERS = "docs/rules/nnie.md#layers"
PASSES: tuple[Pass[GraphEditor], ...] = (
    graph_pass("float_view", float_network, "Caffe's layers compute on float32; ranges are kept", _LAYERS),
    Pass("remove_dead", GraphEditor.remove_dead, "an unread node has no layer and is no reader"),
    Pass("hoist_views", _hoist_views, "PAD of rows, then images: a convolution folds PAD of images", _LAYERS),
    Pass("lower_views", _build_pass(_ROWS_OF_VIEW, _lower_view), "as hoist_views, for BATCH_TO_SPACE_ND", _LAYERS),
    Pass("dilate", _build_pass(_DILATED, _dilate), "a convolution between blocks is a dilated one", _LAYERS),
    Pass("enlarge", _build_pass(_ENLARGED, _enlarge), "rows and columns repeated: RESIZE_NEAREST_NEIGHBOR", _LAYERS),
    Pass("shuffle", _build_pass(_DEALT, _deal), "a shuffle of channels: a convolution of ones and zeros", _LAYERS),
    Pass(
        "convolve_blocks",
        _build_pass(op(("depth_to_space", "space_to_depth"), Value("x")), _convolve_blocks),
        "DEPTH_TO_SPACE and SPACE_TO_DEPTH: (transposed) convolutions of ones and zeros",
        _LAYERS,
    ),
    Pass(
        "pool_steps",
        _build_pass(op("strided_slice", _IMAGE), _pool_steps),
        "STRIDED_SLICE with steps: SLICE and a pool of 1 x 1 with strides",
        _LAYERS,
    ),
    Pass("repeat_pixels", _build_pass(_SPREAD, _repeat_pixel), "one resized pixel: TILE", _LAYERS),
    Pass("fold_padding", fold_padding, "Caffe's convolutions pad with zeros", _LAYERS),
    Pass("pad_by_filters", _pad_by_filters, "Caffe has no PAD: a depthwise convolution of 1 x 1 ones pads", _LAYERS),
    Pass("fold_scales", _fold_scales, "batch normalization: one set of quantized weights per layer", _LAYERS),
)
