"""Columns of fully connected layers that NNTool permutes (docs/gap9.md, 17.15)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from tflq.converters.gap9.loaded import loaded
from tflq.converters.gap9.operators import behind_thin, departing, layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.transposes import Reached, Shape, search
from tflq.converters.passes.rewrite import constant, with_attributes, with_input
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph, Node, Tensor

_DENSE = "fully_connected"
_CUTS = ("concatenation", "slice", "strided_slice", "split", "split_v")
_KEPT, _TURNED, _FAILS, _UNSURE, _APART = "kept", "turned", "fails", "unsure", "apart"
_SEARCH = "its search for transposes comes to the map that it flattens"
_PERMUTED = f"NNTool permutes its columns: {_SEARCH} from an operator behind it (17.15)"
_MAY_BE = f"NNTool may permute its columns, or fails: {_SEARCH} in a way that is not known (17.15)"
_FAILURE = f"NNTool fails: {_SEARCH} through operators of other shapes (17.15)"


def find_columns(graph: Graph, options: Mapping[str, LayerOptions], positive: frozenset[int]) -> Graph:
    """Return the file's graph with what NNTool's first search does to each fully connected layer (`columns`).

    Args:
        graph: the file's, all computed tensors having ranges.
        options: of each layer.
        positive: graph inputs whose range began above 0.
    """
    dense = [i for i, node in enumerate(graph.nodes) if node.operator == _DENSE
             and (_map_of(graph, node) or _is_cut_or_joined(graph, node))]  # fmt: skip
    if not dense:
        return graph
    result, first = graph.copy(), loaded(graph, options, positive)
    found, nodes = search(first.graph), {node.name: node for node in first.graph.nodes}
    for index in dense:
        node = graph.nodes[index]
        state = _state(first.graph, nodes[node.name], found)
        result.nodes[index] = with_attributes(node, columns=state if first.typed or state == _APART else _UNSURE)
    return result


def permute_columns(graph: Graph, options: Mapping[str, LayerOptions], others: Collection[str] = ()) -> Graph:
    """Return the graph with the columns of fully connected layers as NNTool's two searches leave them.

    The second search goes over the types' graph. With numerics=exact a departure alone is noted.

    Args:
        graph: typed, with Quantize nodes.
        options: of each layer.
        others: layers whose columns follow another rule (channels_first.py).

    Raises:
        UnsupportedError: with numerics=nntool, a layer that NNTool fails on.
    """
    result, found = graph.copy(), search(graph)
    for index, node in enumerate(graph.nodes):
        states = node.attributes.text("columns", _APART), _state(graph, node, found)
        if node.operator != _DENSE or node.name in others or set(states) in ({_KEPT}, {_APART}):
            continue
        if _UNSURE in states or (_APART in states and _FAILS not in states):
            result.nodes[index] = departing(node, _MAY_BE)
            continue
        as_vendor = options[layer_of(node)].numerics == "nntool"
        if _FAILS not in states:
            result.nodes[index] = departing(node, _PERMUTED)
            if as_vendor:
                shape, turned = found[node.name].shape, [state == _TURNED for state in states]
                permute(result, index, vendor_columns(shape, *turned))
        elif as_vendor:
            raise UnsupportedError(f"{graph.where(index)}: {_FAILURE}; numerics=exact converts it")
        else:
            result.nodes[index] = departing(node, _FAILURE)
    return result


def vendor_columns(shape: Shape, first: bool, second: bool) -> Array:
    """Return int[n]: the column of a layer [O, n] behind a map [1, H, W, C] that NNTool has in each place.

    The first search turns columns to channels first, the second one back. One that turns takes the map's shape for
    [W, C, H]. Of both, column j < n - 1 is j C H^2 mod (n - 1). Seen in NNTool's log.

    Args:
        shape: of the map.
        first: whether the first search takes the wrong shape.
        second: whether the second one does.
    """
    _, height, width, channels = shape
    wrong = (width, channels, height)
    one = np.arange(height * width * channels).reshape(wrong if first else (height, width, channels))
    both: Array = one.transpose(2, 0, 1).reshape(wrong if second else (channels, height, width)).transpose(1, 2, 0)
    return both.reshape(-1)


def _state(graph: Graph, node: Node, found: Mapping[str, Reached]) -> str:
    reached, shape = found.get(node.name), _map_of(graph, node)
    if reached is not None and not reached.fits and _is_cut_or_joined(graph, node):
        return _FAILS
    if reached is None or shape is None:
        return _APART
    if not (reached.known and shape[0] == 1) and (reached.turned or not reached.fits or reached.moves):
        return _UNSURE
    return (_TURNED if reached.turned else _KEPT) if reached.fits else _FAILS


def _is_cut_or_joined(graph: Graph, node: Node) -> bool:
    """Whether it flattens what a concatenation or a slice makes."""
    writer = graph.producers().get(behind_thin(graph, node.inputs[0])[-1])
    return writer is not None and graph.nodes[writer].operator in _CUTS


def _map_of(graph: Graph, node: Node) -> Shape | None:
    """Return the shape [N, H, W, C] of the map that a fully connected layer flattens; None where there is none."""
    shape = graph.tensors[behind_thin(graph, node.inputs[0])[-1]].shape
    return shape if len(shape) == 4 and sum(n > 1 for n in shape) > 1 else None


def permute(graph: Graph, index: int, order: Array) -> None:
    """Give a fully connected layer its columns in this order."""
    node = graph.nodes[index]
    weights = graph.add_tensor(_taken(graph.tensors[node.inputs[1]], order))
    graph.nodes[index] = with_input(node, 1, weights)


def _taken(weights: Tensor, order: Array) -> Tensor:
    assert weights.data is not None
    data = np.ascontiguousarray(weights.data[:, order])
    return constant(weights.name, data, weights.quantization, weights.dtype, weights.range)
