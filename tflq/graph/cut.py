"""Parts of a graph: between tensors, as a graph of its own, and without what does not reach an output."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from difflib import get_close_matches

from tflq.errors import GraphError, OptionError, UnsupportedError
from tflq.graph.dtypes import DType
from tflq.graph.graph import ABSENT, Graph, Node, validate
from tflq.graph.layer_names import find_layer
from tflq.graph.quantization import Blockwise

_NAMED = 5
"""Tensors that a message names."""


def find_tensor(graph: Graph, text: str) -> int:
    """Return the index of a tensor: by its name, its index, or as the first output of a layer that `find_layer` finds.

    Raises:
        OptionError: no tensor or several have the name; the nearest names, or the indices, are listed.
    """
    named = [t for t, tensor in enumerate(graph.tensors) if tensor.name == text]
    if len(named) == 1:
        return named[0]
    if named:
        listed = ", ".join(map(str, named[:_NAMED])) + (", ..." if len(named) > _NAMED else "")
        raise OptionError(f"{len(named)} tensors are called '{text}'; give an index: {listed}")
    if text.isdecimal():
        if int(text) < len(graph.tensors):
            return int(text)
        raise OptionError(f"tensor {text} is out of range; the graph has 0..{len(graph.tensors) - 1}")
    layer = find_layer(graph, text)
    if layer is not None and graph.nodes[layer].outputs:
        return graph.nodes[layer].outputs[0]
    names = list(dict.fromkeys(tensor.name for tensor in graph.tensors if tensor.name))
    near = get_close_matches(text, names, 3, 0.0)
    nearest = f"nearest are {', '.join(map(repr, near))}" if near else "its tensors have no names: give an index"
    raise OptionError(f"no tensor is called '{text}'; {nearest}")


def cut(graph: Graph, sources: Sequence[int], targets: Sequence[int]) -> Graph:
    """Return the operators that lead from some tensors to others, as a graph with these inputs and outputs.

    Tensors are numbered anew; their names, shapes, types and quantizations stay.

    Args:
        graph: the whole.
        sources: tensors that become inputs; none for the inputs of the graph that are needed.
        targets: tensors that become outputs; none for the outputs of the graph.

    Raises:
        OptionError: a constant, a target that the sources do not lead to, or a source that leads to no target.
        UnsupportedError: the part keeps state in variables or tables that other operators fill.
    """
    ends = tuple(dict.fromkeys(targets)) or tuple(dict.fromkeys(graph.outputs))
    starts = set(sources)
    _refuse_constants(graph, (*sources, *ends))
    kept, reached = between(graph, starts, ends)
    open_ends = [t for t in reached if t in graph.inputs and t not in starts]
    if sources and open_ends:
        raise OptionError(
            f"the part also needs input {_names(graph, open_ends)} of the graph; name it, or a tensor behind it, as a "
            f"further source"
        )
    unused = [t for t in sources if t not in reached]
    if unused:
        raise OptionError(
            f"source {_names(graph, unused)} leads to none of {_names(graph, ends)}, or only by way of "
            f"another source; leave it away"
        )
    if not kept:
        raise OptionError(f"there is no operator between {_names(graph, sorted(starts))} and {_names(graph, ends)}")
    _refuse_state(graph, kept)
    inputs = tuple(dict.fromkeys(sources)) or tuple(t for t in graph.inputs if t in reached)
    nodes = [graph.nodes[index] for index in sorted(kept)]
    result = pruned(replace(graph, tensors=list(graph.tensors), nodes=nodes, inputs=inputs, outputs=ends))
    for t in result.inputs:
        result.tensors[t] = replace(result.tensors[t], is_variable=False)
    try:
        validate(result, "cut graph")
    except GraphError as error:
        raise OptionError(f"the part cannot stand alone: {error}") from None
    return result


def between(graph: Graph, starts: Collection[int], ends: Sequence[int]) -> tuple[set[int], list[int]]:
    """Return the operators that the ends need, up to the starts, and the tensors that these read or are."""
    producers = graph.producers()
    kept: set[int] = set()
    reached: list[int] = []
    waiting = [t for t in ends if t not in starts]
    reached.extend(t for t in ends if t in graph.inputs)
    while waiting:
        index = producers.get(waiting.pop())
        if index is None or index in kept:
            continue
        kept.add(index)
        for t in graph.nodes[index].inputs:
            if t != ABSENT:
                reached.append(t)
                if t not in starts:
                    waiting.append(t)
    return kept, list(dict.fromkeys(reached))


def needed_nodes(graph: Graph, tensors: Sequence[int]) -> list[int]:
    """Return the nodes that tensors need, in order; all nodes of a graph that keeps state."""
    resources = (DType.RESOURCE, DType.VARIANT)
    if any(t.is_variable or t.dtype in resources for t in graph.tensors):
        return list(range(len(graph.nodes)))
    return sorted(between(graph, (), tensors)[0])


def with_nodes(graph: Graph, kept: Sequence[int]) -> Graph:
    """Return a graph of some nodes; the tensors keep their numbers.

    Its outputs are the tensors of these nodes that are outputs of the graph, or that only other nodes read.
    """
    nodes = [graph.nodes[index] for index in kept]
    read = {t for node in nodes for t in node.inputs}
    written = dict.fromkeys(t for node in nodes for t in node.outputs)
    outputs = tuple(t for t in written if t in graph.outputs or t not in read)
    return replace(graph, nodes=nodes, outputs=outputs)


def _refuse_constants(graph: Graph, tensors: Sequence[int]) -> None:
    constant = [t for t in tensors if graph.tensors[t].is_constant]
    if constant:
        raise OptionError(f"tensor {_names(graph, constant)} is a constant; name tensors that are computed, or inputs")


def _refuse_state(graph: Graph, kept: set[int]) -> None:
    resources = (DType.RESOURCE, DType.VARIANT)
    for index in sorted(kept):
        if any(t != ABSENT and graph.tensors[t].dtype in resources for t in graph.nodes[index].inputs):
            raise UnsupportedError(
                f"{graph.where(index)}: it reads a variable or table that other operators fill; cut behind it"
            )


def _names(graph: Graph, tensors: Sequence[int]) -> str:
    return ", ".join(f"'{graph.tensors[t].name}' ({t})" for t in tensors[:_NAMED])


def pruned(graph: Graph) -> Graph:
    """Return the graph without nodes that nobody reads and tensors that nobody uses; tensors are numbered anew.

    The graph's inputs stay, and nodes that write no tensor (they change state) with all that they read.
    """
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if not node.outputs or needed.intersection(node.outputs):
            kept.append(node)
            needed.update(node.inputs, node.intermediates or ())
    used = needed.union(graph.inputs, *(node.outputs for node in kept)) - {ABSENT}
    used = _with_block_scales(graph, used)
    number = {old: new for new, old in enumerate(sorted(used))}
    number[ABSENT] = ABSENT
    tensors = []
    for t in sorted(used):
        tensor = graph.tensors[t]
        if isinstance(tensor.quantization, Blockwise):
            blocks = tensor.quantization
            zero_points = number.get(blocks.zero_points, ABSENT)
            moved = replace(blocks, scales=number[blocks.scales], zero_points=zero_points)
            tensor = replace(tensor, quantization=moved)
        tensors.append(tensor)
    nodes = [
        replace(
            node,
            inputs=tuple(number[t] for t in node.inputs),
            outputs=tuple(number[t] for t in node.outputs),
            intermediates=None if node.intermediates is None else tuple(number[t] for t in node.intermediates),
        )
        for node in reversed(kept)
    ]
    inputs, outputs = tuple(number[t] for t in graph.inputs), tuple(number[t] for t in graph.outputs)
    return replace(graph, tensors=tensors, nodes=nodes, inputs=inputs, outputs=outputs)


def _with_block_scales(graph: Graph, used: set[int]) -> set[int]:
    """Add the tensors that hold the scales of weights quantized in blocks."""
    found = set(used)
    for t in used:
        blocks = graph.tensors[t].quantization
        if isinstance(blocks, Blockwise):
            found.update(s for s in (blocks.scales, blocks.zero_points) if s > 0 or s == blocks.scales)
    return found
