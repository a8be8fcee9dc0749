"""TFLite's operators that move or choose values -> Compass's layers (docs/aipu.md, 5)."""

from __future__ import annotations

import numpy as np

from tflq.converters.aipu.translate_others import Rule
from tflq.converters.aipu.translation import Translation, as_written
from tflq.graph import Attributes, Node
from tflq.graph.attributes import Attribute

_SIDES = ("top", "bottom", "left", "right")


def _reshape(work: Translation, node: Node) -> None:
    work.append(node, "reshape", {}, Attributes({"shape": work.shape(node.outputs[0])}))


def _concatenation(work: Translation, node: Node) -> None:
    rank = len(work.shape(node.outputs[0]))
    axis = Attributes({"axis": node.attributes.integer("axis") % rank})
    work.append(node, "concat", {}, axis, reads=len(node.inputs))


def _pack(work: Translation, node: Node) -> None:
    """Each input gets the new axis, then Concat."""
    shape = work.shape(node.outputs[0])
    axis = node.attributes.integer("axis") % len(shape)
    single = (*shape[:axis], 1, *shape[axis + 1 :])
    keys: dict[str, Attribute] = {"shape": single}
    inputs = [
        work.add_between(node, "reshape", (work.operand(t),), single, t, keys, "_pre_reshape") for t in node.inputs
    ]
    work.add(node, "concat", inputs, node.outputs, {"axis": axis})


def _pad(work: Translation, node: Node) -> None:
    mode = node.attributes.text("mode", "constant").upper()
    given = work.source.tensors[node.inputs[2]].data if node.operator == "padv2" else None
    value = 0.0 if given is None else as_written(np.asarray(given).reshape(-1)[0])
    pads = np.asarray(work.source.tensors[node.inputs[1]].data, np.int64)
    work.append(node, "pad", {}, Attributes({"constant_value": value, "mode": mode, "pads": pads}))


def _transpose(work: Translation, node: Node) -> None:
    work.append(node, "transpose", {}, Attributes({"perm": work.numbers(node, 1)}))


