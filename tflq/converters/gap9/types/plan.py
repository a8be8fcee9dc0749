"""The plan: a type for every computed tensor, and the edges where a Quantize node must stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tflq.converters.gap9.operators import FILTERS, GLOBAL_POOLS, POOLS, RECTIFIERS, layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.choose_engines import SQ8
from tflq.converters.gap9.passes.constants import has_scales, keeps_bias, quantize_layer
from tflq.converters.gap9.passes.slices import UNUSED
from tflq.converters.gap9.types.network import GRAPH_INPUT, GRAPH_OUTPUT, Edge, Network, UnitCell
from tflq.converters.gap9.types.procedure import eliminate, resolve_forward
from tflq.converters.gap9.types.records import INT8, UINT16, Choice
from tflq.converters.gap9.types.resolve import Resolved, range_of, resolver_of
from tflq.converters.gap9.units import JOINED, Unit, units_of
from tflq.converters.passes.patterns import only_reader
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Graph, Node
from tflq.graph.operators import RESHAPES

InputPlace = tuple[int, int]
"""(node, input position), or (GRAPH_OUTPUT, number): of the graph's outputs, then of those that only NNTool has."""
EdgePlace = tuple[int, int, int]
"""(tensor, consumer, position) of an edge."""
_COPIED = ("concatenation", "split", "split_v", "unpack")
_CYCLE = (
    "tensor '{}' depends on itself: an expression of NNTool joins operators upstream and downstream of other layers; "
    "NNTool stops, too: cut the graph upstream of it"
)
_UNSIGNED_CURVE = (
    "NNTool reads it unsigned, S = 2^-12 and Z beyond the type, which is no sigmoid or tanh any more (17.23)"
)
_UNSIGNED_LEAKY = "NNTool reads it unsigned, Z = 0, which cuts what is negative, or fails (17.23)"
_LEAKY = "NNTool gives the int8 that it reads the scale of the int16 that it writes, 258 times too small (17.22)"
_TAKEN = "NNTool's fusion writes another type than its readers take it for (17.14)"
_MAXIMUM = "NNTool's REDUCE_MAX takes quantized values of the type that it reads for those of another one (17.25)"
_UNRECTIFIED = "NNTool cannot quantize REDUCE_MAX and the ReLU behind it where negative numbers arrive (17.25)"
_MEMBERS = "NNTool's Add computes with other types than it reads and than its readers take its result for (17.21)"
_POOL = "NNTool cannot quantize a pool and the ReLU behind it with unsigned types (17.9)"
_WIDE_POOL = "NNTool gives a pool and the ReLU behind it int8, and takes it for int16 (17.9)"


@dataclass(frozen=True)
class TypePlan:
    """The decision.

    Attributes:
        units: the units that it was made for.
        types: computed tensor -> type, those inside fusions included.
        conversions: input of a node -> type that a Quantize node in front of it writes.
        alone: those of them whose Quantize node nobody shares.
        inside: filter -> the type of input that NNTool computes its M and N for, where that is another one.
        outside: filter of a fusion -> the type that NNTool's readers take its result for, where its members write
            another one; with numerics=nntool alone.
        failing: first node of a fusion -> why NNTool does not compute the fusion so.
    """

    units: tuple[Unit, ...]
    types: Mapping[int, Affine]
    conversions: Mapping[InputPlace, Affine]
    alone: frozenset[InputPlace]
    inside: Mapping[int, Affine]
    outside: Mapping[int, Affine]
    failing: Mapping[int, str]


@dataclass(frozen=True)
class _Task:
    """What types are chosen for: units but for the reshapes that NNTool absorbs, `flat`: written -> read by these."""

    graph: Graph
    units: list[Unit]
    flat: Mapping[int, int]
    options: Mapping[str, LayerOptions]
    positive: frozenset[int]

    @staticmethod
    def of(graph: Graph, options: Mapping[str, LayerOptions], positive: frozenset[int]) -> _Task:
        flat = _flattening(graph)
        return _Task(graph, [u for u in units_of(graph) if u.outputs[0] not in flat], flat, options, positive)

    def option(self, unit: Unit) -> LayerOptions:
        """Return the options of a unit: those of its first layer."""
        return self.options[layer_of(self.graph.nodes[unit.nodes[0]])]


