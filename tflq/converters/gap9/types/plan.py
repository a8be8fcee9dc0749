"""The plan: a type for every computed tensor, and the edges where a Quantize node must stand."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace

from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import FILTERS, GLOBAL_POOLS, POOLS, RECTIFIERS
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.choose_engines import SQ8
from tflq.converters.gap9.passes.constants import has_scales, keeps_bias, quantize_layer
from tflq.converters.gap9.passes.slices import UNUSED
from tflq.converters.gap9.types.network import GRAPH_INPUT, GRAPH_OUTPUT, Edge, Network, UnitCell
from tflq.converters.gap9.types.procedure import eliminate, resolve_forward
from tflq.converters.gap9.types.records import INT8, UINT16, Choice
from tflq.converters.gap9.types.resolve import Resolved, range_of, resolver_of
from tflq.converters.gap9.units import JOINED, Unit, units_of
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Node
from tflq.graph.operators import Trait, has_trait, with_traits
from tflq.graph.rewriting import GraphEditor

OUTPUT_NAME = ""
InputPlace = tuple[str, int]
"""(name of a node, input position), or (OUTPUT_NAME, number): of the graph's outputs, then of those only in NNTool."""
EdgePlace = tuple[int, int, int]
"""(tensor, consumer, position) of an edge."""
_COPIED = {*with_traits(Trait.SPLIT), "concatenation"}
_CURVES = ("logistic", "tanh", "leaky_relu")
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
    """The decision; nodes are identified by their names.

    Attributes:
        units: Units that it was made for.
        types: Computed tensor -> type, tensors inside fusions included.
        conversions: Input of a node -> type that a Quantize node upstream of it writes.
        alone: Conversions with a Quantize node that is not shared.
        inside: Filter -> type of input that NNTool computes its M and N for, if that is another one.
        outside: Filter of a fusion -> type that NNTool's readers take its result for, if its members write another
            one; with numerics=nntool only.
        failing: First node of a fusion -> reason why NNTool does not compute the fusion so.
    """

    units: tuple[Unit, ...]
    types: Mapping[int, Affine]
    conversions: Mapping[InputPlace, Affine]
    alone: frozenset[InputPlace]
    inside: Mapping[str, Affine]
    outside: Mapping[str, Affine]
    failing: Mapping[str, str]


class _Task:
    """The graph that types are chosen for.

    Attributes:
        editor: Graph with ranges, fusions and engines.
        flat: Tensors that the reshapes write which NNTool absorbs -> tensors that they read.
        units: Units except for these reshapes.
    """

    def __init__(self, editor: Gap9Editor) -> None:
        self.editor, self.flat = editor, _flattening(editor)
        self.units = [unit for unit in units_of(editor) if unit.outputs[0] not in self.flat]

    def with_options(self, options: Mapping[str, LayerOptions], engine: str | None = None) -> _Task:
        """Return the task with other settings, and perhaps another engine for all units that have one."""
        task = copy(self)
        task.editor = copy(self.editor)
        task.editor.options = options
        if engine is not None:
            task.units = [replace(unit, engine=engine if unit.engine else "") for unit in self.units]
        return task

    def option(self, unit: Unit) -> LayerOptions:
        """Return the options of a unit: those of its first layer."""
        return self.editor.option(unit.first)


def choose_types(editor: Gap9Editor) -> TypePlan:
    """Decide every type of a graph with ranges, fusions and engines; the ranges hold 0.

    Raises:
        UnsupportedError: a fusion with members that NNTool cannot type together.
    """
    task = _Task(editor)
    plan = _plan(task, _fused_network(task))
    return replace(plan, failing={**plan.failing, **_flawed(task)})


def loader_types(editor: Gap9Editor) -> TypePlan:
    """Decide the types that NNTool's loader gives: for SQ8 with 8 bits, and once.

    Args:
        editor: Graph with ranges that hold 0, without fusions, all on SQ8, with options `for_software`.

    Raises:
        UnsupportedError: no types fit.
    """
    task = _Task(editor)
    return _plan(task, _network(task))


def for_software(options: Mapping[str, LayerOptions]) -> dict[str, LayerOptions]:
    """Return the options with SQ8 and 8 bits everywhere."""
    narrow = {name: replace(o, use_ne16=False, feature_bits=8, weight_bits=8) for name, o in options.items()}
    return {name: replace(o, softmax_out_8bits=False, allow_asymmetric_out=False) for name, o in narrow.items()}


def _plan(task: _Task, network: Network) -> TypePlan:
    units = task.units
    _decide(task, network)
    types: dict[int, Affine] = {}
    conversions: dict[InputPlace, Affine] = {}
    alone: set[InputPlace] = set()
    for edge in network.edges():
        if edge.state.written is None:
            raise UnsupportedError(_CYCLE.format(task.editor.tensors[edge.tensor].name))
        types[edge.tensor] = edge.state.written.affine
        if not edge.in_conflict:
            continue
        assert edge.state.wanted is not None
        place = (OUTPUT_NAME, edge.position)
        if edge.consumer != GRAPH_OUTPUT:
            place = units[edge.consumer].first.name, units[edge.consumer].inputs[edge.position][0]
        conversions[place] = edge.state.wanted.affine
        if not all(other.in_conflict for other in network.edges_out[edge.tensor]):
            alone.add(place)
    outside, failing = _outside(task, network), _failing(task, network)
    for unit, cell in zip(units, network.units, strict=True):
        written = cell.inner if unit.first.name in outside else cell.resolved
        for node, member in zip(unit.nodes, written.members, strict=True):
            types.update(zip(node.outputs, (c.affine for c in member.outputs), strict=True))
    types.update({t: types[source] for t, source in task.flat.items()})
    return TypePlan(tuple(units), types, conversions, frozenset(alone), _inside(units, network), outside, failing)


