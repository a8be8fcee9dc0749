"""Columns of fully connected layers that NNTool permutes (docs/differences/gap9.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.loaded import load_graph
from tflq.converters.gap9.operators import GLOBAL_POOLS, behind_thin, departing
from tflq.converters.gap9.transposes import Reached, Shape, search
from tflq.converters.passes.rewrite import constant
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node
from tflq.graph.operators import Trait, with_traits
from tflq.graph.rewriting import GraphEditor

_DENSE = "fully_connected"
_CUTS = {"concatenation", "split", "split_v", *with_traits(Trait.CROP)}
_KEPT, _TURNED, _FAILS, _UNSURE, _APART = "kept", "turned", "fails", "unsure", "apart"
_SEARCH = "its search for transposes comes to the map that it flattens"
_PERMUTED = f"NNTool permutes its columns: {_SEARCH} from an operator behind it (17.15)"
_MAY_BE = f"NNTool may permute its columns, or fails: {_SEARCH} in a way that is not known (17.15)"
_FAILURE = f"NNTool fails: {_SEARCH} through operators of other shapes (17.15)"


def find_columns(editor: Gap9Editor) -> None:
    """Note on each fully connected layer what NNTool's first search does to it (`columns`); all tensors have ranges."""
    dense = [
        node
        for node in editor.nodes
        if node.operator == _DENSE and (_map_of(editor, node) or _is_cut_or_joined(editor, node))
    ]
    if not dense:
        return
    first, is_typed = load_graph(editor)
    reached = search(first)
    for node in dense:
        state = _state(first, first.node(node.name), reached)
        editor.change(node, columns=state if is_typed or state == _APART else _UNSURE)


def permute_columns(editor: Gap9Editor, others: Collection[str] = ()) -> None:
    """Permute the columns of fully connected layers as NNTool's two searches do; the second sees types.

    With numerics=exact a departure alone is noted.

    Args:
        editor: Typed graph with Quantize nodes.
        others: Layers with columns that follow another rule (channels_first.py).

    Raises:
        UnsupportedError: with numerics=nntool, a layer that NNTool fails on.
    """
    dense = [node for node in editor.nodes if node.operator == _DENSE and node.name not in others]
    reached = search(editor) if dense else {}
    for node in dense:
        states = node.attributes.text("columns", _APART), _state(editor, node, reached)
        if set(states) in ({_KEPT}, {_APART}):
            continue
        if _UNSURE in states or (_APART in states and _FAILS not in states):
            editor.replace(node, departing(node, _MAY_BE))
            continue
        if _FAILS in states and editor.is_vendor(node):
            raise UnsupportedError(f"{editor.where(node)}: {_FAILURE}; numerics=exact converts it")
        node = editor.replace(node, departing(node, _FAILURE if _FAILS in states else _PERMUTED))
        if editor.is_vendor(node):
            shape, turned = reached[node.name].shape, [state == _TURNED for state in states]
            permute(editor, node, vendor_columns(shape, *turned))


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


def _state(editor: GraphEditor, node: Node, results: Mapping[str, Reached]) -> str:
    reached, shape = results.get(node.name), _map_of(editor, node)
    if reached is not None and not reached.fits and _is_cut_or_joined(editor, node):
        return _FAILS
    if reached is None or shape is None:
        return _APART
    if not (reached.known and shape[0] == 1) and (reached.turned or not reached.fits or reached.moves):
        return _UNSURE
    return (_TURNED if reached.turned else _KEPT) if reached.fits else _FAILS


def _is_cut_or_joined(editor: GraphEditor, node: Node) -> bool:
    """Whether it flattens the result of a concatenation or a slice; not of reductions, which have rank 2 already."""
    writer = editor.writer(behind_thin(editor, node.inputs[0])[-1])
    if writer is None or writer.operator not in _CUTS:
        return False
    return writer.operator != "concatenation" or not all(_is_reduced(editor, t) for t in writer.inputs)


def _is_reduced(editor: GraphEditor, tensor: int) -> bool:
    writer = editor.writer(behind_thin(editor, tensor)[-1])
    return len(editor.shape(tensor)) == 2 and writer is not None and writer.operator in GLOBAL_POOLS


def _map_of(editor: GraphEditor, node: Node) -> Shape | None:
    """Return the shape [N, H, W, C] of the map that a fully connected layer flattens; None if there is none."""
    shape = editor.shape(behind_thin(editor, node.inputs[0])[-1])
    return shape if len(shape) == 4 and sum(n > 1 for n in shape) > 1 else None


def permute(editor: GraphEditor, node: Node, order: Array) -> None:
    """Give a fully connected layer its columns in this order."""
    weights = editor.tensors[node.inputs[1]]
    assert weights.data is not None
    data = np.ascontiguousarray(weights.data[:, order])
    taken = constant(weights.name, data, weights.quantization, weights.dtype, weights.range)
    editor.set_input(node, 1, editor.add_tensor(taken))
