"""Canonical form of a network: no idle moves, no two equal layers, one product for each slice of a product.

Source: docs/rules/tpu_mlir_front_end.md#the-rewrites-in-order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.passes.merge_equal import merge_equal
from tflq.converters.passes.rewrite import constant
from tflq.converters.tpu_mlir.passes.forms import is_channels_last
from tflq.graph import ABSENT, Graph, Node
from tflq.graph.operators import Trait, has_trait
from tflq.graph.rewriting import GraphEditor, fused_activation

PIECE = "piece"
"""Attribute of a part of a product: its number from 1."""
WHOLE = "whole"
"""Attribute of a part of a product: the tensor of the whole product, which has the line of the calibration table."""
_SLICES = ("slice", "strided_slice", "split", "split_v")


def align_sums(editor: GraphEditor) -> None:
    """Let an ADD read the source of reshapes that only remove leading axes of length 1.

    The tool reshapes an operand of a lower rank to the rank of the sum. That reshape and those of the model are one,
    which keeps the shape and is removed. The other operators of two tensors keep the operand.
    """
    for node in editor.nodes_of("add"):
        rank = len(editor.shape(node.outputs[0]))
        for position, t in enumerate(node.inputs):
            shape = editor.shape(t)
            source = _find_source(editor, t, (1,) * (rank - len(shape)) + shape)
            if source is not None and editor.constant(t) is None:
                moves = _reshapes_before(editor, t)
                editor.set_input(node, position, source)
                editor.remove_unread(moves)


def remove_idle_moves(editor: GraphEditor) -> None:
    """Remove reshapes in a row that restore the shape, and transpositions that keep the order."""
    for name in [node.name for node in editor.nodes]:
        if name not in editor or editor.is_output(editor.node(name).outputs[0]):
            continue
        node = editor.node(name)
        t = node.outputs[0]
        source = _find_source(editor, t, editor.shape(t)) if node.operator != "transpose" else _ordered(editor, node)
        if source is not None:
            moves = _reshapes_before(editor, t)
            editor.redirect(t, source)
            editor.remove_unread([node, *moves])


def _reshapes_before(editor: GraphEditor, t: int) -> list[Node]:
    """Return the reshapes in a row that end at a tensor, the last one first."""
    moves = list[Node]()
    while (move := editor.writer(t)) is not None and has_trait(move, Trait.RESHAPE):
        moves.append(move)
        t = move.inputs[0]
    return moves


def _find_source(editor: GraphEditor, t: int, shape: tuple[int, ...]) -> int | None:
    """Return the first tensor of a shape upstream of the reshapes in a row that end at a tensor; None without one.

    An image is permuted around its reshapes in TPU-MLIR, which then stay.
    """
    moves = _reshapes_before(editor, t)
    for number, move in reversed(list(enumerate(moves))):
        is_image = len(shape) == 4 and not is_channels_last(move)
        if editor.shape(move.inputs[0]) == shape and not (number and is_image):
            return move.inputs[0]
    return None


def _ordered(editor: GraphEditor, node: Node) -> int | None:
    """Return the input of a transposition that keeps the order; None for other ones."""
    order = editor.constant(node.inputs[1])
    return node.inputs[0] if order is not None and np.array_equal(order, np.arange(order.size)) else None


def merge_equal_nodes(editor: GraphEditor) -> None:
    """Merge layers of one kind with the same operands in the same order and equal attributes, until none are equal."""
    merge_equal(editor, keeps_ranges=False)


def flatten_concatenations(editor: GraphEditor) -> None:
    """Let a CONCATENATION read the operands of another one along the same axis that has no other reader."""
    for node in editor.nodes_of("concatenation"):
        place = 0
        while place < len(inputs := editor.node(node.name).inputs):
            inner = editor.writer_of(inputs[place], "concatenation")
            is_joined = inner is not None and editor.only_reader(inputs[place]) is not None
            if (
                inner is None
                or not is_joined
                or fused_activation(inner) != "none"
                or _axis(editor, inner) != _axis(editor, node)
            ):
                place += 1
                continue
            editor.change(node, inputs=(*inputs[:place], *inner.inputs, *inputs[place + 1 :]))
            editor.remove(inner)


def _axis(editor: GraphEditor, node: Node) -> int:
    return node.attributes.integer("axis") % len(editor.shape(node.outputs[0]))


def fuse_right_transpose(editor: GraphEditor) -> None:
    """Let BATCH_MATMUL transpose its right operand if a TRANSPOSE of the last two axes with one reader writes it."""
    for node in editor.nodes_of("batch_matmul"):
        move = editor.writer_of(node.inputs[1], "transpose")
        order = None if move is None else editor.constant(move.inputs[1])
        if move is None or order is None or editor.only_reader(move.outputs[0]) is None:
            continue
        *outer, row, column = range(order.size)
        if order.tolist() == [*outer, column, row]:
            editor.set_input(node, 1, move.inputs[0])
            editor.change(node, adj_y=not node.attributes.boolean("adj_y", False))
            editor.remove(move)


def split_products(editor: GraphEditor) -> None:
    """Split a FULLY_CONNECTED whose readers are slices of its last axis that partition it.

    Each piece has its own weights, and so its own scale; its range is that of the whole product.
    """
    for node in editor.nodes_of("fully_connected"):
        pieces = _pieces(editor, node)
        if pieces is None:
            continue
        t = node.outputs[0]
        for number, (first, last, output) in enumerate(pieces, 1):
            given = [node.inputs[0], *(_part(editor, c, first, last) for c in node.inputs[1:])]
            whole = editor.tensors[t]
            editor.tensors[output] = replace(editor.tensors[output], range=whole.range)
            attributes = node.attributes.updated(piece=number, whole=t)
            piece = Node(node.operator, tuple(given), (output,), attributes, f"{node.name}_{number}")
            editor.add(piece, before=node)
        for reader in {reader.name: reader for reader in editor.readers(t)}.values():
            editor.remove(reader)
        editor.remove(node)


def piece_names(graph: Graph, names: Mapping[int, str]) -> Mapping[int, str]:
    """Return TPU-MLIR's names of tensors after `split_products`: `<product>_matmul_1`, `_matmul_2`, ..."""
    pieces = (node for node in graph.nodes if PIECE in node.attributes)
    return {**names, **{n.outputs[0]: f"{names[_whole(n)]}_matmul_{n.attributes.integer(PIECE)}" for n in pieces}}