def _decide(task: _Task, network: Network) -> None:
    order = resolve_forward(network, task.editor.inputs, lambda u, types: _open_constants(task, task.units[u], types))
    eliminate(network, order)


def _first_conversions(task: _Task) -> frozenset[EdgePlace]:
    """Return the edges on which NNTool puts Quantize nodes when it fuses: it then decides types for SQ8, 8 bits."""
    task = task.with_options(for_software(task.editor.options), SQ8)
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


def _inside(units: list[Unit], network: Network) -> dict[str, Affine]:
    inside = {}
    for unit, cell in zip(units, network.units, strict=True):
        wanted = cell.inputs[0].state.wanted if unit.is_filter else None
        if wanted is not None and not cell.inner.inputs[0].agrees(wanted):
            inside[unit.first.name] = cell.inner.inputs[0].affine
    return inside


def _outside(task: _Task, network: Network) -> dict[str, Affine]:
    """With numerics=nntool: filter of a fusion that `_taken_for_another` -> the type that its readers take.

    Raises:
        UnsupportedError: such a result is read without a Quantize node.
    """
    outside = {}
    for unit, cell in _taken_for_another(task, network):
        stated = cell.resolved.outputs[0]
        if unit.first.attributes.text("numerics", "exact") != "nntool":
            continue
        same_codes = cell.inner.outputs[0].codes == stated.codes
        if not same_codes or not all(edge.in_conflict for edge in network.edges_out[unit.outputs[0]]):
            raise UnsupportedError(
                f"{task.editor.where(unit.first)}: NNTool's fusion writes another type than its readers take it for "
                "(17.14), which is reproduced in front of Quantize nodes alone; numerics=exact converts it"
            )
        outside[unit.first.name] = stated.affine
    return outside


def _taken_for_another(task: _Task, network: Network) -> list[tuple[Unit, UnitCell]]:
    """Return the fusions that begin with a filter and write, in NNTool, a type that was demanded in vain."""
    return [
        (unit, cell)
        for unit, cell in zip(task.units, network.units, strict=True)
        if unit.is_filter and unit.is_fusion and not cell.inner.outputs[0].agrees(cell.resolved.outputs[0])
    ]


def _failing(task: _Task, network: Network) -> dict[str, str]:
    """Return the fusions that NNTool does not compute rightly as they are typed -> the reason.

    A filter's whose readers take it for another type; an Add's whose members have followed an input where it has not.
    Pools with a ReLU behind them that get unsigned types: NNTool's fusion of the two has a signed kernel alone. Not a
    fusion: a leaky ReLU alone among 16-bit features.

    Raises:
        UnsupportedError: with numerics=nntool.
    """
    failing = {unit.first.name: _TAKEN for unit, _ in _taken_for_another(task, network)}
    for unit, cell in zip(task.units, network.units, strict=True):
        written, name, layer = cell.resolved.outputs[0].codes, unit.first.name, task.option(unit)
        if unit.operator == "leaky_relu" and layer.use_ne16 and layer.feature_bits == 16:
            failing[name] = _LEAKY
        if not unit.is_fusion or unit.is_filter:
            continue
        if unit.operator in POOLS and not written.signed:
            failing[name] = _WIDE_POOL if written == UINT16 else _POOL
        elif cell.members_followed():
            failing[name] = _MEMBERS
        if name in failing and layer.numerics == "nntool":
            raise UnsupportedError(
                f"{task.editor.where(unit.first)}: {failing[name]}; numerics=exact computes it as it stands"
            )
    return failing


