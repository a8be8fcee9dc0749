"""The quantized graph as TFLite can run it: int8, float32 scales, TFLite's own operators (docs/targets/gap9.md, files).

TFLite's arithmetic is not GAP9's: results differ by a quantized value here and there. uint8 becomes int8 by taking 128
off quantized values and zero points, which changes no number. Expressions are real numbers between DEQUANTIZE and
QUANTIZE.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.gap9.affine_types import asymmetric, real_range
from tflq.converters.gap9.operators import CURVES, EXPRESSION, FILTERS, GLOBAL_POOLS, LSTM, RECTIFIERS
from tflq.converters.gap9.passes.constants import real_constant
from tflq.converters.gap9.types.resolve import range_of
from tflq.converters.passes.patterns import only_reader
from tflq.converters.passes.rewrite import constant, redirect, with_attributes
from tflq.converters.tflite.options import options_class
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Attributes, DType, Graph, Node, Tensor, pruned, validate
from tflq.interpreter.kernels.gap9.expressions.tree import CONSTANT, INPUT, Symbol, Tree


def expand_expressions(graph: Graph) -> None:
    """Replace each expression by its operators in float32; int8 kernels of most of them do not exist in TFLite."""
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        if node.operator == EXPRESSION:
            _expand_expression(graph, node)
        else:
            graph.nodes.append(node)


def _expand_expression(graph: Graph, node: Node) -> None:
    tree = Tree.from_attributes(node.attributes)
    places: list[int] = []
    for number, symbol in enumerate(tree.symbols):
        name = f"{node.name}_{symbol.operator}_{number}"
        if symbol.operator == CONSTANT:
            places.append(graph.add_tensor(constant(name, np.array([symbol.number], np.float32))))
        elif symbol.operator == INPUT:
            places.append(_real_operand(graph, node.inputs[int(symbol.number)], name))
        else:
            places.append(_symbol(graph, symbol, [places[o] for o in symbol.operands], name))
    for place, output in zip(tree.outputs, node.outputs, strict=True):
        graph.nodes.append(Node("quantize", (places[place],), (output,), Attributes(), f"{node.name}_quantize_{place}"))


def _real_operand(graph: Graph, t: int, name: str) -> int:
    tensor = graph.tensors[t]
    if tensor.is_constant:
        return graph.add_tensor(constant(name, real_constant(tensor).astype(np.float32)))
    made = graph.add_tensor(_float_tensor(name, tensor.shape))
    graph.nodes.append(Node("dequantize", (t,), (made,), Attributes(), name))
    return made


def _symbol(graph: Graph, symbol: Symbol, operands: list[int], name: str) -> int:
    shape = np.broadcast_shapes(*(graph.tensors[t].shape for t in operands))
    made = graph.add_tensor(_float_tensor(name, tuple(int(n) for n in shape)))
    graph.nodes.append(Node(symbol.operator, tuple(operands), (made,), Attributes(), name))
    return made


def _float_tensor(name: str, shape: tuple[int, ...]) -> Tensor:
    return Tensor(name, shape, DType.FLOAT32)


_HOSTS = (*FILTERS, "add", "sub", "mul", "max_pool_2d", "average_pool_2d")
_FIXED_OUTPUT = {"softmax": (1 / 256, -128), "logistic": (1 / 256, -128), "tanh": (1 / 128, 0)}
"""Scale and zero point that TFLite's int8 kernels insist on."""
_VERSIONS = {"quantize": 2, "transpose": 2, "relu": 2, "relu6": 2, "dequantize": 2, "pad": 2, "fully_connected": 12}
"""Least versions of operators that read int8; of FULLY_CONNECTED, weights with one scale for each channel."""


def tflite_view(graph: Graph) -> Graph:
    """Return a graph of TFLite's operators; inputs and outputs stand in the same order.

    Raises:
        UnsupportedError: 16-bit features or a recurrent layer, which TFLite's integers cannot hold.
    """
    result = graph.copy()
    _refuse(graph)
    _split_hard_sigmoids(result)
    expand_expressions(result)
    for index, node in enumerate(result.nodes):
        if node.operator in CURVES:
            _narrow_curve_input(result, node.inputs[0])
        if node.operator in FILTERS:
            _filter_constants(result, index)
    for t, tensor in enumerate(result.tensors):
        result.tensors[t] = _signed(tensor)
    _channels_last_pools(result)
    _fuse_rectifiers(result)
    _split_fixed_outputs(result)
    _stand_alone_padding(result)
    result.nodes = [_plain(node) for node in result.nodes]
    result = pruned(result)
    validate(result, "the .tflite view")
    return result


