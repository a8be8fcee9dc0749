"""Target `onnx`: float models, and models with QuantizeLinear and DequantizeLinear (docs/targets/onnx.md).

A converter like any other, whose arithmetic is that of the file that it writes: real numbers run in float,
integers in TFLite's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.onnx.model import IR_VERSIONS, OnnxGraph, OnnxNode, model_bytes
from tflq.converters.onnx.options import FLOAT, WEIGHTS, OnnxOptions, carried, options_of
from tflq.converters.onnx.translate import supported_operators, translate, unsupported
from tflq.converters.onnx.weights import KeptWeights
from tflq.converters.passes.requirements import refuse
from tflq.converters.settings import Settings, parse_settings, settings_of
from tflq.converters.targets import Target, model_name
from tflq.converters.tflite_quantizer import TFLITE
from tflq.graph import Affine, Array, Graph, Tensor, float_view
from tflq.graph.rewriting import GraphEditor, Pass, graph_pass, rewrite_graph
from tflq.interpreter.numerics.fixed_point import round_half_away

__all__ = [
    "ONNX",
    "OnnxGraph",
    "OnnxNode",
    "OnnxOptions",
    "model_bytes",
    "supported_operators",
    "translate",
    "unsupported",
]


_BORDERS = ("inputs=float", "outputs=float")


def quantize_graph(graph: Graph, settings: Settings) -> Graph:
    """Return the graph that is written: the float view, or the model's integers.

    form=weights is the float view, whose constants are written as the file's integers. form=qdq of a float model with
    ranges quantizes it as target tflite does, with float inputs and outputs.

    Raises:
        UnsupportedError: operators that cannot be written, all at once; form=qdq of tensors without a range.
    """
    view, options = _view(graph, settings), _options(graph, settings)
    refuse(unsupported(view, options))
    return replace(view, extra=options)  # for `emit`


def _options(graph: Graph, settings: Settings) -> OnnxOptions:
    options = options_of(graph, settings)
    return KeptWeights(**vars(options), source=graph) if options.form == WEIGHTS else options


def _view(graph: Graph, settings: Settings) -> Graph:
    options = options_of(graph, settings)
    if options.form in (FLOAT, WEIGHTS):
        return rewrite_graph(graph, [_FLOAT_VIEW], owner="onnx")
    if not any(isinstance(t.quantization, Affine) and not t.is_constant for t in graph.tensors):
        graph = TFLITE.quantize(graph, parse_settings(TFLITE.settings, [f"type={options.kind}", *_BORDERS]))
    return rewrite_graph(graph, [_INTEGERS], owner="onnx")


def _remove_arithmetic(editor: GraphEditor) -> None:
    for node in editor.nodes:
        editor.replace(node, replace(node, arithmetic=None))


_SOURCE = "docs/targets/onnx.md"
_FLOAT_VIEW = graph_pass(
    "float_view", float_view, "form=float, weights: operators compute on float32, without QUANTIZE", _SOURCE
)
_INTEGERS = Pass[GraphEditor](
    "remove_arithmetic", _remove_arithmetic, "form=qdq: `tflite` runs nodes on integers, `float` the others", _SOURCE
)


def _encode(real: Array, tensor: Tensor) -> Array:
    """Return quantized values as QuantizeLinear does but for ties: clip(round half away(x / S) + Z)."""
    affine = tensor.affine
    steps = round_half_away(np.asarray(real, np.float64) / float(affine.scale[0])) + int(affine.zero_point[0])
    return np.asarray(np.clip(steps, tensor.dtype.minimum, tensor.dtype.maximum).astype(tensor.dtype.storage))


ONNX = Target(
    name="onnx",
    summary="an ONNX model: float32, or 8 bits with QuantizeLinear and DequantizeLinear",
    arithmetic="tflite",  # which runs float networks in float
    specification={
        "documentation": "docs/targets/onnx.md",
        "opsets": list(IR_VERSIONS),
        "layout": "NCHW",
        "operators": list(supported_operators()),
    },
    settings=settings_of(OnnxOptions),
    check=lambda graph, settings: unsupported(_view(graph, settings), _options(graph, settings)),
    quantize=quantize_graph,
    encode=_encode,
    emit=lambda graph, source: {f"{model_name(source)}.onnx": model_bytes(translate(graph, carried(graph)))},
    estimate="a host processor: measure it with `tflq bench`",
)
