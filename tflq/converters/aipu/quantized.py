"""Quantized Compass IR -> lowered graph that runs the integers of the file (docs/rules/aipu/compass_ir.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.descriptor import ARITHMETIC
from tflq.converters.aipu.emitted import FromFile, Lowered, emitted_by, imported_by
from tflq.converters.aipu.operators import LAYERS, OPERATORS
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.rewrites import CUT, MERGED
from tflq.errors import FormatError, TflqError, UnsupportedError
from tflq.graph import Affine, Attributes, DType, Graph, Node, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter import lower
from tflq.interpreter.execution.deferred import placed
from tflq.interpreter.execution.settle import lower_node
from tflq.interpreter.kernels.aipu.imported import is_imported
from tflq.interpreter.kernels.aipu.scales import affine_of
from tflq.interpreter.registry import kernel, kernel_name
from tflq.schemas.aipu import STORAGE, Constant, Edge, Layer, Value
from tflq.schemas.aipu.text import format_value

INPUTS = ("weights", "biases", "negative_slope", "anchors", "wa", "ha", "xcenter", "ycenter")
"""Constants that the float IR has: operands of the node. All others the Optimizer computed."""

MISFITS = (ArithmeticError, LookupError, TypeError, ValueError)
"""What kernels raise for keys of a form that no tool writes: nested lists, too few entries, infinities."""

_LAST_ATTRIBUTE = "unquantifiable"
_CHANNELS_LAST = ("GroupNorm", "InstanceNorm", "LayerNorm")
"""Layers with the channels of their weights on the last axis; other layers have them on the first."""

_SCALES = ("weights_scale", "weights_zp", "biases_scale", "biases_zp")
_FRAME = (
    *("layer_top_range", "layer_top_scale", "layer_top_zp"),
    *("is_perf_mode", _LAST_ATTRIBUTE, "activation_quantization_axis", "D_cos", "D_mse"),
    *_SCALES,
)
_WIDE = 32


def quantized_tensors(layer: Layer) -> list[Tensor]:
    """Return the tensors that a layer writes, each with its scale, zero point and quantized values.

    Raises:
        FormatError: scales, zero points or ranges that do not fit the tops.
        UnsupportedError: scales per channel.
    """
    columns = [layer.entries.get(key) for key in ("layer_top_scale", "layer_top_zp", "layer_top_range")]
    if any(isinstance(column, Constant) for column in columns):
        raise UnsupportedError(f"layer '{layer.name}': activations with one scale a channel; allowed is one a tensor")
    if not all(isinstance(column, tuple) and len(column) == len(layer.tops) for column in columns):
        raise FormatError(
            f"layer '{layer.name}': layer_top_scale, layer_top_zp and layer_top_range need one entry for each of its "
            f"{len(layer.tops)} tops"
        )
    return [_tensor(layer, edge, *(c[i] for c in columns if isinstance(c, tuple))) for i, edge in enumerate(layer.tops)]


def quantized_node(graph: Graph, layer: Layer, places: Mapping[str, int]) -> Node:
    """Return the node of a layer; its constants are added to the graph, what the Optimizer computed is in `extra`.

    Raises:
        UnsupportedError: a layer in float, or one that lacks the key that ends its attributes.
    """
    end = list(layer.entries).index(_LAST_ATTRIBUTE) if _LAST_ATTRIBUTE in layer.entries else -1
    if end < 0 or layer.entries[_LAST_ATTRIBUTE] is not False:
        found = "lacks the key unquantifiable" if end < 0 else "is kept in float (unquantifiable=true)"
        raise UnsupportedError(f"layer '{layer.name}' {found}; allowed is unquantifiable=false")
    attributes, computed = dict[str, Attribute](), dict[str, Value]()
    for number, (key, entry) in enumerate(layer.entries.items()):
        if isinstance(entry, Constant) or key in _FRAME:
            continue
        if number < end:
            attributes[key] = attribute_of(entry)
        else:
            computed[key] = entry
    if _has_added_keys(layer):
        attributes[MERGED] = True
    if "is_perf_mode" not in layer.entries:
        attributes[CUT] = True
    stated = () if LAYERS[OPERATORS[layer.type]].has_own_scales else _SCALES
    tables = {key: c.data for key, c in layer.constants.items() if key not in (*INPUTS, *stated)}
    inputs = tuple(places[edge.name] for edge in layer.bottoms)
    inputs += tuple(_constant(graph, layer, key) for key in layer.constants if key in INPUTS)
    outputs = tuple(places[edge.name] for edge in layer.tops)
    extra = FromFile({}, layer.name, computed, tables)
    return Node(
        OPERATORS[layer.type], inputs, outputs, Attributes(attributes), layer.name, arithmetic=ARITHMETIC, extra=extra
    )


def lower_as_imported(graph: Graph) -> Graph:
    """Return the graph with the integers of the file in every node.

    Raises:
        FormatError: a layer whose keys have values of another form than it needs.
        UnsupportedError: layers whose kernel decides other integers than the file states, all at once.
    """
    try:
        lowered = lower(_imported(graph), ARITHMETIC)
    except MISFITS as error:
        raise FormatError(f"{_misfit(graph)}its keys do not fit it: {error}") from None
    problems = [problem for index in range(len(lowered.nodes)) if (problem := _difference(lowered, index))]
    if problems:
        raise UnsupportedError("; ".join(problems))
    return lowered


def _imported(graph: Graph) -> Graph:
    """Return the graph with the imported params of each layer; what cannot be taken is refused all at once."""
    work, refused = graph.copy(), list[str]()
    for index in range(len(graph.nodes)):
        try:
            work.nodes[index] = _imported_node(graph, index)
        except UnsupportedError as error:
            refused.append(str(placed(error, graph.operands(index).where)))
    if refused:
        raise UnsupportedError("; ".join(refused))
    return work


def _imported_node(graph: Graph, index: int) -> Node:
    node = graph.nodes[index]
    assert isinstance(node.extra, FromFile)
    return replace(node, extra=imported_by(LAYERS[node.operator].emitted, node, node.extra))


def _misfit(graph: Graph) -> str:
    """Name the first layer whose kernel stumbles over its keys."""
    work = graph.copy()
    for index in range(len(work.nodes)):
        try:
            work.nodes[index] = _imported_node(graph, index)
            lower_node(work, index, ARITHMETIC, kernel(ARITHMETIC, kernel_name(work.nodes[index])))
        except TflqError:
            continue
        except MISFITS:
            return f"{graph.where(index)}: "
    return ""


_ALIGNED = {"aligned_int4": 4, "aligned_uint4": 4, "aligned_int12": 12, "aligned_uint12": 12}
"""Element types of fewer bits than they are stored in."""


def is_quantized_graph(graph: Graph) -> bool:
    """Whether a graph came from a quantized IR: its integers are decided."""
    return isinstance(graph.extra, Origin) and any(is_imported(node) for node in graph.nodes)


def _has_added_keys(layer: Layer) -> bool:
    """Whether a rewrite gave the layer keys: they stand between is_perf_mode and unquantifiable."""
    keys = list(layer.entries)
    return "is_perf_mode" in keys and keys.index(_LAST_ATTRIBUTE) - keys.index("is_perf_mode") > 1


def attribute_of(value: Value) -> Attribute:
    """Return a value of the text as an attribute.

    Raises:
        FormatError: lists of lists of different lengths.
    """
    if not isinstance(value, tuple):
        return value
    if any(isinstance(item, tuple) for item in value):
        try:
            return np.asarray(value)
        except ValueError:
            raise FormatError(f"{format_value(value)[:60]}: lists within a list must have one length") from None
    if value and all(isinstance(item, str) for item in value):
        return np.asarray(value)
    if all(isinstance(item, int) for item in value):
        return tuple(int(item) for item in value if isinstance(item, int))
    return tuple(float(item) for item in value if isinstance(item, (int, float)))


def _tensor(layer: Layer, edge: Edge, s: Value, zp: Value, limits: Value) -> Tensor:
    low, high = _limits(limits)
    scale, zero = (float(v) if isinstance(v, (int, float)) else np.nan for v in (s, zp))
    if not (0 < scale < np.inf and zero.is_integer() and low < high):
        raise FormatError(
            f"layer '{layer.name}': '{edge.name}' has scale {s}, zero point {zp}, range {limits}; allowed are a "
            f"positive scale, a whole zero point and a range of two whole numbers that rises"
        )
    dtype = DType.of(np.dtype(STORAGE[edge.dtype]))
    if layer.type == "Input" and dtype.bits >= _WIDE:
        return Tensor(edge.name, edge.shape, dtype)
    signed = low < 0
    affine = affine_of(np.float32(scale), int(zero), high.bit_length() + signed, signed, signed and low == -high)
    return Tensor(edge.name, edge.shape, dtype, affine)


def _limits(value: Value) -> tuple[int, int]:
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], int) and isinstance(value[1], int):
        return value[0], value[1]
    return 0, 0


def _constant(graph: Graph, layer: Layer, key: str) -> int:
    constant = layer.constants[key]
    dtype = DType.of(constant.data.dtype)
    bits = _ALIGNED.get(constant.dtype, dtype.bits)
    scale = _scale(layer, key, dtype, bits)
    if scale is not None and scale.is_per_axis and layer.type in _CHANNELS_LAST:
        scale = replace(scale, axis=constant.data.ndim - 1)
    tensor = Tensor(f"{layer.name}/{key}", constant.data.shape, dtype, scale, data=constant.data)
    return graph.add_tensor(tensor)


def _scale(layer: Layer, key: str, dtype: DType, bits: int) -> Affine | None:
    s, zp = layer.entries.get(f"{key}_scale"), layer.entries.get(f"{key}_zp", 0)
    if s is None:
        return None
    if LAYERS[OPERATORS[layer.type]].has_own_scales:
        return affine_of(np.float32(1), 0, bits, dtype.is_signed)
    scale = s.data.astype(np.float32) if isinstance(s, Constant) else np.float32(_real(layer, f"{key}_scale", s))
    zero = 0 if isinstance(zp, Constant) else _whole(layer, f"{key}_zp", zp)
    return affine_of(scale, zero, bits, dtype.is_signed)


def _whole(layer: Layer, key: str, value: Value) -> int:
    real = _real(layer, key, value)
    if not real.is_integer():
        raise FormatError(f"layer '{layer.name}': {key}={value}: allowed is a whole number")
    return int(real)


def _real(layer: Layer, key: str, value: Value) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    raise FormatError(f"layer '{layer.name}': {key}={value}: allowed is a number")


def _difference(graph: Graph, index: int) -> str:
    """Say where a kernel's params are not the file's; empty where they are."""
    node = graph.nodes[index]
    wanted = node.extra
    assert isinstance(wanted, FromFile)
    found = emitted_by(LAYERS[node.operator].emitted, Lowered(node, graph.operands(index)))
    for key in {*wanted.keys, *found.keys}:
        if not key.endswith("_type") and wanted.keys.get(key) != found.keys.get(key):
            return _sentence(node, key, wanted.keys.get(key), found.keys.get(key))
    for key in {*wanted.constants, *found.constants}:
        ours, theirs = found.constants.get(key), wanted.constants.get(key)
        if ours is None or theirs is None or not np.array_equal(ours, theirs):
            return _sentence(node, key, *("none" if a is None else f"{a.size} numbers" for a in (theirs, ours)))
    return ""


def _sentence(node: Node, key: str, wanted: object, found: object) -> str:
    return f"layer '{node.name}' ({node.operator}): the file states {key}={wanted}, the arithmetic has {found}"