def _refuse(graph: Graph) -> None:
    for index, node in enumerate(graph.nodes):
        wide = [graph.tensors[t] for t in node.inputs if t >= 0 and graph.tensors[t].dtype is DType.UINT16]
        if wide or node.operator == LSTM:
            found = f"'{wide[0].name}' has unsigned values of 16 bits" if wide else "its types are no TFLite types"
            raise UnsupportedError(f"{graph.where(index)}: {found}; TFLite has int8, and int16 without zero points")


def _signed(tensor: Tensor) -> Tensor:
    """Return a tensor with signed quantized values and a float32 scale; its range is left out."""
    if not isinstance(tensor.quantization, Affine):
        return tensor
    q = tensor.quantization
    unsigned = tensor.dtype is DType.UINT8
    if unsigned and q.bits == 8:
        q = replace(q, zero_point=q.zero_point - 128, signed=True)
    data = tensor.data
    if unsigned and data is not None:
        data = (data.astype(np.int16) - 128).astype(np.int8)
    q = replace(q, scale=q.scale.astype(np.float32), narrow_range=False)
    return replace(tensor, dtype=DType.INT8 if unsigned else tensor.dtype, quantization=q, data=data, range=None)


def _narrow_curve_input(graph: Graph, t: int) -> None:
    """In front of a curve TFLite has 8 bits where GAP9 has 32: asymmetric, on the file's range."""
    producers = graph.producers()
    while graph.tensors[t].dtype is DType.INT32:
        affine = asymmetric(range_of(graph, t), signed=True)
        graph.tensors[t] = replace(graph.tensors[t], dtype=DType.INT8, quantization=affine)
        writer = graph.nodes[producers[t]]
        if writer.operator != "reshape":
            return
        t = writer.inputs[0]


def _split_hard_sigmoids(graph: Graph) -> None:
    """TFLite has no hard sigmoid: it becomes (an addition of 3,) RELU6 and a product with 1/6."""
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        if node.operator != "hard_sigmoid":
            graph.nodes.append(node)
            continue
        source = node.inputs[0]
        _narrow_curve_input(graph, source)
        if node.attributes.real("offset", 3.0):
            source = _with_scalar(graph, "add", source, 3.0, f"{node.name}_plus_3", (-3.0, 6.0))
        bounded = _computed(graph, source, f"{node.name}_relu6", (0.0, 6.0))
        graph.nodes.append(Node("relu6", (source,), (bounded,), Attributes(), f"{node.name}_relu6"))
        sixth = graph.add_tensor(_scalar(f"{node.name}_sixth", 1 / 6))
        graph.nodes.append(Node("mul", (bounded, sixth), node.outputs, Attributes(), node.name))


def _with_scalar(graph: Graph, operator: str, source: int, value: float, name: str, limits: tuple[float, float]) -> int:
    operand = graph.add_tensor(_scalar(f"{name}_operand", value))
    written = _computed(graph, source, name, limits)
    graph.nodes.append(Node(operator, (source, operand), (written,), Attributes(), name))
    return written


def _scalar(name: str, value: float) -> Tensor:
    data = np.array([127], np.int8)
    return Tensor(name, data.shape, DType.INT8, Affine.per_tensor(np.float32(value / 127), 0), data=data)


def _computed(graph: Graph, like: int, name: str, limits: tuple[float, float]) -> int:
    shape = graph.tensors[like].shape
    return graph.add_tensor(Tensor(name, shape, DType.INT8, asymmetric(real_range(*limits), signed=True)))


def _filter_constants(graph: Graph, index: int) -> None:
    """Weights as int8 without zero point, whatever their bits; the bias at TFLite's scale, zero points not folded."""
    node = graph.nodes[index]
    weights, bias = graph.tensors[node.inputs[1]], graph.tensors[node.inputs[2]]
    assert weights.data is not None
    q = weights.affine
    codes = (weights.data.astype(np.int16) - q.zero_point[0]).astype(np.int8)
    scale = q.scale.astype(np.float32)
    zeros = np.zeros(scale.shape, np.int64)
    signed = Affine(scale, zeros, q.axis, 8, True)
    w = graph.add_tensor(replace(weights, dtype=DType.INT8, quantization=signed, data=codes))
    product = graph.tensors[node.inputs[0]].affine.scale.astype(np.float32) * scale
    b = graph.add_tensor(replace(bias, quantization=Affine(product, zeros, 0, 32, True)))
    graph.nodes[index] = replace(node, inputs=(node.inputs[0], w, b))