def whole_names(graph: Graph, names: Mapping[int, str]) -> Mapping[int, str]:
    """Return the name of the whole product for each of its parts."""
    return {node.outputs[0]: names[_whole(node)] for node in graph.nodes if WHOLE in node.attributes}


def _whole(node: Node) -> int:
    return node.attributes.integer(WHOLE)


def _part(editor: GraphEditor, t: int, first: int, last: int) -> int:
    """Return the rows of weights or a bias that belong to some output channels."""
    data = editor.constant(t)
    if data is None:
        return ABSENT
    return editor.add_tensor(constant(f"{editor.tensors[t].name}_{first}", np.ascontiguousarray(data[first:last])))


def _pieces(editor: GraphEditor, node: Node) -> list[tuple[int, int, int]] | None:
    """Return (first channel, end, tensor) of each slice in order; None if the slices do not partition the result."""
    t = node.outputs[0]
    readers = {reader.name: reader for reader in editor.readers(t)}.values()
    if editor.is_output(t) or not readers or editor.constant(node.inputs[1]) is None:
        return None
    pieces = list[tuple[int, int, int]]()
    for reader in readers:
        own = _ranges(editor, reader, t) if reader.operator in _SLICES else None
        if own is None:
            return None
        pieces += own
    pieces.sort()
    ends = [0, *(last for _, last, _ in pieces)]
    is_partition = all(first == end for (first, _, _), end in zip(pieces, ends[:-1], strict=True))
    return pieces if len(pieces) > 1 and is_partition and ends[-1] == editor.shape(t)[-1] else None


def _ranges(editor: GraphEditor, node: Node, x: int) -> list[tuple[int, int, int]] | None:
    """Return (first, end, tensor) along the last axis of what a slice or split returns; None for other cuts."""
    old = editor.shape(x)
    shapes = [editor.shape(t) for t in node.outputs]
    if any(shape[:-1] != old[:-1] for shape in shapes):
        return None
    if node.operator in ("split", "split_v"):
        ends = np.cumsum([shape[-1] for shape in shapes])
        pieces = zip(ends, shapes, node.outputs, strict=True)
        return [(int(e) - s[-1], int(e), t) for e, s, t in pieces if editor.uses(t)]  # the tool has no unread slices
    begin, *others = (editor.constant(t) for t in node.inputs[1:])
    if begin is None or (node.operator == "strided_slice" and (others[1] is None or np.any(others[1] != 1))):
        return None
    is_open = node.operator == "strided_slice" and node.attributes.integer("begin_mask", 0) >> (len(old) - 1) & 1
    first = 0 if is_open else int(begin.reshape(-1)[-1]) % old[-1]
    return [(first, first + shapes[0][-1], node.outputs[0])]
