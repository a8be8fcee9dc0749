"""The target `openvino`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.converters.openvino.check import problems_of
from tflq.converters.openvino.emit.artefacts import artefacts_of
from tflq.converters.openvino.options import KNOWN, options_of
from tflq.converters.openvino.quantise import quantise_graph
from tflq.converters.settings import Setting, Settings
from tflq.converters.targets import Artefacts, Specification
from tflq.graph import Array, Graph, Model, Tensor
from tflq.interpreter.kernels.openvino.fake_quantise import level_indices
from tflq.interpreter.kernels.openvino.levels import rule_of
from tflq.schemas.openvino import specification


@dataclass(frozen=True)
class OpenVinoTarget:
    """OpenVINO; the fields of `tflq.converters.targets.Target`.

    Attributes:
        name: "openvino".
        summary: one line.
        arithmetic: its kernels.
    """

    name: str = "openvino"
    summary: str = "OpenVINO: FakeQuantize, IR v11 that the CPU plug-in executes in int8"
    arithmetic: str = "openvino"

    @property
    def specification(self) -> Specification:
        """Read from tflq/schemas/openvino/specification.json."""
        return specification()

    @property
    def settings(self) -> Sequence[Setting]:
        """The keys that it knows."""
        return KNOWN

    def check(self, graph: Graph, settings: Settings) -> tuple[str, ...]:
        """Return one line for each operator that cannot be mapped."""
        return problems_of(graph, options_of(graph, settings))

    def quantise(self, graph: Graph, settings: Settings) -> Graph:
        """Return OpenVINO's graph; raises as `quantise_graph`."""
        return quantise_graph(graph, settings)

    def encode(self, real: Array, tensor: Tensor) -> Array:
        """Return codes as FakeQuantize rounds: half to the even level."""
        affine = tensor.affine
        index = level_indices(np.asarray(real, np.float32), rule_of(affine))
        return np.asarray((index + np.float32(affine.minimum_code)).astype(tensor.dtype.storage))

    def emit(self, graph: Graph, source: Model) -> Artefacts:
        """Return the files of a quantised graph; raises as `artefacts_of`."""
        return artefacts_of(graph, source)


OPENVINO = OpenVinoTarget()
