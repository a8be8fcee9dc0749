"""Target `openvino`: FakeQuantize, as OpenVINO's CPU plug-in executes it in int8 (docs/targets/openvino.md)."""

from __future__ import annotations

import numpy as np

from tflq.converters.openvino.emit import artifacts_of
from tflq.converters.openvino.options import LayerOptions, options_of
from tflq.converters.openvino.passes import ARITHMETIC
from tflq.converters.openvino.quantize import problems_of, quantize_graph
from tflq.converters.settings import settings_of
from tflq.converters.targets import Target
from tflq.graph import Array, Tensor
from tflq.interpreter.kernels.openvino.levels import level_indices, rule_of
from tflq.schemas.openvino import specification

__all__ = ["OPENVINO"]


def _encode(real: Array, tensor: Tensor) -> Array:
    """Return quantized values as FakeQuantize rounds: half to the even level."""
    affine = tensor.affine
    index = level_indices(np.asarray(real, np.float32), rule_of(affine))
    return np.asarray((index + np.float32(affine.minimum_code)).astype(tensor.dtype.storage))


OPENVINO = Target(
    name="openvino",
    summary="OpenVINO: FakeQuantize, IR v11 that the CPU plug-in executes in int8",
    arithmetic=ARITHMETIC,
    specification=specification(),
    settings=settings_of(LayerOptions),
    check=lambda graph, settings: problems_of(graph, options_of(graph, settings)),
    quantize=quantize_graph,
    encode=_encode,
    emit=artifacts_of,
    estimate="a host processor: measure it with `tflq bench`",
)
