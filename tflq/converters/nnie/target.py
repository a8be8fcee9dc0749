"""The target `nnie`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.converters.nnie.check import problems_of
from tflq.converters.nnie.emit.artefacts import artefacts_of
from tflq.converters.nnie.options import SETTINGS
from tflq.converters.nnie.quantise import quantise_graph
from tflq.converters.settings import Setting, Settings
from tflq.converters.targets import Artefacts, Specification
from tflq.graph import Array, Graph, Model, Tensor
from tflq.schemas.nnie import specification


@dataclass(frozen=True)
class NnieTarget:
    """HiSilicon NNIE; the fields of `tflq.converters.targets.Target`.

    Attributes:
        name: "nnie".
        summary: one line.
        arithmetic: its kernels.
    """

    name: str
    summary: str
    arithmetic: str

    @property
    def specification(self) -> Specification:
        """Read from tflq/schemas/nnie/specification.json."""
        return specification()

    @property
    def settings(self) -> Sequence[Setting]:
        """The keys that it knows."""
        return SETTINGS

    def check(self, graph: Graph, settings: Settings) -> tuple[str, ...]:  # noqa: ARG002
        """Return one line for each operator that Caffe or the mapper cannot take."""
        return problems_of(graph)

    def quantise(self, graph: Graph, settings: Settings) -> Graph:
        """Return NNIE's graph; raises as `quantise_graph`."""
        return quantise_graph(graph, settings)

    def encode(self, real: Array, tensor: Tensor) -> Array:  # noqa: ARG002
        """Return real numbers as float32: each layer makes codes of its own inputs."""
        return np.asarray(real, np.float32)

    def emit(self, graph: Graph, source: Model) -> Artefacts:
        """Return the files of a quantised graph; raises as `artefacts_of`."""
        return artefacts_of(graph, source)


NNIE = NnieTarget("nnie", "HiSilicon NNIE: logarithmic codes of 8 or 16 bits, a Caffe package for its mapper", "nnie")
