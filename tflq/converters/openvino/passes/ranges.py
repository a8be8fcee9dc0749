"""Which tensors get levels, and which: from the file's own scale and zero point, or from a range that is nudged."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.converters.openvino.options import INT8, LayerOptions
from tflq.converters.openvino.passes import LINEAR, PER_CHANNEL, data_inputs, moves_levels
from tflq.converters.passes.requirements import refuse_missing_ranges
from tflq.converters.settings import Options
from tflq.errors import GraphError
from tflq.graph import Affine, DType, FakeQuantize, Graph, Node, Range, Tensor
from tflq.graph.operators import CONVOLUTIONS
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.kernels.openvino.levels import require_sound, rule_of
from tflq.interpreter.operands.checks import require_sound_tensor

Rules = Mapping[int, FakeQuantize]
"""Tensor -> its levels."""
_WAY_OUT = "calibrate on samples (--calibrate), give a file of ranges (--ranges), or convert a model that is quantized"


def rules_of(network: Graph, source: Graph, options: Options[LayerOptions]) -> Rules:
    """Return tensor -> levels, for each tensor of a float network that gets a FakeQuantize.

    A tensor gets one if a layer on quantized values reads it, also through operators that only move levels, or writes
    it; but not the network's output, unless quantized values are asked for.

    Args:
        network: float32 with ranges; tensors have the indices of `source`.
        source: as the file has it, with its scales.
        options: of the target.

    Raises:
        UnsupportedError: tensors without a range, all at once.
        GraphError: a range that is empty, inverted or not finite.
    """
    editor, found, missing = GraphEditor(network), dict[int, FakeQuantize](), list[str]()
    read = _read_as_codes(network, options)
    fused = fused_addends(network, options)
    for t in (*network.inputs, *(t for node in network.nodes for t in node.outputs)):
        if t in fused:
            continue
        writer = editor.writer(t)
        if not _is_wanted(editor, t, writer, read, options):
            continue
        layer = options.whole if writer is None else options.of(writer.name)
        tensor = network.tensors[t]
        rule = _rule(editor, t, source.tensors[t] if t < len(source.tensors) else tensor, layer)
        if rule is None:
            missing.append(tensor.name)
        else:
            require_sound(rule, f"tensor '{tensor.name}'")
            found[t] = rule
    refuse_missing_ranges(missing, len(missing) + len(found), _WAY_OUT)
    return found


def is_on_codes(node: Node, options: Options[LayerOptions]) -> bool:
    """Whether a layer computes on quantized values."""
    layer = options.of(node.name)
    return node.operator in LINEAR and not layer.in_float


def fused_addends(network: Graph, options: Options[LayerOptions]) -> set[int]:
    """Return the tensors that the runtime adds before it rounds.

    Of each sum on quantized values the last convolution's alone.

    The CPU plug-in fuses a sum into the convolution that writes one of its operands, and skips that operand's rounding
    even where a FakeQuantize stands between them; so none is written there.
    """
    writers, readers, found = network.producers(), network.consumers(), set[int]()
    for node in network.nodes:
        if node.operator not in ("add", "sub") or not is_on_codes(node, options):
            continue
        data = data_inputs(network, node)
        able = [
            t
            for t in data
            if t in writers
            and network.nodes[writers[t]].operator in CONVOLUTIONS
            and is_on_codes(network.nodes[writers[t]], options)
            and len(readers[t]) == 1
            and t not in network.outputs
        ]
        if len(data) == 2 and able:
            found.add(max(able, key=lambda t: writers[t]))
    return found


def nudged(low: np.ndarray, high: np.ndarray, levels: int, symmetric: bool) -> FakeQuantize:
    """Return the rule of a range in which real zero is a level.

    The range is widened until it holds zero. S = (high - low) / (levels - 1), zero = round half even(-low / S);
    bounds are -zero * S and (levels - 1 - zero) * S, in float64 and rounded to float32 once. A symmetric one has
    S = max(|low|, |high|) / (levels / 2 - 1 rounded up) and its zero in the middle.

    Args:
        low: float[1] or [C].
        high: the same.
        levels: at least 2.
        symmetric: whether zero is the middle level: levels // 2, or (levels - 1) / 2 of an odd number.
    """
    bottom = np.minimum(low.astype(np.float64), 0)
    top = np.maximum(high.astype(np.float64), 0)
    top = np.where(top > bottom, top, 1.0)  # only zeros were seen: [0, 1], as TFLite's quantizers have it
    if symmetric:
        middle = levels // 2
        scale = np.maximum(-bottom, top) / max(1, levels - 1 - middle)
        zero = np.full(scale.shape, float(middle))
    else:
        scale = (top - bottom) / (levels - 1)
        zero = np.clip(np.rint(np.divide(-bottom, scale, out=np.zeros_like(scale), where=scale > 0)), 0, levels - 1)
    bounds = [(0.0 - zero * scale).astype(np.float32), ((levels - 1 - zero) * scale).astype(np.float32)]
    return FakeQuantize(levels, *bounds, *bounds)


def _read_as_codes(network: Graph, options: Options[LayerOptions]) -> set[int]:
    """Return the tensors that layers on quantized values read, directly or through operators that move levels."""
    read = set[int]()
    for node in reversed(network.nodes):
        if is_on_codes(node, options):
            read.update(data_inputs(network, node))
        elif moves_levels(node) and node.outputs[0] in read:
            read.add(node.inputs[0])
    return read


def _is_wanted(
    network: GraphEditor, t: int, writer: Node | None, read: set[int], options: Options[LayerOptions]
) -> bool:
    if network.tensors[t].dtype is not DType.FLOAT32 or (writer is not None and moves_levels(writer)):
        return False
    if t in read:
        return True
    if network.is_output(t) or _is_moved_to_output(network, t):
        return options.whole.output == INT8
    return writer is not None and is_on_codes(writer, options)


def _is_moved_to_output(network: GraphEditor, t: int) -> bool:
    """Return True if each reader of a tensor moves it to the outputs of the network."""
    readers = network.readers(t)
    return bool(readers) and all(
        moves_levels(n) and (network.is_output(n.outputs[0]) or _is_moved_to_output(network, n.outputs[0]))
        for n in readers
    )


def _rule(network: GraphEditor, t: int, source: Tensor, layer: LayerOptions) -> FakeQuantize | None:
    affine = source.quantization
    if isinstance(affine, Affine) and source.dtype.is_integer and not affine.is_per_axis:
        codes = affine.maximum_code - affine.minimum_code + 1
        if codes == layer.levels:
            require_sound_tensor(source)
            return rule_of(affine)
    found = _range(network, t, source)
    if found is None:
        return None
    if not (np.isfinite(found.minimum).all() and np.isfinite(found.maximum).all()):
        raise GraphError(f"tensor '{source.name}' has range {found.minimum[0]}..{found.maximum[0]}; bounds are finite")
    if (found.minimum > found.maximum).any():
        raise GraphError(f"tensor '{source.name}' has range {found.minimum[0]}..{found.maximum[0]}, inverted; swap it")
    return nudged(found.minimum, found.maximum, layer.levels, layer.symmetric)


def _range(network: GraphEditor, t: int, source: Tensor) -> Range | None:
    """Return one range, or one a channel where the tensor states them and all its readers can take them."""
    own, shape = source.range, network.tensors[t].shape
    if own is not None and shape and own.minimum.size == own.maximum.size == shape[-1] > 1:
        readers = network.readers(t)
        if readers and all(n.operator in PER_CHANNEL for n in readers):
            return own
    return network.tensors[t].range
