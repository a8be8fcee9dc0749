"""The files of the target."""

from __future__ import annotations

import json

from tflq.converters.openvino.emit.translate import translate
from tflq.converters.openvino.ir import network_to_bytes
from tflq.converters.targets import Artefacts, model_name
from tflq.graph import Affine, Graph, Model, Tensor
from tflq.interpreter.kernels.openvino.levels import rule_of
from tflq.schemas.openvino import Json

COMPILE = {"INFERENCE_PRECISION_HINT": "f32"}
"""CPUs with bfloat16 otherwise compute in it what is not quantised."""


def artefacts_of(graph: Graph, source: Model) -> Artefacts:
    """Return <model>.xml and <model>.bin, IR v11, and levels.json: each tensor's levels, scale and zero point.

    Raises:
        UnsupportedError: operators that cannot be written, all at once.
    """
    name = model_name(source)
    xml, weights = network_to_bytes(translate(graph))
    listed: Json = {
        "model": name,
        "compile": dict(COMPILE),
        "tensors": {str(i): _facts(t) for i, t in enumerate(graph.tensors) if isinstance(t.quantisation, Affine)},
    }
    return {
        f"{name}.xml": xml,
        f"{name}.bin": weights,
        "levels.json": (json.dumps(listed, indent=1) + "\n").encode(),
    }


def _facts(tensor: Tensor) -> Json:
    affine = tensor.affine
    rule = rule_of(affine)
    return {
        "name": tensor.name,
        "levels": rule.levels,
        "low": rule.input_low.tolist(),
        "high": rule.input_high.tolist(),
        "scale": [float(s) for s in affine.scale],
        "zero_point": [int(z) for z in affine.zero_point],
    }
