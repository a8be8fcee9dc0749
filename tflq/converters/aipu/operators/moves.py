"""Layers that only move values and pass their input's type, and Constant (docs/rules/aipu/operators.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.descriptor import Layer, OutputType, Row, all_values
from tflq.converters.aipu.emitted import Computed, Emitted, Lowered
from tflq.converters.aipu.operators.linear import encoded
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.passes.activations import as_written
from tflq.converters.aipu.ranges import range_of, type_of_range
from tflq.converters.aipu.translation import Translation
from tflq.graph import Attributes, DType, Graph, Node, Operands, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.layout import LayoutParams
from tflq.interpreter.kernels.aipu.scales import affine_of
from tflq.quoting import compass_name

_PLAIN = (DType.UINT8, DType.UINT16, DType.INT8, DType.INT16, DType.INT32)


def _constant(_node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Whole numbers as they are (s = 1), those beyond 32 bits at their limit; others as an input.

    Source: Compass Optimizer, ops/constant.py; dtype_utils.py, range_to_dtype.
    """
    tensor, values = operands.output(), np.asarray(operands.input(0).data, np.float64)
    if np.array_equal(values, np.rint(values)):
        low, high = values.min(initial=0), values.max(initial=0)
        kind = next((d for d in _PLAIN if d.minimum <= low and high <= d.maximum), DType.INT32)
        return ((kind, affine_of(np.float32(1), 0, kind.bits, kind.is_signed)),)
    low, high = (values.min(), values.max()) if tensor.range is None else range_of(tensor)
    bits = options.activation_bits
    affine = type_of_range(low, high, bits, bool(low < 0), options.is_symmetric, options.restricted)
    return ((DType(f"{'int' if affine.signed else 'uint'}{8 if affine.bits <= 8 else 16}"), affine),)


def _constant_values(_node: Node, operands: Operands, _options: LayerOptions) -> Mapping[str, Tensor]:
    """The weights of a Constant have its output's type."""
    weights = operands.input(0)
    found = encoded(weights, operands.output().affine)
    return {"weights": replace(found, shape=weights.shape, data=np.asarray(found.data).reshape(weights.shape))}


def _emit_pad(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, LayoutParams)
    return Emitted(changed={"constant_value": params.fill} if "constant_value" in layer.node.attributes else {})


_PASSING = ("ChannelShuffle", "Reshape", "Slice", "Tile", "Transpose")
_WITHOUT_LIMITS = (
    *("BatchToDepth", "BatchToSpace", "Crop", "DataStride", "DepthToSpace"),
    *("SpaceToBatch", "SpaceToDepth", "Split"),
)
"""Those whose output has all values of its element type, whatever its input leaves out."""


