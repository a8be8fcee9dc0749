"""Targets `gap9-ne16` and `gap9-sq8`: GAP9's NE16 accelerator and the cluster's SQ8 kernels (docs/targets/gap9.md)."""

from __future__ import annotations

import numpy as np

from tflq.converters.gap9.check import problems_of
from tflq.converters.gap9.departures import departures_of, unread_operators
from tflq.converters.gap9.emit.artifacts import artifacts_of
from tflq.converters.gap9.engines import engines_by_estimate
from tflq.converters.gap9.estimate import estimate_graph
from tflq.converters.gap9.options import LayerOptions, layer_options
from tflq.converters.gap9.passes.choose_engines import engines_of
from tflq.converters.gap9.quantize import ARITHMETIC, quantize_graph
from tflq.converters.gap9.widths import precision_plan
from tflq.converters.settings import settings_of
from tflq.converters.targets import Target
from tflq.graph import Array, Tensor
from tflq.interpreter.kernels.gap9.rounding import quantize
from tflq.schemas.gap9 import specification

__all__ = ["NE16", "SQ8"]


def _encode(real: Array, tensor: Tensor) -> Array:
    """Return clip(rnd(real / S) + Z), ties up."""
    return quantize(np.asarray(real), tensor.affine).astype(tensor.dtype.storage)


def _target(name: str, summary: str, use_ne16: bool) -> Target:
    """Return one of the two targets; they differ in the default of `use_ne16` only."""
    return Target(
        name=name,
        summary=summary,
        arithmetic=ARITHMETIC,
        specification=specification(),
        settings=settings_of(LayerOptions, use_ne16=use_ne16),
        check=lambda graph, settings: problems_of(graph, layer_options(graph, settings)),
        quantize=quantize_graph,
        encode=_encode,
        emit=lambda graph, source: artifacts_of(graph, name, source),
        precision_plan=precision_plan,
        tool="NNTool",
        departures=departures_of,
        file_departures=lambda graph, _settings: unread_operators(graph),
        engines=engines_of,
        estimate=estimate_graph,
        choose_engines=engines_by_estimate if use_ne16 else None,
    )


NE16 = _target("gap9-ne16", "GAP9, NE16 accelerator where it can: uint8, weights of 2 to 8 bits", True)
SQ8 = _target("gap9-sq8", "GAP9, cluster cores: int8, weights of 8 bits", False)