def choose_types(graph: Graph, options: Mapping[str, LayerOptions], positive: frozenset[int] = frozenset()) -> TypePlan:
    """Decide every type of a graph with ranges, fusions and engines.

    Args:
        graph: all computed tensors have ranges, which hold 0.
        options: of each layer.
        positive: graph inputs whose range began above 0.

    Raises:
        UnsupportedError: a fusion whose members NNTool cannot type together.
    """
    task = _Task.of(graph, options, positive)
    plan = _plan(task, _fused_network(task))
    return replace(plan, failing={**plan.failing, **_flawed(task)})


def loader_types(graph: Graph, options: Mapping[str, LayerOptions], positive: frozenset[int] = frozenset()) -> TypePlan:
    """Decide the types that NNTool's loader gives: for SQ8 with 8 bits, and once.

    Args:
        graph: all computed tensors have ranges, which hold 0; without fusions, all on SQ8.
        options: of each layer, `for_software`.
        positive: graph inputs whose range began above 0.

    Raises:
        UnsupportedError: no types fit.
    """
    task = _Task.of(graph, options, positive)
    return _plan(task, _network(task))


def for_software(options: Mapping[str, LayerOptions]) -> dict[str, LayerOptions]:
    """Return the options with SQ8 and 8 bits everywhere."""
    narrow = {name: replace(o, use_ne16=False, feature_bits=8, weight_bits=8) for name, o in options.items()}
    return {name: replace(o, softmax_out_8bits=False, allow_asymmetric_out=False) for name, o in narrow.items()}


def _plan(task: _Task, network: Network) -> TypePlan:
    graph, units = task.graph, task.units
    _decide(task, network)
    types: dict[int, Affine] = {}
    conversions: dict[InputPlace, Affine] = {}
    alone: set[InputPlace] = set()
    for edge in network.edges():
        if edge.state.written is None:
            raise UnsupportedError(_CYCLE.format(graph.tensors[edge.tensor].name))
        types[edge.tensor] = edge.state.written.affine
        if not edge.in_conflict:
            continue
        assert edge.state.wanted is not None
        place = (GRAPH_OUTPUT, edge.position)
        if edge.consumer != GRAPH_OUTPUT:
            place = units[edge.consumer].nodes[0], units[edge.consumer].inputs[edge.position][0]
        conversions[place] = edge.state.wanted.affine
        if not all(other.in_conflict for other in network.edges_out[edge.tensor]):
            alone.add(place)
    outside, failing = _outside(task, network), _failing(task, network)
    for unit, cell in zip(units, network.units, strict=True):
        written = cell.inner if unit.nodes[0] in outside else cell.resolved
        for index, member in zip(unit.nodes, written.members, strict=True):
            types.update(zip(graph.nodes[index].outputs, (c.affine for c in member.outputs), strict=True))
    types.update({t: types[source] for t, source in task.flat.items()})
    return TypePlan(tuple(units), types, conversions, frozenset(alone), _inside(units, network), outside, failing)


def _decide(task: _Task, network: Network) -> None:
    order = resolve_forward(network, task.graph.inputs, lambda u, types: _open_constants(task, task.units[u], types))
    eliminate(network, order)


def _first_conversions(task: _Task) -> frozenset[EdgePlace]:
    """Return the edges on which NNTool puts Quantize nodes when it fuses: it then decides types for SQ8, 8 bits."""
    software = [replace(unit, engine=SQ8 if unit.engine else "") for unit in task.units]
    task = replace(task, units=software, options=for_software(task.options))
    network = _network(task)
    try:
        _decide(task, network)
    except UnsupportedError:
        return frozenset()
    return frozenset((e.tensor, e.consumer, e.position) for e in network.edges() if e.in_conflict)


def _fused_network(task: _Task) -> Network:
    """Return the network whose types NNTool decides after it has fused, edges in its order.

    It has removed the first conversions then, which puts their edges behind a tensor's others.
    """
    network = _network(task)
    conversions = _first_conversions(task)
    for edges in network.edges_out.values():
        edges.sort(key=lambda e: (e.tensor, e.consumer, e.position) in conversions)
    return network


def _inside(units: list[Unit], network: Network) -> dict[int, Affine]:
    inside = {}
    for unit, cell in zip(units, network.units, strict=True):
        wanted = cell.inputs[0].state.wanted if unit.is_filter else None
        if wanted is not None and not cell.inner.inputs[0].agrees(wanted):
            inside[unit.nodes[0]] = cell.inner.inputs[0].affine
    return inside