def snake(name: str) -> str:
    """Return a layer's type as the name of its kernel: "BatchToDepth" -> "batch_to_depth"."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


_SIDES = ("top", "bottom", "left", "right")


def map_reshape(work: Translation, node: Node) -> None:
    """Map EXPAND_DIMS, RESHAPE, SQUEEZE."""
    work.append(node, "reshape", {}, Attributes({"shape": work.shape(node.outputs[0])}))


def map_pad(work: Translation, node: Node) -> None:
    """Map PAD, MIRROR_PAD, PADV2."""
    mode = node.attributes.text("mode", "constant").upper()
    given = work.source.tensors[node.inputs[2]].data if node.operator == "padv2" else None
    value = 0.0 if given is None else as_written(np.asarray(given).item())
    pads = np.asarray(work.source.tensors[node.inputs[1]].data, np.int64)
    work.append(node, "pad", {}, Attributes({"constant_value": value, "mode": mode, "pads": pads}))


def map_transpose(work: Translation, node: Node) -> None:
    """Map TRANSPOSE."""
    work.append(node, "transpose", {}, Attributes({"perm": work.numbers(node, 1)}))


def map_tile(work: Translation, node: Node) -> None:
    """TILE states the repeats; BROADCAST_TO the shape, whose new leading axes need a Reshape first."""
    old, new = work.shape(node.inputs[0]), work.shape(node.outputs[0])
    x = work.operand(node.inputs[0])
    if node.operator == "tile":
        work.add(node, "tile", (x,), node.outputs, {"repeats": work.numbers(node, 1)})
        return
    single = (1,) * (len(new) - len(old)) + old
    if single != old:
        x = work.reshaped(node, x, single)
    work.add(node, "tile", (x,), node.outputs, {"repeats": tuple(n // s for n, s in zip(new, single, strict=True))})


def map_split(work: Translation, node: Node) -> None:
    """Input of SPLIT: axis, data; of SPLIT_V: data, sizes, axis."""
    place, axis_place = (1, 0) if node.operator == "split" else (0, 2)
    axis = work.numbers(node, axis_place)[0] % len(work.shape(node.inputs[place]))
    keys: dict[str, Attribute] = {"axis": axis, "splits": tuple(work.shape(t)[axis] for t in node.outputs)}
    work.add(node, "split", (work.operand(node.inputs[place]),), node.outputs, keys)


def map_unpack(work: Translation, node: Node) -> None:
    """Split; a Reshape behind each output takes the axis off."""
    shape = work.shape(node.inputs[0])
    axis = node.attributes.integer("axis", 0) % len(shape)
    single = (*shape[:axis], 1, *shape[axis + 1 :])
    tops = [work.inner(t, single) for t in node.outputs]
    keys: dict[str, Attribute] = {"axis": axis, "splits": (1,) * len(tops)}
    name = work.name_of(node.outputs[0])
    parts = work.layer(node, name, "split", (work.operand(node.inputs[0]),), tops, keys)
    for port, (part, t) in enumerate(zip(parts, node.outputs, strict=True)):
        work.reshape(node, part, t, f"{name}_post_reshape_{port}")


def map_slice(work: Translation, node: Node) -> None:
    """Map SLICE."""
    begin = work.numbers(node, 1)
    end = [b + n for b, n in zip(begin, work.shape(node.outputs[0]), strict=True)]
    work.append(node, "slice", {}, Attributes(_limits(begin, end, [1] * len(end))))


def map_strided_slice(work: Translation, node: Node) -> None:
    """Axes that shrink are cut to one and taken off by a Reshape, after a Split if the Parser cuts a longer part."""
    (t,), shape = node.outputs, work.shape(node.inputs[0])
    operands = [work.numbers(node, i) for i in (1, 2, 3)]
    begin, end, strides = slice_of(node, shape, operands)
    x, single = work.operand(node.inputs[0]), _part_of(begin, end, strides)
    if single == work.shape(t):
        work.add(node, "slice", (x,), node.outputs, _limits(begin, end, strides))
        return
    name, longer = work.name_of(t), _reversed_axes(node, shape, operands)
    if len(longer) == 1:
        ((axis, (end[axis], strides[axis])),) = longer.items()
    cut = _part_of(begin, end, strides)
    (part,) = work.layer(node, name, "slice", (x,), (work.inner(t, cut),), _limits(begin, end, strides))
    if cut != single:
        rest = tuple(n - 1 if a == axis else n for a, n in enumerate(cut))
        tops = [work.inner(t, single), work.inner(t, rest)]
        keys: dict[str, Attribute] = {"axis": axis, "splits": (1, cut[axis] - 1)}
        part, _ = work.layer(node, f"{name}_post_split", "split", (part,), tops, keys)
        work.layers.departures[compass_name(f"{name}_post_split")] = _PRINTED
    work.reshape(node, part, t, f"{name}_post_reshape")


_PRINTED = (
    "written with numbers; under NumPy 2 the Parser prints a size as np.int32(...), which its Optimizer does not read: "
    "give it tflq's float IR"
)


def _part_of(begin: list[int], end: list[int], strides: list[int]) -> tuple[int, ...]:
    """Return the shape that limits cut."""
    return tuple(len(range(b, e, s)) for b, e, s in zip(begin, end, strides, strict=True))


def _reversed_axes(node: Node, shape: tuple[int, ...], operands: list[tuple[int, ...]]) -> dict[int, tuple[int, int]]:
    """Return the axes that shrink and end before their begin, for example `x[:, -1]`: axis -> end, stride -1.

    The Parser reads the part from begin down to end, and takes its first element. Example: 48 elements, begin -1, end
    0: begin 47, end 0, stride -1, 47 elements.

    Source: Compass Parser, ops/tf_ops/array_ops.py, set_attr_remove_mask_tf.
    """
    begins, ends, strides = operands
    shrinks, open_ends = (node.attributes.integer(f"{key}_mask", 0) for key in ("shrink_axis", "end"))
    longer = {}
    for axis, size in enumerate(shape):
        if not shrinks >> axis & 1 or open_ends >> axis & 1 or strides[axis] != 1:
            continue
        begin, end = (v + size if v < 0 else v for v in (begins[axis], ends[axis]))
        if 0 <= end < begin < size:
            longer[axis] = (end, -1)
    return longer


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


def map_blocks(work: Translation, node: Node) -> None:
    """BATCH_TO_SPACE_ND and SPACE_TO_BATCH_ND: of images one layer, of three axes moved by Transpose.

    So are the blocks of images that are not square and come back whole.
    """
    blocks, sizes = work.numbers(node, 1), work.numbers(node, 2)
    is_back = node.operator == "batch_to_space_nd"
    if is_back and (len(blocks) == 1 or (blocks[0] != blocks[1] and not any(sizes))):
        _from_blocks(work, node, blocks, sizes)
        return
    if len(blocks) == 1:
        _to_blocks(work, node, blocks[0], sizes)
        return
    by, bx = blocks
    named = dict(zip(_SIDES, sizes, strict=True))
    name = "crop" if is_back else "pad"
    keys: dict[str, Attribute] = {"block_size_x": bx, "block_size_y": by}
    keys.update({f"{name}_{side}": named[side] for side in ("left", "right", "top", "bottom")})
    operator, suffix = ("batch_to_space", "") if is_back else ("space_to_batch", "_reshape2" if by != bx else "")
    work.add(node, operator, (work.operand(node.inputs[0]),), node.outputs, keys, suffix=suffix)


def _to_blocks(work: Translation, node: Node, block: int, pads: tuple[int, ...]) -> None:
    """Pad; Reshape the axis to (places, block); Transpose the block in front; Reshape it into the batch."""
    (t,), name, x = node.outputs, work.name_of(node.outputs[0]), work.operand(node.inputs[0])
    batch, size, depth = work.shape(node.inputs[0])
    if any(pads):
        size += sum(pads)
        around = np.array([(0, 0), pads, (0, 0)], np.int64)
        keys: dict[str, Attribute] = {"constant_value": 0.0, "mode": "CONSTANT", "pads": around}
        x = _moved(work, node, f"{name}_pad", "pad", x, (batch, size, depth), keys)
    apart = (batch, size // block, block, depth)
    x = _moved(work, node, f"{name}_reshape1", "reshape", x, apart, {"shape": apart})
    x = _moved(work, node, name, "transpose", x, (block, batch, size // block, depth), {"perm": (2, 0, 1, 3)})
    work.reshape(node, x, t, f"{name}_reshape2")


def _from_blocks(work: Translation, node: Node, blocks: tuple[int, ...], crops: tuple[int, ...]) -> None:
    """Reshape the batch to (blocks, batch); Transpose each block behind its axis; Reshape them together; Slice."""
    (t,), name, x = node.outputs, work.name_of(node.outputs[0]), work.operand(node.inputs[0])
    batch, *sizes, depth = work.shape(node.inputs[0])
    count = len(blocks)
    apart = (*blocks, batch // int(np.prod(blocks)), *sizes, depth)
    x = _moved(work, node, f"{name}_reshape1", "reshape", x, apart, {"shape": apart})
    perm = (count, *(a for i in range(count) for a in (count + 1 + i, i)), 2 * count + 1)
    x = _moved(work, node, name, "transpose", x, tuple(apart[a] for a in perm), {"perm": perm})
    whole = (apart[count], *(n * b for n, b in zip(sizes, blocks, strict=True)), depth)
    if not any(crops):
        work.reshape(node, x, t, f"{name}_reshape2")
        return
    x = _moved(work, node, f"{name}_reshape2", "reshape", x, whole, {"shape": whole})
    begin = [0, *crops[::2], 0]
    end = [n - c for n, c in zip(whole, (0, *crops[1::2], 0), strict=True)]
    (work.places[t],) = work.layer(
        node, f"{name}_slice", "slice", (x,), (work.top(t),), _limits(begin, end, [1] * len(end))
    )


def _moved(
    work: Translation, node: Node, name: str, operator: str, x: int, shape: tuple[int, ...], keys: dict[str, Attribute]
) -> int:
    """Add a layer that moves values, and return its result, which states no range if the node is SPACE_TO_BATCH_ND."""
    top = replace(work.layers.tensors[x], shape=shape, data=None)
    if work.layers.is_quantized:
        top = work.inner(node.outputs[0], shape) if node.operator == "space_to_batch_nd" else top
    return work.layer(node, name, operator, (x,), (top,), keys)[0]


def map_depth(work: Translation, node: Node) -> None:
    """Map DEPTH_TO_SPACE, SPACE_TO_DEPTH."""
    size = node.attributes.integer("block_size")
    keys: dict[str, Attribute] = {"mode": "DCR"} if node.operator == "depth_to_space" else {}
    work.append(node, node.operator, {}, Attributes({**keys, "block_size_x": size, "block_size_y": size}))


def refuse_slice(_graph: Graph, node: Node) -> str:
    """Return why STRIDED_SLICE cannot be mapped; empty if it can."""
    masks = [key for key in ("ellipsis_mask", "new_axis_mask") if node.attributes.integer(key, 0)]
    if node.attributes.boolean("offset", False):
        masks.append("offset")
    return f"{', '.join(masks)} set; allowed are begin, end and shrink_axis masks" if masks else ""


def refuse_blocks(graph: Graph, node: Node) -> str:
    """As TFLite's own kernels: blocks along all axes but the first and the last, of three or four."""
    sizes, rank = graph.tensors[node.inputs[1]].size, len(graph.tensors[node.inputs[0]].shape)
    return (
        ""
        if sizes == rank - 2 and sizes in (1, 2)
        else f"blocks along {sizes} axes of {rank}; allowed are 1 of 3, 2 of 4"
    )


