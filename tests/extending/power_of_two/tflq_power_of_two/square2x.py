"""Square2x, a custom operator: y = 2 x^2, in `float` and on the existing targets `tflite` and `nnie`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.converters.nnie.caffe.layer import CaffeLayer, Site
from tflq.converters.nnie.caffe.network import LayerRule
from tflq.converters.tflite_quantizer.rules import INT8, Rule
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.nnie.layers import logarithmic_kernel
from tflq.interpreter.registry import Kernel

SOURCE = "docs/extending.md"


def run_float(params: None, x: Array) -> tuple[Array, ...]:
    """Run Square2x: float32[S, *shape] -> float32[S, *shape]."""
    return (np.float32(2) * x * x,)


@dataclass(frozen=True)
class Square:
    """Parameters of Square2x in int8: y = clip(rint((x - Z_x)^2 * factor) + Z_y).

    Attributes:
        offset: Zero point of the input, Z_x.
        factor: 2 * S_x^2 / S_y, float64.
        zero_point: Zero point of the output, Z_y.
    """

    offset: int
    factor: float
    zero_point: int


def lower(node: Node, operands: Operands) -> Square:
    """Compute the parameters."""
    x, y = operands.input(0).affine, operands.output().affine
    factor = 2 * float(x.scale[0]) ** 2 / float(y.scale[0])
    return Square(int(x.zero_point[0]), factor, int(y.zero_point[0]))


def run(params: Square, x: Array) -> tuple[Array, ...]:
    """Run Square2x: int8[S, *shape] -> int8[S, *shape]."""
    square = (x.astype(np.int64) - params.offset) ** 2
    return (np.clip(np.rint(square * params.factor) + params.zero_point, -128, 127).astype(np.int8),)


def build(site: Site) -> list[CaffeLayer]:
    """Return the Caffe layers: a Power of (sqrt(2) x)^2."""
    return [site.layer("Power", {"power_param": {"power": 2.0, "scale": float(np.float32(np.sqrt(2)))}})]


KERNELS = {
    "float": {"Square2x": Kernel(lambda node, operands: None, run_float, "2 x^2", SOURCE)},
    "tflite": {"Square2x": Kernel(lower, run, "clip(rint((x - Z_x)^2 * 2 S_x^2 / S_y) + Z_y)", SOURCE)},
    "nnie": {"Square2x": logarithmic_kernel("Square2x")},
}
RULES = {"tflite": Rule((INT8,)), "nnie": LayerRule(build, quantizes=True)}
