"""Maps that NNTool holds channels first where a fully connected layer flattens them (docs/differences/gap9.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import (
    ACTIVATIONS,
    FILTERS,
    FLATTENING,
    GLOBAL_POOLS,
    POOLS,
    RESIZES,
    departing,
    layer_of,
)
from tflq.converters.gap9.passes.columns import permute, permute_columns
from tflq.converters.gap9.passes.global_pools import insert_transpose, reduces_image
from tflq.converters.passes.patterns import joined
from tflq.graph import Node
from tflq.graph.operators import CONVOLUTIONS
from tflq.graph.rewriting import GraphEditor

_DENSE = "fully_connected"
_JOINED = ("add", "quantize", *ACTIVATIONS)
_TURNED = "NNTool permutes its columns: what it flattens stands channels first for an operator beside it (17.15)"


def arrange_columns(editor: Gap9Editor) -> None:
    """Arrange columns as NNTool leaves them; layers that flatten a map that it holds channels first read it so."""
    turned = find_channels_first(editor)
    permute_columns(editor, turned)
    read_channels_first(editor, turned)


def find_channels_first(editor: GraphEditor) -> dict[str, bool]:
    """Return name of a fully connected layer -> whether NNTool takes the map's shape for [W, C, H].

    It names the layers with a map [1, H, W, C] that NNTool holds as [C, H, W]: of a resize, through elementwise
    operators and sums of such; of a filter or pool that else only means over height and width and graph outputs read. A
    convolution, pool or mean beside the layer behind a resize, or a mean beside it behind a graph input, turns it.

    Args:
        editor: Typed graph with Quantize nodes.
    """
    turned = {}
    for node in editor.nodes:
        flat = _flattened(editor, node) if node.operator == _DENSE else None
        if flat is not None and (is_turned := _is_turned(editor, flat.inputs[0])) is not None:
            turned[node.name] = is_turned
    return turned


def read_channels_first(editor: Gap9Editor, turned: Mapping[str, bool]) -> None:
    """Insert [N, H, W, C] -> [N, C, H, W] transposes upstream of these layers, with columns in that order.

    With numerics=nntool they are in the order that NNTool's wrong shape gives.

    Args:
        editor: Typed graph with Quantize nodes.
        turned: Result of `find_channels_first`.
    """
    moved: dict[str, Node] = {}
    for node in editor.nodes:
        flat = _flattened(editor, node) if node.name in turned else None
        if flat is None:
            continue
        _, height, width, channels = editor.shape(flat.inputs[0])
        as_vendor = turned[node.name] and editor.is_vendor(node)
        order = np.arange(height * width * channels)
        shape = (width, channels, height) if as_vendor else (height, width, channels)
        permute(editor, node, order.reshape(shape).transpose(2, 0, 1).reshape(-1))
        if turned[node.name]:
            current = editor.node(node.name)
            editor.replace(current, departing(current, _TURNED))
        moved[flat.name] = flat
    for flat in moved.values():
        insert_transpose(editor, flat, f"{flat.name}_trans_in0", layer_of(flat))


def _flattened(editor: GraphEditor, node: Node) -> Node | None:
    """Return the operator that flattens a map [1, H, W, C] for the layer, with such layers as its only readers."""
    writer = editor.writer(node.inputs[0])
    while writer is not None and writer.operator == "quantize":
        writer = editor.writer(writer.inputs[0])
    if writer is None or not _is_flattening(editor, writer):
        return None
    return writer if sum(n > 1 for n in editor.shape(writer.inputs[0])) > 1 else None


def _is_flattening(editor: GraphEditor, node: Node) -> bool:
    if node.operator not in FLATTENING or editor.is_output(node.outputs[0]):
        return False
    before, after = editor.shape(node.inputs[0]), editor.shape(node.outputs[0])
    flattens = len(before) == 4 and before[0] == 1 and len(after) == 2 and after[0] == 1
    return flattens and bool(editor.readers(node.outputs[0])) and _all_dense(editor, node.outputs[0], ("quantize",))


def _all_dense(editor: GraphEditor, tensor: int, passed: Collection[str] = ()) -> bool:
    """Whether fully connected layers alone read a tensor, directly or behind one of these operators."""
    return all(
        reader.operator == _DENSE or (reader.operator in passed and _all_dense(editor, reader.outputs[0]))
        for reader in editor.readers(tensor)
    )


def _is_turned(editor: GraphEditor, tensor: int) -> bool | None:
    """Whether NNTool turns the map; None if it holds it channels last, or that is not known."""
    writer = editor.writer(tensor)
    if writer is not None and _is_of_filter(editor, writer):
        kinds = _readers(editor, tensor)
        return False if "mean" in kinds and kinds <= {"mean", "dense"} else None
    sources, kinds = _sources_and_readers(editor, tensor)
    if "other" in kinds or not sources:
        return None
    if sources <= set(RESIZES):
        return bool(kinds & {"mean", "ordered"})
    return True if sources == {"input"} and "mean" in kinds else None


def _sources_and_readers(editor: GraphEditor, tensor: int) -> tuple[set[str], set[str]]:
    """Return operators that write the tensors that are joined with one element by element, and kinds of readers."""
    sources, kinds = set[str](), set[str]()
    for t in joined(editor, tensor, _JOINED):
        kinds |= _readers(editor, t)
        writer = editor.writer(t)
        sources |= {"input" if writer is None else writer.operator} - {*_JOINED}
    return sources, kinds


def _is_of_filter(editor: GraphEditor, node: Node) -> bool:
    fused = node.attributes.text("fusion", "")
    first = next((n for n in editor.nodes if fused and n.attributes.text("fusion", "") == fused), node)
    return first.operator in (*FILTERS, *POOLS)


def _readers(editor: GraphEditor, tensor: int) -> set[str]:
    """Return the kinds of operators that read a tensor, without elementwise ones."""
    kinds = set()
    for node in editor.readers(tensor):
        if node.operator in GLOBAL_POOLS and reduces_image(editor, node):
            kinds.add("mean")
        elif _is_flattening(editor, node):
            kinds.add("dense")
        elif node.operator in (*CONVOLUTIONS, *POOLS):
            kinds.add("ordered")
        elif node.operator not in _JOINED:
            kinds.add("other")
    return kinds
