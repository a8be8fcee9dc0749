"""The run function of the network, as a comment of constants.c: arguments, shapes, order of the layers.

It lists the arguments that NNTool's model passes to AutoTiler's CreateGraph, and the arguments of each generator, in
their order, as in the models that NNTool writes (docs/targets/gap9.md#hand-over-to-greenwaves-flow). AutoTiler's own
output was not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from tflq.converters.gap9.emit.generators import Generator, generators_of
from tflq.converters.gap9.emit.hardware import Entry
from tflq.converters.gap9.operators import FILTERS
from tflq.graph import Affine, Graph, Node, Tensor
from tflq.quoting import c_comment, c_identifiers

_C_TYPES = {"int8": "signed char", "uint8": "unsigned char", "int16": "signed short", "uint16": "unsigned short"}
_LETTERS = {1: "N", 2: "N,C", 3: "N,W,C", 4: "N,H,W,C"}
_WITHOUT_INFOS = ("CNN_SoftMax", "GenerateResizeMultiChannel", "GenerateResizeMultiChannelQ16")


def run_function(graph: Graph, source: str, entries: Sequence[Entry]) -> list[str]:
    """Return the lines of the comment.

    Args:
        graph: lowered.
        source: name of the model's file.
        entries: the arrays of the file.
    """
    arguments = [(t, f"Input_{i}") for i, t in enumerate(graph.inputs, 1)]
    arguments += [(t, f"Output_{i}") for i, t in enumerate(graph.outputs, 1)]
    names = dict(reversed(arguments))
    (stem,) = c_identifiers([PurePath(source).stem])
    declared = ", ".join(f"{_c_type(graph.tensors[t])} *{name}" for t, name in arguments)
    lines = ["The run function that AutoTiler makes of NNTool's model:", "", f"  {stem}CNN({declared});", ""]
    lines += [f"  {name}: {_described(graph.tensors[t])}" for t, name in arguments]
    lines += ["", "Its layers in order, each with what is bound to its generator, in order:", ""]
    written = {t: node for node in graph.nodes for t in node.outputs}
    generators = generators_of(graph)
    by_name = {node.name: node for node in graph.nodes}
    for name, generator in generators.items():
        if isinstance(generator, Generator):
            members = [by_name[n] for n in generator.layers]
            values = [(t, _value(t, names, written)) for t in members[0].inputs if t >= 0]
            lines.append(f"  {' + '.join(generator.layers)}: {generator.name}")
            lines += [f"    {line}" for line in _bindings(graph, members, generator, dict(values), entries, names)]
        elif not generator.startswith("part of"):
            lines.append(f"  {name}: {generator}")
    return [c_comment(line) for line in lines]


def _value(t: int, names: dict[int, str], written: dict[int, Node]) -> str:
    return names.get(t) or (written[t].name if t in written else "")


def _bindings(
    graph: Graph,
    members: Sequence[Node],
    generator: Generator,
    values: dict[int, str],
    entries: Sequence[Entry],
    names: dict[int, str],
) -> list[str]:
    first, last = members[0], members[-1].outputs[0]
    read = [t for t in first.inputs if t >= 0 and not graph.tensors[t].is_constant]
    found = [f"In      {values[t]}: {_described(graph.tensors[t])}" for t in read]
    stored = {entry.kind: entry for entry in entries if entry.node == first.name}
    out = f"Out     {names.get(last, members[-1].name)}: {_described(graph.tensors[last])}"
    if first.operator not in FILTERS:
        held = [
            f"In      {e.name}: {_shape(e.shape)}" for e in stored.values() if generator.name == "CNN_MatAddAct_SQ8"
        ]
        return [*found, *held, out, *([] if generator.name in _WITHOUT_INFOS else [_INFOS])]
    kinds = {"Filter": "weights_stream", "Bias": "bias_multiplied" if "bias_multiplied" in stored else "bias"}
    lines = {role: f"{role:8}{_entry(stored[kind])}" for role, kind in kinds.items()}
    rest = [f"{role:8}{_entry(stored[kind])}" for role, kind in (("Scale", "multiplier"), ("ScaleN", "shift"))]
    return [*found, lines["Filter"], lines["Bias"], out, *rest, _INFOS]


_INFOS = "Infos   NNTool's array of activation scales, pre-normalization, padding value and weight offset"


def _entry(entry: Entry) -> str:
    return f"{entry.name}: {entry.element}[{_shape(entry.shape)}] {entry.layout}"


def _described(tensor: Tensor) -> str:
    text = f"{tensor.dtype.value}[{_shape(tensor.shape)}] {_LETTERS.get(len(tensor.shape), '')}".rstrip()
    q = tensor.quantization  # an input that nothing reads has none
    return (
        f"{text}, scale {float(q.scale[0]):.9g}, zero point {int(q.zero_point[0])}" if isinstance(q, Affine) else text
    )


def _shape(shape: Sequence[int]) -> str:
    return ",".join(map(str, shape))


def _c_type(tensor: Tensor) -> str:
    return _C_TYPES.get(tensor.dtype.value, tensor.dtype.value.removesuffix("32"))
