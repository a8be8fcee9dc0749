"""The pass: groups of element-wise operators become EXPRESSION nodes (docs/gap9.md, 22)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tflq.converters.gap9.affine_types import real_range
from tflq.converters.gap9.expressions.build import Expression
from tflq.converters.gap9.expressions.copies import with_copies, without_copies
from tflq.converters.gap9.expressions.groups import Group, groups_of
from tflq.converters.gap9.expressions.operators import NEEDING, is_matching
from tflq.converters.gap9.operators import FILTERS, POOLS, departing, layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.constants import EXPRESSION
from tflq.converters.gap9.twins import taken_for_another
from tflq.converters.passes.patterns import computed_inputs, only_reader
from tflq.converters.passes.rewrite import sorted_nodes, with_attributes
from tflq.graph import Attribute, Attributes, Graph, Node, Range

_HOSTS = ("conv_2d", "depthwise_conv_2d", "fully_connected")
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
        elif any(graph.nodes[i].operator in _HOSTS[:2] for t in node.outputs for i in graph.consumers().get(t, ())):
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
            is_free = "fusion" not in writer.attributes or len(found) == 2
            return tuple(found) if is_free and writer.operator in _HOSTS else None
        if writer.operator not in POOLS or len(found) > 1 or "fusion" not in writer.attributes:
            return None
        source = writer.inputs[0]
    return None
