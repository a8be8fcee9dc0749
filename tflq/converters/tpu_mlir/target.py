"""The target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.converters.calibration import ranges_from_quantisation
from tflq.converters.settings import Setting, Settings
from tflq.converters.targets import Artefacts, Specification
from tflq.converters.tpu_mlir.check import problems_of
from tflq.converters.tpu_mlir.emit.artefacts import artefacts_of
from tflq.converters.tpu_mlir.options import KNOWN, options_of
from tflq.converters.tpu_mlir.passes.assembly import ARITHMETIC
from tflq.converters.tpu_mlir.quantise import quantise_graph
from tflq.graph import Array, Graph, Model, Tensor, float_view
from tflq.interpreter.kernels.tpu_mlir.quantize import encode
from tflq.schemas.tpu_mlir import specification


@dataclass(frozen=True)
class TpuMlirTarget:
    """BM1684X by way of TPU-MLIR; the fields of `tflq.converters.targets.Target`.

    Attributes:
        name: "tpu-mlir".
        summary: one line.
        arithmetic: its kernels.
    """

    name: str = "tpu-mlir"
    summary: str = "Sophgo BM1684X by TPU-MLIR: INT8, symmetric or asymmetric"
    arithmetic: str = ARITHMETIC

    @property
    def specification(self) -> Specification:
        """Read from tflq/schemas/tpu_mlir/specification.json."""
        return specification()

    @property
    def settings(self) -> Sequence[Setting]:
        """The keys that it knows."""
        return KNOWN

    def check(self, graph: Graph, settings: Settings) -> tuple[str, ...]:
        """Return one line for each operator that cannot be mapped."""
        options_of(graph, settings)
        return problems_of(float_view(ranges_from_quantisation(graph)))

    def quantise(self, graph: Graph, settings: Settings) -> Graph:
        """Return BM1684X's graph; raises as `quantise_graph`."""
        return quantise_graph(graph, settings)

    def encode(self, real: Array, tensor: Tensor) -> Array:
        """Return codes: sat(round half away(x / f32(S)) + Z)."""
        return encode(np.asarray(real, np.float32), tensor.affine, tensor.dtype)

    def emit(self, graph: Graph, source: Model) -> Artefacts:
        """Return the files of a quantised graph; raises as `artefacts_of`."""
        return artefacts_of(graph, source)


TPU_MLIR = TpuMlirTarget()
