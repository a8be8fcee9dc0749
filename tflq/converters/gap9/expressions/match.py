"""The pass: groups of element-wise operators become EXPRESSION nodes (docs/rules/gap9/expressions.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.converters.calibration.calibrate import DIFFERENCE_RANGE
from tflq.converters.gap9.affine_types import data_range, real_range
from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.expressions.copies import insert_copies, remove_copies
from tflq.converters.gap9.expressions.groups import COPY, NEEDING, Group, groups_of, is_matching
from tflq.converters.gap9.operators import (
    EXPRESSION,
    FILTERS,
    POOLS,
    RECTIFIERS,
    departing,
    layer_of,
    taken_for_another,
)
from tflq.converters.gap9.passes.constants import real_constant
from tflq.converters.passes.patterns import computed_inputs
from tflq.graph import Attribute, Attributes, Node, Range, Tensor
from tflq.graph.operators import CONVOLUTIONS
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.kernels.gap9.expressions.tree import CONSTANT, INPUT, Symbol, Tree


@dataclass
class Expression:
    """An expression that grows operator by operator.

    Attributes:
        editor: Graph of its nodes.
        as_nntool: whether constants of one element are the raw codes of an int8 file, and squares keep NNTool's sign.
        symbols: of the tree.
        places: tensor -> its place among the symbols.
        inputs: tensors that it reads.
        departures: where NNTool's integers are not the right ones.
    """

    editor: GraphEditor
    as_nntool: bool
    symbols: list[Symbol] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    departures: list[str] = field(default_factory=list)

    @staticmethod
    def of(editor: GraphEditor, group: Group, outputs: tuple[int, ...], as_nntool: bool) -> tuple[Tree, Expression]:
        """Return the expression of a group, whose `outputs` others read."""
        made = Expression(editor, as_nntool)
        for node in group:
            made._operator(node)
        return Tree(tuple(made.symbols), tuple(made.places[t] for t in outputs)), made

    def _operator(self, node: Node) -> None:
        operands = tuple(self._operand(t) for t in node.inputs)
        if node.operator == COPY:
            place = operands[0]
        elif node.operator == "hard_sigmoid":
            place = self._hard_sigmoid(node, operands[0])
        elif node.operator == "squared_difference":
            place = self._squared_difference(node, *operands)
        else:
            place = self._add(Symbol(node.operator, node.name, operands, 0.0, self._range(node)))
        self.places[node.outputs[0]] = place

    def _hard_sigmoid(self, node: Node, x: int) -> int:
        """min(6, max(0, x + 3)) * 1/6, in true numbers."""
        if node.attributes.real("offset", 3.0):
            x = self._add(Symbol("add", node.name, (x, self._number(3.0))))
        x = self._add(Symbol("maximum", node.name, (self._number(0.0), x)))
        x = self._add(Symbol("minimum", node.name, (self._number(6.0), x)))
        return self._add(Symbol("mul", node.name, (x, self._number(1 / 6)), 0.0, self._range(node)))

    def _squared_difference(self, node: Node, a: int, b: int) -> int:
        """(a - b) (b - a), as NNTool reads it, or (a - b)^2."""
        self.departures.append("NNTool's SQUARED_DIFFERENCE has the wrong sign (22.1)")
        low, high = node.attributes.reals(DIFFERENCE_RANGE)
        first = self._add(Symbol("sub", node.name, (a, b), 0.0, (low, high)))
        second = self._add(Symbol("sub", node.name, (b, a), 0.0, (-high, -low))) if self.as_nntool else first
        return self._add(Symbol("mul", node.name, (first, second), 0.0, self._range(node)))

    def _range(self, node: Node) -> tuple[float, float] | None:
        """The tensor's; of a ReLU only a float file has one."""
        tensor = self.editor.tensors[node.outputs[0]]
        if tensor.range is None or (node.operator in RECTIFIERS and not tensor.dtype.is_floating):
            return None
        return float(tensor.range.minimum[0]), float(tensor.range.maximum[0])

    def _operand(self, t: int) -> int:
        tensor = self.editor.tensors[t]
        if tensor.is_constant and tensor.size == 1:
            return self._number(self._constant(tensor))
        if t not in self.places:
            bounds = tensor.range
            if tensor.is_constant:
                bounds = data_range(real_constant(tensor))
            assert bounds is not None
            ends = float(bounds.minimum[0]), float(bounds.maximum[0])
            self.places[t] = self._add(Symbol(INPUT, "", (), float(len(self.inputs)), ends))
            self.inputs.append(t)
        return self.places[t]

    def _constant(self, tensor: Tensor) -> float:
        """The real value; of an int8 file NNTool takes the code itself."""
        assert tensor.data is not None
        raw, real = float(tensor.data.reshape(-1)[0]), float(np.asarray(real_constant(tensor)).reshape(-1)[0])
        if raw != real:
            self.departures.append(f"NNTool reads the constant {real:.6g} as {raw:g}, its code in the file (22.1)")
        return raw if self.as_nntool else real

    def _number(self, value: float) -> int:
        return self._add(Symbol(CONSTANT, "", (), value))

    def _add(self, symbol: Symbol) -> int:
        self.symbols.append(symbol)
        return len(self.symbols) - 1


_NO_ROWS = "NNTool's own execution fails: a convolution reads an expression channels last (22.11)"


