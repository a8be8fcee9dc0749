"""From a graph to ONNX's: one rule an operator; what has none is refused, all at once."""

from __future__ import annotations

from collections.abc import Callable

from tflq.converters.onnx import activated, activations, elementwise, filters, pools, shapes
from tflq.converters.onnx.values import OnnxGraph
from tflq.converters.onnx.writer import Writer
from tflq.converters.passes.patterns import fused_activation
from tflq.converters.passes.requirements import refuse
from tflq.graph import ABSENT, Affine, DType, Graph, Node

Rule = Callable[[Writer, Node], None]

_RULES: dict[str, Rule] = {
    "abs": activations.unary("Abs"),
    "add": elementwise.binary("Add"),
    "average_pool_2d": pools.average_pool_2d,
    "concatenation": shapes.concatenation,
    "conv_2d": filters.conv_2d,
    "depthwise_conv_2d": filters.depthwise_conv_2d,
    "dequantize": shapes.quantize,
    "div": elementwise.binary("Div"),
    "elu": activations.unary("Elu"),
    "exp": activations.unary("Exp"),
    "expand_dims": shapes.reshape,
    "fully_connected": filters.fully_connected,
    "hard_swish": activations.hard_swish,
    "leaky_relu": activations.leaky_relu,
    "logistic": activations.unary("Sigmoid"),
    "max_pool_2d": pools.max_pool_2d,
    "maximum": elementwise.binary("Max"),
    "mean": pools.mean,
    "minimum": elementwise.binary("Min"),
    "mul": elementwise.binary("Mul"),
    "neg": activations.unary("Neg"),
    "pad": shapes.pad,
    "padv2": shapes.pad,
    "prelu": activations.prelu,
    "quantize": shapes.quantize,
    "relu": activations.clamp,
    "relu6": activations.clamp,
    "relu_n1_to_1": activations.clamp,
    "reshape": shapes.reshape,
    "softmax": activations.softmax,
    "sqrt": activations.unary("Sqrt"),
    "squeeze": shapes.reshape,
    "sub": elementwise.binary("Sub"),
    "tanh": activations.unary("Tanh"),
    "transpose": shapes.transpose,
}
_TYPES = (DType.FLOAT32, DType.INT8, DType.UINT8)


def supported_operators() -> tuple[str, ...]:
    """Return the operators that can be written, all or in part."""
    return tuple(sorted(_RULES))


def unsupported(graph: Graph) -> tuple[str, ...]:
    """Return one line for each operator or output that cannot be written: which, why, and the way out."""
    found = []
    for index, node in enumerate(graph.nodes):
        reason = _reason(graph, node)
        if reason:
            found.append(f"{graph.where(index)}: {reason}")
    written = graph.producers()
    idle = [graph.tensors[t].name for t in graph.outputs if t not in written]
    found.extend(f"output '{name}': no operator computes it; remove it from the outputs" for name in idle)
    return tuple(found)


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
    if fused not in activated.FUSED:
        return f"fused activation {fused}; known are {', '.join(activated.FUSED)}: make it an operator of its own"
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