def _flawed(task: _Task) -> dict[str, str]:
    """Return nodes to which NNTool gives types that its kernels do not fit -> the flaw.

    Sigmoids, tanhs and leaky ReLUs that stand alone and get unsigned types on NE16; largest elements that are taken for
    another type than the one they have, which fails where a ReLU is fused.

    Raises:
        UnsupportedError: a sigmoid, a tanh or such a ReLU with numerics=nntool.
    """
    lone = _lone_curves(task)
    largest = [n for n, unit in enumerate(task.units) if unit.operator == "reduce_max"]
    if not (lone or largest):
        return {}
    every = task.editor.options.items()
    flawed = task.with_options({name: replace(options, numerics="nntool") for name, options in every})
    network, flaws = _fused_network(flawed), dict[str, str]()
    _decide(flawed, network)
    for n in largest:
        unit, types = task.units[n], network.units[n].resolved
        taken, written = types.inputs[0], types.members[0].outputs[0]
        fails = unit.nodes[-1].operator in RECTIFIERS and taken.zero_point != written.zero_point
        if not taken.agrees(written):
            flaws[unit.first.name] = _UNRECTIFIED if fails else _MAXIMUM
            if fails and task.editor.is_vendor(unit.first):
                raise UnsupportedError(f"{task.editor.where(unit.first)}: {_UNRECTIFIED}; numerics=exact computes them")
    for unit in (task.units[n] for n in lone if not network.units[n].resolved.inputs[0].codes.signed):
        flaw = _UNSIGNED_LEAKY if unit.operator == "leaky_relu" else _UNSIGNED_CURVE
        flaws[unit.first.name] = flaw
        if flaw == _UNSIGNED_CURVE and task.editor.is_vendor(unit.first):
            raise UnsupportedError(f"{task.editor.where(unit.first)}: {flaw}; numerics=exact computes it in int8")
    return flaws


def _lone_curves(task: _Task) -> list[int]:
    """Return the sigmoids, tanhs and leaky ReLUs that stand alone, if there is an NE16 for one of them."""
    failing = [unit for unit in task.units if JOINED in unit.first.attributes.text("departure", "")]
    joined = {t for unit in failing for t in unit.outputs}
    curves = [n for n, unit in enumerate(task.units) if unit.operator in _CURVES]
    lone = [n for n in curves if task.units[n].inputs[0][1] not in joined]
    return lone if any(task.option(task.units[n]).use_ne16 for n in lone) else []


def _flattening(editor: GraphEditor) -> dict[int, int]:
    """Return tensors that reshapes write for a fully connected layer or a mean of rank 3 -> tensors that they read.

    NNTool absorbs these: a Quantize node stands behind them, not in front.
    """
    flat: dict[int, int] = {}
    for node in editor.nodes:
        reader = editor.only_reader(node.outputs[0]) if has_trait(node, Trait.RESHAPE) else None
        if reader is not None and _absorbs(editor, reader):
            flat[node.outputs[0]] = flat.get(node.inputs[0], node.inputs[0])
    return flat


def _absorbs(editor: GraphEditor, reader: Node) -> bool:
    rank = len(editor.shape(reader.inputs[0]))
    return reader.operator == "fully_connected" or (reader.operator in GLOBAL_POOLS and rank == 3)


def _network(task: _Task) -> Network:
    editor, units = task.editor, task.units
    first = next(iter(editor.options.values()), None)
    allow = first is not None and first.allow_asymmetric_out
    producers = dict.fromkeys(editor.inputs, GRAPH_INPUT)
    producers.update({t: number for number, unit in enumerate(units) for t in unit.outputs})
    edges_out: dict[int, list[Edge]] = {t: [] for t in producers}
    cells: list[UnitCell] = []
    for number, unit in enumerate(units):
        read = [task.flat.get(t, t) for _, t in unit.inputs]
        edges = [Edge(t, producers[t], number, place) for place, t in enumerate(read)]
        written = [edges_out[t] for t in unit.outputs]
        cells.append(UnitCell(number, resolver_of(editor, unit), edges, written))
        for edge in edges:
            edges_out[edge.tensor].append(edge)
    for place, t in enumerate([*editor.outputs, *_unused_pieces(editor)]):
        if t in producers:
            edges_out[t].append(Edge(t, producers[t], GRAPH_OUTPUT, place))
    copied = {t for t, unit in producers.items() if unit == GRAPH_INPUT or units[unit].operator in _COPIED}
    for edges in edges_out.values():
        edges.sort(key=lambda edge: _rewired(units, copied, edge))

    def of_input(tensor: int) -> Choice:
        stated = range_of(editor, tensor)
        return Choice.made(stated, INT8, bool(stated.minimum[0] != 0 or tensor in editor.positive) and not allow)

    def of_output(arrived: Choice) -> Choice:
        return arrived if allow else arrived.symmetric() or arrived

    ranges = {t: range_of(editor, t) for t in producers}
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
    if unit.is_fusion:
        return 3
    if unit.operator == "fully_connected":
        return 1
    return 2 if unit.operator in (*FILTERS, *POOLS, *GLOBAL_POOLS) else 0


def _unused_pieces(editor: GraphEditor) -> list[int]:
    """Return the pieces that slices drop: to NNTool they are graph outputs, which demand symmetry."""
    return [node.outputs[place] for node in editor.nodes for place in node.attributes.integers(UNUSED, ())]


def _open_constants(task: _Task, unit: Unit, types: Resolved) -> int:
    """Return how many constants of a filter differ from the file's: weights, and the bias with its folded zero points.

    Weights are in conflict on NE16, and if a scale changes; a bias is, if a scale changes or zero points fold.
    """
    node, decision = unit.first, types.members[0]
    x, y = decision.inputs[0].affine, decision.outputs[0].affine
    made = quantize_layer(task.editor, node, x.scale)
    weights = task.editor.tensors[node.inputs[1]]
    count = int(unit.on_ne16 or not has_scales(weights, made.weights.scale))
    return count + (not keeps_bias(task.editor, node, made, (x, y)))
