"""Square2x, a custom operator: y = 2 x^2, in `float` and on every existing target."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.converters.aipu.descriptor import Source
from tflq.converters.aipu.translation import Translation
from tflq.converters.exchange.emitter import Emitter, ExchangeRule
from tflq.converters.mappings import Expansion
from tflq.converters.nnie.caffe.layer import CaffeLayer, Site
from tflq.converters.nnie.caffe.network import LayerRule
from tflq.converters.tflite_quantizer.rules import INT8, Rule
from tflq.graph import Array, DType, Node, Operands, Range, Tensor
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.kernels.nnie.layers import logarithmic_kernel
from tflq.interpreter.registry import Kernel

SOURCE = "docs/internals/extending.md"


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


def translate(work: Translation, node: Node) -> None:
    """Add the layers of Compass: a Square and a Mul by 2."""
    (x,), (y,) = node.inputs, node.outputs
    name, top = work.name_of(y), work.top(y)
    (square,) = work.layer(node, f"{name}_square", "square", (work.operand(x),), (replace(top, range=half(top.range)),))
    two = work.layer_of_constant(f"{name}_two", np.array(2, np.float32))
    work.add(node, "mul", (square, two), (y,))


def write(emitter: Emitter) -> None:
    """Add ONNX's operators: a Mul of x by x, and a Mul by 2."""
    x = emitter.at(0)
    square = emitter.pair("Mul", x, x)
    emitter.result(emitter.pair("Mul", square, emitter.like(square, "two", 2)))


def expand(editor: GraphEditor, node: Node) -> None:
    """Replace the node by MUL of x by x, and MUL by 2."""
    (x,), (y,) = node.inputs, node.outputs
    result = editor.tensors[y]
    square = editor.add_tensor(replace(result, name=f"{result.name}_square", range=half(result.range)))
    two = editor.add_tensor(Tensor(f"{result.name}_two", (), DType.FLOAT32, data=np.array(2, np.float32)))
    editor.add(Node("mul", (x, x), (square,), name=f"{node.name}_square"), before=node)
    editor.replace(node, Node("mul", (square, two), (y,), name=node.name))


def half(known: Range | None) -> Range | None:
    """Return the range of x^2 by that of 2 x^2."""
    return None if known is None else Range(known.minimum / 2, known.maximum / 2)


KERNELS = {
    "float": {"Square2x": Kernel(lambda node, operands: None, run_float, "2 x^2", SOURCE)},
    "tflite": {"Square2x": Kernel(lower, run, "clip(rint((x - Z_x)^2 * 2 S_x^2 / S_y) + Z_y)", SOURCE)},
    "nnie": {"Square2x": logarithmic_kernel("Square2x")},
}
RULES = {
    "tflite": Rule((INT8,)),
    "nnie": LayerRule(build, quantizes=True),
    "aipu": Source(translate),
    **dict.fromkeys(("onnx", "openvino"), ExchangeRule(write)),
    **dict.fromkeys(("gap9-ne16", "gap9-sq8", "tflm", "tpu-mlir"), Expansion(expand)),
}
