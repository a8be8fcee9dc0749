"""The graph of Compass's layers as Compass IR, in the layout of the Optimizer or the Parser.

Source: docs/rules/aipu/compass_ir.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from tflq.converters.aipu.descriptor import ARITHMETIC
from tflq.converters.aipu.emitted import Emitted, FromFile, Lowered, emitted_by, stored_type
from tflq.converters.aipu.floating import float_layers
from tflq.converters.aipu.operators import LAYERS
from tflq.converters.aipu.options import REQUESTED
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.ranges import range_of
from tflq.converters.aipu.rewrites import CUT, MERGED
from tflq.converters.aipu.stated_ranges import is_stated
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Graph, Node, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter import lower
from tflq.interpreter.kernels.aipu.activation import SLOPE
from tflq.interpreter.kernels.aipu.scales import code_limits, offset_of, reciprocal, scale_of
from tflq.interpreter.kernels.aipu.unweighted import FUSED_MULTIPLIER
from tflq.interpreter.kernels.aipu.whitepaper import NAME as WHITEPAPER
from tflq.schemas.aipu import Constant, Edge, Entry, Layer, Network, Value

SLOPE_RANGE = "negative_slope_range"
"""Key of PRELU in the float IR of a quantized file; the Optimizer does not hand it on."""

_UNWRITTEN = (*REQUESTED, CUT, FUSED_MULTIPLIER, MERGED, SLOPE_RANGE)


def network_of(graph: Graph) -> Network:
    """Return the quantized IR of a quantized graph, lowered or not.

    Layers stand by generation (the longest way from a source), inside a generation in the order of the float IR.

    Raises:
        UnsupportedError: the graph was not made by this target, or layers run in floating point or by the whitepaper.
    """
    if not isinstance(graph.extra, Origin):
        raise UnsupportedError("the graph has no layers of Compass IR: quantize it for aipu first")
    floating = float_layers(graph)
    if floating:
        raise UnsupportedError(
            f"layer {', '.join(floating[:3])} runs in floating point, which is for measuring: no file can hold it; "
            f"leave float=true away"
        )
    variant = [node.name for node in graph.nodes if node.arithmetic == WHITEPAPER]
    if variant:
        raise UnsupportedError(
            f"layer {', '.join(variant[:3])} runs the whitepaper's formulas, which Compass does not: its files cannot "
            f"say so; leave variant=whitepaper away"
        )
    lowered = graph if all(n.params is not None for n in graph.nodes) else lower(graph, ARITHMETIC)
    generations, layers = _layers(lowered, graph.extra)
    place = {name: i for i, name in enumerate(graph.extra.order)}
    layers.sort(key=lambda layer: (generations[layer.name], place.get(layer.name, len(place))))
    header: dict[str, Value] = {
        "model_name": graph.extra.name,
        "layer_number": len(layers),
        "input_tensors": tuple(graph.extra.inputs),
        "output_tensors": tuple(graph.tensors[t].name for t in graph.outputs),
    }
    return Network(header, tuple(layers))


def _layers(graph: Graph, origin: Origin) -> tuple[dict[str, int], list[Layer]]:
    generation = dict.fromkeys(graph.inputs, 0)
    generations: dict[str, int] = {}
    layers = []
    for t in graph.inputs:
        tensor = graph.tensors[t]
        layers.append(
            Layer(origin.inputs[tensor.name], "Input", (), (edge_of(tensor),), _framed([tensor], {}, {}, Emitted()))
        )
        generations[layers[-1].name] = 0
    for index, node in enumerate(graph.nodes):
        reached = max((generation[t] + 1 for t in node.inputs if t in generation), default=0)
        generation.update(dict.fromkeys(node.outputs, reached))
        generations[node.name] = reached
        layers.append(_layer(graph, index, generation))
    return generations, layers


def _layer(graph: Graph, index: int, computed: Collection[int]) -> Layer:
    node = graph.nodes[index]
    outputs = [graph.tensors[t] for t in node.outputs]
    own = {t for t in node.inputs if t not in computed}
    constants = {graph.tensors[t].name.rpartition("/")[2]: graph.tensors[t] for t in node.inputs if t in own}
    layer = LAYERS[node.operator]
    found = emitted_by(layer.emitted, Lowered(node, graph.operands(index)))
    before: dict[str, Entry] = {
        key: Constant(t.data, stored_type(t)) for key, t in constants.items() if t.data is not None
    }
    names = dict.fromkeys(found.of_output, stored_type(outputs[0]))
    before.update({k: Constant(v, names[k]) if k in names else constant_of(v) for k, v in found.constants.items()})
    scales = {} if layer.has_own_scales else _scales_of(constants)
    is_per_channel = any(isinstance(entry, Constant) for entry in scales.values())
    if is_per_channel:
        before.update(scales)
    before.update(_attributes(node, found))
    after: dict[str, Entry] = dict(node.extra.keys if isinstance(node.extra, FromFile) else found.keys)
    if not is_per_channel:
        after.update(scales)
    bottoms = tuple(edge_of(graph.tensors[t]) for t in node.inputs if t not in own)
    entries = _framed(outputs, before, after, found)
    if CUT in node.attributes:
        del entries["is_perf_mode"]
    return Layer(node.name, layer.type, bottoms, tuple(map(edge_of, outputs)), entries)


def _framed(
    outputs: list[Tensor], before: Mapping[str, Entry], after: Mapping[str, Entry], found: Emitted
) -> dict[str, Entry]:
    offsets = [offset_of(t) for t in outputs]
    return {
        "layer_top_range": tuple(code_limits(t) for t in outputs),
        "layer_top_scale": tuple(float(scale_of(t)) for t in outputs),
        "layer_top_zp": tuple(float(zp) if k in found.real_offsets else zp for k, zp in enumerate(offsets)),
        **before,
        "is_perf_mode": True,
        **found.added,
        "unquantifiable": False,
        **after,
        "activation_quantization_axis": ("None",) * len(outputs),
    }


def edge_of(tensor: Tensor) -> Edge:
    """Return a tensor as the end of a layer."""
    return Edge(tensor.name, tensor.shape, stored_type(tensor))


def constant_of(data: Array, dtype: DType | None = None) -> Constant:
    """Return an array as a constant of the IR."""
    return Constant(data, (dtype or DType.of(data.dtype)).value)


def _scales_of(constants: Mapping[str, Tensor]) -> dict[str, Entry]:
    """Return weights_scale, weights_zp, biases_scale, biases_zp: numbers, or tensors where there are several."""
    if "weights" not in constants or "biases" not in constants:
        only = [key for key in ("weights", "biases") if key in constants]
        scales: dict[str, Entry] = {f"{key}_scale": float(scale_of(constants[key])) for key in only}
        return scales | {f"{key}_zp": offset_of(constants[key]) for key in only}
    weights, biases = (reciprocal(constants[key].affine) for key in ("weights", "biases"))
    if weights.size == 1:
        return {"weights_scale": float(weights[0]), "weights_zp": 0, "biases_scale": float(biases[0]), "biases_zp": 0}
    return {
        "weights_scale": constant_of(weights),
        "weights_zp": constant_of(np.zeros(weights.shape, np.int32)),
        "biases_scale": constant_of(biases),
        "biases_zp": constant_of(np.zeros(1, np.int64)),
    }


def _attributes(node: Node, found: Emitted) -> dict[str, Entry]:
    kept: dict[str, Entry] = {}
    for key, value in node.attributes.items():
        changed = found.changed.get(key, value_of(value))
        if key not in _UNWRITTEN and key not in found.added and changed is not None:
            kept[key] = changed
    return kept


def value_of(attribute: Attribute) -> Value | None:
    """Return an attribute as a value of the text; None where it says nothing.

    Raises:
        UnsupportedError: bytes.
    """
    if isinstance(attribute, np.ndarray):
        return tuple(tuple(row) if isinstance(row, list) else row for row in attribute.tolist())
    if isinstance(attribute, bytes):
        raise UnsupportedError("an attribute is bytes; Compass IR holds numbers and words")
    return attribute


DOMAIN = "image_classification"
"""What the Parser writes unless it is told another domain; nothing reads it."""

_BEFORE_CONSTANTS = {"activation": ("method",), "batch_norm": ("axis",)}


def float_network_of(graph: Graph, name: str) -> Network:
    """Return the float IR of a graph of Compass's layers; ranges of tensors come along as layer_top_range.

    Args:
        graph: float, of `graph_of` or `translate`.
        name: of the model and of its binary file.

    Raises:
        UnsupportedError: another graph.
    """
    origin = graph.extra
    if not isinstance(origin, Origin):
        raise UnsupportedError("the graph has no layers of Compass IR: translate it for aipu first")
    layers = [
        Layer(origin.inputs[tensor.name], "Input", (), (edge_of(tensor),), _ranges((tensor,)))
        for tensor in (graph.tensors[t] for t in graph.inputs)
    ]
    layers += [_float_layer(graph, node, _ahead(origin, node)) for node in graph.nodes]
    place = {layer: i for i, layer in enumerate(origin.order)}
    layers.sort(key=lambda layer: place.get(layer.name, len(place)))
    header: dict[str, Value] = {
        "model_name": name,
        "model_domain": DOMAIN,
        "layer_number": len(layers),
        "precision": "float32",
        "compat_quantized_model": False,
        "model_bin": f"./{name}.bin",
        "input_tensors": tuple(origin.inputs),
        "output_tensors": tuple(graph.tensors[t].name for t in graph.outputs),
    }
    return Network(header, tuple(layers))


def _ahead(origin: Origin, node: Node) -> tuple[str, ...]:
    """Return the keys that stand in front of a layer's constants."""
    return _BEFORE_CONSTANTS.get(node.operator, ()) if origin.ahead is None else origin.ahead.get(node.name, ())


