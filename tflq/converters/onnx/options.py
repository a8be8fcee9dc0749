"""The keys of the target, and where a quantized graph carries them."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.converters.settings import Settings, key, read_options
from tflq.graph import Graph

FLOAT, QDQ, WEIGHTS = "float", "qdq", "weights"
NCHW, NHWC = "nchw", "nhwc"
STATIC, DYNAMIC = "static", "dynamic"
_FORM = "float: real numbers; weights: float, weights stay the file's integers; qdq: integers between Q and DQ"
_TYPE = "form=qdq of a float model: int8, or 16-bit activations with int8 weights (opset 21)"
_LAYOUT = "of inputs and outputs of 4 axes; nhwc keeps the model's by a Transpose"


@dataclass(frozen=True)
class OnnxOptions:
    """Values of the keys, all of them for the whole graph."""

    form: str = key(FLOAT, _FORM, (FLOAT, QDQ, WEIGHTS), per_layer=False)
    kind: str = key("int8", _TYPE, ("int8", "int16x8"), per_layer=False, name="type")
    opset: int = key(13, "version of ONNX's operators; 21 for 4 and 16 bits", minimum=13, maximum=21, per_layer=False)
    layout: str = key(NCHW, _LAYOUT, (NCHW, NHWC), per_layer=False)
    batch: str = key(STATIC, "dynamic: the first axis of inputs is open", (STATIC, DYNAMIC), per_layer=False)

    @property
    def channels_first(self) -> bool:
        """Whether inputs and outputs of 4 axes are [N, C, H, W]."""
        return self.layout == NCHW


def options_of(graph: Graph, settings: Settings) -> OnnxOptions:
    """Return the record of the settings."""
    return read_options(OnnxOptions, graph, settings).whole


def carried(graph: Graph) -> OnnxOptions:
    """Return the options that a quantized graph carries; the defaults elsewhere."""
    return graph.extra if isinstance(graph.extra, OnnxOptions) else OnnxOptions()