def _channels_last_pools(graph: Graph) -> None:
    """Global pools read channels last, as in the file: the transposes in front of them are passed by."""
    writers = {t: n for n in graph.nodes for t in n.outputs}
    for index, node in enumerate(graph.nodes):
        turned = writers.get(node.inputs[0]) if node.operator in GLOBAL_POOLS else None
        if turned is not None and turned.operator == "transpose":
            axes = np.array([1, 2], np.int32)
            t = graph.add_tensor(Tensor(f"{node.name}_axes", axes.shape, DType.INT32, data=axes))
            graph.nodes[index] = replace(node, inputs=(turned.inputs[0], t))


def _fuse_rectifiers(graph: Graph) -> None:
    """A ReLU behind its layer becomes the layer's fused activation."""
    writers, readers = graph.producers(), graph.consumers()
    for node in list(graph.nodes):
        host = writers.get(node.inputs[0]) if node.operator in RECTIFIERS else None
        if host is None or graph.nodes[host].operator not in _HOSTS:
            continue
        if only_reader(graph, node.inputs[0], readers) is None:
            continue
        fused = with_attributes(graph.nodes[host], fused_activation_function=node.operator)
        graph.nodes[host] = replace(fused, outputs=node.outputs)
        graph.nodes[next(i for i, n in enumerate(graph.nodes) if n.name == node.name)] = replace(
            node, inputs=(), outputs=()
        )
    graph.nodes = [n for n in graph.nodes if n.outputs]


def _split_fixed_outputs(graph: Graph) -> None:
    """Softmax, sigmoid and tanh write the one type that TFLite allows.

    A QUANTIZE follows where another node reads it.
    """
    for node in list(graph.nodes):
        if node.operator not in _FIXED_OUTPUT or graph.tensors[node.inputs[0]].dtype is not DType.INT8:
            continue
        scale, zero_point = _FIXED_OUTPUT[node.operator]
        t = node.outputs[0]
        wanted = graph.tensors[t]
        allowed = Affine.per_tensor(np.float32(scale), zero_point)
        graph.tensors[t] = replace(wanted, dtype=DType.INT8, quantization=allowed)
        index = next(i for i, n in enumerate(graph.nodes) if n.name == node.name)
        if t not in graph.consumers():
            continue
        recoded = graph.add_tensor(replace(wanted, name=f"{wanted.name}_recoded"))
        is_output = t in graph.outputs
        redirect(graph, t, recoded)
        if is_output:
            graph.outputs = tuple(t if o == recoded else o for o in graph.outputs)
        graph.nodes.insert(index + 1, Node("quantize", (t,), (recoded,), Attributes(), f"{node.name}_recoded"))


def _stand_alone_padding(graph: Graph) -> None:
    """Padding that was folded into a convolution becomes a PAD again."""
    nodes: list[Node] = []
    for node in graph.nodes:
        explicit = node.attributes.integers("explicit_padding", ())
        if not any(explicit):
            nodes.append(node)
            continue
        top, bottom, left, right = explicit
        source = graph.tensors[node.inputs[0]]
        n, h, w, c = source.shape
        amounts = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
        p = graph.add_tensor(Tensor(f"{node.name}_padding", (4, 2), DType.INT32, data=amounts))
        name = f"{node.name}_pad"
        padded = graph.add_tensor(replace(source, name=name, shape=(n, h + top + bottom, w + left + right, c)))
        nodes.append(Node("pad", (node.inputs[0], p), (padded,), Attributes(), name))
        nodes.append(replace(with_attributes(node, padding="valid"), inputs=(padded, *node.inputs[1:])))
    graph.nodes = nodes


def _plain(node: Node) -> Node:
    """Return the node with TFLite's own attributes only."""
    table = options_class(node.operator)
    known = table.BY_NAME if table is not None else {}
    kept = Attributes({name: value for name, value in node.attributes.items() if name in known})
    version = max(node.version, _VERSIONS.get(node.operator, 1))
    return Node(node.operator, node.inputs, node.outputs, kept, node.name, version)
