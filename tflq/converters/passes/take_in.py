"""Rewrites that fold a node into a layer: the PAD upstream of a convolution or a pool, the activation downstream."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tflq.errors import GraphError
from tflq.graph import Node, Operands, Tensor
from tflq.graph.operators import CONVOLUTIONS, Trait, with_traits
from tflq.graph.rewriting import GraphEditor, fused_activation
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.operands.windows import window_of_node

PADS = with_traits(Trait.PAD) - {"mirror_pad"}
"""Operators that pad with one value."""


def fold_padding(
    editor: GraphEditor,
    into: Collection[str] = CONVOLUTIONS,
    on_fold: Callable[[Node, Window], object] = lambda _node, _window: None,
) -> None:
    """Fold each PAD of zeros into the window that is its only reader, as explicit padding (top, bottom, left, right).

    Args:
        editor: Graph to change.
        into: Operators of the windows.
        on_fold: Called with each changed operator, and its window without the PAD.
    """
    for node in editor.nodes:
        reader = editor.only_reader(node.outputs[0]) if node.operator in PADS else None
        amounts = foldable_padding(editor.tensors, node)
        if reader is None or amounts is None or reader.operator not in into:
            continue
        window = window_of_node(reader, *(editor.shape(t) for t in reader.inputs[:2]))
        total = tuple(a + b for a, b in zip(amounts, window.padding, strict=True))
        changed = editor.change(reader, inputs=(node.inputs[0], *reader.inputs[1:]), explicit_padding=total)
        editor.remove(node)
        on_fold(changed, window)


def foldable_padding(tensors: Sequence[Tensor], node: Node) -> tuple[int, int, int, int] | None:
    """Return (top, bottom, left, right) of a PAD of zeros on height and width; None for any other node."""
    if node.operator not in PADS:
        return None
    operands = Operands.from_node(tensors, node)
    try:
        amounts = operands.constant(1)
    except GraphError:
        return None
    if node.operator == "padv2" and not _is_zero(operands.input(2)):
        return None
    if amounts.shape != (4, 2) or amounts[0].any() or amounts[3].any():
        return None
    (top, bottom), (left, right) = amounts[1:3].tolist()
    return int(top), int(bottom), int(left), int(right)


def _is_zero(value: Tensor) -> bool:
    zero_point = int(value.affine.zero_point[0]) if value.dtype.is_integer else 0
    return value.data is not None and bool((value.data == zero_point).all())


def fusable_activation(
    editor: GraphEditor, node: Node, into: Collection[str], activations: Collection[str]
) -> Node | None:
    """Return the only reader of a node if it is an activation that can be fused into it, None otherwise.

    Args:
        editor: Graph with the node.
        node: Layer that may fuse the activation.
        into: Operators that fuse an activation.
        activations: Operators that can be fused.
    """
    if node.operator not in into or fused_activation(node) != "none":
        return None
    reader = editor.only_reader(node.outputs[0])
    return reader if reader is not None and reader.operator in activations else None


def fuse_activations(editor: GraphEditor, into: Collection[str], activations: Collection[str]) -> None:
    """Fuse each activation of `fusable_activation` into its layer, which then writes the activation's tensor."""
    for node in editor.nodes:
        activation = fusable_activation(editor, node, into, activations)
        if activation is not None:
            editor.remove(activation)
            editor.change(node, outputs=activation.outputs, fused_activation_function=activation.operator)
