"""The target: a converter like any other, whose arithmetic is that of the file it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from tflq.converters.onnx.serialise import model_bytes
from tflq.converters.onnx.translate import supported_operators, translate, unsupported
from tflq.converters.onnx.values import IR_VERSION, OPSET
from tflq.converters.settings import Setting, Settings
from tflq.converters.targets import Artefacts, Specification
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import Affine, Array, Graph, Model, Tensor, float_view
from tflq.interpreter.numerics.fixed_point import round_half_away

FLOAT, QDQ = "float", "qdq"


@dataclass(frozen=True)
class OnnxTarget:
    """ONNX; the fields of `tflq.converters.targets.Target`.

    Attributes:
        name: "onnx".
        summary: one line.
        arithmetic: of the float form; in the other one nodes name TFLite's.
    """

    name: str = "onnx"
    summary: str = "an ONNX model: float32, or 8 bits with QuantizeLinear and DequantizeLinear"
    arithmetic: str = "float"

    @property
    def specification(self) -> Specification:
        """What is written."""
        return {
            "documentation": "docs/onnx.md",
            "opset": OPSET,
            "ir_version": IR_VERSION,
            "layout": "NCHW",
            "operators": list(supported_operators()),
        }

    @property
    def settings(self) -> Sequence[Setting]:
        """The keys that it knows."""
        what = "float: real numbers; qdq: a quantised model's own integers between DequantizeLinear and QuantizeLinear"
        return (Setting("form", FLOAT, what, (FLOAT, QDQ), per_layer=False),)

    def check(self, graph: Graph, settings: Settings) -> tuple[str, ...]:
        """Return one line for each operator that cannot be written."""
        return unsupported(self._view(graph, settings))

    def quantise(self, graph: Graph, settings: Settings) -> Graph:
        """Return the graph that is written: the float view, or the model as it is.

        Raises:
            UnsupportedError: what `check` lists, all at once.
            OptionError: form=qdq of a model that is not quantised.
        """
        view = self._view(graph, settings)
        problems = unsupported(view)
        if problems:
            raise UnsupportedError("; ".join(problems))
        return view

    def encode(self, real: Array, tensor: Tensor) -> Array:
        """Return codes as QuantizeLinear does but for ties: clip(round half away(x / S) + Z)."""
        affine = tensor.affine
        steps = round_half_away(np.asarray(real, np.float64) / float(affine.scale[0])) + int(affine.zero_point[0])
        return np.asarray(np.clip(steps, tensor.dtype.minimum, tensor.dtype.maximum).astype(tensor.dtype.storage))

    def emit(self, graph: Graph, source: Model) -> Artefacts:
        """Return the one file.

        Raises:
            MissingExtraError: the package `onnx` is not installed.
        """
        return {f"{model_name(source)}.onnx": model_bytes(translate(graph))}

    def _view(self, graph: Graph, settings: Settings) -> Graph:
        if settings.values["form"] == FLOAT:
            return float_view(graph)
        if not any(isinstance(t.quantisation, Affine) and not t.is_constant for t in graph.tensors):
            raise OptionError("form=qdq: the model is not quantised; give a quantised .tflite, or form=float")
        return replace(graph, nodes=[replace(node, arithmetic="tflite") for node in graph.nodes])


def model_name(source: Model) -> str:
    """Return the stem of the model's file, or "model"."""
    return PurePath(source.source).stem or "model"


ONNX = OnnxTarget()
