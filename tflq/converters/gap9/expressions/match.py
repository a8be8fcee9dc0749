"""The pass: groups of element-wise operators become EXPRESSION nodes (docs/gap9.md, 22)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.converters.calibration.calibrate import DIFFERENCE_RANGE
from tflq.converters.gap9.affine_types import data_range, real_range
from tflq.converters.gap9.expressions.copies import with_copies, without_copies
from tflq.converters.gap9.expressions.groups import COPY, NEEDING, Group, groups_of, is_matching
from tflq.converters.gap9.operators import EXPRESSION, FILTERS, POOLS, departing, layer_of, taken_for_another
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.constants import real_constant
from tflq.converters.passes.patterns import computed_inputs, only_reader
from tflq.converters.passes.rewrite import sorted_nodes, with_attributes
from tflq.graph import Attribute, Attributes, Graph, Node, Range, Tensor
from tflq.interpreter.kernels.gap9.expressions.tree import CONSTANT, INPUT, Symbol, Tree


@dataclass
class Expression:
    """An expression that grows operator by operator.

    Attributes:
        graph: that its nodes stand in.
        as_nntool: whether constants of one element are the raw codes of an int8 file, and squares keep NNTool's sign.
        symbols: of the tree.
        places: tensor -> its place among the symbols.
        inputs: tensors that it reads.
        departures: where NNTool's integers are not the right ones.
    """

    graph: Graph
    as_nntool: bool
    symbols: list[Symbol] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    departures: list[str] = field(default_factory=list)

    @staticmethod
    def of(graph: Graph, group: Group, outputs: tuple[int, ...], as_nntool: bool) -> tuple[Tree, Expression]:
        """Return the expression of a group, whose `outputs` others read."""
        made = Expression(graph, as_nntool)
        for index in group:
            made._operator(graph.nodes[index])
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
        tensor = self.graph.tensors[node.outputs[0]]
        if tensor.range is None or (node.operator in ("relu", "relu6") and not tensor.dtype.is_floating):
            return None
        return float(tensor.range.minimum[0]), float(tensor.range.maximum[0])

    def _operand(self, t: int) -> int:
        tensor = self.graph.tensors[t]
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


def match_expressions(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with expr_0, expr_1, ... in place of groups; an expression that its filter takes joins it.

    Raises:
        UnsupportedError: a group that NNTool's cut is not known for.
    """
    if not is_matching(graph, options):
        return graph
    graph = with_copies(graph)
    result, gone = graph.copy(), set[int]()
    made: list[Node] = []
    needs = sorted({n.operator.upper() for n in graph.nodes if n.operator in NEEDING})
    groups = groups_of(graph)
    _activation_ranges(result, groups)
    _turn_squares(result, options)
    for number, group in enumerate(groups):
        gone.update(group)
        made.append(_node(result, group, f"expr_{number}", needs, options))
    known = {i for i, t in enumerate(result.tensors) if t.is_constant or t.is_variable} | set(result.inputs)
    result.nodes = sorted_nodes([n for i, n in enumerate(result.nodes) if i not in gone] + made, known)
    return _with_filters(without_copies(result))


def _activation_ranges(graph: Graph, groups: Sequence[Group]) -> None:
    """Give activations of an int8 file, and the operators in front of them, the ranges that NNTool has for them.

    ReLU [0, max], ReLU6 [0, 6], both with what is in front; tanh [-1, 1], sigmoid [0, 1], behind [-8, 8].
    """
    for group in groups:
        written = {graph.nodes[i].outputs[0] for i in group}
        for index in group:
            node = graph.nodes[index]
            tensor = graph.tensors[node.outputs[0]]
            if node.operator not in _RANGES or tensor.dtype.is_floating or tensor.range is None:
                continue
            own, before = _RANGES[node.operator](float(tensor.range.maximum[0]))
            graph.tensors[node.outputs[0]] = replace(tensor, range=real_range(*own))
            for t in written.intersection(node.inputs):
                graph.tensors[t] = replace(graph.tensors[t], range=real_range(*before))


