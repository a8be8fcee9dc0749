"""The chosen types go onto the tensors, those inside fusions too, and Quantize nodes onto the edges that need one."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.gap9.operators import GLOBAL_POOLS, POOLS, departing
from tflq.converters.gap9.passes.choose_engines import SQ8
from tflq.converters.gap9.types.plan import OUTPUT_NAME, InputPlace, TypePlan
from tflq.converters.passes.patterns import computed_inputs
from tflq.graph import Affine, Attributes, Node, Tensor
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.kernels.gap9.rounding import code_type

_DEPARTURE = "NNTool computes M and N for the type in front of the Quantize node, not for the one behind it (17.7)"

_WORDS = "NNTool gives the pool and the ReLU behind it int8, and takes it for int16 (17.9)"


def apply_types(editor: GraphEditor, plan: TypePlan) -> None:
    """Set GAP9's types on all computed tensors and insert a node for each conversion of the plan."""
    for tensor, affine in plan.types.items():
        editor.tensors[tensor] = _typed(editor.tensors[tensor], affine)
    for name, affine in plan.inside.items():
        node = editor.replace(editor.node(name), departing(editor.node(name), _DEPARTURE))
        editor.change(node, inside_scale=float(affine.scale[0]), inside_zero_point=int(affine.zero_point[0]))
    for name, reason in plan.failing.items():
        editor.replace(editor.node(name), departing(editor.node(name), reason))
    sources: dict[int, Affine] = {}
    for name, affine in plan.outside.items():
        _say_outside(editor, editor.node(name), affine)
        sources[next(unit.outputs[0] for unit in plan.units if unit.first.name == name)] = affine
    _insert_conversions(editor, plan)
    _take_bytes_as_words(editor)
    for source, affine in sources.items():
        for reader in editor.readers(source):
            if reader.inputs[0] == source:
                _say_outside(editor, reader, affine)


def _say_outside(editor: GraphEditor, node: Node, affine: Affine) -> None:
    editor.change(node, outside_scale=float(affine.scale[0]), outside_zero_point=int(affine.zero_point[0]))


def _typed(tensor: Tensor, affine: Affine) -> Tensor:
    return replace(tensor, dtype=code_type(affine), quantization=affine)


def _insert_conversions(editor: GraphEditor, plan: TypePlan) -> None:
    """Convert each source once per type, except for the places that share no node.

    Of several nodes upstream of one reader, that of the last operand runs first, as in NNTool's graphs.
    """
    names = _name_conversions(editor, plan)
    shared: dict[tuple[int, Affine], int] = {}
    for reader in editor.nodes:
        first = reader
        for position, source in enumerate(reader.inputs):
            place = reader.name, position
            affine = plan.conversions.get(place)
            if affine is None:
                continue
            t = None if place in plan.alone else shared.get((source, affine))
            if t is None:
                first = _convert(editor, source, affine, names[place], reader, before=first)
                t = first.outputs[0]
            if place not in plan.alone:
                shared[source, affine] = t
            editor.set_input(reader, position, t)
    outputs = list(editor.outputs)
    for number, source in enumerate(editor.outputs):
        affine = plan.conversions.get((OUTPUT_NAME, number))
        if affine is not None:
            if (source, affine) not in shared:
                layer = Node("", (), (), name=editor.tensors[source].name)
                made = _convert(editor, source, affine, f"output_{number + 1}_qin0", layer)
                shared[source, affine] = made.outputs[0]
            outputs[number] = shared[source, affine]
    editor.set_outputs(outputs)


def _convert(
    editor: GraphEditor, source: int, affine: Affine, name: str, reader: Node, before: Node | None = None
) -> Node:
    numerics = reader.attributes.text("numerics", "exact")
    facts = {"layer": reader.name, "engine": SQ8, "engine_reason": "changes the type"}
    attributes = Attributes(facts if numerics == "exact" else {**facts, "numerics": numerics})
    t = editor.add_tensor(replace(_typed(editor.tensors[source], affine), name=name, data=None))
    return editor.add(Node("quantize", (source,), (t,), attributes, name), before=before)


def _take_bytes_as_words(editor: GraphEditor) -> None:
    """Insert a node that takes int8 for int16 upstream of a pool that NNTool gives int8 and computes in int16."""
    for node in editor.nodes:
        if node.operator not in POOLS:
            continue
        source, affine = editor.tensors[node.inputs[0]], editor.tensors[node.outputs[0]].affine
        if source.affine.bits < affine.bits:
            name = f"{node.attributes.text('fusion')}_words"
            facts = {"layer": node.name, "engine": SQ8, "engine_reason": "takes int8 for int16", "numerics": "nntool"}
            words, tensor = Node("quantize", (), (), Attributes(facts), name), _typed(source, affine)
            words = editor.insert_before(node, 0, words, replace(tensor, name=name, data=None))
            _say_outside(editor, words, affine)
            editor.replace(node, departing(editor.node(node.name), _WORDS))


def _name_conversions(editor: GraphEditor, plan: TypePlan) -> dict[InputPlace, str]:
    """Name each conversion after the first of the nodes that share it, global pools last: a transpose parts them."""
    order = {node.name: i for i, node in enumerate(editor.nodes)}
    shared: dict[tuple[int, Affine], list[InputPlace]] = {}
    alone: list[list[InputPlace]] = []
    inner = [place for place in plan.conversions if place[0] != OUTPUT_NAME]
    for place in sorted(inner, key=lambda place: (order[place[0]], place[1])):
        if place in plan.alone:
            alone.append([place])
        else:
            source = editor.node(place[0]).inputs[place[1]]
            shared.setdefault((source, plan.conversions[place]), []).append(place)
    names: dict[InputPlace, str] = {}
    for places in [*shared.values(), *alone]:
        name, position = min(places, key=lambda p: (editor.node(p[0]).operator in GLOBAL_POOLS, order[p[0]], p[1]))
        reader = editor.node(name)
        number = [p for p, _ in computed_inputs(editor, reader)].index(position)
        names |= dict.fromkeys(places, f"{_name_in_front(editor, reader)}_qin{number}")
    return names


def _name_in_front(editor: GraphEditor, reader: Node) -> str:
    """Return the name that NNTool derives a Quantize node's name from.

    A mean of rank 3 has a transpose upstream, and, if it is not over the channels, a reshape, too.
    """
    name = reader.attributes.text("fusion", "") or reader.name
    if reader.operator not in GLOBAL_POOLS or len(editor.shape(reader.inputs[0])) != 3:
        return name
    axes = editor.constant(reader.inputs[1])
    over_channels = axes is not None and {int(a) % 3 for a in axes.reshape(-1)} == {2}
    return f"{name}_trans" if over_channels else f"{name}_trans_in0_reshape"
