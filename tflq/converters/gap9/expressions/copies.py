"""Quantize nodes that NNTool's loader has put in front of readers, and that its matcher then takes into expressions.

Where a softmax or a hard swish, which want a symmetric type, and an operator of an expression read one asymmetric
tensor, the softmax becomes a reader of the expression, which hands the tensor on in the type that softmax wants.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.gap9.expressions.groups import CANDIDATES, COPY
from tflq.converters.gap9.operators import FILTERS, MOVES, POOLS, RECTIFIERS, departing, layer_of
from tflq.graph import Attributes, Node
from tflq.graph.rewriting import GraphEditor

_OTHERWISE = "NNTool's matcher may take the Quantize node in front of it into an expression in another way (22)"
_WANT_SYMMETRIC = ("softmax", "hard_swish")


def insert_copies(editor: GraphEditor) -> None:
    """Insert a COPY upstream of these readers, which takes part in groups.

    NNTool may do otherwise if what is moved into the tensor has such a reader, too; the reader says so.
    """
    places = [(node, _is_demanded_above(editor, node.inputs[0])) for node in editor.nodes if _takes_copy(editor, node)]
    for node, is_demanded in places:
        name = f"{node.name}_qin0"
        copied = Node(COPY, (), (), Attributes({"layer": layer_of(node)}), name)
        editor.insert_before(node, 0, copied, replace(editor.tensors[node.inputs[0]], name=name, data=None))
        if is_demanded:
            _mark(editor, editor.node(node.name))


def _takes_copy(editor: GraphEditor, node: Node) -> bool:
    if node.operator not in _WANT_SYMMETRIC or "fusion" in node.attributes:
        return False
    return any(map(_is_free, editor.readers(node.inputs[0]))) and _is_asymmetric(editor, node.inputs[0])


def remove_copies(editor: GraphEditor) -> None:
    """Remove the copies that no expression has taken; their readers say that NNTool may have taken them."""
    for node in editor.nodes:
        if node.operator == COPY:
            for reader in editor.readers(node.outputs[0]):
                _mark(editor, reader)
            editor.bypass(node)


def _mark(editor: GraphEditor, node: Node) -> None:
    editor.replace(node, departing(node, _OTHERWISE))


def _is_demanded_above(editor: GraphEditor, tensor: int) -> bool:
    """Whether a softmax or a hard swish reads what is moved into the tensor."""
    writer = editor.writer(tensor)
    if writer is None or writer.operator not in MOVES:
        return False
    readers = (reader.operator for t in writer.inputs for reader in editor.readers(t))
    return not set(_WANT_SYMMETRIC).isdisjoint(readers) or any(_is_demanded_above(editor, t) for t in writer.inputs)


def _is_free(node: Node) -> bool:
    return node.operator in CANDIDATES and "fusion" not in node.attributes


def _is_asymmetric(editor: GraphEditor, tensor: int) -> bool:
    """Whether the tensor's own type has a zero point: of a filter, with its ReLU or pool, and of an input from 0 on."""
    stated, node = editor.tensors[tensor].range, editor.writer(tensor)
    if node is None:
        return stated is not None and bool(stated.minimum[0] == 0)
    if node.operator in FILTERS:
        return True
    return node.operator in (*POOLS, *RECTIFIERS, *MOVES) and _is_asymmetric(editor, node.inputs[0])