_RANGES: dict[str, Callable[[float], tuple[tuple[float, float], tuple[float, float]]]] = {
    "relu": lambda top: ((0.0, top), (0.0, top)),
    "relu6": lambda _: ((0.0, 6.0), (0.0, 6.0)),
    "tanh": lambda _: ((-1.0, 1.0), (-8.0, 8.0)),
    "logistic": lambda _: ((0.0, 1.0), (-8.0, 8.0)),
}


def _turn_squares(graph: Graph, options: Mapping[str, LayerOptions]) -> None:
    """NNTool's squared differences are negative, and so are their ranges."""
    for node in graph.nodes:
        tensor = graph.tensors[node.outputs[0]]
        turns = node.operator == "squared_difference" and options[layer_of(node)].numerics == "nntool"
        if turns and tensor.range is not None:
            graph.tensors[node.outputs[0]] = replace(tensor, range=Range(-tensor.range.maximum, -tensor.range.minimum))


def _node(
    graph: Graph,
    group: Group,
    name: str,
    needs: Sequence[str],
    options: Mapping[str, LayerOptions],
) -> Node:
    layer = layer_of(graph.nodes[group[-1]])
    outputs = _outputs(graph, group)
    tree, found = Expression.of(graph, group, outputs, options[layer].numerics == "nntool")
    members = " ".join(dict.fromkeys(layer_of(graph.nodes[i]) for i in group))
    why = (
        f"expressions=auto: {', '.join(needs)} need it" if options[layer].expressions == "auto" else "expressions=true"
    )
    facts: dict[str, Attribute] = {"layer": layer, "members": members, "matched": why, **tree.attributes()}
    departures = dict.fromkeys([*found.departures, *(taken_for_another(graph, graph.nodes[i]) for i in group)])
    if any(departures):
        facts["departure"] = "; ".join(filter(None, departures))
    return Node(EXPRESSION, tuple(found.inputs), outputs, Attributes(facts), name)


def _outputs(graph: Graph, group: Group) -> tuple[int, ...]:
    """Return the tensors that others read, in the order of their first readers."""
    inside, places = set(group), dict[int, tuple[int, int]]()
    for index, node in enumerate(graph.nodes):
        for position, t in enumerate(node.inputs):
            if index not in inside:
                places.setdefault(t, (index, position))
    for position, t in enumerate(graph.outputs):
        places.setdefault(t, (len(graph.nodes), position))
    written = [t for index in group for t in graph.nodes[index].outputs if t in places]
    return tuple(sorted(written, key=lambda t: places[t]))


def _with_filters(graph: Graph) -> Graph:
    """Let an expression of one input and one output of equal shape, alone behind a filter, join its fusion."""
    producers = graph.producers()
    for index, node in enumerate(graph.nodes):
        if node.operator != EXPRESSION:
            continue
        host = _host(graph, node, producers)
        if host is not None:
            fusion = graph.nodes[host[0]].attributes.text("fusion", f"{graph.nodes[host[0]].name}_fusion")
            for i in (*host, index):
                graph.nodes[i] = with_attributes(graph.nodes[i], fusion=fusion)
        elif any(graph.nodes[i].operator in FILTERS[:2] for t in node.outputs for i in graph.consumers().get(t, ())):
            graph.nodes[index] = departing(node, _NO_ROWS)
    return graph


def _host(graph: Graph, node: Node, producers: Mapping[int, int]) -> tuple[int, ...] | None:
    """Return the filter, and its pool, that an expression stands behind; None where there is none that takes it."""
    if len(node.outputs) != 1 or len(node.inputs) != 1 or not computed_inputs(graph, node):
        return None
    source = node.inputs[0]
    if graph.tensors[source].shape != graph.tensors[node.outputs[0]].shape:
        return None
    found: list[int] = []
    while only_reader(graph, source) is not None and source in producers:
        index = producers[source]
        writer = graph.nodes[index]
        found.insert(0, index)
        if writer.operator in FILTERS:
            return tuple(found)
        if writer.operator not in POOLS or len(found) > 1 or "fusion" not in writer.attributes:
            return None
        source = writer.inputs[0]
    return None
