"""From a graph to ONNX's: one rule an operator; what has none is refused, all at once."""

from __future__ import annotations

from collections.abc import Callable

from tflq.converters.onnx import elementwise, shapes, windows
from tflq.converters.onnx.model import OnnxGraph
from tflq.converters.onnx.writer import Writer
from tflq.converters.passes.patterns import fused_activation
from tflq.converters.passes.requirements import collect_problems, refuse
from tflq.graph import ABSENT, Affine, DType, Graph, Node

Rule = Callable[[Writer, Node], None]

_UNARY = {
    "abs": "Abs",
    "elu": "Elu",
    "exp": "Exp",
    "logistic": "Sigmoid",
    "neg": "Neg",
    "sqrt": "Sqrt",
    "tanh": "Tanh",
}
_BINARY = {"add": "Add", "div": "Div", "maximum": "Max", "minimum": "Min", "mul": "Mul", "sub": "Sub"}
_RULES: dict[str, Rule] = {
    **{name: elementwise.unary(op_type) for name, op_type in _UNARY.items()},
    **{name: elementwise.binary(op_type) for name, op_type in _BINARY.items()},
    **dict.fromkeys(elementwise.BOUNDS, elementwise.clamp),
    **dict.fromkeys(("reshape", "squeeze", "expand_dims"), shapes.reshape),
    **dict.fromkeys(("pad", "padv2"), shapes.pad),
    **dict.fromkeys(("quantize", "dequantize"), shapes.quantize),
    "average_pool_2d": windows.average_pool_2d,
    "concatenation": shapes.concatenation,
    "conv_2d": windows.conv_2d,
    "depthwise_conv_2d": windows.depthwise_conv_2d,
    "fully_connected": windows.fully_connected,
    "hard_swish": elementwise.hard_swish,
    "leaky_relu": elementwise.leaky_relu,
    "max_pool_2d": windows.max_pool_2d,
    "mean": windows.mean,
    "prelu": elementwise.prelu,
    "softmax": elementwise.softmax,
    "transpose": shapes.transpose,
}
_TYPES = (DType.FLOAT32, DType.INT8, DType.UINT8)


def supported_operators() -> tuple[str, ...]:
    """Return the operators that can be written, all or in part."""
    return tuple(sorted(_RULES))


def unsupported(graph: Graph) -> tuple[str, ...]:
    """Return one line for each operator or output that cannot be written: which, why, and the way out."""
    found = collect_problems(graph, lambda _, node: _reason(graph, node))
    written = graph.producers()
    idle = [graph.tensors[t].name for t in graph.outputs if t not in written]
    return (*found, *(f"output '{name}': no operator computes it; remove it from the outputs" for name in idle))


def translate(graph: Graph) -> OnnxGraph:
    """Return the ONNX graph of a float graph, or with QuantizeLinear and DequantizeLinear of a quantised one.

    Args:
        graph: float32, or int8 and uint8 with scales; [N, H, W, C] where tensors have 4 axes.

    Raises:
        UnsupportedError: operators, types or operands that cannot be written, all at once.
    """
    refuse(unsupported(graph))
    writer = Writer(graph)
    for node in graph.nodes:
        _RULES[node.operator](writer, node)
    return writer.finish()


def _reason(graph: Graph, node: Node) -> str:
    if node.custom_code or node.operator not in _RULES:
        what = f"custom operator '{node.custom_code}'" if node.custom_code else node.operator
        return f"no rule writes {what} in ONNX; known are {', '.join(supported_operators())}"
    fused = fused_activation(node)
    if fused not in elementwise.FUSED:
        return f"fused activation {fused}; known are {', '.join(elementwise.FUSED)}: make it an operator of its own"
    for t in (t for t in (node.inputs[0], *node.outputs) if t != ABSENT):
        tensor = graph.tensors[t]
        if tensor.dtype not in _TYPES or (tensor.dtype.is_integer and not isinstance(tensor.quantisation, Affine)):
            return f"tensor '{tensor.name}' is {tensor.dtype.value}; float32 and 8 bits with a scale can be written"
    return _weights_reason(graph, node) if node.operator in _WEIGHTED else ""


def _weights_reason(graph: Graph, node: Node) -> str:
    weights = graph.tensors[node.inputs[1]]
    if weights.dtype not in _TYPES:
        return f"weights '{weights.name}' are {weights.dtype.value}; float32 and 8 bits can be written: use form=float"
    bias = graph.tensors[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] != ABSENT else None
    if bias is not None and bias.dtype.is_integer and not isinstance(bias.quantisation, Affine):
        return f"bias '{bias.name}' has no scale; use form=float"
    return ""


_WEIGHTED = ("conv_2d", "depthwise_conv_2d", "fully_connected")