def _tile(work: Translation, node: Node) -> None:
    """TILE states the repeats; BROADCAST_TO the shape, whose new leading axes need a Reshape first."""
    old, new = work.shape(node.inputs[0]), work.shape(node.outputs[0])
    x = work.operand(node.inputs[0])
    if node.operator == "tile":
        work.add(node, "tile", (x,), node.outputs, {"repeats": work.numbers(node, 1)})
        return
    single = (1,) * (len(new) - len(old)) + old
    if single != old:
        x = work.add_between(node, "reshape", (x,), single, node.inputs[0], {"shape": single}, "_pre_reshape")
    work.add(node, "tile", (x,), node.outputs, {"repeats": tuple(n // s for n, s in zip(new, single, strict=True))})


def _split(work: Translation, node: Node) -> None:
    """Input of SPLIT: axis, data; of SPLIT_V: data, sizes, axis."""
    place, axis_place = (1, 0) if node.operator == "split" else (0, 2)
    axis = work.numbers(node, axis_place)[0] % len(work.shape(node.inputs[place]))
    keys: dict[str, Attribute] = {"axis": axis, "splits": tuple(work.shape(t)[axis] for t in node.outputs)}
    work.add(node, "split", (work.operand(node.inputs[place]),), node.outputs, keys)


def _unpack(work: Translation, node: Node) -> None:
    """One Slice and one Reshape for each output."""
    shape = work.shape(node.inputs[0])
    axis = node.attributes.integer("axis", 0) % len(shape)
    x = work.operand(node.inputs[0])
    for i, t in enumerate(node.outputs):
        begin, end = [0] * len(shape), list(shape)
        begin[axis], end[axis] = i, i + 1
        single = (*shape[:axis], 1, *shape[axis + 1 :])
        part = work.add_between(node, "slice", (x,), single, t, _limits(begin, end, [1] * len(shape)), "_pre_slice")
        work.reshape(node, part, t)


def _slice(work: Translation, node: Node) -> None:
    begin = work.numbers(node, 1)
    end = [b + n for b, n in zip(begin, work.shape(node.outputs[0]), strict=True)]
    work.append(node, "slice", {}, Attributes(_limits(begin, end, [1] * len(end))))


def _strided_slice(work: Translation, node: Node) -> None:
    """Axes that shrink are cut to one and taken off by a Reshape."""
    begin, end, strides = slice_of(node, work.shape(node.inputs[0]), [work.numbers(node, i) for i in (1, 2, 3)])
    x, keys = work.operand(node.inputs[0]), _limits(begin, end, strides)
    shape = tuple(len(range(b, e, s)) for b, e, s in zip(begin, end, strides, strict=True))
    if shape == work.shape(node.outputs[0]):
        work.add(node, "slice", (x,), node.outputs, keys)
        return
    part = work.add_between(node, "slice", (x,), shape, node.outputs[0], keys)
    work.reshape(node, part, node.outputs[0], "_post_reshape")


def slice_of(
    node: Node, shape: tuple[int, ...], given: list[tuple[int, ...]]
) -> tuple[list[int], list[int], list[int]]:
    """Return begin, end and stride of each axis as Python's slices have them; an axis that shrinks is cut to one."""
    begins, ends, strides = [], [], []
    masks = {key: node.attributes.integer(f"{key}_mask", 0) for key in ("begin", "end", "shrink_axis")}
    for axis, (size, b, e, s) in enumerate(zip(shape, *given, strict=True)):
        first = None if masks["begin"] >> axis & 1 else b
        last = None if masks["end"] >> axis & 1 else e
        start, stop, step = slice(first, last, s).indices(size)
        if masks["shrink_axis"] >> axis & 1:
            start, stop, step = b % size, b % size + 1, 1
        begins.append(start)
        ends.append(stop)
        strides.append(step)
    return begins, ends, strides


def _limits(begin: list[int] | tuple[int, ...], end: list[int], strides: list[int]) -> dict[str, Attribute]:
    return {"begin": tuple(begin), "end": tuple(end), "strides": tuple(strides)}


def _blocks(work: Translation, node: Node) -> None:
    """BATCH_TO_SPACE_ND and SPACE_TO_BATCH_ND of two axes."""
    (by, bx), sides = work.numbers(node, 1), work.numbers(node, 2)
    is_back = node.operator == "batch_to_space_nd"
    named = dict(zip(_SIDES, sides, strict=True))
    name = "crop" if is_back else "pad"
    keys: dict[str, Attribute] = {"block_size_x": bx, "block_size_y": by}
    keys.update({f"{name}_{side}": named[side] for side in ("left", "right", "top", "bottom")})
    work.append(node, "batch_to_space" if is_back else "space_to_batch", {}, Attributes(keys))


def _depth(work: Translation, node: Node) -> None:
    size = node.attributes.integer("block_size")
    keys: dict[str, Attribute] = {"mode": "DCR"} if node.operator == "depth_to_space" else {}
    work.append(node, node.operator, {}, Attributes({**keys, "block_size_x": size, "block_size_y": size}))


def _resize(work: Translation, node: Node) -> None:
    is_half = node.attributes.boolean("half_pixel_centers", False)
    is_nearest = node.operator == "resize_nearest_neighbor"
    half = "TF_HALF_PIXEL_FOR_NN" if is_nearest else "HALF_PIXEL"
    aligned = "ALIGN_CORNERS" if node.attributes.boolean("align_corners", False) else "ASYMMETRIC"
    keys: dict[str, Attribute] = {
        "method": "NEAREST" if is_nearest else "BILINEAR",
        "size": work.shape(node.outputs[0]),
        "mode": half if is_half else aligned,
        "antialias": False,
        "exclude_outside": False,
    }
    if is_nearest:
        keys["nearest_mode"] = "FLOOR"
    work.append(node, "resize", {}, Attributes(keys))


def _gather(work: Translation, node: Node) -> None:
    rank = len(work.shape(node.inputs[0]))
    keys: dict[str, Attribute] = {
        "axis": node.attributes.integer("axis", 0) % rank,
        "batch_dims": node.attributes.integer("batch_dims", 0) % (len(work.shape(node.inputs[1])) + 1),
    }
    work.append(node, "gather", {}, Attributes(keys), reads=2)


def _embedding(work: Translation, node: Node) -> None:
    inputs = [work.operand(t) for t in reversed(node.inputs)]
    work.add(node, "gather", inputs, node.outputs, {"axis": 0, "batch_dims": 0})


def _gather_nd(work: Translation, node: Node) -> None:
    work.append(node, "gather_nd", {}, Attributes({"batch_dims": 0}), reads=2)


def _reverse_sequence(work: Translation, node: Node) -> None:
    value = node.attributes.integer
    keys: dict[str, Attribute] = {"batch_axis": value("batch_dim", 0), "time_axis": value("seq_dim", 0)}
    work.append(node, "reverse_sequence", {}, Attributes(keys), reads=2)


def _reverse(work: Translation, node: Node) -> None:
    """One ReverseSequence over the whole length; another axis counts as the batch."""
    shape = work.shape(node.inputs[0])
    axis = work.numbers(node, 1)[0] % len(shape)
    batch = 1 if axis == 0 else 0
    lengths = np.full(shape[batch], shape[axis], np.int32)
    name = work.name_of(node.outputs[0])
    inputs = (work.operand(node.inputs[0]), work.layer_of_constant(f"{name}_seq_len", lengths))
    work.add(node, "reverse_sequence", inputs, node.outputs, {"batch_axis": batch, "time_axis": axis})


def _scatter_nd(work: Translation, node: Node) -> None:
    """Updates are added to zeros."""
    indices, updates = (work.operand(t) for t in node.inputs[:2])
    name = work.name_of(node.outputs[0])
    zeros = work.layer_of_constant(f"{name}_data", np.zeros(work.shape(node.outputs[0]), np.float32))
    work.add(node, "scatter_nd", (zeros, indices, updates), node.outputs, {"reduction": "ADD"})


MOVES: dict[str, Rule] = {
    **dict.fromkeys(("expand_dims", "reshape", "squeeze"), _reshape),
    **dict.fromkeys(("pad", "padv2", "mirror_pad"), _pad),
    **dict.fromkeys(("tile", "broadcast_to"), _tile),
    **dict.fromkeys(("split", "split_v"), _split),
    **dict.fromkeys(("batch_to_space_nd", "space_to_batch_nd"), _blocks),
    **dict.fromkeys(("depth_to_space", "space_to_depth"), _depth),
    **dict.fromkeys(("resize_bilinear", "resize_nearest_neighbor"), _resize),
    "concatenation": _concatenation,
    "embedding_lookup": _embedding,
    "gather": _gather,
    "gather_nd": _gather_nd,
    "pack": _pack,
    "reverse_sequence": _reverse_sequence,
    "reverse_v2": _reverse,
    "scatter_nd": _scatter_nd,
    "slice": _slice,
    "strided_slice": _strided_slice,
    "transpose": _transpose,
    "unpack": _unpack,
}
