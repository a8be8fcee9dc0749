"""The two targets; they differ in the default of one key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.converters.gap9.check import problems_of
from tflq.converters.gap9.emit.artefacts import artefacts_of
from tflq.converters.gap9.options import known_settings, layer_options
from tflq.converters.gap9.quantise import ARITHMETIC, quantise_graph
from tflq.converters.gap9.widths import precision_plan
from tflq.converters.precision import PrecisionPlan
from tflq.converters.settings import Setting, Settings
from tflq.converters.targets import Artefacts, Specification
from tflq.graph import Array, Graph, Model, Tensor
from tflq.interpreter.kernels.gap9.rounding import quantise
from tflq.schemas.gap9 import specification


@dataclass(frozen=True)
class Gap9Target:
    """A target of GAP9; the fields of `tflq.converters.targets.Target`.

    Attributes:
        name: "gap9-ne16" or "gap9-sq8".
        summary: one line.
        use_ne16: default of the key.
    """

    name: str
    summary: str
    use_ne16: bool

    @property
    def arithmetic(self) -> str:
        """Its kernels."""
        return ARITHMETIC

    @property
    def specification(self) -> Specification:
        """Read from tflq/schemas/gap9/specification.json."""
        return specification()

    @property
    def settings(self) -> Sequence[Setting]:
        """The keys that it knows."""
        return known_settings(self.use_ne16)

    def check(self, graph: Graph, settings: Settings) -> tuple[str, ...]:
        """Return one line for each operator that cannot be mapped."""
        return problems_of(graph, layer_options(graph, settings))

    def quantise(self, graph: Graph, settings: Settings) -> Graph:
        """Return GAP9's graph; raises as `quantise_graph`."""
        return quantise_graph(graph, settings)

    def precision_plan(self, graph: Graph, settings: Settings) -> PrecisionPlan:
        """Return the widths that NE16's filters can have."""
        return precision_plan(graph, settings)

    def encode(self, real: Array, tensor: Tensor) -> Array:
        """Return codes: clip(rnd(real / S) + Z), ties up."""
        return quantise(np.asarray(real), tensor.affine).astype(tensor.dtype.storage)

    def emit(self, graph: Graph, source: Model) -> Artefacts:
        """Return the files of a quantised graph; raises as `artefacts_of`."""
        return artefacts_of(graph, self.name, source)


NE16 = Gap9Target("gap9-ne16", "GAP9, NE16 accelerator where it can: uint8, weights of 2 to 8 bits", True)
SQ8 = Gap9Target("gap9-sq8", "GAP9, cluster cores: int8, weights of 8 bits", False)