def _float_layer(graph: Graph, node: Node, ahead: tuple[str, ...]) -> Layer:
    operands = [graph.tensors[t] for t in node.inputs]
    own = f"{node.name}/"
    bottoms = tuple(edge_of(t) for t in operands if not t.name.startswith(own) or not t.is_constant)
    tops = tuple(graph.tensors[t] for t in node.outputs)
    entries = _ranges(tops)
    written = {key: value for key, a in node.attributes.items() if (value := value_of(a)) is not None}
    entries.update({key: written[key] for key in ahead if key in written})
    for t in operands:
        if t.is_constant and t.data is not None and t.name.startswith(own):
            key = t.name.removeprefix(own)
            entries[key] = constant_of(t.data)
            if key == SLOPE and t.range is not None:
                entries[SLOPE_RANGE] = range_of(t)
    entries.update(written)
    return Layer(node.name, LAYERS[node.operator].type, bottoms, tuple(map(edge_of, tops)), entries)


def _ranges(tops: tuple[Tensor, ...]) -> dict[str, Entry]:
    """Return layer_top_range if a top states one: the key that calibration `in_ir` reads; NONE for tops without one."""
    if not any(is_stated(t) for t in tops):
        return {}
    return {"layer_top_range": tuple(range_of(t) if is_stated(t) else "NONE" for t in tops)}
