"""Target `power-of-two`: from ranges to exponents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.passes.requirements import float_network, refuse, refuse_missing_ranges
from tflq.converters.passes.rewrite import constant
from tflq.converters.passes.take_in import fuse_activations
from tflq.converters.precision import PrecisionPlan, probed_plan
from tflq.converters.settings import Setting, Settings
from tflq.converters.targets import Target
from tflq.graph import ABSENT, Affine, Array, DType, Graph, Node, Tensor, validate
from tflq.graph.rewriting import GraphEditor, Pass, rewrite_graph
from tflq_power_of_two.emitter import files_of
from tflq_power_of_two.kernels import NAME

FILTERS = ("conv_2d", "depthwise_conv_2d", "fully_connected")
KEEPING = ("max_pool_2d", "reshape", "squeeze", "transpose")
"""Their output has the scale of their input."""
TAKEN = (*FILTERS, *KEEPING, "add", "average_pool_2d", "mean", "softmax")
WIDTHS = (8, 6, 4, 3, 2)
SETTINGS = (Setting("weight_bits", 8, "width of the weights", minimum=2, maximum=8),)
FUSE = Pass[GraphEditor](
    "fuse_relu", lambda editor: fuse_activations(editor, (*FILTERS, "add"), ("relu",)), "the clamp of a ReLU is free"
)


def prepared(graph: Graph) -> Graph:
    """Return the float network with ranges, after the target's passes."""
    return rewrite_graph(float_network(graph), (FUSE,), owner=NAME)


def check(graph: Graph, settings: Settings) -> tuple[str, ...]:
    """Return one line for each operator that has no kernel here."""
    settings.of_layers(graph)
    network = prepared(graph)
    return tuple(
        f"{network.where(index)}: power-of-two has no such operator; it has {', '.join(sorted(TAKEN))}"
        for index, node in enumerate(network.nodes)
        if node.operator not in TAKEN
    )


def scale_type(largest: float, bits: int = 8) -> Affine:
    """Return the type of `bits` bits with the finest power of two that still holds +-largest."""
    exponent = bits - 1 - int(np.ceil(np.log2(max(largest, 2.0**-20))))
    return Affine.per_tensor(2.0**-exponent, 0, bits)


def encode(real: Array, tensor: Tensor) -> Array:
    """Return sat(rint(x * 2^f)), ties to even."""
    affine = tensor.affine
    steps = np.rint(np.asarray(real, np.float64) / affine.scale[0])
    return np.clip(steps, affine.minimum_code, affine.maximum_code).astype(tensor.dtype.storage)


def quantize(graph: Graph, settings: Settings) -> Graph:
    """Return the target's graph: int8 tensors, weights of `weight_bits`, int32 biases.

    Raises:
        UnsupportedError: operators without a kernel, or tensors without a range.
    """
    refuse(check(graph, settings))
    bits = {node.name: int(v["weight_bits"]) for node, v in zip(graph.nodes, settings.of_layers(graph), strict=True)}
    result = prepared(graph)
    activations = [*result.inputs, *(t for node in result.nodes for t in node.outputs)]
    missing = [result.tensors[t].name for t in activations if result.tensors[t].range is None]
    refuse_missing_ranges(missing, len(activations), "calibrate the model on samples (--calibrate)")
    for t in activations:
        found = result.tensors[t].range
        assert found is not None
        largest = max(abs(float(found.minimum.min())), abs(float(found.maximum.max())))
        result.tensors[t] = replace(result.tensors[t], dtype=DType.INT8, quantization=scale_type(largest))
    for index, node in enumerate(result.nodes):
        if node.operator in KEEPING:
            kept = result.tensors[node.inputs[0]].quantization
            result.tensors[node.outputs[0]] = replace(result.tensors[node.outputs[0]], quantization=kept)
        elif node.operator in FILTERS:
            node = _with_constants(result, node, bits[node.name])
        result.nodes[index] = replace(node, arithmetic=NAME)
    validate(result, "power-of-two graph")
    return result


def _with_constants(graph: Graph, node: Node, bits: int) -> Node:
    """Return a filter with weights of `bits` bits and an int32 bias in steps of the accumulator."""
    weights = graph.tensors[node.inputs[1]]
    assert weights.data is not None
    affine = scale_type(float(np.abs(weights.data).max()), bits)
    quantized = replace(weights, dtype=DType.INT8, quantization=affine, data=None)
    step = float(graph.tensors[node.inputs[0]].affine.scale[0] * affine.scale[0])
    given = node.inputs[2] if len(node.inputs) > 2 else ABSENT
    outputs = weights.shape[3 if node.operator == "depthwise_conv_2d" else 0]
    real = np.zeros(outputs) if given == ABSENT else np.asarray(graph.tensors[given].data, np.float64)
    limits = np.iinfo(np.int32)
    bias = np.clip(np.rint(real / step), limits.min, limits.max).astype(np.int32)
    new = (
        constant(f"{node.name}/weights", encode(weights.data, quantized), affine, DType.INT8),
        constant(f"{node.name}/bias", bias, Affine.per_tensor(step, 0, 32)),
    )
    return replace(node, inputs=(node.inputs[0], *(graph.add_tensor(t) for t in new)))


def plan(graph: Graph, settings: Settings) -> PrecisionPlan:
    """Return the widths of single layers, for `sensitivity` and `search`."""
    return probed_plan(quantize, graph, settings, [(b, {"weight_bits": b}) for b in WIDTHS], "weights")


POWER_OF_TWO = Target(
    name="power-of-two",
    summary="int8 with scales 2^-f, a worked example",
    arithmetic=NAME,
    specification={"bits": 8, "symmetric": True, "scales": "2^-f per tensor", "rounding": "half to even"},
    settings=SETTINGS,
    check=check,
    quantize=quantize,
    encode=encode,
    emit=files_of,
    precision_plan=plan,
)