def _outside(task: _Task, network: Network) -> dict[int, Affine]:
    """With numerics=nntool: filter of a fusion that `_taken_for_another` -> the type that its readers take.

    Raises:
        UnsupportedError: such a result is read without a Quantize node.
    """
    graph, found = task.graph, {}
    for number in _taken_for_another(task.units, network):
        unit, stated = task.units[number], network.units[number].resolved.outputs[0]
        if graph.nodes[unit.nodes[0]].attributes.text("numerics", "exact") != "nntool":
            continue
        readers = network.edges_out[unit.outputs[0]]
        same_codes = network.units[number].inner.outputs[0].codes == stated.codes
        if not same_codes or not all(edge.in_conflict for edge in readers):
            raise UnsupportedError(
                f"{graph.where(unit.nodes[0])}: NNTool's fusion writes another type than its readers take it for "
                "(17.14), which is reproduced in front of Quantize nodes alone; numerics=exact converts it"
            )
        found[unit.nodes[0]] = stated.affine
    return found


def _taken_for_another(units: list[Unit], network: Network) -> list[int]:
    """Return the fusions that begin with a filter whose members write, in NNTool, what they were asked for in vain."""
    return [
        cell.number
        for unit, cell in zip(units, network.units, strict=True)
        if unit.is_filter and len(unit.nodes) > 1 and not cell.inner.outputs[0].agrees(cell.resolved.outputs[0])
    ]


def _failing(task: _Task, network: Network) -> dict[int, str]:
    """Fusions that NNTool does not compute rightly as they are typed.

    A filter's whose readers take it for another type; an Add's whose members have followed an input where it has not.
    Pools with a ReLU behind them that get unsigned types: NNTool's fusion of the two has a signed kernel alone. Not a
    fusion: a leaky ReLU alone among 16-bit features.

    Raises:
        UnsupportedError: with numerics=nntool.
    """
    found = {task.units[number].nodes[0]: _TAKEN for number in _taken_for_another(task.units, network)}
    for unit, cell in zip(task.units, network.units, strict=True):
        written = cell.resolved.outputs[0].codes
        first, layer = unit.nodes[0], task.option(unit)
        if unit.operator == "leaky_relu" and layer.use_ne16 and layer.feature_bits == 16:
            found[first] = _LEAKY
        if len(unit.nodes) == 1 or unit.is_filter:
            continue
        if unit.operator in POOLS and not written.signed:
            found[first] = _WIDE_POOL if written == UINT16 else _POOL
        elif cell.members_followed():
            found[first] = _MEMBERS
        if first in found and layer.numerics == "nntool":
            raise UnsupportedError(
                f"{task.graph.where(first)}: {found[first]}; numerics=exact computes it as it stands"
            )
    return found


def _flawed(task: _Task) -> dict[int, str]:
    """Return what NNTool gives types that its kernels do not fit -> the flaw.

    Sigmoids, tanhs and leaky ReLUs that stand alone and get unsigned types on NE16; largest elements that are taken for
    another type than the one they have, which fails where a ReLU is fused.

    Raises:
        UnsupportedError: a sigmoid, a tanh or such a ReLU with numerics=nntool.
    """
    graph, units = task.graph, task.units
    lone = _lone_curves(task)
    largest = [n for n, unit in enumerate(units) if unit.operator == "reduce_max"]
    if not (lone or largest):
        return {}
    flawed = replace(task, options={name: replace(o, numerics="nntool") for name, o in task.options.items()})
    network = _fused_network(flawed)
    _decide(flawed, network)
    decided, found = [cell.resolved for cell in network.units], dict[int, str]()
    for n in largest:
        first, taken, written = units[n].nodes[0], decided[n].inputs[0], decided[n].members[0].outputs[0]
        fails = units[n].operators[-1] in RECTIFIERS and taken.zero_point != written.zero_point
        if not taken.agrees(written):
            found[first] = _UNRECTIFIED if fails else _MAXIMUM
            if fails and task.option(units[n]).numerics == "nntool":
                raise UnsupportedError(f"{graph.where(first)}: {_UNRECTIFIED}; numerics=exact computes them")
    for unit in (units[n] for n in lone if not decided[n].inputs[0].codes.signed):
        first = unit.nodes[0]
        found[first] = _UNSIGNED_LEAKY if graph.nodes[first].operator == "leaky_relu" else _UNSIGNED_CURVE
        if found[first] == _UNSIGNED_CURVE and task.option(unit).numerics == "nntool":
            raise UnsupportedError(f"{graph.where(first)}: {found[first]}; numerics=exact computes it in int8")
    return found


