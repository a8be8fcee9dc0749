"""Target `tpu-mlir`: INT8 on BM1684X as TPU-MLIR quantizes and runs it (docs/targets/tpu_mlir.md)."""

from __future__ import annotations

import numpy as np

from tflq.converters.passes.requirements import float_network
from tflq.converters.settings import Settings, settings_of
from tflq.converters.targets import Target
from tflq.converters.tpu_mlir.check import problems_of
from tflq.converters.tpu_mlir.departures import departures_of
from tflq.converters.tpu_mlir.emit import artifacts_of
from tflq.converters.tpu_mlir.options import LayerOptions
from tflq.converters.tpu_mlir.passes.assembly import ARITHMETIC
from tflq.converters.tpu_mlir.passes.expand import expand
from tflq.converters.tpu_mlir.quantize import quantize_graph
from tflq.graph import Graph
from tflq.interpreter.kernels.tpu_mlir.conversions import encode
from tflq.schemas.tpu_mlir import specification

__all__ = ["TPU_MLIR"]


def _check(graph: Graph, settings: Settings) -> tuple[str, ...]:
    settings.of_layers(graph)
    return problems_of(expand(float_network(graph)))


TPU_MLIR = Target(
    name="tpu-mlir",
    summary="Sophgo BM1684X by TPU-MLIR: INT8, symmetric or asymmetric",
    arithmetic=ARITHMETIC,
    specification=specification(),
    settings=settings_of(LayerOptions),
    check=_check,
    quantize=quantize_graph,
    # sat(round half away(f32(x * f32(1 / S))) + Z)
    encode=lambda real, tensor: encode(np.asarray(real, np.float32), tensor.affine, tensor.dtype),
    emit=artifacts_of,
    tool="TPU-MLIR",
    departures=departures_of,
    estimate="no cycles of layers on BM1684X were found; its peak figure is no estimate",
)