def match_expressions(editor: Gap9Editor) -> None:
    """Replace groups by expr_0, expr_1, ...; an expression that its filter takes joins its fusion.

    Raises:
        UnsupportedError: a group for which NNTool's cut is not known.
    """
    if not is_matching(editor):
        return
    insert_copies(editor)
    needs = sorted({node.operator.upper() for node in editor.nodes if node.operator in NEEDING})
    groups = groups_of(editor)
    for group in groups:
        _set_activation_ranges(editor, group)
    _turn_squares(editor)
    order = {node.name: i for i, node in enumerate(editor.nodes)}
    expressions = [_build(editor, group, f"expr_{i}", needs, order) for i, group in enumerate(groups)]
    for node in (node for group in groups for node in group):
        editor.remove(node)
    for expression in expressions:
        editor.add(expression)
    editor.sort()
    remove_copies(editor)
    _join_filters(editor)


def _set_activation_ranges(editor: GraphEditor, group: Group) -> None:
    """Give activations of an int8 file, and the operators upstream, the ranges that NNTool has for them.

    ReLU [0, max], ReLU6 [0, 6], both with the operator upstream; tanh [-1, 1], sigmoid [0, 1], behind [-8, 8].
    """
    written = {node.outputs[0] for node in group}
    for node in group:
        tensor = editor.tensors[node.outputs[0]]
        if node.operator not in _RANGES or tensor.dtype.is_floating or tensor.range is None:
            continue
        own, before = _RANGES[node.operator](float(tensor.range.maximum[0]))
        editor.tensors[node.outputs[0]] = replace(tensor, range=real_range(*own))
        for t in written.intersection(node.inputs):
            editor.tensors[t] = replace(editor.tensors[t], range=real_range(*before))


_RANGES: dict[str, Callable[[float], tuple[tuple[float, float], tuple[float, float]]]] = {
    "relu": lambda top: ((0.0, top), (0.0, top)),
    "relu6": lambda _: ((0.0, 6.0), (0.0, 6.0)),
    "tanh": lambda _: ((-1.0, 1.0), (-8.0, 8.0)),
    "logistic": lambda _: ((0.0, 1.0), (-8.0, 8.0)),
}


def _turn_squares(editor: Gap9Editor) -> None:
    """NNTool's squared differences are negative, and so are their ranges."""
    for node in editor.nodes:
        if node.operator == "squared_difference" and editor.is_vendor(node):
            tensor = editor.tensors[node.outputs[0]]
            if tensor.range is not None:
                turned = Range(-tensor.range.maximum, -tensor.range.minimum)
                editor.tensors[node.outputs[0]] = replace(tensor, range=turned)


def _build(editor: Gap9Editor, group: Group, name: str, needs: Sequence[str], order: Mapping[str, int]) -> Node:
    last = group[-1]
    outputs = _outputs(editor, group, order)
    tree, expression = Expression.of(editor, group, outputs, editor.is_vendor(last))
    members = " ".join(dict.fromkeys(map(layer_of, group)))
    is_auto = editor.option(last).expressions == "auto"
    why = f"expressions=auto: {', '.join(needs)} need it" if is_auto else "expressions=true"
    facts: dict[str, Attribute] = {"layer": layer_of(last), "members": members, "matched": why, **tree.attributes()}
    departures = dict.fromkeys([*expression.departures, *(taken_for_another(editor, node) for node in group)])
    if any(departures):
        facts["departure"] = "; ".join(filter(None, departures))
    return Node(EXPRESSION, tuple(expression.inputs), outputs, Attributes(facts), name)


def _outputs(editor: GraphEditor, group: Group, order: Mapping[str, int]) -> tuple[int, ...]:
    """Return the tensors with readers outside the group, in the order of their first readers."""
    inside, places = {node.name for node in group}, dict[int, tuple[int, int]]()
    for t in (t for node in group for t in node.outputs):
        readers = [reader for reader in editor.readers(t) if reader.name not in inside]
        if readers:
            places[t] = min((order[reader.name], reader.inputs.index(t)) for reader in readers)
        elif editor.is_output(t):
            places[t] = len(order), editor.outputs.index(t)
    return tuple(sorted(places, key=lambda t: places[t]))


def _join_filters(editor: GraphEditor) -> None:
    """Let an expression of one input and one output of equal shape, alone behind a filter, join its fusion."""
    for node in editor.nodes:
        if node.operator != EXPRESSION:
            continue
        host = _host(editor, node)
        if host:
            fusion = host[0].attributes.text("fusion", f"{host[0].name}_fusion")
            for member in (*host, node):
                editor.change(member, fusion=fusion)
        elif any(reader.operator in CONVOLUTIONS for t in node.outputs for reader in editor.readers(t)):
            editor.replace(node, departing(node, _NO_ROWS))


def _host(editor: GraphEditor, node: Node) -> tuple[Node, ...]:
    """Return the filter, and its pool, that an expression stands behind; no node if there is none that takes it."""
    if len(node.outputs) != 1 or len(node.inputs) != 1 or not computed_inputs(editor, node):
        return ()
    source, pools = node.inputs[0], list[Node]()
    if editor.shape(source) != editor.shape(node.outputs[0]):
        return ()
    while editor.only_reader(source) is not None and (writer := editor.writer(source)) is not None:
        if writer.operator in FILTERS:
            return writer, *pools
        if writer.operator not in POOLS or pools or "fusion" not in writer.attributes:
            return ()
        pools.append(writer)
        source = writer.inputs[0]
    return ()
