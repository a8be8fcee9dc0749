"""FULLY_CONNECTED of int8 by float32 operations that return TFLite's integers.

TFLite computes y = clamp(half_away(acc * S_x S_w / S_y) + Z_y) in float64; TensorFlow Lite Micro rounds twice. With

    acc = CAST(x) * (w - Z_w) + (bias - Z_x sum(w - Z_w)), y = QUANTIZE(acc * c), QUANTIZE: half_away(real / S_y) + Z_y

all sums are integers below 2^24, which float32 represents exactly. The factor c of each channel is the float32 number
near S_x S_w at which both rules have the same thresholds: they are equal for all accumulators. A layer with larger
sums, or without such a factor, stays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.arrays import Integers, Singles
from tflq.converters.passes.rewrite import constant
from tflq.errors import TflqError
from tflq.graph import ABSENT, Affine, Attributes, DType, Node, Operands, Tensor
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.kernels.tflite.weighted import WeightedLayer
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.numerics.thresholds import find_thresholds
from tflq.interpreter.registry import kernel

_EXACT = 1 << 24
_STEPS = sorted(range(-32, 33), key=abs)
"""Units in the last place of c that are tried."""
_ACTIVATIONS = ("none", "relu", "relu6")


def compute_in_float(editor: GraphEditor) -> None:
    """Replace FULLY_CONNECTED of int8 by CAST, FULLY_CONNECTED, MUL and QUANTIZE."""
    for node in editor.nodes_of("fully_connected"):
        x, y = editor.tensors[node.inputs[0]], editor.tensors[node.outputs[0]]
        weights = editor.tensors[node.inputs[1]]
        is_int8 = x.dtype is DType.INT8 and y.dtype is DType.INT8 and weights.dtype is DType.INT8
        if is_int8 and node.attributes.text("fused_activation_function", "none") in _ACTIVATIONS:
            _replace(editor, node)


def _replace(editor: GraphEditor, node: Node) -> None:
    tensors = tuple(None if t == ABSENT else editor.tensors[t] for t in node.inputs)
    y = editor.tensors[node.outputs[0]]
    try:
        params = kernel("tflite", "fully_connected").lower(node, Operands(tensors, (y,)))
    except TflqError:
        return
    if not isinstance(params, WeightedLayer) or params.constants is None:
        return
    factors = find_factors(params, y.affine)
    if factors is not None:
        _write(editor, node, params, factors)


def find_factors(layer: WeightedLayer[object], output: Affine) -> Singles | None:
    """Return c of each channel, float32[O]; None if sums are too large or a channel has no equal factor."""
    assert layer.constants is not None
    constants = layer.constants
    maps = constants.rescale.step_map
    weights = np.abs(constants.weights.astype(np.int64)).reshape(constants.weights.shape[0], -1)
    largest = (weights.sum(axis=1) * 128 + np.abs(constants.rescale.bias)).max(initial=0)
    if maps is None or largest >= _EXACT:
        return None
    steps, rule = maps.steps(), constants.rescale.rule
    scale = np.float32(output.scale[0])
    nearest: Singles = (rule.scale * float(scale)).astype(np.float32)
    factors: Singles = nearest.copy()
    is_open = np.ones(nearest.shape, bool)
    for step in _STEPS:
        tried = (nearest.view(np.int32) + np.int32(step)).view(np.float32)

        def exact(accumulators: Integers, tried: Singles = tried) -> Integers:
            real = (accumulators + constants.rescale.bias).astype(np.float32) * tried
            codes = round_half_away(real / scale).astype(np.int64) + rule.zero_point
            return np.clip(codes, rule.minimum, rule.maximum)

        guess = steps.thresholds.astype(np.float64)
        reached = find_thresholds(exact, steps.codes, guess, steps.lower, steps.upper)
        is_equal = (reached == steps.thresholds).all(axis=0)
        factors[is_open & is_equal] = tried[is_open & is_equal]
        is_open &= ~is_equal
        if not is_open.any():
            return factors
    return None


def _write(editor: GraphEditor, node: Node, layer: WeightedLayer[object], factors: Singles) -> None:
    assert layer.constants is not None
    constants, (x, *_), (result,) = layer.constants, node.inputs, node.outputs
    y = editor.tensors[result]
    real = Tensor("", y.shape, DType.FLOAT32)
    source = editor.add_tensor(replace(real, name=f"{y.name};input", shape=editor.shape(x)))
    weights = editor.add_tensor(constant(f"{y.name};weights", constants.weights.astype(np.float32)))
    bias = editor.add_tensor(constant(f"{y.name};bias", constants.rescale.bias.astype(np.float32)))
    sums = editor.add_tensor(replace(real, name=f"{y.name};sums"))
    scaled = editor.add_tensor(replace(real, name=f"{y.name};scaled"))
    values = factors[:1] if (factors == factors[0]).all() else factors
    factor = editor.add_tensor(constant(f"{y.name};factor", values))
    types = Attributes({"in_data_type": "int8", "out_data_type": "float32"})
    editor.add(Node("cast", (x,), (source,), types, f"{node.name}_cast"), before=node)
    plain = node.attributes.updated(fused_activation_function="none")
    operands = (source, weights, bias)
    editor.add(Node("fully_connected", operands, (sums,), plain, f"{node.name}_sums", node.version), before=node)
    fused = Attributes({"fused_activation_function": node.attributes.text("fused_activation_function", "none")})
    editor.add(Node("mul", (sums, factor), (scaled,), fused, f"{node.name}_scaled"), before=node)
    editor.replace(node, Node("quantize", (scaled,), (result,), name=node.name))
