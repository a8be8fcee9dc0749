"""What is one operator in TFLite and several in ONNX: each of them gets a tensor of its own, with a range.

Ranges of tensors that the model does not have follow from those of their operands. Then every operator is one node of
TPU-MLIR's graph, whose integers are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.converters.passes.conversions import widen_halves
from tflq.converters.passes.patterns import constant_operand
from tflq.converters.passes.rewrite import constant
from tflq.converters.tpu_mlir.passes.forms import RECTIFIER_LIMITS
from tflq.converters.tpu_mlir.passes.recognize import recognize_layer_normalization, recognize_prelu
from tflq.converters.tpu_mlir.passes.unify import CHOICES
from tflq.graph import ABSENT, Array, Attribute, Attributes, DType, Graph, Node, Range
from tflq.graph.rewriting import (
    Constant,
    GraphEditor,
    Pass,
    Value,
    find_matches,
    fused_activation,
    graph_pass,
    op,
    rewrite_graph,
)

Bounds = tuple[float, float]
_NO_ATTRIBUTES = Attributes({})
_JOINED = op(RECTIFIER_LIMITS, op("concatenation", name="joined"))


@dataclass
class _Expansion:
    """A node that becomes several ones.

    Attributes:
        editor: Graph of the node.
        node: Node that writes the result.
    """

    editor: GraphEditor
    node: Node

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self.editor.shape(self.node.outputs[0])

    def number(self, value: float) -> int:
        """Add a constant of one number."""
        return self.constant(f"{value:g}", np.array(value, np.float32))

    def constant(self, suffix: str, data: Array) -> int:
        """Add a constant."""
        return self.editor.add_tensor(constant(f"{self.node.name}_{suffix}", data))

    def bounds(self, t: int) -> Bounds | None:
        """Return the range of a tensor."""
        range_ = self.editor.tensors[t].range
        return None if range_ is None else (float(range_.minimum.min()), float(range_.maximum.max()))

    def add(
        self,
        operator: str,
        inputs: tuple[int, ...],
        suffix: str,
        shape: tuple[int, ...],
        bounds: Bounds | None,
        attributes: Attributes = _NO_ATTRIBUTES,
    ) -> int:
        """Add a node with a new tensor before the node."""
        like = self.editor.tensors[self.node.outputs[0]]
        range_ = None if bounds is None else Range(*(np.array([b], np.float32) for b in bounds))
        name = f"{like.name.split(';')[0]}_{suffix}"
        t = self.editor.add_tensor(replace(like, name=name, shape=shape, range=range_, data=None))
        node = Node(operator, inputs, (t,), attributes, name=f"{self.node.name}_{suffix}")
        self.editor.add(node, before=self.node)
        return t

    def finish(self, operator: str, inputs: tuple[int, ...], **attributes: Attribute) -> None:
        """Replace the node by the one that writes the result; it keeps its attributes if none are given."""
        given = Attributes(attributes) if attributes else self.node.attributes
        self.editor.replace(self.node, replace(self.node, operator=operator, inputs=inputs, attributes=given))


def expand(graph: Graph) -> Graph:
    """Return the graph with one node for each that TPU-MLIR has; tensors keep their numbers, nodes their names."""
    return rewrite_graph(graph, _PASSES, owner="tpu-mlir-expand")


def _put_constants_behind(editor: GraphEditor) -> None:
    """Make constants second operands of commutative operators."""
    for node in editor.nodes:
        if node.operator in ("add", "mul", "maximum", "minimum") and constant_operand(editor, node) == 0:
            editor.change(node, inputs=node.inputs[::-1])


def _remove_idle_minima(editor: GraphEditor) -> None:
    """Remove a MINIMUM with a number that its input does not exceed, if TPU-MLIR misreads the number.

    TPU-MLIR compares a number below 255 with the quantized value of a tensor of one element; a number of 2^31 steps or
    more overflows to -2^31, and all results are 0.
    """
    for node in editor.nodes_of("minimum"):
        number, x = editor.constant(node.inputs[1]), editor.tensors[node.inputs[0]]
        if number is None or number.size != 1 or x.range is None or editor.is_output(node.outputs[0]):
            continue
        c, low, high = (float(v.reshape(-1)[0]) for v in (number, x.range.minimum, x.range.maximum))
        least_step = max(abs(low), abs(high)) / DType.UINT8.maximum
        if c >= high and (c < DType.UINT8.maximum if x.size == 1 else c > 2.0**31 * least_step):
            editor.bypass(node)


def _separate_clamps(editor: GraphEditor) -> None:
    """Make RELU_N1_TO_1 a separate node, which TPU-MLIR does not fuse.

    Its input has the range of the result: quantized values saturate at it.
    """
    for node in editor.nodes:
        if fused_activation(node) == "relu_n1_to_1":
            plain = editor.change(node, fused_activation_function="none")
            y = editor.tensors[plain.outputs[0]]
            clamp = Node("relu_n1_to_1", (ABSENT,), (), name=f"{node.name}_clamp")
            editor.insert_after(plain, clamp, replace(y, name=f"{y.name.split(';')[0]}_plain"))


def _remove_index_wraps(editor: GraphEditor) -> None:
    """Let GATHER read indices i instead of `i < 0 ? i + n : i`; n is the size of the axis.

    TPU-MLIR quantizes these integers and gathers by their quantized values. Indices below 0 are refused when they run.
    """
    index = Value("index", where=lambda tensor: tensor.dtype.is_integer)
    wrapped = op("add", index, Constant("size"))
    pattern = op(CHOICES, op("less", index, Constant("zero")), wrapped, index)
    for match in list(find_matches(editor, pattern)):
        size, zero = (int(match.constants[name].reshape(-1)[0]) for name in ("size", "zero"))
        readers = editor.readers(match.root.outputs[0])
        if zero == 0 and all(_gathered_size(editor, reader) == size for reader in readers):
            editor.redirect(match.root.outputs[0], match.values["index"])
            editor.remove_dead()


def _gathered_size(editor: GraphEditor, node: Node) -> int | None:
    if node.operator != "gather" or node.attributes.integer("batch_dims", 0):
        return None
    return editor.shape(node.inputs[0])[node.attributes.integer("axis", 0)]


def _expand_operators(editor: GraphEditor) -> None:
    """Replace each node that is several ones in TPU-MLIR."""
    for node in editor.nodes:
        rule = _RULES.get(node.operator)
        if rule is not None:
            rule(_Expansion(editor, node))


def _square(e: _Expansion) -> None:
    x = e.node.inputs[0]
    e.finish("mul", (x, x))


def _pow(e: _Expansion) -> None:
    """X ^ 2 is a product."""
    exponent = e.editor.constant(e.node.inputs[1])
    if exponent is not None and np.all(exponent == 2):
        _square(e)


def _prelu(e: _Expansion) -> None:
    """One slope for all channels is a LEAKY_RELU."""
    slopes = e.editor.constant(e.node.inputs[1])
    if slopes is None or not np.all(slopes == slopes.reshape(-1)[0]) or slopes.reshape(-1)[0] < 0:
        return
    e.finish("leaky_relu", e.node.inputs[:1], alpha=float(slopes.reshape(-1)[0]))


def _rsqrt(e: _Expansion) -> None:
    e.finish("pow", (e.node.inputs[0], e.number(-0.5)))


def _squared_difference(e: _Expansion) -> None:
    """A difference d = a - b and d * d; |d| is at most the root of the result."""
    node = e.node
    y = e.bounds(node.outputs[0])
    reach = None if y is None else float(np.sqrt(max(y[1], 0.0)))
    shape = e.shape
    d = e.add("sub", node.inputs, "difference", shape, None if reach is None else (-reach, reach))
    e.finish("mul", (d, d))


def _add_n(e: _Expansion) -> None:
    """Sums from left to right."""
    node = e.node
    total, shape = node.inputs[0], e.shape
    for number, t in enumerate(node.inputs[1:-1]):
        a, b = e.bounds(total), e.bounds(t)
        bounds = None if a is None or b is None else (a[0] + b[0], a[1] + b[1])
        total = e.add("add", (total, t), f"sum_{number}", shape, bounds)
    e.finish("add", (total, node.inputs[-1]))


def _floor_div(e: _Expansion) -> None:
    node = e.node
    if any(e.editor.tensors[t].dtype is not DType.FLOAT32 for t in node.inputs):
        return
    y = e.bounds(node.outputs[0])
    shape = e.shape
    quotient = e.add("div", node.inputs, "quotient", shape, None if y is None else (y[0], y[1] + 1.0))
    e.finish("floor", (quotient,))


def _pack(e: _Expansion) -> None:
    """Each operand gets the new axis, then they are joined."""
    node = e.node
    shape = e.shape
    axis = node.attributes.integer("axis", 0) % len(shape)
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    target = e.constant("shape", np.array(one, np.int32))
    if any(e.editor.tensors[t].is_constant for t in node.inputs):
        return
    parts = [e.add("reshape", (t, target), f"part_{i}", one, e.bounds(t)) for i, t in enumerate(node.inputs)]
    e.finish("concatenation", tuple(parts), axis=axis, fused_activation_function="none")


def _mirror_pad(e: _Expansion) -> None:
    """One axis after the other: each is a gather of its own."""
    node = e.node
    amounts = e.editor.constant(node.inputs[1])
    axes = [] if amounts is None else [a for a, pair in enumerate(amounts) if pair.any()]
    if amounts is None or len(axes) < 2:
        return
    x, shape = node.inputs[0], list(e.editor.shape(node.inputs[0]))
    for number, axis in enumerate(axes):
        own = np.zeros_like(amounts)
        own[axis] = amounts[axis]
        shape[axis] += int(amounts[axis].sum())
        t = e.constant(f"pads_{axis}", own)
        if number == len(axes) - 1:
            e.finish("mirror_pad", (x, t), **dict(node.attributes.items()))
        else:
            x = e.add("mirror_pad", (x, t), f"axis_{axis}", tuple(shape), e.bounds(x), node.attributes)


def _l2_normalization(e: _Expansion) -> None:
    """X / max(sqrt(sum of x * x), 1e-6)."""
    node = e.node
    x, found = node.inputs[0], e.bounds(node.inputs[0])
    shape = e.editor.shape(x)
    one = (*shape[:-1], 1)
    largest = None if found is None else max(found[0] ** 2, found[1] ** 2)
    square = e.add("mul", (x, x), "square", shape, None if largest is None else (0.0, largest))
    axes = e.constant("axes", np.array([len(shape) - 1], np.int32))
    most = None if largest is None else largest * shape[-1]
    total = e.add(
        "sum", (square, axes), "sum", one, None if most is None else (0.0, most), Attributes({"keep_dims": True})
    )
    root = None if most is None else (0.0, float(np.sqrt(most)))
    length = e.add("sqrt", (total,), "length", one, root)
    least = e.add("maximum", (length, e.number(1e-6)), "least", one, root)
    e.finish("div", (x, least), fused_activation_function="none")


def _move_rectifiers(editor: GraphEditor) -> None:
    """Apply a rectifier to the operands of a concatenation instead of its result; a second rectifier stays."""
    for match in list(find_matches(editor, _JOINED)):
        e, joined = _Expansion(editor, match.root), match.nodes["joined"]
        if constant_operand(editor, joined) is not None:
            continue
        limit = RECTIFIER_LIMITS[e.node.operator]
        parts = []
        for number, t in enumerate(joined.inputs):
            x = e.bounds(t)
            bounds = None if x is None else (max(x[0], 0.0), min(max(x[1], 0.0), limit))
            parts.append(e.add(e.node.operator, (t,), f"part_{number}", editor.shape(t), bounds))
        editor.remove(joined)
        editor.replace(e.node, replace(joined, inputs=tuple(parts), outputs=e.node.outputs))


_RULES: dict[str, Callable[[_Expansion], None]] = {
    "add_n": _add_n,
    "floor_div": _floor_div,
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
    Pass("separate_clamps", _separate_clamps, "TPU-MLIR fuses rectifiers only"),
    Pass(
        "remove_index_wraps",
        _remove_index_wraps,
        "TPU-MLIR quantizes indices that it computes",
        "docs/rules/tpu_mlir_front_end.md#indices",
    ),
    Pass(
        "remove_idle_minima",
        _remove_idle_minima,
        "TPU-MLIR overflows on a large number, and compares a small one with the quantized value of a single element",
        "docs/rules/tpu_mlir_front_end.md#minimum-and-maximum-with-a-number",
    ),
    Pass("recognize_prelu", recognize_prelu, "TPU-MLIR loses the inner rectifier of a PRELU in parts"),
    Pass(
        "recognize_layer_normalization", recognize_layer_normalization, "TPU-MLIR has layer normalization as one node"
    ),
    Pass("move_rectifiers", _move_rectifiers, "TPU-MLIR puts a rectifier in front of a concatenation"),
    Pass("expand_operators", _expand_operators, "each node of TPU-MLIR writes one tensor with a range"),
)
