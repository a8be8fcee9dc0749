"""Target `nnie`: HiSilicon NNIE's logarithmic quantized values, and a Caffe package for its mapper.

Source: docs/targets/nnie.md.
"""

from __future__ import annotations

import numpy as np

from tflq.converters.nnie.check import problems_of, read_limits
from tflq.converters.nnie.emit import artifacts_of
from tflq.converters.nnie.quantize import ARITHMETIC, LayerOptions, quantize_graph
from tflq.converters.settings import settings_of
from tflq.converters.targets import Target
from tflq.schemas.nnie import specification

__all__ = ["NNIE"]

NNIE = Target(
    name="nnie",
    summary="HiSilicon NNIE: logarithmic quantized values of 8 or 16 bits, a Caffe package for its mapper",
    arithmetic=ARITHMETIC,
    specification=specification(),
    settings=settings_of(LayerOptions),
    check=lambda graph, _: problems_of(graph),
    quantize=quantize_graph,
    # Tensors stay real: each layer makes quantized values of its own inputs.
    encode=lambda real, _: np.asarray(real, np.float32),
    emit=artifacts_of,
    read_limits=read_limits,
    estimate="no cycle model, memory or bandwidth of NNIE were found",
)