def _lone_curves(task: _Task) -> list[int]:
    """Return the sigmoids, tanhs and leaky ReLUs that stand alone, where there is an NE16 for one of them."""
    units = task.units
    joined = {
        t
        for unit in units
        for t in unit.outputs
        if JOINED in task.graph.nodes[unit.nodes[0]].attributes.text("departure", "")
    }
    curves = [n for n, unit in enumerate(units) if unit.operator in ("logistic", "tanh", "leaky_relu")]
    lone = [n for n in curves if units[n].inputs[0][1] not in joined]
    return lone if any(task.option(units[n]).use_ne16 for n in lone) else []


def _flattening(graph: Graph) -> dict[int, int]:
    """Return what reshapes write for a fully connected layer or a mean of rank 3 -> what they read.

    NNTool absorbs these: a Quantize node stands behind them, not in front.
    """
    found: dict[int, int] = {}
    for node in graph.nodes:
        reader = only_reader(graph, node.outputs[0]) if node.operator in RESHAPES else None
        if reader is not None and _absorbs(graph, graph.nodes[reader]):
            found[node.outputs[0]] = found.get(node.inputs[0], node.inputs[0])
    return found


def _absorbs(graph: Graph, reader: Node) -> bool:
    rank = len(graph.tensors[reader.inputs[0]].shape)
    return reader.operator == "fully_connected" or (reader.operator in GLOBAL_POOLS and rank == 3)


def _network(task: _Task) -> Network:
    graph, units = task.graph, task.units
    first = next(iter(task.options.values()), None)
    allow = first is not None and first.allow_asymmetric_out
    producers = dict.fromkeys(graph.inputs, GRAPH_INPUT)
    producers.update({t: number for number, unit in enumerate(units) for t in unit.outputs})
    edges_out: dict[int, list[Edge]] = {t: [] for t in producers}
    cells: list[UnitCell] = []
    for number, unit in enumerate(units):
        read = [task.flat.get(t, t) for _, t in unit.inputs]
        edges = [Edge(t, producers[t], number, place) for place, t in enumerate(read)]
        written = [edges_out[t] for t in unit.outputs]
        cells.append(UnitCell(number, resolver_of(graph, unit, task.option(unit)), edges, written))
        for edge in edges:
            edges_out[edge.tensor].append(edge)
    for place, t in enumerate([*graph.outputs, *_unused_pieces(graph)]):
        if t in producers:
            edges_out[t].append(Edge(t, producers[t], GRAPH_OUTPUT, place))
    copied = {t for t, unit in producers.items() if unit == GRAPH_INPUT or units[unit].operator in _COPIED}
    for edges in edges_out.values():
        edges.sort(key=lambda edge: _rewired(units, copied, edge))

    def of_input(tensor: int) -> Choice:
        stated = range_of(graph, tensor)
        return Choice.made(stated, INT8, bool(stated.minimum[0] != 0 or tensor in task.positive) and not allow)

    def of_output(arrived: Choice) -> Choice:
        return arrived if allow else arrived.symmetric() or arrived

    ranges = {t: range_of(graph, t) for t in producers}
    return Network(cells, edges_out, ranges, of_input, of_output)


def _rewired(units: list[Unit], copied: set[int], edge: Edge) -> int:
    """When NNTool put an edge last onto its producer's list, which it follows in this order.

    As the file has them, without reshapes in front of fully connected layers, for channels first, for fusions in the
    order of the file, for copies in front of concatenations.
    """
    if edge.consumer == GRAPH_OUTPUT:
        return 0
    unit = units[edge.consumer]
    if unit.operator == "concatenation" and edge.tensor in copied:
        return 4
    if len(unit.nodes) > 1:
        return 3
    if unit.operator == "fully_connected":
        return 1
    return 2 if unit.operator in (*FILTERS, *POOLS, *GLOBAL_POOLS) else 0


def _unused_pieces(graph: Graph) -> list[int]:
    """Return the pieces that slices drop: to NNTool they are graph outputs, which ask for symmetry."""
    return [node.outputs[place] for node in graph.nodes for place in node.attributes.integers(UNUSED, ())]


def _open_constants(task: _Task, unit: Unit, found: Resolved) -> int:
    """How many constants of a filter are not what the file holds: weights, and the bias with its folded zero points.

    Weights are in conflict on NE16, and where a scale changes; a bias is, where a scale changes or zero points fold.
    """
    graph, node, decision = task.graph, task.graph.nodes[unit.nodes[0]], found.members[0]
    x, y = decision.inputs[0].affine, decision.outputs[0].affine
    made = quantize_layer(graph, node, x.scale, task.option(unit))
    weights = graph.tensors[node.inputs[1]]
    count = int(unit.on_ne16 or not has_scales(weights, made.weights.scale))
    return count + (not keeps_bias(graph, node, made, (x, y)))
