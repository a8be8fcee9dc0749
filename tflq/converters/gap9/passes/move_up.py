"""Pools and activations move up to the layer that they belong to, upstream of moves and rectifiers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from tflq.converters.gap9.operators import ACTIVATIONS, FILTERS, POOLS, RECTIFIERS, layer_of
from tflq.converters.passes.rewrite import derived_tensor, with_attributes
from tflq.graph import Node
from tflq.graph.operators import CONVOLUTIONS, RESHAPES
from tflq.graph.rewriting import GraphEditor, Value, find_matches, op

_MOVES = (*RESHAPES, "transpose", "concatenation")
_HOSTS = (*FILTERS, *POOLS, "add", "mul")
_UNDONE = op(RESHAPES, op(RESHAPES, Value("x"), shared=True))


def raise_pools(editor: GraphEditor) -> None:
    """Move max pools upstream of ReLUs: conv, ReLU, max pool becomes conv, max pool, ReLU.

    Maxima commute with ReLU and with concatenation along channels, where the pool enters every branch. Applied only if
    every tensor in between has a single reader.
    """
    for pool in editor.nodes:
        if pool.operator == "max_pool_2d":
            _raise_pool(editor, pool)


def raise_activations(editor: GraphEditor) -> None:
    """Move activations upstream of moves: layer, move, activation becomes layer, activation, move.

    Through a concatenation the activation enters every branch, if every branch ends in a filter, pool, Add or Mul.
    Applied only if every tensor in between has a single reader.
    """
    for node in editor.nodes:
        if node.operator in ACTIVATIONS and _is_behind_moves(editor, node.inputs[0]):
            _raise_activation(editor, node)


def remove_undone_reshapes(editor: GraphEditor) -> None:
    """Remove a reshape that restores the shape that an earlier reshape read."""
    for place in find_matches(editor, _UNDONE):
        (written,), origin = place.root.outputs, place.values["x"]
        if not editor.is_output(written) and editor.shape(origin) == editor.shape(written):
            editor.redirect(written, origin)
    editor.remove_dead()


def _branches(node: Node) -> tuple[int, ...]:
    """Return the inputs that a move passes on: all of a concatenation, otherwise the first."""
    return node.inputs if node.operator == "concatenation" else node.inputs[:1]


def _leads_to(editor: GraphEditor, tensor: int, hosts: Collection[str], passes: Callable[[Node], bool]) -> bool:
    """Whether all ways upstream of a tensor end in `hosts`, through nodes that pass data on, each read once."""
    node = editor.writer(tensor)
    if node is None or editor.only_reader(tensor) is None:
        return False
    return node.operator in hosts or (
        passes(node) and all(_leads_to(editor, t, hosts, passes) for t in _branches(node))
    )


def _raise_pool(editor: GraphEditor, pool: Node) -> None:
    """Move a pool up through ReLUs, and into the branches of the first concatenation."""
    while _leads_to(editor, pool.inputs[0], CONVOLUTIONS, _commutes_with_maxima):
        if (writer := editor.writer(pool.inputs[0])) is None or writer.operator in CONVOLUTIONS:
            return
        if writer.operator == "concatenation":
            for branch in _enter_branches(editor, writer, pool):
                _pass_rectifiers(editor, branch)
            return
        pool = _swap_with_rectifier(editor, writer, pool)


def _commutes_with_maxima(node: Node) -> bool:
    if node.operator == "concatenation":
        return node.attributes.integer("axis") in (-1, 3)
    return node.operator in RECTIFIERS


def _pass_rectifiers(editor: GraphEditor, pool: Node) -> None:
    while (writer := editor.writer(pool.inputs[0])) is not None and writer.operator in RECTIFIERS:
        pool = _swap_with_rectifier(editor, writer, pool)


def _swap_with_rectifier(editor: GraphEditor, relu: Node, pool: Node) -> Node:
    (source,), (written,) = relu.inputs, pool.outputs
    inner = derived_tensor(editor, source, pool.name, editor.shape(written))
    editor.tensors[written] = replace(editor.tensors[written], range=editor.tensors[relu.outputs[0]].range)
    editor.swap(relu, pool)
    editor.change(relu, inputs=(inner,), outputs=(written,))
    return editor.change(pool, inputs=(source,), outputs=(inner,))


def _enter_branches(editor: GraphEditor, concatenation: Node, pool: Node) -> Iterator[Node]:
    """Put a copy of the pool into each branch of a concatenation and return the copies."""
    height, width = editor.shape(pool.outputs[0])[1:3]
    editor.swap(concatenation, pool)
    written, copies, last = [], [], pool
    for number, t in enumerate(concatenation.inputs):
        name = f"{pool.name}_{number}" if number else pool.name
        batch, _, _, channels = editor.shape(t)
        written.append(derived_tensor(editor, t, name, (batch, height, width, channels)))
        copy = replace(with_attributes(pool, layer=layer_of(pool)), inputs=(t,), outputs=(written[-1],), name=name)
        last = editor.add(copy, after=last) if number else editor.replace(pool, copy)
        copies.append(last)
    editor.change(concatenation, inputs=written, outputs=pool.outputs)
    return iter(copies)


def _is_behind_moves(editor: GraphEditor, tensor: int) -> bool:
    """Whether a move writes a tensor, and all ways upstream lead to layers that fuse an activation."""
    writer = editor.writer(tensor)
    return writer is not None and _moves(writer) and _leads_to(editor, tensor, _HOSTS, _moves)


def _moves(node: Node) -> bool:
    return node.operator in _MOVES


def _raise_activation(editor: GraphEditor, activation: Node) -> None:
    """Remove the activation and add a copy downstream of each host."""
    (inner,), (outer,) = activation.inputs, activation.outputs
    hosts, last = list(_hosts(editor, inner)), editor.writer(inner)
    assert last is not None
    editor.remove(activation)
    editor.change(last, outputs=(outer,))
    for number, t in enumerate(hosts):
        name = activation.name if len(hosts) == 1 else f"{activation.name}_{number}"
        written, (reader,) = derived_tensor(editor, outer, name, editor.shape(t)), editor.readers(t)
        copy = with_attributes(activation, layer=layer_of(activation))
        editor.add(replace(copy, inputs=(t,), outputs=(written,), name=name), before=reader)
        editor.set_input(reader, reader.inputs.index(t), written)
    _spread_range(editor, outer)


def _hosts(editor: GraphEditor, tensor: int) -> Iterator[int]:
    """Yield the tensors that hosts write, in order of the branches."""
    node = editor.writer(tensor)
    if node is None or node.operator in _HOSTS:
        yield tensor
        return
    for branch in _branches(node):
        yield from _hosts(editor, branch)


def _spread_range(editor: GraphEditor, tensor: int) -> None:
    """Give the moves between the activation and `tensor` the range of the activation's result."""
    node = editor.writer(tensor)
    for t in _branches(node) if node is not None and _moves(node) else ():
        editor.tensors[t] = replace(editor.tensors[t], range=editor.tensors[tensor].range)
        _spread_range(editor, t)
