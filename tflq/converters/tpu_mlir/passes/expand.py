"""What is one operator in TFLite and several in ONNX: each of them gets a tensor of its own, with a range.

Ranges of tensors that the model does not have follow from those of their operands. Then every operator is one node of
TPU-MLIR's graph, whose integers are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.converters.passes.conversions import widen_halves
from tflq.converters.passes.patterns import constant_operand, fused_activation, only_reader
from tflq.converters.passes.rewrite import constant
from tflq.converters.tpu_mlir.passes.recognise import recognise_layer_normalization, recognise_prelu
from tflq.graph import Attributes, DType, Graph, Node, Range
from tflq.graph.rewriting import GraphEditor, Pass, graph_pass, rewrite_graph

Bounds = tuple[float, float]


@dataclass
class _Expansion:
    """A graph whose nodes are written anew.

    Attributes:
        graph: gets tensors and nodes.
        source: as it was.
        node: that is expanded.
    """

    graph: Graph
    source: Graph
    node: Node

    def number(self, value: float) -> int:
        """Add a constant of one number."""
        return self.graph.add_tensor(constant(f"{self.node.name}_{value:g}", np.array(value, np.float32)))

    def bounds(self, t: int) -> Bounds | None:
        """Return the range of a tensor."""
        found = self.graph.tensors[t].range
        return None if found is None else (float(found.minimum.min()), float(found.maximum.max()))

    def add(
        self, operator: str, inputs: tuple[int, ...], what: str, shape: tuple[int, ...], bounds: Bounds | None
    ) -> int:
        """Add a node with a new tensor."""
        like = self.graph.tensors[self.node.outputs[0]]
        made = None if bounds is None else Range(*(np.array([b], np.float32) for b in bounds))
        name = f"{like.name.split(';')[0]}_{what}"
        t = self.graph.add_tensor(replace(like, name=name, shape=shape, range=made, data=None))
        self.graph.nodes.append(Node(operator, inputs, (t,), name=f"{self.node.name}_{what}"))
        return t

    def finish(self, operator: str, inputs: tuple[int, ...], **options: object) -> None:
        """Add the node that writes the result."""
        attributes = self.node.attributes if not options else Attributes(options)  # type: ignore[arg-type]
        self.graph.nodes.append(replace(self.node, operator=operator, inputs=inputs, attributes=attributes))


def expand(graph: Graph) -> Graph:
    """Return the graph with one node for each that TPU-MLIR has; tensors keep their numbers, nodes their names."""
    return rewrite_graph(graph, _PASSES, owner="tpu-mlir-expand")


def _put_constants_behind(editor: GraphEditor) -> None:
    """Make constants second operands where the order does not count."""
    for node in editor.nodes:
        if node.operator in ("add", "mul", "maximum", "minimum") and constant_operand(editor, node) == 0:
            editor.change(node, inputs=node.inputs[::-1])


def _expand_operators(graph: Graph) -> Graph:
    result = replace(graph.copy(), nodes=[])
    for node in graph.nodes:
        rule = _RULES.get(node.operator)
        if rule is None or not rule(_Expansion(result, graph, node)):
            result.nodes.append(node)
    return result


def _square(e: _Expansion) -> bool:
    x = e.node.inputs[0]
    e.finish("mul", (x, x))
    return True


def _pow(e: _Expansion) -> bool:
    """X ^ 2 is a product."""
    exponent = e.source.tensors[e.node.inputs[1]].data
    if exponent is None or not np.all(exponent == 2):
        return False
    return _square(e)


def _prelu(e: _Expansion) -> bool:
    """One slope for all channels is a LEAKY_RELU."""
    slopes = e.source.tensors[e.node.inputs[1]].data
    if slopes is None or not np.all(slopes == slopes.reshape(-1)[0]) or slopes.reshape(-1)[0] < 0:
        return False
    e.finish("leaky_relu", e.node.inputs[:1], alpha=float(slopes.reshape(-1)[0]))
    return True


def _rsqrt(e: _Expansion) -> bool:
    e.finish("pow", (e.node.inputs[0], e.number(-0.5)))
    return True


def _squared_difference(e: _Expansion) -> bool:
    """A difference d = a - b and d * d; |d| is at most the root of the result."""
    node = e.node
    y = e.bounds(node.outputs[0])
    reach = None if y is None else float(np.sqrt(max(y[1], 0.0)))
    shape = e.source.tensors[node.outputs[0]].shape
    d = e.add("sub", node.inputs, "difference", shape, None if reach is None else (-reach, reach))
    e.finish("mul", (d, d))
    return True


def _add_n(e: _Expansion) -> bool:
    """Sums from left to right."""
    node = e.node
    total, shape = node.inputs[0], e.source.tensors[node.outputs[0]].shape
    for number, t in enumerate(node.inputs[1:-1]):
        a, b = e.bounds(total), e.bounds(t)
        bounds = None if a is None or b is None else (a[0] + b[0], a[1] + b[1])
        total = e.add("add", (total, t), f"sum_{number}", shape, bounds)
    e.finish("add", (total, node.inputs[-1]))
    return True


def _floor_div(e: _Expansion) -> bool:
    node = e.node
    if any(e.source.tensors[t].dtype is not DType.FLOAT32 for t in node.inputs):
        return False
    y = e.bounds(node.outputs[0])
    shape = e.source.tensors[node.outputs[0]].shape
    quotient = e.add("div", node.inputs, "quotient", shape, None if y is None else (y[0], y[1] + 1.0))
    e.finish("floor", (quotient,))
    return True


def _pack(e: _Expansion) -> bool:
    """Each operand gets the new axis, then they are joined."""
    node = e.node
    shape = e.source.tensors[node.outputs[0]].shape
    axis = node.attributes.integer("axis", 0) % len(shape)
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    target = e.graph.add_tensor(constant(f"{node.name}_shape", np.array(one, np.int32)))
    if any(e.source.tensors[t].is_constant for t in node.inputs):
        return False
    parts = [e.add("reshape", (t, target), f"part_{i}", one, e.bounds(t)) for i, t in enumerate(node.inputs)]
    e.finish("concatenation", tuple(parts), axis=axis, fused_activation_function="none")
    return True


def _mirror_pad(e: _Expansion) -> bool:
    """One axis after the other: each is a gather of its own."""
    node = e.node
    amounts = e.source.tensors[node.inputs[1]].data
    axes = [] if amounts is None else [a for a, pair in enumerate(amounts) if pair.any()]
    if amounts is None or len(axes) < 2:
        return False
    x, shape = node.inputs[0], list(e.source.tensors[node.inputs[0]].shape)
    for number, axis in enumerate(axes):
        own = np.zeros_like(amounts)
        own[axis] = amounts[axis]
        shape[axis] += int(amounts[axis].sum())
        t = e.graph.add_tensor(constant(f"{node.name}_pads_{axis}", own))
        if number == len(axes) - 1:
            e.finish("mirror_pad", (x, t), **dict(node.attributes.items()))
        else:
            x = e.add("mirror_pad", (x, t), f"axis_{axis}", tuple(shape), e.bounds(x))
            e.graph.nodes[-1] = replace(e.graph.nodes[-1], attributes=node.attributes)
    return True


def _l2_normalization(e: _Expansion) -> bool:
    """X / max(sqrt(sum of x * x), 1e-6)."""
    node = e.node
    x, found = node.inputs[0], e.bounds(node.inputs[0])
    shape = e.source.tensors[x].shape
    one = (*shape[:-1], 1)
    largest = None if found is None else max(found[0] ** 2, found[1] ** 2)
    square = e.add("mul", (x, x), "square", shape, None if largest is None else (0.0, largest))
    axes = e.graph.add_tensor(constant(f"{node.name}_axes", np.array([len(shape) - 1], np.int32)))
    most = None if largest is None else largest * shape[-1]
    total = e.add("sum", (square, axes), "sum", one, None if most is None else (0.0, most))
    e.graph.nodes[-1] = replace(e.graph.nodes[-1], attributes=Attributes({"keep_dims": True}))
    root = None if most is None else (0.0, float(np.sqrt(most)))
    length = e.add("sqrt", (total,), "length", one, root)
    least = e.add("maximum", (length, e.number(1e-6)), "least", one, root)
    e.finish("div", (x, least), fused_activation_function="none")
    return True


def _rectified(e: _Expansion) -> bool:
    """A rectifier behind a concatenation goes in front of it, where TPU-MLIR puts it, too."""
    node = e.node
    writer = e.source.producers().get(node.inputs[0])
    joined = None if writer is None else e.source.nodes[writer]
    if joined is None or joined.operator != "concatenation" or only_reader(e.source, node.inputs[0]) is None:
        return False
    if fused_activation(joined) != "none" or constant_operand(e.source, joined) is not None:
        return False
    e.graph.nodes.remove(joined)
    limit = {"relu6": 6.0, "relu_0_to_1": 1.0}.get(node.operator, np.inf)
    parts = []
    for number, t in enumerate(joined.inputs):
        x = e.bounds(t)
        bounds = None if x is None else (max(x[0], 0.0), min(max(x[1], 0.0), limit))
        parts.append(e.add(node.operator, (t,), f"part_{number}", e.source.tensors[t].shape, bounds))
    e.graph.nodes.append(replace(joined, inputs=tuple(parts), outputs=node.outputs))
    return True


_RULES: dict[str, Callable[[_Expansion], bool]] = {
    "add_n": _add_n,
    "floor_div": _floor_div,
    "relu": _rectified,
    "relu6": _rectified,
    "relu_0_to_1": _rectified,
    "rsqrt": _rsqrt,
    "pack": _pack,
    "pow": _pow,
    "prelu": _prelu,
    "mirror_pad": _mirror_pad,
    "l2_normalization": _l2_normalization,
    "square": _square,
    "squared_difference": _squared_difference,
}

_PASSES = (
    graph_pass("widen_halves", widen_halves, "weights of float16 are exact in float32"),
    Pass("remove_unread", GraphEditor.remove_dead, "TPU-MLIR drops unread nodes before it counts readers"),
    Pass(
        "put_constants_behind",
        _put_constants_behind,
        "TPU-MLIR does so with sums and products, and does not quantize a number in front of a maximum or minimum",
    ),
    Pass("recognise_prelu", recognise_prelu, "TPU-MLIR loses the inner rectifier of a PRELU in parts"),
    Pass(
        "recognise_layer_normalization", recognise_layer_normalization, "TPU-MLIR has layer normalization as one node"
    ),
    graph_pass("expand_operators", _expand_operators, "each node of TPU-MLIR writes one tensor with a range"),
)
