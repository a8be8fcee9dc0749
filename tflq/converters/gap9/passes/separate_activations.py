"""Fused activations become nodes of their own; ranges that begin at 0 add a ReLU; ReLUs that do nothing go."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import LSTM, POOLS, RECTIFIERS, departing
from tflq.converters.gap9.passes.constants import real_constant
from tflq.graph import ABSENT, Attributes, Node, Range, Tensor
from tflq.graph.operators import LINEAR_OPERATORS, RESHAPES, Trait, with_traits
from tflq.graph.rewriting import GraphEditor, fused_activation

_IMPLIED = (*LINEAR_OPERATORS, *POOLS, *with_traits(Trait.ARITHMETIC))
"""Operators whose range from 0 on counts as a ReLU; never a mean or a concatenation."""
READ_IN_FILE = "read_in_file"
"""Attribute of a fully connected layer: an operator of the file reads it; NNTool counts a DEQUANTIZE at the output."""
Operand = tuple[str, int]
"""(name of a node, input position)."""
_KEPT = "NNTool may keep the ReLU that its range implies, or fails on it (17.19)"
_LOST = "NNTool leaves out the activation of a fully connected layer that no operator reads (17.30)"
_ALL_OPERANDS = ("concatenation", "add", "mul", "div")
_KEEP_BOUND = (*POOLS, *RESHAPES, "concatenation", "transpose")
_KEEP_SIGN = (*_KEEP_BOUND, *_ALL_OPERANDS)


def separate_activations(editor: Gap9Editor) -> None:
    """Insert a node `<layer>_activation` for each fused or implied activation.

    The activation writes the tensor that the layer wrote; the layer writes a new one with the same range. A fully
    connected layer without a reader has no implied activation, and in NNTool (numerics=nntool) no fused one. A
    DEQUANTIZE or QUANTIZE of the file is a reader.
    """
    for node in editor.nodes:
        is_last = node.operator == "fully_connected" and not _is_read(editor, node)
        node = _forget_readers(editor, node)
        if is_last and fused_activation(node) != "none":
            node = editor.replace(node, departing(node, _LOST))
            if editor.is_vendor(node):
                node = editor.change(node, fused_activation_function="none")
        written = editor.tensors[node.outputs[0]]
        activation = _activation(node, written, is_last)
        if activation is not None:
            node = editor.change(node, fused_activation_function="none")
            added = Node(activation, (), (), Attributes({"layer": node.name}), f"{node.name}_activation")
            editor.insert_after(node, added, replace(written, name=node.name))


def _is_read(editor: GraphEditor, node: Node) -> bool:
    return node.attributes.boolean(READ_IN_FILE, False) or bool(editor.readers(node.outputs[0]))


def _forget_readers(editor: GraphEditor, node: Node) -> Node:
    """Remove the attribute READ_IN_FILE, which no later pass reads."""
    if READ_IN_FILE not in node.attributes:
        return node
    kept = {key: value for key, value in node.attributes.items() if key != READ_IN_FILE}
    return editor.replace(node, replace(node, attributes=Attributes(kept)))


def remove_idle_rectifiers(editor: GraphEditor, quantized: Callable[[], Collection[Operand]]) -> None:
    """Remove ReLUs with an input that is known to be non-negative (ReLU6: and known not to exceed 6).

    The sign is followed from ReLUs and constants through additions, products, pools and moves; the upper bound
    through pools and moves only. Neither is followed through the Quantize nodes of NNTool's loader.

    Args:
        editor: Graph in which activations are nodes.
        quantized: Returns the operands that read such a Quantize node; called if a ReLU is redundant without them.
    """
    idle, pools = _find_idle(editor, ())
    places = quantized() if idle else ()
    if places:
        idle, pools = _find_idle(editor, places)
    for pool in pools:
        editor.change(pool, departure=_KEPT)
    for name in [node.name for node in idle]:
        node = editor.node(name)
        (kept,), (removed,) = node.inputs, node.outputs
        if editor.only_reader(kept) is not None:  # both are the same value, of which the file names the second
            editor.tensors[kept] = replace(editor.tensors[kept], name=editor.tensors[removed].name)
        editor.redirect(removed, kept)
    editor.remove_unread(idle)


def _find_idle(editor: GraphEditor, quantized: Collection[Operand]) -> tuple[list[Node], list[Node]]:
    """Return the redundant rectifiers, and the pools upstream of them that may keep theirs in NNTool."""
    bounds: dict[int, float] = {}  # tensors known to be non-negative -> upper bound
    mixed: set[int] = set()  # tensors downstream of a concatenation of operands with different bounds
    sources: dict[int, int] = {}  # result of a redundant rectifier -> tensor that replaces it
    idle, pools = list[Node](), list[Node]()
    for node in editor.nodes:
        stated = {p: _bound(editor, bounds, t) for p, t in enumerate(node.inputs) if t != ABSENT}
        known = [None if (node.name, p) in quantized else bound for p, bound in stated.items()]
        if mixed.intersection(node.inputs) or (node.operator == "concatenation" and len({*stated.values()}) > 1):
            mixed.update(node.outputs)
        if node.operator in RECTIFIERS:
            limit, first = 6.0 if node.operator == "relu6" else np.inf, known[0]
            kept = sources.get(node.inputs[0], node.inputs[0])
            pool = editor.writer(kept) if kept in mixed and _is_within(stated[0], limit) else None
            if pool is not None and pool.operator in POOLS:
                pools.append(pool)
            if _is_within(first, limit):
                sources[node.outputs[0]] = kept
                idle.append(node)
            bounds[node.outputs[0]] = limit if first is None else min(limit, first)
        elif node.operator == "hard_sigmoid":
            bounds[node.outputs[0]] = np.inf
        elif node.operator in _KEEP_SIGN and not _has_folded_padding(node):
            operands = known if node.operator in _ALL_OPERANDS else known[:1]
            limits = [bound for bound in operands if bound is not None]
            if len(limits) == len(operands):
                limit = max(limits, default=np.inf) if node.operator in _KEEP_BOUND else np.inf
                bounds.update(dict.fromkeys(node.outputs, limit))
    return idle, pools


def _has_folded_padding(node: Node) -> bool:
    """Whether a pool folds a PAD, through which NNTool does not follow the sign."""
    return node.operator in POOLS and "explicit_padding" in node.attributes


def _is_within(bound: float | None, limit: float) -> bool:
    return bound is not None and bound <= limit


def _activation(node: Node, written: Tensor, is_last: bool) -> str | None:
    """The fused one; of a quantized file a range that begins at 0 implies one."""
    fused = fused_activation(node)
    if node.operator == LSTM:
        return None
    if fused != "none":
        return fused
    range_ = None if written.dtype.is_floating or is_last else written.range
    return implied_rectifier(range_) if node.operator in _IMPLIED and range_ is not None else None


def implied_rectifier(range_: Range) -> str | None:
    """Return the activation that the range of a layer without one implies: it begins at 0."""
    if range_.minimum[0] != 0:
        return None
    return "relu6" if np.round(range_.maximum[0]) == 6 else "relu"


def _bound(editor: GraphEditor, bounds: dict[int, float], tensor: int) -> float | None:
    stated = editor.tensors[tensor]
    if stated.data is None:
        return bounds.get(tensor)
    return np.inf if stated.size and real_constant(stated).min() >= 0 else None
