"""Target `onnx`: float models, and models with QuantizeLinear and DequantizeLinear (docs/onnx.md).

A converter like any other, whose arithmetic is that of the file that it writes: nodes of the float form run in float,
those of the other one name TFLite's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.onnx.model import IR_VERSION, OPSET, OnnxGraph, OnnxNode, model_bytes
from tflq.converters.onnx.translate import supported_operators, translate, unsupported
from tflq.converters.passes.requirements import refuse
from tflq.converters.settings import Setting, Settings
from tflq.converters.targets import Target, model_name
from tflq.errors import OptionError
from tflq.graph import Affine, Array, Graph, Tensor, float_view
from tflq.interpreter.numerics.fixed_point import round_half_away

__all__ = ["ONNX", "OnnxGraph", "OnnxNode", "model_bytes", "supported_operators", "translate", "unsupported"]

FLOAT, QDQ = "float", "qdq"
_FORMS = "float: real numbers; qdq: a quantised model's own integers between DequantizeLinear and QuantizeLinear"


def quantise_graph(graph: Graph, settings: Settings) -> Graph:
    """Return the graph that is written: the float view, or the model as it is.

    Raises:
        UnsupportedError: operators that cannot be written, all at once.
        OptionError: form=qdq of a model that is not quantised.
    """
    view = _view(graph, settings)
    refuse(unsupported(view))
    return view


def _view(graph: Graph, settings: Settings) -> Graph:
    if settings.values["form"] == FLOAT:
        return float_view(graph)
    if not any(isinstance(t.quantisation, Affine) and not t.is_constant for t in graph.tensors):
        raise OptionError("form=qdq: the model is not quantised; give a quantised .tflite, or form=float")
    return replace(graph, nodes=[replace(node, arithmetic="tflite") for node in graph.nodes])


def _encode(real: Array, tensor: Tensor) -> Array:
    """Return quantized values as QuantizeLinear does but for ties: clip(round half away(x / S) + Z)."""
    affine = tensor.affine
    steps = round_half_away(np.asarray(real, np.float64) / float(affine.scale[0])) + int(affine.zero_point[0])
    return np.asarray(np.clip(steps, tensor.dtype.minimum, tensor.dtype.maximum).astype(tensor.dtype.storage))


ONNX = Target(
    name="onnx",
    summary="an ONNX model: float32, or 8 bits with QuantizeLinear and DequantizeLinear",
    arithmetic="float",
    specification={
        "documentation": "docs/onnx.md",
        "opset": OPSET,
        "ir_version": IR_VERSION,
        "layout": "NCHW",
        "operators": list(supported_operators()),
    },
    settings=(Setting("form", FLOAT, _FORMS, (FLOAT, QDQ), per_layer=False),),
    check=lambda graph, settings: unsupported(_view(graph, settings)),
    quantise=quantise_graph,
    encode=_encode,
    emit=lambda graph, source: {f"{model_name(source)}.onnx": model_bytes(translate(graph))},
)
