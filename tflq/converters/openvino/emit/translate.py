"""A graph as a network of the IR, operator by operator, and the target's files."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters import exchange
from tflq.converters.openvino.emit import elementwise, shapes, windows
from tflq.converters.openvino.emit.elementwise import Rule, pair, rectifier, unary
from tflq.converters.openvino.emit.layers import Layers
from tflq.converters.openvino.emit.open_batch import open_batch
from tflq.converters.openvino.emit.writer import Writer
from tflq.converters.openvino.ir import Builder, Network, network_to_bytes
from tflq.converters.openvino.options import OpenBatch
from tflq.converters.passes.requirements import no_mapping
from tflq.converters.targets import Artefacts, model_name
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Affine, Graph, Model, Node, Tensor
from tflq.interpreter.kernels.openvino.levels import rule_of
from tflq.quoting import json_text
from tflq.schemas import Json

_UNARY = {
    "abs": "Abs",
    "exp": "Exp",
    "hard_swish": "HSwish",
    "log": "Log",
    "logistic": "Sigmoid",
    "sqrt": "Sqrt",
    "tanh": "Tanh",
}
_PAIRS = {
    "add": "Add",
    "div": "Divide",
    "maximum": "Maximum",
    "minimum": "Minimum",
    "mul": "Multiply",
    "sub": "Subtract",
}
_RULES: Mapping[str, Rule] = {
    **{name: unary(kind) for name, kind in _UNARY.items()},
    **{name: pair(kind) for name, kind in _PAIRS.items()},
    **dict.fromkeys(("relu", "relu6", "relu_0_to_1", "relu_n1_to_1"), rectifier),
    **dict.fromkeys(("reshape", "squeeze", "expand_dims"), shapes.reshape),
    **dict.fromkeys(("pad", "padv2"), shapes.pad),
    "average_pool_2d": windows.average_pool_2d,
    "concatenation": shapes.concatenation,
    "conv_2d": windows.conv_2d,
    "depthwise_conv_2d": windows.depthwise_conv_2d,
    "dequantize": shapes.dequantize,
    "elu": unary("Elu", alpha="1.0"),
    "fake_quantize": shapes.fake_quantize,
    "fully_connected": windows.fully_connected,
    "leaky_relu": elementwise.leaky_relu,
    "max_pool_2d": windows.max_pool_2d,
    "mean": windows.mean,
    "prelu": elementwise.prelu,
    "quantize": shapes.quantize,
    "softmax": elementwise.softmax,
    "transpose": shapes.transpose,
}


def supported_operators() -> tuple[str, ...]:
    """Return the operators that can be written, all or in part."""
    return tuple(sorted({*_RULES, *exchange.RULES}))


def translate(graph: Graph) -> Network:
    """Return the network.

    Raises:
        UnsupportedError: operators that cannot be written, all at once; a batch that cannot be open.
    """
    network, problems = _translated(graph)
    if problems:
        raise UnsupportedError("; ".join(problems))
    return open_batch(network, translate(graph.extra.twice)) if isinstance(graph.extra, OpenBatch) else network


def unsupported(graph: Graph) -> tuple[str, ...]:
    """Return one line for each operator that cannot be written."""
    return _translated(graph)[1]


def _translated(graph: Graph) -> tuple[Network, tuple[str, ...]]:
    writer, problems = Writer(graph, Builder(graph.name or "model")), list[str]()
    for t in graph.inputs:
        try:
            writer.parameter(t)
        except UnsupportedError as error:
            problems.append(str(error))
    layers = Layers(writer)
    lost = {t for t in graph.inputs if not writer.is_written(t)}
    for index, node in enumerate(graph.nodes):
        layers.index = index
        if node.outputs and all(graph.tensors[t].is_constant for t in node.outputs):
            continue  # lowering knows the values: who reads them writes constants
        rule, shared = _RULES.get(node.operator), exchange.RULES.get(node.operator)
        if shared is not None and _is_plain(graph, node):
            rule = None  # ours are for real numbers
        try:
            if rule is None and shared is None:
                raise UnsupportedError(no_mapping(node, "no layer of the IR is known"))
            if lost.isdisjoint(node.inputs):
                if rule is not None:
                    rule(writer, node)
                elif shared is not None:
                    shared(layers)
        except (UnsupportedError, GraphError) as error:
            problems.append(f"{graph.where(index)}: {error}")
        lost.update(t for t in node.outputs if not writer.is_written(t))
    for t in graph.outputs:
        if not problems and not writer.tensor(t).is_variable:
            writer.result(t)
    return writer.builder.build(), tuple(problems)


def _is_plain(graph: Graph, node: Node) -> bool:
    """Whether a node computes on integers that are not quantised, or on truth values."""
    tensors = [graph.tensors[t] for t in (*node.inputs, *node.outputs) if t != ABSENT]
    return not any(t.dtype.is_floating or t.quantisation is not None for t in tensors)


COMPILE = {"INFERENCE_PRECISION_HINT": "f32"}
"""CPUs with bfloat16 otherwise compute in it what is not quantised."""


def artefacts_of(graph: Graph, source: Model) -> Artefacts:
    """Return <model>.xml and <model>.bin, IR v11, and levels.json: each tensor's levels, scale and zero point.

    Raises:
        UnsupportedError: operators that cannot be written, all at once.
    """
    name = model_name(source)
    xml, weights = network_to_bytes(translate(graph))
    listed: Json = {
        "model": name,
        "compile": dict(COMPILE),
        "tensors": {str(i): _facts(t) for i, t in enumerate(graph.tensors) if isinstance(t.quantisation, Affine)},
    }
    return {
        f"{name}.xml": xml,
        f"{name}.bin": weights,
        "levels.json": (json_text(listed) + "\n").encode(),
    }


def _facts(tensor: Tensor) -> Json:
    affine = tensor.affine
    rule = rule_of(affine)
    return {
        "name": tensor.name,
        "levels": rule.levels,
        "low": rule.input_low.tolist(),
        "high": rule.input_high.tolist(),
        "scale": [float(s) for s in affine.scale],
        "zero_point": [int(z) for z in affine.zero_point],
    }