LAYERS = {
    **{snake(name): Layer(name) for name in _PASSING},
    **{snake(name): Layer(name, types=all_values) for name in _WITHOUT_LIMITS},
    "constant": Layer("Constant", types=_constant, constants=_constant_values),
    "pad": Layer("Pad", emitted=(Computed(_emit_pad),)),
}

# fmt: off
DOCS = (
    Row("4.6", "BatchToDepth", "quantized values move: the group's members become channels", "g m"),
    Row("4.7", "BatchToSpace", "quantized values move, then the crop", "g r", tflite="BATCH_TO_SPACE_ND",
        restriction="two block axes"),
    Row("4.13", "Constant", "whole numbers as they are, others as an input", "g r", tflite="constant operands",
        signed="by its values", restriction="int32"),
    Row("4.18", "Crop", "quantized values move", "g m", tflite="none (SLICE is Slice)"),
    Row("4.20", "DataStride", "quantized values move: every window as a block", "g m"),
    Row("4.21, 4.70", "DepthToSpace, SpaceToDepth", "quantized values move", "g r",
        layer="DepthToSpace (DCR, CRD), SpaceToDepth", tflite="DEPTH_TO_SPACE, SPACE_TO_DEPTH"),
    Row("4.50", "Pad", "constant clamp(RNE(c * s_x - zp_x)), REFLECT, SYMMETRIC", "g r m",
        tflite="PAD, PADV2, MIRROR_PAD"),
    Row("4.57", "Reshape", "quantized values as they are", "g r", tflite="RESHAPE, SQUEEZE, EXPAND_DIMS"),
    Row("4.65", "Slice", "quantized values move", "r m", tflite="SLICE, STRIDED_SLICE",
        restriction="constants; no ellipsis, new axis or offset"),
    Row("4.69", "SpaceToBatch", "padded with -zp_x, quantized values move", "g r m", tflite="SPACE_TO_BATCH_ND",
        restriction="two block axes"),
    Row("4.71", "Split", "quantized values move", "g r", tflite="SPLIT, SPLIT_V; UNPACK is Slice and Reshape"),
    Row("4.75", "Tile", "quantized values move", "g(BROADCAST_TO) r", tflite="TILE, BROADCAST_TO",
        restriction="constant repeats"),
    Row("4.77", "Transpose", "quantized values move", "r m", tflite="TRANSPOSE", restriction="constant order"),
    Row("-", "(channel shuffle)", "quantized values move: groups and channels exchange", "v", layer="ChannelShuffle",
        tflite="none (RESHAPE, TRANSPOSE, RESHAPE)", restriction="test_more_layers.py"),
)
# fmt: on
